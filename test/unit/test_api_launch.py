"""Launches from Python without a GPU: what is asked of the driver, by the fake of `fake_cuda`."""

import ctypes
import gc
import itertools
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest

import stepladder
from bundles import edit_manifest
from conftest import make_manifest, make_problem
from fake_cuda import KERNEL, FakeGpu, Names
from stepladder.api import gpu as api_gpu
from stepladder.api.building import Built, target_for
from stepladder.api.gpu import LoadedKernel, open_gpu
from stepladder.api.gpu_functions import PreparedFunction
from stepladder.api.kernel import Kernel
from stepladder.api.results import stream_of
from stepladder.api.views import View, row_major
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import build_function
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import Bundle, FunctionBundle, read_bundle
from stepladder.runtime.function_launch import LoadedFunction
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import matmul_program
from weight_functions import EARLY, bundle_of, chain, projections

CONTEXT = 1234
OTHER = 99
STREAM = 555
OWN = 777  # a stream that is made


class Driver:
    """What of the driver `fake_cuda` lacks: contexts, captures."""

    def __init__(self, fake: FakeGpu) -> None:
        self.current = OTHER
        self.capture = (0, 0)
        fake.set_current = self.set_current
        self.pushed: list[int] = []
        driver = fake.driver
        driver.CUcontext = driver.CUstream = int
        driver.CUstreamCaptureMode = driver.CUstreamCaptureStatus = driver.CUstream_flags = Names()
        driver.results |= {
            "cuInit": lambda flags: None,
            "cuCtxGetCurrent": lambda: self.current,
            "cuCtxSetCurrent": self.make_current,
            "cuCtxPushCurrent": self.push,
            "cuCtxPopCurrent": self.pop,
            "cuThreadExchangeStreamCaptureMode": lambda mode: mode,
            "cuStreamCreate": lambda flags: OWN,
            "cuStreamEndCapture": lambda stream: 888,
            "cuGraphInstantiate": lambda graph, flags: 999,
        }
        driver.cuStreamGetCaptureInfo = lambda stream: (0, *self.capture)
        driver.cuStreamIsCapturing = lambda stream: (0, self.capture[0])

    def set_current(self) -> None:
        self.current = CONTEXT

    def make_current(self, context: int) -> None:
        self.current = context

    def push(self, context: int) -> None:
        self.pushed.append(self.current)
        self.current = context

    def pop(self) -> int:
        self.current = self.pushed.pop()
        return CONTEXT


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    monkeypatch.setattr(api_gpu, "_gpus", {})
    monkeypatch.setattr(api_gpu, "_in_graphs", {})
    gpu = FakeGpu()
    gpu.contexts = Driver(gpu)
    open_gpu(0, gpu.cuda)
    return gpu


def views(problem: Problem, *addresses: int, device: int | None = 0) -> list[View]:
    shapes = [problem.a_shape, problem.b_shape, problem.c_shape]
    types = [problem.a_type, problem.b_type, problem.c_type]
    return [
        View(name, address, shape, row_major(shape), type_, device, SimpleNamespace(name=name))
        for name, address, shape, type_ in zip(("a", "b", "out"), addresses, shapes, types)
    ]


def kernel_of(bundle: Bundle, *, constant_weights: bool = False) -> Kernel:
    reference = matmul_program(bundle.manifest.problem)
    whole = Bundle(bundle.path, bundle.manifest, bundle.cubin, bundle.ptx, reference)
    return Kernel(Built(whole, None, None), constant_weights=constant_weights)


def launches(gpu: FakeGpu) -> list[list]:
    return gpu.called("cuLaunchKernelEx")


def test_the_context_of_the_thread_stays(fake: FakeGpu, bundle: Path) -> None:
    assert fake.contexts.current == OTHER
    kernel = kernel_of(read_bundle(bundle))
    a, b, out = views(kernel.manifest.problem, 0x1000, 0x8000, 0x20000)
    assert kernel.run([a, b], out, STREAM) is out.array
    assert kernel.run([a, b], out, 0) is out.array
    assert fake.contexts.current == OTHER and not fake.contexts.pushed
    streams = [config.hStream for config, *_ in launches(fake)]
    assert streams == [STREAM, 0] and launches(fake)[0][1] == KERNEL


