"""Calls from Python on a GPU: numbers, no copies, streams, graphs, threads, the time of a call."""

from __future__ import annotations

import importlib.util
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stepladder
from stepladder import functions as F
from stepladder.payload.writing import matmul_text

if TYPE_CHECKING:
    from torch import Tensor, dtype

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch"),
]

M, N, K = 256, 512, 256
CALLS = 2000
# Microseconds that a call may take, beside the launch of torch.mm.
MORE_THAN_TORCH = 5.0  # microseconds


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    torch.manual_seed(0)
    return torch


def random(torch: ModuleType, *shape: int, dtype: dtype | None = None) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype or torch.float16)


def product(a: Tensor, b: Tensor) -> Tensor:
    return a.double() @ b.double()


def close(torch: ModuleType, got: Tensor, wanted: Tensor, tolerance: float = 1e-2) -> None:
    assert got.shape == wanted.shape
    assert (got.double() - wanted).abs().max() <= tolerance * max(1.0, wanted.abs().max().item())


@pytest.mark.parametrize("pipeline", ["mma_sync", "wmma", "wgmma"])
def test_sums_of_integers_wrap(pipeline: str) -> None:
    k = 2**31 // (128 * 128) + 32
    payload = matmul_text(16, 16, k, a_type="i8", b_type="i8", acc_type="i32", c_type="i32", accumulate=False)
    a = np.full((16, k), -128, np.int8)
    total = stepladder.compile(payload, pipeline=pipeline)(a, np.ascontiguousarray(a.T))
    assert (total == -(2**31) + 32 * 128 * 128).all()


def test_layouts_types_and_batches(torch: ModuleType) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        a, b = random(torch, M, K, dtype=dtype), random(torch, K, N, dtype=dtype)
        close(torch, stepladder.matmul(a, b), product(a, b))
    a, b = random(torch, K, M).t(), random(torch, N, K).t()
    close(torch, stepladder.matmul(a, b, dtype=torch.float32), product(a, b), 1e-5)
    heads = random(torch, 6, 128, 64), random(torch, 6, 128, 64).transpose(1, 2)
    close(torch, stepladder.matmul(*heads), product(*heads))
    x = random(torch, 4, 64, K)
    close(torch, stepladder.matmul(x, b), product(x, b))


def test_odd_row_pitches_on_streams_and_in_a_graph(torch: ModuleType) -> None:
    """Kernels in front copy the operands to workspaces, one for each stream, and for each stream of a capture."""
    pairs = [(random(torch, 301, 173), random(torch, 173, 269)) for _ in range(3)]
    streams = [torch.cuda.Stream() for _ in pairs]
    results = [torch.empty(301, 269, device="cuda", dtype=torch.float32) for _ in pairs]
    torch.cuda.synchronize()
    for _ in range(20):
        for stream, (a, b), out in zip(streams, pairs, results):
            stepladder.matmul(a, b, out=out, stream=stream)
    torch.cuda.synchronize()
    for (a, b), out in zip(pairs, results):
        close(torch, out, product(a, b), 1e-5)
    (a, b), out = pairs[0], results[0]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        stepladder.matmul(a, b, out=out)
    for _ in range(100):
        a.normal_()
        graph.replay()
        stepladder.matmul(*pairs[1], out=results[1], stream=streams[1])
    torch.cuda.synchronize()
    close(torch, out, product(a, b), 1e-5)


def test_epilogues(torch: ModuleType) -> None:
    a, b = random(torch, M, K), random(torch, K, N)
    bias, residual = random(torch, N, dtype=torch.float32), random(torch, M, N)
    got = stepladder.matmul(a, b, epilogue=lambda x: F.gelu(x + bias) + residual, dtype=torch.float32)
    close(torch, got, torch.nn.functional.gelu(product(a, b) + bias) + residual, 1e-4)
    got = stepladder.matmul(a, b, epilogue=lambda x: torch.relu(bias + x))
    close(torch, got, torch.relu(product(a, b) + bias))
    c = random(torch, M, N)
    wanted = product(a, b) + c
    assert stepladder.matmul(a, b, c=c, out=c) is c
    close(torch, c, wanted)


def test_numpy_arrays_are_copied() -> None:
    a = np.random.default_rng(0).standard_normal((M, K)).astype(np.float16)
    b = np.random.default_rng(1).standard_normal((K, N)).astype(np.float16)
    got = stepladder.matmul(a, b, dtype=np.float32)
    assert np.abs(got - a.astype(np.float64) @ b.astype(np.float64)).max() < 1e-3


