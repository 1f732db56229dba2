"""What cuBLAS and PyTorch are asked for: a column-major library must compute the row-major problem."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import NoReturn

import numpy as np
import pytest

from conftest import make_problem
from fake_cublas import ColumnMajorLibrary, CudaDataType, host_buffers
from stepladder.measure import baselines
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.verify.inputs import exact_inputs, logical_operands, random_inputs


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Installs a fake as nvmath-python, and nothing else."""

    def put(library: ColumnMajorLibrary) -> ColumnMajorLibrary:
        nvmath = SimpleNamespace(__version__="1.2.3", CudaDataType=CudaDataType)
        monkeypatch.setitem(sys.modules, "nvmath", nvmath)
        monkeypatch.setitem(sys.modules, "nvmath.bindings.cublas", library)
        return library

    return put


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("acc_type, c_type, compute", [("f32", "f32", 68), ("f32", "f16", 68), ("f16", "f16", 64)])
def test_cublas_computes_the_problem(
    install: Callable[..., object], accumulate: bool, acc_type: str, c_type: str, compute: int
) -> None:
    library = install(ColumnMajorLibrary())
    problem = make_problem(3, 5, 7, acc_type, c_type, accumulate)
    generator = np.random.default_rng(0)
    a, b, c = (
        generator.integers(-4, 5, shape).astype(dtype)
        for shape, dtype in (
            ((3, 7), np.float16),
            ((7, 5), np.float16),
            ((3, 5), {"f16": np.float16, "f32": np.float32}[c_type]),
        )
    )
    expected = a.astype(np.float64) @ b + (c if accumulate else 0)
    if not accumulate:
        c[:] = np.nan
    baseline = baselines.cublas(host_buffers(problem, a, b, c))
    baseline.enqueue()
    assert np.array_equal(c, expected)
    assert library.compute == compute
    assert library.stream == 7
    assert library.workspace == 32 << 20
    assert baseline.provider == "cuBLAS 13.1.1 through nvmath-python 1.2.3"


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("a_layout", ["row", "column"])
@pytest.mark.parametrize("b_layout", ["row", "column"])
@pytest.mark.parametrize(
    "inputs, products, sums, compute",
    [
        ("f16", "f16", "f32", 68),
        ("bf16", "bf16", "f32", 68),
        ("f32", "f32", "f32", 68),
        ("f32", "tf32", "f32", 77),
        ("i8", "i8", "i32", 72),
        ("f16", "f16", "f16", 64),
    ],
)
def test_types_and_layouts(
    install: Callable[..., object],
    inputs: str,
    products: str,
    sums: str,
    compute: int,
    a_layout: str,
    b_layout: str,
    accumulate: bool,
) -> None:
    library = install(ColumnMajorLibrary())
    problem = make_problem(
        4, 8, 12, sums, sums, accumulate, inputs, a_layout=a_layout, b_layout=b_layout, compute_type=products
    )
    a, b, c = exact_inputs(problem, 0)
    logical = (a if a_layout == "row" else a.T, b if b_layout == "row" else b.T)
    expected = logical[0].astype(np.float64) @ logical[1].astype(np.float64) + (c if accumulate else 0)
    baselines.cublas(host_buffers(problem, a, b, c)).enqueue()
    assert np.array_equal(c, expected)
    assert library.compute == compute


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("a_layout, b_layout", [("row", "row"), ("column", "row"), ("row", "column")])
@pytest.mark.parametrize("broadcast", [{}, {"a_broadcast": True}, {"b_broadcast": True}])
def test_batches(
    install: Callable[..., object], broadcast: dict[str, bool], a_layout: str, b_layout: str, accumulate: bool
) -> None:
    install(ColumnMajorLibrary())
    problem = make_problem(4, 8, 12, accumulate=accumulate, a_layout=a_layout, b_layout=b_layout, batch=3, **broadcast)
    a, b, c = exact_inputs(problem, 0)
    left, right = logical_operands(problem, a, b)
    expected = left.astype(np.float64) @ right.astype(np.float64) + (c if accumulate else 0)
    baselines.cublas(host_buffers(problem, a, b, c)).enqueue()
    assert expected.shape == c.shape == (3, 4, 8) and np.array_equal(c, expected)


@pytest.mark.parametrize(
    "m, n, k, layouts, supported",
    [
        (4, 8, 12, ("row", "row"), True),
        (5, 8, 12, ("row", "row"), True),
        (5, 8, 12, ("column", "row"), False),
        (4, 9, 12, ("row", "row"), False),
        (4, 8, 13, ("column", "row"), True),
        (4, 8, 13, ("row", "row"), False),
    ],
)
def test_rows_of_integers_are_aligned(m: int, n: int, k: int, layouts: tuple[str, str], supported: bool) -> None:
    problem = make_problem(m, n, k, "i32", "i32", inputs="i8", a_layout=layouts[0], b_layout=layouts[1])
    if supported:
        baselines.refuse_unsupported(problem)
    else:
        with pytest.raises(StepladderError, match=r"no cuBLAS baseline.*multiples of 4 elements; use --baseline none"):
            baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))