def test_a_known_set_of_addresses_asks_for_nothing_but_the_launch(fake: FakeGpu, bundle: Path) -> None:
    kernel = kernel_of(read_bundle(bundle))
    a, b, out = views(kernel.manifest.problem, 0x1000, 0x8000, 0x20000)
    kernel.run([a, b], out, STREAM)
    before = len(fake.calls)
    for _ in range(3):
        kernel.run([a, b], out, STREAM)
    assert [name for name, *_ in fake.calls[before:]] == ["cuLaunchKernelEx"] * 3
    config, function, places, extra = launches(fake)[-1]
    assert (config.gridDimX, config.blockDimX, function, extra) == (1, 64, KERNEL, 0) and type(places) is int


def test_descriptors_are_encoded_once_for_an_address(fake: FakeGpu, tma_bundle: Path) -> None:
    fake.cluster = (1, 2, 1)
    kernel = kernel_of(read_bundle(tma_bundle))
    a, b, out = views(kernel.manifest.problem, 0x1000, 0x8000, 0x20000)
    kernel.run([a, b], out, STREAM)
    kernel.run([a, b], out, STREAM)
    assert [item["address"] for item in fake.driver.encoded] == [0x8000, 0x1000]
    other, *_ = views(kernel.manifest.problem, 0x40000)
    kernel.run([other, b], out, STREAM)
    assert [item["address"] for item in fake.driver.encoded][2:] == [0x8000, 0x40000]
    assert launches(fake)[0][0].numAttrs == 1  # programmatic dependent launch


@pytest.mark.parametrize("keeps", [False, True])
def test_weights_that_are_kept_are_read_while_the_kernel_before_ends(
    fake: FakeGpu, tma_bundle: Path, keeps: bool
) -> None:
    fake.cluster = (1, 2, 1)
    edit_manifest(tma_bundle, lambda data: data.update(dependent_launch=False, read_early=["b"]))
    kernel = kernel_of(read_bundle(tma_bundle), constant_weights=keeps)
    a, b, out = views(kernel.manifest.problem, 0x1000, 0x8000, 0x20000)
    kernel.run([a, b], out, STREAM)
    assert hasattr(launches(fake)[0][0], "numAttrs") is keeps


def test_a_kernel_with_a_workspace_is_loaded_once_a_stream(fake: FakeGpu) -> None:
    problem = make_problem(accumulate=False)
    ptx = "\t.global .align 16 .b8 workspace[1024];\n"
    bundle = Bundle(SimpleNamespace(name="x"), make_manifest(problem), b"cubin", ptx, matmul_program(problem))
    loaded = LoadedKernel(bundle, open_gpu(0))
    assert len(fake.called("load")) == 1
    loaded.launch((16, 32, 48), STREAM)
    loaded.launch((16, 32, 48), STREAM)
    assert len(fake.called("load")) == 1
    loaded.launch((16, 32, 48), STREAM + 1)
    assert len(fake.called("load")) == 2
    active = fake.driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
    for number, loads in ((7, 3), (7, 3), (8, 4)):
        fake.contexts.capture = (active, number)
        loaded.launch((16, 32, 48), STREAM)
        assert len(fake.called("load")) == loads
    assert len(launches(fake)) == 6


@pytest.mark.parametrize("captured", [False, True])
def test_a_workspace_stays_for_graphs_of_launches(fake: FakeGpu, captured: bool) -> None:
    """A graph may be launched when nothing refers to the kernel any more."""
    problem = make_problem(accumulate=False)
    ptx = "\t.global .align 16 .b8 workspace[1024];\n"
    bundle = Bundle(SimpleNamespace(name="x"), make_manifest(problem), b"cubin", ptx, matmul_program(problem))
    loaded = LoadedKernel(bundle, open_gpu(0))
    if captured:
        fake.contexts.capture = (fake.driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE, 7)
    loaded.launch((16, 32, 48), STREAM)
    (copy,) = map(weakref.ref, loaded._copies.values())
    del loaded
    gc.collect()
    assert (copy() is not None) is captured