def test_arrays_of_cupy(torch: ModuleType) -> None:
    cupy = pytest.importorskip("cupy")
    a, b = cupy.random.standard_normal((M, K)).astype("f2"), cupy.random.standard_normal((K, N)).astype("f2")
    columns = b.copy(order="F")
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        got = stepladder.matmul(a, columns)
        stream.synchronize()
    assert isinstance(got, cupy.ndarray) and got.dtype == a.dtype
    wanted = cupy.asnumpy(a).astype("f8") @ cupy.asnumpy(b).astype("f8")
    assert np.abs(cupy.asnumpy(got) - wanted).max() < 0.2


def test_nothing_is_copied_or_allocated(torch: ModuleType) -> None:
    a, b, out = random(torch, M, K), random(torch, K, N), random(torch, M, N)
    stepladder.matmul(a, b, out=out)
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(10):
            assert stepladder.matmul(a, b, out=out).data_ptr() == out.data_ptr()
        torch.cuda.synchronize()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    names = [event.key for event in profile.key_averages()]
    assert not [name for name in names if "memcpy" in name.lower() or "memset" in name.lower()], names
    close(torch, out, product(a, b))


def test_on_a_side_stream(torch: ModuleType) -> None:
    """The operands are made on the side stream, late: a launch elsewhere would read what was there before."""
    a, b = torch.zeros(M, K, device="cuda", dtype=torch.float16), random(torch, K, N)
    fresh = random(torch, M, K)
    warm = stepladder.matmul(a, b)
    torch.cuda.synchronize()
    for given in (False, True):
        a.zero_()
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            a.copy_(fresh)
            got = warm if given else None
            got = stepladder.matmul(a, b, out=got, stream=side if given else None)
        side.synchronize()
        close(torch, got, product(fresh, b))


def test_in_a_graph(torch: ModuleType) -> None:
    a, b, bias = random(torch, M, K), random(torch, K, N), random(torch, N, dtype=torch.float32)
    out = torch.empty(M, N, device="cuda", dtype=torch.float32)

    def enqueue() -> None:
        stepladder.matmul(a, b, epilogue=lambda x: x + bias, out=out)

    enqueue()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        enqueue()
    for number in range(1000):
        if number % 250 == 0:
            a.normal_()
            out.zero_()
        graph.replay()
        if number % 250 == 249:
            torch.cuda.synchronize()
            close(torch, out, product(a, b) + bias, 1e-5)


def test_a_kernel_with_a_workspace_on_several_streams(torch: ModuleType) -> None:
    """Split-K adds partial sums in a workspace, which launches at one time do not share."""
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("stream-K is of wgmma")
    spec = stepladder.MatmulSpec(384, 640, 4096, b_layout="column")
    try:
        kernel = stepladder.compile(spec, pipeline="wgmma", tile_scheduler="stream_k")
    except stepladder.StepladderError as error:
        pytest.skip(error.message)
    streams = [torch.cuda.Stream() for _ in range(4)]
    pairs = [(random(torch, 384, 4096), random(torch, 640, 4096).t()) for _ in streams]
    outs = [torch.empty(384, 640, device="cuda") for _ in streams]
    torch.cuda.synchronize()
    for _ in range(20):
        for stream, (a, b), out in zip(streams, pairs, outs):
            kernel(a, b, out=out, stream=stream)
    torch.cuda.synchronize()
    for (a, b), out in zip(pairs, outs):
        close(torch, out, product(a, b), 1e-5)


def test_one_kernel_for_a_range_of_rows(torch: ModuleType) -> None:
    """Rows behind those of the call are neither read, NaN as they are, nor written."""
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("ranges of rows are of wgmma")
    weight, bias = random(torch, N, 1024), random(torch, N, dtype=torch.float32)
    for m in (1, 5, 8, 9, 33, 64, 65):
        a, out = torch.full((2, 100, 1024), float("nan"), device="cuda", dtype=torch.float16), None
        a, out = a[0], torch.full((100, N), -7.0, device="cuda", dtype=torch.float16)
        a[:m].normal_()
        given = {"epilogue": lambda x: F.silu(x + bias), "row_buckets": (8, 64)}
        stepladder.matmul(a[:m], weight.t(), out=out[:m], **given)
        close(torch, out[:m], torch.nn.functional.silu(product(a[:m], weight.t()) + bias))
        assert (out[m:] == -7).all()