@pytest.mark.parametrize(
    "inputs, sums, stored", [("bf16", "bf16", "bf16"), ("i8", "f32", "f32"), ("f32", "f32", "f16"), ("i8", "i32", "i8")]
)
def test_no_such_types(inputs: str, sums: str, stored: str) -> None:
    problem = make_problem(acc_type=sums, c_type=stored, inputs=inputs)
    with pytest.raises(
        StepladderError, match=r"it has f16 -> f32 .f32 accumulation., .*i8 -> i32 .i32 accumulation.; use"
    ):
        baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))


@pytest.mark.parametrize(
    "form, reason",
    [
        ({"b_layout": "row"}, "cuBLASLt multiplies a row-major A by a column-major B of fp8"),
        ({"a_layout": "column"}, "cuBLASLt multiplies a row-major A by a column-major B of fp8"),
        ({"n": 24}, "n and k of fp8 must be multiples of 16"),
        ({"k": 40}, "n and k of fp8 must be multiples of 16"),
        ({"inputs": "f8E5M2"}, "cuBLASLt has products of f8E4M3FN x f8E4M3FN and f8E4M3FN x f8E5M2 and"),
    ],
)
def test_fp8_that_cublaslt_lacks(form: dict[str, int | str], reason: str) -> None:
    problem = make_problem(**{"m": 16, "n": 32, "k": 32, "inputs": "f8E4M3FN", "b_layout": "column"} | form)
    with pytest.raises(StepladderError, match=f"no cuBLAS baseline.*{reason}.*; use --baseline none"):
        baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))


def test_fp8_is_left_to_pytorch(missing: Callable[..., None]) -> None:
    """cublasGemmEx, which nvmath-python calls, has no products of fp8."""
    missing("torch")
    problem = make_problem(16, 32, 32, inputs="f8E4M3FN", b_layout="column")
    with pytest.raises(StepladderError, match="no cuBLAS on this machine") as caught:
        baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))
    assert caught.value.notes[0] == "products of fp8 are measured through PyTorch, which calls cuBLASLt"


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("c_type", ["f32", "bf16"])
def test_sums_of_bf16_are_rounded_once(install: Callable[..., object], c_type: str, accumulate: bool) -> None:
    library = install(ColumnMajorLibrary())
    problem = make_problem(4, 8, 12, "f32", c_type, accumulate, "bf16")
    a, b, c = random_inputs(problem, 0)
    expected = a.astype(np.float64) @ b.astype(np.float64) + (c.astype(np.float64) if accumulate else 0)
    baselines.cublas(host_buffers(problem, a, b, c)).enqueue()
    assert np.array_equal(c, expected.astype(c.dtype))
    assert library.compute == 68


def test_product_that_the_library_refuses(install: Callable[..., object]) -> None:
    class Refusing(ColumnMajorLibrary):
        def gemm_ex(self, *arguments: object) -> NoReturn:
            raise self.cuBLASError("NOT_SUPPORTED (15)")

    install(Refusing())
    baseline = baselines.cublas(host_buffers(make_problem(), *[np.zeros(1)] * 3))
    with pytest.raises(StepladderError, match=r"cuBLAS fails at C = AB.*NOT_SUPPORTED .15.; use --baseline none"):
        baseline.enqueue()


def test_no_such_product() -> None:
    with pytest.raises(
        StepladderError, match=r"no cuBLAS baseline for .* f16 x f16 -> f32 .f16 accumulation.*--baseline none"
    ):
        baselines.cublas(host_buffers(make_problem(acc_type="f16", c_type="f32"), *[np.zeros(1)] * 3))


def test_no_cublas(missing: Callable[..., None]) -> None:
    missing("nvmath", "torch")
    with pytest.raises(StepladderError, match="no cuBLAS on this machine: install nvmath-python") as caught:
        baselines.cublas(host_buffers(make_problem(), *[np.zeros(1)] * 3))
    assert caught.value.status == NOT_EXECUTED
    assert len(caught.value.notes) == 2


def test_nvmath_without_the_library(install: Callable[..., object], missing: Callable[..., None]) -> None:
    class Empty(ColumnMajorLibrary):
        def create(self) -> NoReturn:
            raise RuntimeError("no libcublas.so.13")

    install(Empty())
    missing("torch")
    with pytest.raises(StepladderError, match="no cuBLAS on this machine") as caught:
        baselines.cublas(host_buffers(make_problem(), *[np.zeros(1)] * 3))
    assert "nvmath-python does not load cuBLAS: no libcublas.so.13" in caught.value.notes


def test_nvmath_has_what_is_called() -> None:
    """Its enumerations, and the number of cublasGemmEx's arguments."""
    import inspect

    library = pytest.importorskip("nvmath.bindings.cublas", reason="nvmath-python is not installed")
    import nvmath

    for name in set(baselines.COMPUTE_TYPES.values()):
        assert int(getattr(library.ComputeType, name)) == int(getattr(ColumnMajorLibrary.ComputeType, name))
    for member in CudaDataType:
        assert int(getattr(nvmath.CudaDataType, member.name)) == member
    assert (int(library.Operation.N), int(library.Operation.T), int(library.GemmAlgo.DEFAULT)) == (0, 1, -1)
    inspect.signature(library.gemm_ex).bind(*range(19))
    inspect.signature(library.gemm_strided_batched_ex).bind(*range(23))
    assert issubclass(library.cuBLASError, Exception)
