"""What the runtime asks of the driver to load, launch, capture and copy. A fake GPU records it."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from conftest import make_descriptor, make_manifest, make_problem
from fake_cuda import FakeGpu, LaunchConfig
from stepladder.runtime.bundle import Argument, Bundle, Problem, TmaDescriptor, read_bundle, write_bundle
from stepladder.runtime.device import Device, device_ordinal
from stepladder.runtime.driver import CudaError, error_code
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers

Make = Callable[..., Bundle]


@pytest.fixture
def bundle(tmp_path: Path) -> Make:
    def make(**changes: object) -> Bundle:
        write_bundle(tmp_path / "matmul.bundle", make_manifest(**changes), b"cubin", "ptx", {})
        return read_bundle(tmp_path / "matmul.bundle")

    return make


@pytest.fixture
def unread_bundle(tmp_path: Path) -> Callable[..., Bundle]:
    """Bundles that were never on disk: of what reading refuses, launching refuses what the GPU cannot do."""

    def make(**changes: object) -> Bundle:
        return Bundle(tmp_path / "matmul.bundle", make_manifest(**changes), b"cubin", "ptx")

    return make


def tma_changes(problem: Problem | None = None, **fields: str) -> dict:
    """Changes to a manifest: A and B through descriptors, C by a pointer between them."""
    problem = problem or make_problem()
    arguments = (
        Argument("B", "b", problem.b_type, problem.b_shape, "read", descriptor=1),
        Argument("C", "c", problem.c_type, (problem.m, problem.n), "readwrite"),
        Argument("A", "a", problem.a_type, problem.a_shape, "read", descriptor=0),
    )
    return {
        "target": "sm_90a",
        "arguments": arguments,
        "tma_descriptors": (
            make_descriptor("a", problem.a_shape, problem.a_type, **fields),
            make_descriptor("b", problem.b_shape, problem.b_type, **fields),
        ),
    }


def device_of(gpu: FakeGpu) -> Device:
    return Device(0, gpu.cuda)


def launcher_of(device: Device, read: Bundle) -> Callable[..., None]:
    return MatmulBuffers(device, read.manifest.problem).launcher(device.load(read), read)


def test_device_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLADDER_DEVICE", "2")
    assert device_ordinal() == 2
    with pytest.raises(StepladderError, match="no GPU 2: the driver shows 1; no kernel was launched") as caught:
        Device(cuda=FakeGpu().cuda)
    assert caught.value.status == NOT_EXECUTED
    monkeypatch.setenv("STEPLADDER_DEVICE", "first")
    with pytest.raises(StepladderError, match="STEPLADDER_DEVICE must be the ordinal of a GPU"):
        device_ordinal()


def test_no_gpu() -> None:
    message = "no usable NVIDIA GPU: CUDA_ERROR_NO_DEVICE .it went wrong.; no kernel was launched"
    with pytest.raises(StepladderError, match=message) as caught:
        device_of(FakeGpu({"Device": ["CUDA_ERROR_NO_DEVICE"]}))
    assert caught.value.status == NOT_EXECUTED


def test_no_driver() -> None:
    """The bindings raise an error of their own where the driver's library is missing."""
    gpu = FakeGpu()

    def device(ordinal: int) -> NoReturn:
        raise RuntimeError("Failed to dlopen libcuda.so.1\nand more")

    gpu.cuda.core.Device = device
    with pytest.raises(
        StepladderError, match=r"^no NVIDIA driver: Failed to dlopen libcuda.so.1; no kernel was"
    ) as caught:
        device_of(gpu)
    assert caught.value.status == NOT_EXECUTED


@pytest.mark.parametrize(
    "text, code",
    [
        ("CUDA_ERROR_INVALID_IMAGE: This is so.\nThere is more.", ("CUDA_ERROR_INVALID_IMAGE", "This is so")),
        ("CUDA_ERROR_NOT_FOUND: two\n lines", ("CUDA_ERROR_NOT_FOUND", "two lines")),
        ("CUDA_ERROR_UNKNOWN", ("CUDA_ERROR_UNKNOWN", "no description")),
        ("Graph builder is not building.", None),
    ],
)
def test_error_codes_of_cuda_core(text: str, code: tuple[str, str] | None) -> None:
    assert error_code(RuntimeError(text)) == code


