"""What PyTorch is asked for where nvmath-python is missing, and every product of either on a GPU."""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import make_problem
from fake_cublas import host_buffers
from stepladder.measure import baselines
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError
from stepladder.runtime.reference import matmul_program
from stepladder.verify.inputs import exact_inputs, logical_operands


class Tensor:
    """A PyTorch tensor over host memory."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    @property
    def dtype(self) -> np.dtype:
        return self.memory.dtype

    def view(self, what: tuple[int, ...] | np.dtype) -> Tensor:
        return Tensor(self.memory.reshape(what) if isinstance(what, tuple) else self.memory.view(what))

    def transpose(self, first: int, second: int) -> Tensor:
        return Tensor(self.memory.swapaxes(first, second))

    def expand(self, batch: int, *others: int) -> Tensor:
        assert others == (-1, -1)
        return Tensor(np.broadcast_to(self.memory, (batch, *self.memory.shape)))


class FakeTorch:
    """PyTorch on host memory; refuses what PyTorch refuses, and records the options under which it multiplies."""

    __version__ = "2.11.0"
    version = SimpleNamespace(cuda="13.0")
    float32, float16, int8, int32 = (np.dtype(name) for name in ("f4", "f2", "i1", "i4"))
    bfloat16, float8_e4m3fn, float8_e5m2 = (element_type(name).dtype for name in ("bf16", "f8E4M3FN", "f8E5M2"))

    def __init__(self, available: bool = True) -> None:
        self.options = SimpleNamespace(allow_fp16_accumulation="as it was")
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=self.options))
        self.precision = "as it was"
        self.streams, self.calls = [], []
        self.cuda = SimpleNamespace(
            is_available=lambda: available,
            ExternalStream=lambda handle, device: (handle, device),
            stream=self.stream,
        )

    def device(self, kind: str, ordinal: int) -> str:
        return f"{kind}:{ordinal}"

    @contextmanager
    def stream(self, stream: tuple[int, str]) -> Iterator[None]:
        self.streams.append(stream)
        yield

    def as_tensor(self, buffer: SimpleNamespace, device: str) -> Tensor:
        assert device == "cuda:3"
        return Tensor(np.frombuffer((ctypes.c_byte * buffer.size).from_address(buffer.address), np.uint8))

    def get_float32_matmul_precision(self) -> str:
        return self.precision

    def set_float32_matmul_precision(self, precision: str) -> None:
        self.precision = precision

    def multiply(
        self, name: str, a: Tensor, b: Tensor, c: Tensor | None, out: Tensor, out_dtype: np.dtype | None = None
    ) -> None:
        if (out_dtype or a.dtype) != out.dtype:
            raise RuntimeError("Expected out tensor to have another dtype\nand more")
        self.calls.append((name, self.options.allow_fp16_accumulation, self.precision))
        product = a.memory.astype(np.float64) @ b.memory.astype(np.float64)
        out.memory[:] = product if c is None else c.memory.astype(np.float64) + product

    def mm(self, a: Tensor, b: Tensor, *, out: Tensor, **options: object) -> None:
        self.multiply("mm", a, b, None, out, **options)

    def addmm(self, c: Tensor, a: Tensor, b: Tensor, *, out: Tensor, **options: object) -> None:
        self.multiply("addmm", a, b, c, out, **options)

    def bmm(self, a: Tensor, b: Tensor, *, out: Tensor, **options: object) -> None:
        self.multiply("bmm", a, b, None, out, **options)

    def baddbmm(self, c: Tensor, a: Tensor, b: Tensor, *, out: Tensor, **options: object) -> None:
        self.multiply("baddbmm", a, b, c, out, **options)

    def _int_mm(self, a: Tensor, b: Tensor, *, out: Tensor) -> None:
        self.multiply("_int_mm", a, b, None, out, out_dtype=out.dtype)

    def ones(self, shape: tuple[()], device: str) -> float:
        assert shape == () and device == "cuda:3"
        return 1.0

    def _scaled_mm(
        self,
        a: Tensor,
        b: Tensor,
        a_scale: float,
        b_scale: float,
        *,
        out: Tensor,
        use_fast_accum: bool,
        **options: object,
    ) -> None:
        assert a_scale == b_scale == 1.0
        self.multiply(f"_scaled_mm, {use_fast_accum}", a, b, None, out, **options)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch, missing: Callable[..., None]) -> FakeTorch:
    """Installs the fake PyTorch, without nvmath-python."""
    missing("nvmath")
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("a_layout, b_layout", [("row", "row"), ("column", "row"), ("row", "column")])
@pytest.mark.parametrize(
    "inputs, products, sums, stored, f16, f32",
    [
        ("f16", "f16", "f32", "f32", False, "highest"),
        ("f16", "f16", "f32", "f16", False, "highest"),
        ("f16", "f16", "f16", "f16", True, "highest"),
        ("bf16", "bf16", "f32", "f32", False, "highest"),
        ("bf16", "bf16", "f32", "bf16", False, "highest"),
        ("f32", "f32", "f32", "f32", False, "highest"),
        ("f32", "tf32", "f32", "f32", False, "high"),
        ("i8", "i8", "i32", "i32", False, "highest"),
    ],
)
def test_products_by_pytorch(
    torch: FakeTorch,
    inputs: str,
    products: str,
    sums: str,
    stored: str,
    f16: bool,
    f32: str,
    a_layout: str,
    b_layout: str,
    accumulate: bool,
) -> None:
    if inputs == "i8" and accumulate:
        pytest.skip("refused: see test_products_that_pytorch_lacks")
    problem = make_problem(
        24, 8, 16, sums, stored, accumulate, inputs, a_layout=a_layout, b_layout=b_layout, compute_type=products
    )
    a, b, c = exact_inputs(problem, 0)
    logical = (a if a_layout == "row" else a.T, b if b_layout == "row" else b.T)
    expected = logical[0].astype(np.float64) @ logical[1].astype(np.float64) + (c if accumulate else 0)
    baseline = baselines.cublas(host_buffers(problem, a, b, c))
    baseline.enqueue()
    assert np.array_equal(c, expected)
    name = "_int_mm" if inputs == "i8" else "addmm" if accumulate else "mm"
    assert torch.calls == [(name, f16, f32)] and torch.streams == [(7, "cuda:3")]
    assert (torch.options.allow_fp16_accumulation, torch.precision) == ("as it was", "as it was")
    library = "cuBLASLt" if inputs == "i8" else "cuBLAS"
    assert baseline.provider == f"{library} of CUDA 13.0 through PyTorch 2.11.0"


@pytest.mark.parametrize("fast_accum", [False, True])
@pytest.mark.parametrize("b_type, stored", [("f8E4M3FN", "f32"), ("f8E4M3FN", "bf16"), ("f8E5M2", "f16")])
def test_products_of_fp8_by_pytorch(torch: FakeTorch, b_type: str, stored: str, fast_accum: bool) -> None:
    problem = make_problem(24, 32, 16, c_type=stored, accumulate=False, inputs="f8E4M3FN", b_layout="column")
    problem = dataclasses.replace(problem, b_type=b_type)
    a, b, c = exact_inputs(problem, 0)
    baseline = baselines.cublas(host_buffers(problem, a, b, c), fast_accum=fast_accum)
    baseline.enqueue()
    assert np.array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)
    assert [name for name, _, _ in torch.calls] == [f"_scaled_mm, {fast_accum}"]
    sums = ", fast accumulation" if fast_accum else ""
    assert baseline.provider == f"cuBLASLt of CUDA 13.0 through PyTorch 2.11.0{sums}"


@pytest.mark.parametrize("form, reason", [({"batch": 2}, "no batches"), ({"accumulate": True}, "no C = AB . C")])
def test_products_of_fp8_that_pytorch_lacks(torch: FakeTorch, form: dict[str, bool], reason: str) -> None:
    form = {"accumulate": False, "inputs": "f8E4M3FN", "b_layout": "column"} | form
    problem = make_problem(32, 32, 16, **form)
    with pytest.raises(
        StepladderError, match=f"PyTorch has no cuBLAS baseline.*torch._scaled_mm has {reason}"
    ) as caught:
        baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))
    assert caught.value.notes == ()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("a_layout, b_layout", [("row", "row"), ("column", "row"), ("row", "column")])
@pytest.mark.parametrize("broadcast", [{}, {"a_broadcast": True}, {"b_broadcast": True}])
def test_batches_by_pytorch(
    torch: FakeTorch, broadcast: dict[str, bool], a_layout: str, b_layout: str, accumulate: bool
) -> None:
    problem = make_problem(24, 8, 16, accumulate=accumulate, a_layout=a_layout, b_layout=b_layout, batch=3, **broadcast)
    a, b, c = exact_inputs(problem, 0)
    left, right = logical_operands(problem, a, b)
    expected = left.astype(np.float64) @ right.astype(np.float64) + (c if accumulate else 0)
    baselines.cublas(host_buffers(problem, a, b, c)).enqueue()
    assert expected.shape == c.shape == (3, 24, 8) and np.array_equal(c, expected)
    assert [name for name, _, _ in torch.calls] == ["baddbmm" if accumulate else "bmm"]


def test_batch_that_pytorch_lacks(torch: FakeTorch) -> None:
    problem = make_problem(32, 8, 16, "i32", "i32", False, "i8", batch=2)
    with pytest.raises(StepladderError, match=r"torch._int_mm has no batches"):
        baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))


@pytest.mark.parametrize(
    "shape, accumulate, reason",
    [
        ((32, 8, 16), True, "no C = AB . C"),
        ((16, 8, 16), False, "m above 16, and n and k that are multiples of 8"),
        ((32, 12, 16), False, "m above 16, and n and k that are multiples of 8"),
        ((32, 8, 12), False, "m above 16, and n and k that are multiples of 8"),
    ],
)
def test_products_that_pytorch_lacks(
    torch: FakeTorch, shape: tuple[int, int, int], accumulate: bool, reason: str
) -> None:
    problem = make_problem(*shape, "i32", "i32", accumulate, "i8")
    with pytest.raises(StepladderError, match=f"PyTorch has no cuBLAS baseline.*{reason}") as caught:
        baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))
    assert caught.value.status == NOT_EXECUTED
    assert caught.value.notes == ("nvmath-python[cu13] has it",)


def test_product_that_pytorch_refuses(torch: FakeTorch) -> None:
    torch.mm = lambda *arguments, **options: torch.multiply("mm", *arguments[:2], None, options["out"])
    problem = make_problem(accumulate=False)
    baseline = baselines.cublas(host_buffers(problem, *exact_inputs(problem, 0)))
    message = "PyTorch's matmul fails at C = AB,.*: Expected out tensor to have another dtype; use --baseline none$"
    with pytest.raises(StepladderError, match=message) as caught:
        baseline.enqueue()
    assert caught.value.status == FAILED


def test_pytorch_without_a_gpu(monkeypatch: pytest.MonkeyPatch, missing: Callable[..., None]) -> None:
    missing("nvmath")
    monkeypatch.setitem(sys.modules, "torch", FakeTorch(available=False))
    with pytest.raises(StepladderError, match="no cuBLAS on this machine") as caught:
        baselines.cublas(host_buffers(make_problem(), *[np.zeros(1)] * 3))
    assert "PyTorch 2.11.0 does not see a GPU" in caught.value.notes


@pytest.mark.gpu
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("provider", ["nvmath", "torch"])
@pytest.mark.parametrize(
    "inputs, products, sums, stored",
    [
        ("f16", "f16", "f32", "f32"),
        ("f16", "f16", "f32", "f16"),
        ("f16", "f16", "f16", "f16"),
        ("bf16", "bf16", "f32", "f32"),
        ("bf16", "bf16", "f32", "bf16"),
        ("f32", "f32", "f32", "f32"),
        ("f32", "tf32", "f32", "f32"),
        ("i8", "i8", "i32", "i32"),
    ],
)
def test_on_a_gpu(
    missing: Callable[..., None], provider: str, inputs: str, products: str, sums: str, stored: str, accumulate: bool
) -> None:
    """Every product, called directly and from a captured graph, with a column-major B and an odd pitch of A."""
    from stepladder.runtime.device import Device
    from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
    from stepladder.verify.check import check_matmul

    pytest.importorskip(provider, reason=f"{provider} is not installed")
    missing(*{"nvmath": ["torch"], "torch": ["nvmath"]}[provider])
    extents = (32, 24, 40) if inputs == "i8" else (33, 24, 41)
    problem = make_problem(
        *extents, sums, stored, accumulate, inputs, b_layout="column", a_layout="row", compute_type=products
    )
    with Device() as device, MatmulBuffers(device, problem) as buffers:
        try:
            baseline = baselines.cublas(buffers)
        except StepladderError as error:
            if provider == "torch" and error.notes == ("nvmath-python[cu13] has it",):
                pytest.skip(error.message)
            raise
        for report in check_matmul(problem, matmul_program(problem), DeviceExecutor(buffers, baseline.enqueue), seed=1):
            assert report.passed, report.describe()
        graph = device.capture(baseline.enqueue, 1)

        def replay() -> None:
            graph.replay()

        for report in check_matmul(problem, matmul_program(problem), DeviceExecutor(buffers, replay), seed=2):
            assert report.passed, report.describe()
        graph.free()