def test_kernels_in_front_are_launched_with_workspaces_of_the_stream(fake: FakeGpu, tmp_path: Path) -> None:
    """A and B of odd pitches are copied to workspaces, which the TMA descriptors of the matmul are of."""
    knobs = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "epilogue": "registers"}
    with mlir_context():
        build(matmul_text(67, 33, 29, accumulate=False), "odd.mlir", Request("wgmma", knobs)).write(tmp_path / "odd")
    kernel = Kernel(Built(read_bundle(tmp_path / "odd"), None, None))
    fake.addresses = itertools.count(0x100000, 0x10000)
    a, b, out = views(kernel.manifest.problem, 0x1000, 0x8000, 0x20000)
    kernel.run([a, b], out, STREAM)
    kernel.run([a, b], out, STREAM)
    kernel.run([a, b], out, STREAM + 1)

    def addresses(launch: list) -> list[int]:
        places = ctypes.cast(launch[2], ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
        return [places[number][0] for number in range(4)]

    workspaces = [item["address"] for item in fake.driver.encoded]
    assert len(set(workspaces)) == 4 and not {0, 0x1000, 0x8000, 0x20000} & set(workspaces)
    for first, (of_b, of_a) in ((0, workspaces[:2]), (2, workspaces[:2]), (4, workspaces[2:])):
        copies, last = launches(fake)[first : first + 2]
        assert {*addresses(copies)} == {0x1000, 0x8000, of_a, of_b}
        assert copies[0].hStream == last[0].hStream == STREAM + first // 4
        assert not hasattr(copies[0], "numAttrs") and last[0].numAttrs == 1  # a copy waits for all work before it


def test_kernels_of_a_function_are_launched_in_order_on_a_workspace_of_the_stream(fake: FakeGpu) -> None:
    text = (Path(__file__).parents[1] / "inputs" / "functions" / "mul_before.mlir").read_text()
    with mlir_context():
        made = build_function(text, "mul_before", Request("auto", {"target": "sm_90a"}, tuned=True))
    fake.cluster = made.bundle.matmul(made.bundle.manifest.launches[1]).manifest.cluster
    fake.addresses = itertools.count(0x100000, 0x10000)
    prepared = PreparedFunction(made.bundle, open_gpu(0))
    addresses = (0x1000, 0x2000, 0x3000, 0x4000, 0x5000)  # x, y, weight and bias, and the result
    for stream in (STREAM, STREAM, STREAM + 1):
        prepared.launch(addresses, stream)
    assert fake.contexts.current == OTHER and not fake.contexts.pushed
    assert len(fake.called("load")) == 4  # two kernels for each stream
    places = [ctypes.cast(item[2], ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64))) for item in launches(fake)]
    plain = [[place[number][0] for number in range(3)] for place in places[::2]]
    assert [words[:2] for words in plain] == [[0x1000, 0x2000]] * 3
    assert plain[0][2] == plain[1][2] != plain[2][2] and plain[0][2] % 256 == 0
    streams = [config.hStream for config, *_ in launches(fake)]
    assert streams == [STREAM] * 4 + [STREAM + 1] * 2
    # Both kernels may start while the one before them ends; the operand of the matmul is the workspace.
    assert [getattr(config, "numAttrs", 0) for config, *_ in launches(fake)] == [1] * 6
    encoded = [item["address"] for item in fake.driver.encoded]
    assert {plain[0][2], 0x3000} <= set(encoded) and plain[2][2] in encoded
    # Calls on the same addresses become a graph, captured on a stream of its own; another set of addresses has none.
    for _ in range(20):
        prepared.launch(addresses, STREAM)
    assert len(fake.called("cuStreamBeginCapture")) == len(fake.called("cuGraphInstantiate")) == 1
    assert len(fake.called("cuStreamDestroy")) == len(fake.called("cuGraphDestroy")) == 1
    replays = fake.called("cuGraphLaunch")
    assert len(replays) == 14 and {stream for _, stream in replays} == {STREAM}
    assert [config.hStream for config, *_ in launches(fake)][-2:] == [OWN, OWN]
    count = len(launches(fake))
    prepared.launch((0x6000, *addresses[1:]), STREAM)
    assert len(launches(fake)) == count + 2
    active = fake.driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
    fake.contexts.capture = (active, 7)
    prepared.launch(addresses, STREAM)
    assert len(fake.called("load")) == 6  # a capture has a workspace of its own
    assert len(fake.called("cuGraphLaunch")) == 14
    fake.contexts.capture = (0, 0)
    prepared.launch(addresses, 0)  # the default stream is that of the context
    assert len(fake.called("cuCtxPushCurrent")) == len(fake.called("cuCtxPopCurrent")) > 0
    assert fake.contexts.current == OTHER and launches(fake)[-1][0].hStream == 0