def test_what_a_result_says_of_the_gpu() -> None:
    described = device_of(FakeGpu()).describe()
    assert described["compute_capability"] == "9.0" and described["driver_cuda_version"] == "13.2"
    assert described["multiprocessors"] == 132 and described["memory_bytes"] == 1 << 37


def test_the_stream_is_destroyed_also_after_an_error() -> None:
    gpu = FakeGpu({"sync": ["CUDA_ERROR_ILLEGAL_ADDRESS"]})
    with pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"), device_of(gpu) as device:
        device.synchronize()
    assert gpu.called("close_stream") == [[]]


def test_cubin_that_runs(bundle: Make, capsys: pytest.CaptureFixture[str]) -> None:
    gpu = FakeGpu()
    kernel = device_of(gpu).load(bundle(target="sm_90a"))
    assert (kernel.source, kernel.registers, kernel.local_memory) == ("cubin", 40, 0)
    assert gpu.called("load") == [["cubin", b"cubin", "matmul"]]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("refusal", ["CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_NO_BINARY_FOR_GPU"])
def test_falls_back_to_ptx_with_a_note(bundle: Make, capsys: pytest.CaptureFixture[str], refusal: str) -> None:
    gpu = FakeGpu({"load": [refusal]})
    assert device_of(gpu).load(bundle(target="sm_90a")).source == "ptx"
    assert gpu.called("load")[1] == ["ptx", b"ptx\0", "matmul"]
    note = f"does not take the cubin ({refusal}); the driver compiles the bundle's PTX instead"
    assert note in capsys.readouterr().err


def test_goes_straight_to_ptx_on_a_later_gpu(bundle: Make, capsys: pytest.CaptureFixture[str]) -> None:
    gpu = FakeGpu()
    assert device_of(gpu).load(bundle(target="sm_80")).source == "ptx"
    assert len(gpu.called("load")) == 1
    assert "the cubin is for sm_80, and Fake H200 is 9.0" in capsys.readouterr().err


def test_neither_image_loads(bundle: Make) -> None:
    gpu = FakeGpu({"load": ["CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"]})
    with pytest.raises(StepladderError, match=r"refuses the PTX too .CUDA_ERROR_UNSUPPORTED_PTX_VERSION") as caught:
        device_of(gpu).load(bundle(target="sm_90a"))
    assert caught.value.status == NOT_EXECUTED


def test_other_load_errors_are_not_hidden_by_the_fallback(bundle: Make) -> None:
    gpu = FakeGpu({"load": ["CUDA_ERROR_OUT_OF_MEMORY"]})
    message = "loading kernel 'matmul' from cubin failed: CUDA_ERROR_OUT_OF_MEMORY .it went wrong."
    with pytest.raises(CudaError, match=message):
        device_of(gpu).load(bundle(target="sm_90a"))


@pytest.mark.parametrize(
    "static, dynamic, asked",
    [(0, 48 * 1024, False), (1024, 47 * 1024, False), (1024, 48 * 1024, True), (0, 100_000, True)],
)
def test_opts_in_to_large_shared_memory(bundle: Make, static: int, dynamic: int, asked: bool) -> None:
    gpu = FakeGpu(static_shared_memory=static)
    device_of(gpu).load(bundle(target="sm_90a", static_shared_memory=static, dynamic_shared_memory=dynamic))
    wanted = ["CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", dynamic, 6, 0]
    assert gpu.called("cuKernelSetAttribute") == ([wanted] if asked else [])


