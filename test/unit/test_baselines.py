"""What cuBLAS is asked for: a column-major library must compute the row-major problem."""

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import make_problem
from stepladder.measure import baselines
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError
from stepladder.verify.inputs import exact_inputs, random_inputs

pytest.importorskip("ml_dtypes", reason="ml_dtypes, which has bf16, is not installed")

DTYPES = {0: np.float32, 2: np.float16, 3: np.int8, 10: np.int32, 14: element_type("bf16").dtype}


class ColumnMajorLibrary:
    """cuBLAS on host memory, written from its documentation."""

    def create(self):
        return 1

    def get_version(self, handle):
        return 130101

    def set_stream(self, handle, stream):
        self.stream = stream

    def set_workspace(self, handle, address, size):
        self.workspace = size

    def gemm_ex(
        self,
        handle,
        transa,
        transb,
        m,
        n,
        k,
        alpha,
        a,
        a_type,
        lda,
        b,
        b_type,
        ldb,
        beta,
        c,
        c_type,
        ldc,
        compute,
        algorithm,
    ):
        assert {transa, transb} <= {0, 1} and algorithm == -1
        self.compute = compute
        scalar = {64: np.float16, 68: np.float32, 72: np.int32, 77: np.float32}[compute]
        a = self.matrix(a, a_type, k, m, lda).T if transa else self.matrix(a, a_type, m, k, lda)
        b = self.matrix(b, b_type, n, k, ldb).T if transb else self.matrix(b, b_type, k, n, ldb)
        c = self.matrix(c, c_type, m, n, ldc)
        alpha, beta = (self.matrix(address, scalar, 1, 1, 1)[0, 0] for address in (alpha, beta))
        product = alpha * (a.astype(np.float64) @ b.astype(np.float64))
        c[:] = product + beta * c.astype(np.float64) if beta else product

    @staticmethod
    def matrix(address, kind, rows, columns, leading):
        dtype = np.dtype(DTYPES.get(kind, kind))
        memory = (ctypes.c_byte * (dtype.itemsize * leading * columns)).from_address(address)
        return np.frombuffer(memory, dtype).reshape(columns, leading).T[:rows]


def host_buffers(problem, *arrays):
    buffers = [SimpleNamespace(address=array.ctypes.data, size=array.nbytes) for array in arrays]
    device = SimpleNamespace(stream=7, allocate=lambda size: SimpleNamespace(address=0, size=size))
    return SimpleNamespace(problem=problem, device=device, a=buffers[0], b=buffers[1], c=buffers[2])


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("acc_type, c_type, compute", [("f32", "f32", 68), ("f32", "f16", 68), ("f16", "f16", 64)])
def test_cublas_computes_the_problem(monkeypatch, accumulate, acc_type, c_type, compute):
    library = ColumnMajorLibrary()
    monkeypatch.setattr(baselines, "_find_library", lambda: (library, "a fake"))
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
    assert baseline.provider == "cuBLAS 13.1.1 through a fake"


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
def test_types_and_layouts(monkeypatch, inputs, products, sums, compute, a_layout, b_layout, accumulate):
    library = ColumnMajorLibrary()
    monkeypatch.setattr(baselines, "_find_library", lambda: (library, "a fake"))
    problem = make_problem(
        4, 8, 12, sums, sums, accumulate, inputs, a_layout=a_layout, b_layout=b_layout, compute_type=products
    )
    a, b, c = exact_inputs(problem, 0)
    logical = (a if a_layout == "row" else a.T, b if b_layout == "row" else b.T)
    expected = logical[0].astype(np.float64) @ logical[1].astype(np.float64) + (c if accumulate else 0)
    baselines.cublas(host_buffers(problem, a, b, c)).enqueue()
    assert np.array_equal(c, expected)
    assert library.compute == compute


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
def test_rows_of_integers_are_aligned(m, n, k, layouts, supported):
    problem = make_problem(m, n, k, "i32", "i32", inputs="i8", a_layout=layouts[0], b_layout=layouts[1])
    if supported:
        baselines.refuse_unsupported(problem)
    else:
        with pytest.raises(StepladderError, match="no cuBLAS baseline.*multiples of 4 elements; use --baseline none"):
            baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))


@pytest.mark.parametrize(
    "inputs, sums, stored", [("bf16", "bf16", "bf16"), ("i8", "f32", "f32"), ("f32", "f32", "f16"), ("i8", "i32", "i8")]
)
def test_no_such_types(inputs, sums, stored):
    problem = make_problem(acc_type=sums, c_type=stored, inputs=inputs)
    with pytest.raises(StepladderError, match="it has f16 -> f32 .f32 sums., .*i8 -> i32 .i32 sums.; use"):
        baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))


@pytest.mark.parametrize("inputs", ["f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("c_type", ["f32", "f16", "bf16"])
def test_no_fp8(inputs, c_type):
    problem = make_problem(c_type=c_type, inputs=inputs)
    with pytest.raises(StepladderError) as caught:
        baselines.cublas(host_buffers(problem, *[np.zeros(1)] * 3))
    assert caught.value.message == (
        f"there is no cuBLAS baseline for {problem.describe()}: cublasGemmEx has no "
        "products of fp8; use --baseline none"
    )


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("c_type", ["f32", "bf16"])
def test_sums_of_bf16_are_rounded_once(monkeypatch, c_type, accumulate):
    library = ColumnMajorLibrary()
    monkeypatch.setattr(baselines, "_find_library", lambda: (library, "a fake"))
    problem = make_problem(4, 8, 12, "f32", c_type, accumulate, "bf16")
    a, b, c = random_inputs(problem, 0)
    expected = a.astype(np.float64) @ b.astype(np.float64) + (c.astype(np.float64) if accumulate else 0)
    baselines.cublas(host_buffers(problem, a, b, c)).enqueue()
    assert np.array_equal(c, expected.astype(c.dtype))
    assert library.compute == 68


def test_product_that_the_library_refuses(monkeypatch):
    class Refusing(ColumnMajorLibrary):
        class cuBLASError(Exception):
            pass

        def gemm_ex(self, *arguments):
            raise self.cuBLASError("NOT_SUPPORTED (15)")

    monkeypatch.setattr(baselines, "_find_library", lambda: (Refusing(), "a fake"))
    baseline = baselines.cublas(host_buffers(make_problem(), *[np.zeros(1)] * 3))
    with pytest.raises(StepladderError, match="cuBLAS fails at C = AB.*NOT_SUPPORTED .15.; use --baseline none"):
        baseline.enqueue()


def test_no_such_product():
    with pytest.raises(StepladderError, match="no cuBLAS baseline for .* f16 x f16 -> f32 .f16 sums.*--baseline none"):
        baselines.cublas(host_buffers(make_problem(acc_type="f16", c_type="f32"), *[np.zeros(1)] * 3))


def test_no_cublas(monkeypatch):
    for name in ("nvmath", "cuda.pathfinder"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(StepladderError, match="no cuBLAS on this machine") as caught:
        baselines.cublas(host_buffers(make_problem(), *[np.zeros(1)] * 3))
    assert caught.value.status == NOT_EXECUTED


def test_failing_call_is_reported():
    library = baselines._Library.__new__(baselines._Library)
    library._functions = {"cublasGemmEx": lambda *arguments: 13}
    with pytest.raises(StepladderError, match="cublasGemmEx failed with cublasStatus_t 13") as caught:
        library.gemm_ex()
    assert caught.value.status == FAILED