def test_the_cache_is_deleted_under_way(torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLADDER_CACHE_DIR", str(tmp_path / "cache"))
    for m in (16, 24, 40):
        a, b = random(torch, m, 72), random(torch, 72, 136)
        close(torch, stepladder.matmul(a, b), product(a, b))
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        close(torch, stepladder.matmul(a, b), product(a, b))


def test_from_eight_threads(torch: ModuleType) -> None:
    sizes = [(64 * (1 + number % 3), 128, 64) for number in range(8)]
    operands = [(random(torch, m, k), random(torch, k, n)) for m, n, k in sizes]
    results: dict[int, list] = {}
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                results[number] = [stepladder.matmul(*operands[number]) for _ in range(50)]
                torch.cuda.current_stream().synchronize()
        except BaseException as error:
            errors.append(error)

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(results) == 8
    for number, (a, b) in enumerate(operands):
        for result in results[number]:
            close(torch, result, product(a, b))


def test_the_current_device_stays(torch: ModuleType) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    a, b = random(torch, M, K).to("cuda:1"), random(torch, K, N).to("cuda:1")
    assert torch.cuda.current_device() == 0
    got = stepladder.matmul(a, b)
    assert got.device == a.device and torch.cuda.current_device() == 0
    close(torch, got, product(a, b))
    with pytest.raises(stepladder.ArgumentError, match="accepted: all arrays on one device"):
        stepladder.matmul(a, b.to("cuda:0"))


def test_bad_arguments(torch: ModuleType) -> None:
    a, b = random(torch, M, K), random(torch, K, N)
    square, other = random(torch, K, K), random(torch, K, K)
    cases = {
        "'a' is in host memory and 'b' is on GPU 0": lambda: stepladder.matmul(a.cpu(), b),
        "'a' is on GPU 0 and 'out' is in host memory": lambda: stepladder.matmul(a, b, out=torch.empty(M, N).half()),
        "argument 'out' overlaps argument 'b'": lambda: stepladder.matmul(other, square, out=square),
        "'a' is on GPU 0 and 'b' is in host memory": lambda: stepladder.matmul(a, b.cpu()),
        "argument 'out' overlaps argument 'a'": lambda: stepladder.matmul(a, random(torch, K, K), out=a),
        "argument 'out' has strides": lambda: stepladder.matmul(a, b, out=random(torch, N, M).t()),
        "argument 'a' has elements of i32": lambda: stepladder.matmul(a.int(), b.int()),
        "argument 'a' needs a gradient": lambda: stepladder.matmul(a.clone().requires_grad_(), b),
        "multiples of 16 bytes": lambda: stepladder.matmul(random(torch, M * K + 1)[1:].view(M, K), b),
        "calls Tensor.add_": lambda: stepladder.matmul(a, b, epilogue=lambda x: x + b[0].add_(1)),
    }
    for message, call in cases.items():
        with pytest.raises(stepladder.StepladderError) as caught:
            call()
        assert message in str(caught.value), (message, str(caught.value))


def microseconds(torch: ModuleType, call: Callable[..., object]) -> float:
    """Returns the host's time of a call, the smallest mean of several batches."""
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS // 10):
            call()
        best = min(best, (time.perf_counter() - start) / (CALLS // 10) * 1e6)
    torch.cuda.synchronize()
    return best


def test_a_call_is_cheap(torch: ModuleType, record_property: Callable[[str, object], None]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("times calls: run it alone (-n 0)")
    # Small, so that the queue of the GPU is never full.
    a, b = random(torch, 64, 64), random(torch, 64, 64)
    out = torch.empty(64, 64, device="cuda", dtype=torch.float16)
    kernel = stepladder.compile(stepladder.MatmulSpec(64, 64, 64, c_type="f16"))
    times = {
        "torch.mm": microseconds(torch, lambda: torch.mm(a, b)),
        "torch.mm out": microseconds(torch, lambda: torch.mm(a, b, out=out)),
        "kernel": microseconds(torch, lambda: kernel(a, b)),
        "kernel out": microseconds(torch, lambda: kernel(a, b, out=out)),
        "matmul": microseconds(torch, lambda: stepladder.matmul(a, b)),
        "matmul out": microseconds(torch, lambda: stepladder.matmul(a, b, out=out)),
    }
    text = ", ".join(f"{name} {value:.1f}" for name, value in times.items())
    record_property("microseconds", text)
    print(f"microseconds of a call: {text}")
    for name in ("kernel", "kernel out", "matmul", "matmul out"):
        assert times[name] <= times["torch.mm"] + MORE_THAN_TORCH, text