def test_threads_prepare_a_launch_once(fake: FakeGpu, tma_bundle: Path) -> None:
    fake.cluster = (1, 2, 1)
    kernel = kernel_of(read_bundle(tma_bundle))
    a, b, out = views(kernel.manifest.problem, 0x1000, 0x8000, 0x20000)
    threads = [threading.Thread(target=lambda: [kernel.run([a, b], out, STREAM) for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(launches(fake)) == 160 and len(fake.driver.encoded) == 2 and len(fake.called("load")) == 1


def test_arguments_on_a_gpu(fake: FakeGpu, bundle: Path) -> None:
    kernel = kernel_of(read_bundle(bundle))
    problem = kernel.manifest.problem
    a, b, out = views(problem, 0x1000, 0x8000, 0x20000)
    with pytest.raises(stepladder.ArgumentError, match="'a' is on GPU 0 and 'b' is on GPU 1; accepted: all arrays on"):
        kernel.run([a, views(problem, 0, 0x8000, device=1)[1]], out)
    with pytest.raises(stepladder.ArgumentError, match="'a' is on GPU 0 and 'out' is in host memory"):
        kernel.run([a, b], views(problem, 0, 0, 0x20000, device=None)[2])
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' overlaps argument 'b' in memory"):
        kernel.run([a, b], views(problem, 0, 0, 0x8000 + 64)[2])
    with pytest.raises(stepladder.ArgumentError, match="argument 'a' begins at address 0x1002; accepted: multiples"):
        kernel.signature.inputs[0].check(views(problem, 0x1002)[0])
    assert not launches(fake)


def test_a_failed_launch_is_an_error(fake: FakeGpu, bundle: Path) -> None:
    kernel = kernel_of(read_bundle(bundle))
    a, b, out = views(kernel.manifest.problem, 0x1000, 0x8000, 0x20000)
    fake.errors["cuLaunchKernelEx"] = ["CUDA_ERROR_LAUNCH_FAILED"]
    with pytest.raises(stepladder.CudaError, match="cuLaunchKernelEx failed: CUDA_ERROR_LAUNCH_FAILED"):
        kernel.run([a, b], out, STREAM)


def test_streams_of_libraries() -> None:
    assert stream_of(5) == 5
    assert stream_of(SimpleNamespace(cuda_stream=6)) == stream_of(SimpleNamespace(ptr=6)) == 6
    assert stream_of(SimpleNamespace(__cuda_stream__=lambda: (0, 7))) == 7
    assert stream_of(None) == 0


def test_targets_of_gpus() -> None:
    capabilities = [(7, 5), (8, 0), (8, 7), (9, 0), (12, 0)]
    assert [target_for(item) for item in capabilities] == ["sm_75", "sm_80", "sm_86", "sm_90a", "sm_90"]
    with pytest.raises(stepladder.StepladderError, match=r"compute capability 7\.0 has no target") as caught:
        target_for((7, 0))
    assert caught.value.notes == ("accepted: compute capability 7.5 or higher",)


# Of x, two or three weights, and one or two results of a chain: addresses that are apart.
APART = (0x10000, 0x100000, 0x200000, 0x300000, 0x400000)


@pytest.mark.parametrize(
    "weights, results, addresses, kept, overlaps",
    [
        ([1, 2, 3], (), APART, (), [0, 1, 1]),
        ([1, 2, 3], (), APART, (1, 2, 3), [1, 1, 1]),
        ([1, 2, 3], (), APART, (2, 3), [0, 1, 1]),  # the weights of the first are no weights of the promise
        ([1, 1], (), APART[:3], (), [0, 1]),
        # The result of the first kernel is the weights of the second, or of the third, or a part of them.
        ([1, 2], (0,), (*APART[:3], APART[2], APART[4]), (1, 2), [1, 0]),
        ([1, 2], (0,), (*APART[:3], APART[2] + 128 * 128 * 2 - 16, APART[4]), (1, 2), [1, 0]),
        ([1, 2], (0,), (*APART[:3], APART[2] + 128 * 128 * 2, APART[4]), (1, 2), [1, 1]),
        ([1, 2, 3], (0,), (*APART[:4], APART[3], 0x500000), (1, 2, 3), [1, 1, 1]),  # the second waits for the first
        # A kernel of the function writes the weights.
        (["twice", 1], (), (*APART[:2], APART[4]), (1,), [1, 0, 1]),
    ],
)
def test_weights_that_kernels_of_a_function_read_early(
    fake: FakeGpu,
    weights: list[int | str],
    results: tuple[int, ...],
    addresses: tuple[int, ...],
    kept: tuple[int, ...],
    overlaps: list[int],
) -> None:
    bundle = bundle_of(chain(5, 128, weights, results=results), EARLY)
    fake.addresses = itertools.count(0x1000000, 0x100000)
    assert overlaps_of(fake, bundle, addresses, kept) == overlaps


def overlaps_of(fake: FakeGpu, bundle: FunctionBundle, addresses: tuple[int, ...], kept: tuple[int, ...]) -> list[int]:
    """Returns which kernels of a function are launched while the one before ends."""
    function = LoadedFunction(open_gpu(0).device, bundle, kept)
    places = [place for kind in ("argument", "result") for place, _ in bundle.manifest.of_kind(kind)]
    before = len(launches(fake))
    for launch in function.launchers(dict(zip(places, addresses, strict=True)), STREAM):
        launch()
    return [getattr(config, "numAttrs", 0) for config, *_ in launches(fake)[before:]]


def test_weights_that_a_group_reads_early(fake: FakeGpu) -> None:
    bundle = bundle_of(projections(5, 128, [64, 64]), {**EARLY, "groups": "true"})
    for kept, overlaps in (((), [0]), ((1,), [0]), ((1, 2), [1])):
        assert overlaps_of(fake, bundle, APART, kept) == overlaps
    # A result beside the promised weights is written by the call before.
    assert overlaps_of(fake, bundle, (*APART[:3], APART[1] + 32, APART[4]), (1, 2)) == [0]


@pytest.mark.parametrize(
    "kept, written, overlaps", [((), 0x300000, [0, 1, 1]), ((1,), 0x300000, [1, 1, 1]), ((1,), 0x108000, [1, 0, 1])]
)
def test_weights_that_are_parts_of_one_argument(
    fake: FakeGpu, kept: tuple[int, ...], written: int, overlaps: list[int]
) -> None:
    bundle = bundle_of(chain(5, 128, [1, 2, 3], results=[0], stacked=True), EARLY)
    # The first kernel writes the first result, which may be in the weights of the second layer.
    assert overlaps_of(fake, bundle, (0x10000, 0x100000, written, 0x400000), kept) == overlaps
    assert {0x100000, 0x108000, 0x110000} <= {item["address"] for item in fake.driver.encoded}


def test_the_promise_of_a_function(fake: FakeGpu, tmp_path: Path) -> None:
    text = chain(5, 128, [1, 2])
    for promised, overlaps in ((False, [0, 1]), (True, [1, 1])):
        made = stepladder.compile(text, target="sm_90a", constant_weights=promised, **EARLY)
        assert isinstance(made, stepladder.Function) and made.constant_weights is promised
        made.save(tmp_path / f"{promised}.bundle")
        loaded = stepladder.load(tmp_path / f"{promised}.bundle", constant_weights=promised)
        for function in (made, loaded):
            before = len(launches(fake))
            function._on_gpu(0).launch(APART[:4], STREAM)
            assert [getattr(config, "numAttrs", 0) for config, *_ in launches(fake)[before:]] == overlaps