def test_more_shared_memory_than_the_gpu_has(unread_bundle: Make) -> None:
    message = "needs 232449 bytes of shared memory.*Fake H200 has at most 232448"
    with pytest.raises(StepladderError, match=message) as caught:
        device_of(FakeGpu()).load(unread_bundle(target="sm_90a", static_shared_memory=1, dynamic_shared_memory=232448))
    assert caught.value.status == NOT_EXECUTED


@pytest.mark.parametrize(
    "changes, feature",
    [
        (tma_changes(), "TMA descriptors"),
        ({"cluster": (2, 1, 1), "grid": (2, 1, 1)}, "thread-block clusters"),
        ({"dependent_launch": True}, "programmatic dependent launch"),
    ],
)
def test_what_only_hopper_has(
    unread_bundle: Make, changes: dict[str, bool | str | tuple[Argument | TmaDescriptor | int, ...]], feature: str
) -> None:
    read = unread_bundle(**changes | {"target": "sm_80"})
    with pytest.raises(StepladderError) as caught:
        device_of(FakeGpu(capability=(8, 9))).load(read)
    assert caught.value.message == (
        f"'{read.path}' needs {feature}, which GPUs of compute capability 9.0 and later have, and Fake H200 is 8.9; "
        "no kernel was launched"
    )
    assert caught.value.status == NOT_EXECUTED


def test_parameters_in_the_kernels_order(bundle: Make) -> None:
    gpu = FakeGpu(addresses=[0x1000, 0x2000, 0x3000])
    read = bundle(target="sm_90a", grid=(3, 4, 1), block=(128, 2, 1), dynamic_shared_memory=1024)
    launcher_of(device_of(gpu), read)()
    config = LaunchConfig((3, 4, 1), (128, 2, 1), 1024)
    assert gpu.called("launch") == [[77, config, 6, 0x3000, 0x1000, 0x2000]]  # the manifest's order is C, A, B


@pytest.mark.parametrize("dependent", [False, True])
def test_pointers_and_descriptors_mix(bundle: Make, dependent: bool) -> None:
    """The driver gets the 128 aligned bytes of a descriptor by their address, and a pointer as a 64-bit integer."""
    gpu = FakeGpu(addresses=[0x1000, 0x2000, 0x3000])
    problem = make_problem(64, 192, 128)
    changes = tma_changes(problem, swizzle="128b", l2_promotion="256b")
    read = bundle(
        problem=problem,
        grid=(3, 4, 1),
        block=(128, 2, 1),
        dynamic_shared_memory=1024,
        dependent_launch=dependent,
        **changes,
    )
    enqueue = launcher_of(device_of(gpu), read)
    enqueue()
    enqueue()
    # B comes first in the kernel's list, so that its descriptor is encoded first.
    assert [(made["address"], made["shape"], made["strides"]) for made in gpu.driver.encoded] == [
        (0x2000, [192, 128], [384]),
        (0x1000, [128, 64], [256]),
    ]
    assert gpu.called("cuGetProcAddress") == [[b"cuTensorMapEncodeTiled", 12000, 0]] * 2
    first, second = gpu.called("cuLaunchKernelEx")
    assert first == second and gpu.called("launch") == []
    config, function, ((b, c, a), types), extra = first
    assert (function, extra, c) == (6, 0, 0x3000)
    assert [kind is None for kind in types] == [True, False, True] and types[1].__name__ in ("c_ulong", "c_uint64")
    assert [b.getPtr(), a.getPtr()] == [made["map"] for made in gpu.driver.encoded]
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (3, 4, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (128, 2, 1)
    assert (config.sharedMemBytes, config.hStream) == (1024, 77)
    if dependent:
        (attribute,) = config.attrs
        assert config.numAttrs == 1
        assert attribute.id == "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
        assert attribute.value.programmaticStreamSerializationAllowed == 1
    else:
        assert not hasattr(config, "attrs")


def test_dependent_launch(bundle: Make) -> None:
    """Programmatic dependent launch goes with every launch, in a capture as outside of one."""
    gpu = FakeGpu()
    device = device_of(gpu)
    read = bundle(target="sm_90a", grid=(3, 4, 1), block=(128, 2, 1), dynamic_shared_memory=1024, dependent_launch=True)
    enqueue = launcher_of(device, read)
    enqueue()
    graph = device.capture(enqueue, 3)
    graph.replay()
    graph.free()
    config = LaunchConfig((3, 4, 1), (128, 2, 1), 1024, programmatic_stream_serialization=True)
    assert gpu.called("launch") == [[77, config, 6, 4096, 4096, 4096]] * 4
    names = [name for name, *_ in gpu.calls]
    captured = ["launch"] * 3
    assert names[names.index("begin_building") :] == [
        *("begin_building", *captured, "end_building", "complete", "close_builder", "launch_graph", "close_graph")
    ]
    assert gpu.called("begin_building") == [["relaxed"]] and gpu.called("complete") == [[77]]


@pytest.mark.parametrize("number", [0, 2**63 - 1, 2**63, 2**64 - 1])
def test_unsigned_integers_of_64_bits(number: int) -> None:
    """cuda.core takes Python's integers as signed ones: they go as NumPy's."""
    gpu = FakeGpu()
    device_of(gpu).load_ptx("ptx", "kernel").launcher((1, 1, 1), (32, 1, 1), [number])()
    given = gpu.called("launch")[0][3]
    assert given == number and given.dtype == np.uint64


def test_a_launcher_keeps_its_buffers(bundle: Make) -> None:
    """Memory goes back with the last reference to a buffer, which a launcher may be."""
    device = device_of(FakeGpu())
    read = bundle(**tma_changes())
    buffers = MatmulBuffers(device, read.manifest.problem)
    enqueue = buffers.launcher(device.load(read), read)
    c = weakref.ref(buffers.c)
    del buffers
    gc.collect()
    assert c() is not None
    del enqueue
    gc.collect()
    assert c() is None


def test_clusters_are_those_compiled_in(bundle: Make) -> None:
    """They need nothing at launch; the driver is only asked whether one fits, without extents of its own."""
    gpu = FakeGpu(cluster=(2, 1, 1))
    read = bundle(target="sm_90a", cluster=(2, 1, 1), grid=(6, 4, 1), block=(384, 1, 1), dynamic_shared_memory=200_000)
    launcher_of(device_of(gpu), read)()
    config = LaunchConfig((6, 4, 1), (384, 1, 1), 200_000)
    assert gpu.called("max_active_clusters") == [[config, 77]]
    # Shared memory beyond the default is opted in to before that question, or none would fit.
    names = [name for name, *_ in gpu.calls]
    assert names.index("cuKernelSetAttribute") < names.index("max_active_clusters")
    assert [arguments[:2] for arguments in gpu.called("cuKernelSetAttribute")] == [
        ["CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 200_000]
    ]
    assert gpu.called("launch")[0][1] == config


@pytest.mark.parametrize("cluster, opts_in", [((4, 2, 1), False), ((3, 3, 1), True), ((16, 1, 1), True)])
def test_large_clusters_are_opted_in_to(bundle: Make, cluster: tuple[int, int, int], opts_in: bool) -> None:
    gpu = FakeGpu(cluster=cluster)
    device_of(gpu).load(bundle(target="sm_90a", cluster=cluster, grid=cluster))
    wanted = [["CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1, 6, 0]]
    assert gpu.called("cuKernelSetAttribute") == (wanted if opts_in else [])


@pytest.mark.parametrize("cluster, grid", [((2, 1, 1), (3, 4, 1)), ((1, 2, 1), (4, 3, 1)), ((1, 1, 2), (2, 2, 1))])
def test_grid_that_is_no_multiple_of_the_cluster(
    unread_bundle: Make, cluster: tuple[int, int, int], grid: tuple[int, int, int]
) -> None:
    text = " x ".join(map(str, grid)), " x ".join(map(str, cluster))
    message = f"has a grid of {text[0]} blocks, which is not a multiple of its cluster of {text[1]}; no kernel was"
    with pytest.raises(StepladderError, match=message) as caught:
        device_of(FakeGpu(cluster=cluster)).load(unread_bundle(target="sm_90a", cluster=cluster, grid=grid))
    assert caught.value.status == NOT_EXECUTED


@pytest.mark.parametrize("compiled", [(0, 0, 0), (1, 2, 1)])
def test_kernel_compiled_for_another_cluster(bundle: Make, compiled: tuple[int, int, int]) -> None:
    text = " x ".join(map(str, compiled))
    message = f"'matmul' is compiled for clusters of {text} blocks, and the manifest has 2 x 1 x 1; no kernel was"
    with pytest.raises(StepladderError, match=message) as caught:
        device_of(FakeGpu(cluster=compiled)).load(bundle(target="sm_90a", cluster=(2, 1, 1), grid=(2, 1, 1)))
    assert caught.value.status == NOT_EXECUTED


def test_cluster_that_does_not_fit(bundle: Make) -> None:
    gpu = FakeGpu(cluster=(16, 1, 1))
    gpu.active_clusters = 0
    read = bundle(
        target="sm_90a", cluster=(16, 1, 1), grid=(16, 1, 1), static_shared_memory=1, dynamic_shared_memory=200_000
    )
    message = "no cluster of 16 x 1 x 1 blocks, with 200001 bytes of shared memory per block, fits on Fake H200"
    with pytest.raises(StepladderError, match=message) as caught:
        device_of(gpu).load(read)
    assert caught.value.status == NOT_EXECUTED


def test_failed_kernel_is_a_failure() -> None:
    device = device_of(FakeGpu({"sync": ["CUDA_ERROR_ILLEGAL_ADDRESS"]}))
    with pytest.raises(CudaError, match="a kernel or copy failed: CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        device.synchronize()
    assert caught.value.status == FAILED


def test_capture_ends_when_enqueueing_fails() -> None:
    gpu = FakeGpu()

    def fail() -> NoReturn:
        raise CudaError("cuLaunchKernelEx", "CUDA_ERROR_INVALID_VALUE", "")

    with pytest.raises(CudaError):
        device_of(gpu).capture(fail, 3)
    assert len(gpu.called("close_builder")) == 1 and not gpu.called("complete")


def test_copies_wait_for_kernels_before(bundle: Make) -> None:
    gpu = FakeGpu()
    device = device_of(gpu)
    read = bundle(target="sm_90a")
    with MatmulBuffers(device, read.manifest.problem) as buffers:
        executor = DeviceExecutor(buffers, buffers.launcher(device.load(read), read))
        executor.load(np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16))
        gpu.calls.clear()
        executor.launch(np.zeros((64, 64), np.float32))
        assert [name for name, *_ in gpu.calls] == ["sync", "cuMemcpyHtoD", "sync", "launch", "sync", "cuMemcpyDtoH"]
        assert gpu.called("cuMemcpyHtoD")[0][::2] == gpu.called("cuMemcpyDtoH")[0][1:] == [4096, 64 * 64 * 4]
        buffers.c.copy_from(buffers.a)
        assert gpu.called("copy") == [[4096, 4096, 77]]
        with pytest.raises(ValueError, match="a contiguous array of 16384 bytes is needed, got 8192"):
            buffers.c.upload(np.zeros((64, 64), np.float16))
    assert len(gpu.called("free")) == 3


def test_a_failed_copy_is_reported(bundle: Make) -> None:
    gpu = FakeGpu({"cuMemcpyHtoD": ["CUDA_ERROR_INVALID_VALUE"]})
    buffer = device_of(gpu).allocate(8)
    with pytest.raises(CudaError, match=r"cuMemcpyHtoD failed: CUDA_ERROR_INVALID_VALUE .it went wrong."):
        buffer.upload(np.zeros(8, np.uint8))


def test_times_between_events() -> None:
    device = device_of(FakeGpu())
    start = device.record_event()
    assert device.elapsed_ms(start, device.record_event()) == 1.0
