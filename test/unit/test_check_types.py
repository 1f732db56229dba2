"""What the checks of results accept and refuse for each type of operands."""

import dataclasses
import sys

import numpy as np
import pytest

from conftest import make_problem
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import matmul_program
from stepladder.verify.check import check_exact
from stepladder.verify.inputs import EXACT_C, exact_density, exact_inputs, random_inputs
from stepladder.verify.tolerance import Tolerance
from tensor_cores import (
    GPUS,
    Fp8,
    NumPyGpu,
    RoundedTf32,
    TensorCore,
    Tf32,
    fp8_problem,
    i8_problem,
    tf32_problem,
    verdicts,
)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("acc_type, c_type", [("f32", "f32"), ("f32", "f16"), ("f16", "f16")])
@pytest.mark.parametrize("k", [8, 64, 4096])
def test_tensor_core_arithmetic_passes(acc_type: str, c_type: str, accumulate: bool, k: int) -> None:
    problem = make_problem(24, 40, k, acc_type, c_type, accumulate)
    reports = verdicts(problem, TensorCore(problem), seed=3)
    assert list(reports) == ["exact", "random", "repeatable"]
    for report in reports.values():
        assert report.passed, report.describe()
        assert report.elements == 24 * 40
    assert 0 < reports["random"].max_error_over_tolerance <= 1


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("c_type", ["f32", "bf16"])
@pytest.mark.parametrize("k", [8, 64, 4096])
def test_bf16_passes(c_type: str, accumulate: bool, k: int) -> None:
    problem = make_problem(24, 40, k, "f32", c_type, accumulate, inputs="bf16")
    for report in verdicts(problem, TensorCore(problem), seed=3).values():
        assert report.passed, report.describe()


def test_bf16_reference_takes_inputs_as_stored() -> None:
    """The sums of exact products of stored bf16 numbers, in f32: off by far less than bf16's own roundoff."""
    problem = make_problem(24, 40, 64, inputs="bf16")
    a, _, _ = random_inputs(problem, 0)
    assert a.dtype.name == "bfloat16"
    assert len(np.unique(a.astype(np.float32).view(np.uint32) & 0xFFFF)) == 1
    report = verdicts(problem, TensorCore(problem))["random"]
    assert report.passed and report.norm_error < 2.0**-20
    assert report.norm_tolerance < 2.0**-16


@pytest.mark.parametrize("inputs", ["bf16", "f8E4M3FN", "f8E5M2"])
def test_types_without_their_package(monkeypatch: pytest.MonkeyPatch, inputs: str) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(StepladderError, match=f"'{inputs}' needs ml_dtypes.*no kernel was launched") as caught:
        check_exact(make_problem(inputs=inputs), matmul_program(make_problem(inputs=inputs)), None, 0)
    assert caught.value.status == NOT_EXECUTED


def test_element_type_that_is_none() -> None:
    with pytest.raises(StepladderError, match=r"element type 'f80' is not supported.*f16, bf16, f32, f64, f8E4"):
        element_type("f80")


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("gpu", [Tf32, RoundedTf32])
@pytest.mark.parametrize("k", [8, 64, 4096])
def test_tf32_passes(gpu: type[RoundedTf32 | Tf32], accumulate: bool, k: int) -> None:
    problem = tf32_problem(k=k, accumulate=accumulate)
    reports = verdicts(problem, gpu(problem), seed=3)
    for report in reports.values():
        assert report.passed, report.describe()
    assert reports["random"].norm_error > 2.0**-13


@pytest.mark.parametrize("k", [8, 64, 4096])
def test_bf16_does_not_pass_for_tf32(k: int) -> None:
    class Narrow(TensorCore):
        @staticmethod
        def multiplied(operand: np.ndarray) -> np.ndarray:
            return operand.astype(element_type("bf16").dtype)

    problem = tf32_problem(64, 64, k)
    assert not verdicts(problem, Narrow(problem))["random"].passed


def test_tf32_does_not_pass_for_f32() -> None:
    problem = tf32_problem(k=1024)
    assert not verdicts(dataclasses.replace(problem, compute_type="f32"), Tf32(problem))["random"].passed


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("c_type", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("inputs", ["f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("k", [32, 64, 4096])
def test_fp8_passes(inputs: str, c_type: str, accumulate: bool, k: int) -> None:
    problem = fp8_problem(k=k, inputs=inputs, c_type=c_type, accumulate=accumulate)
    reports = verdicts(problem, Fp8(problem), seed=3)
    for report in reports.values():
        assert report.passed, report.describe()
    assert reports["random"].max_error_over_tolerance < 0.5


@pytest.mark.parametrize("inputs, largest, step", [("f8E4M3FN", 448, 2.0**-9), ("f8E5M2", 57344, 2.0**-16)])
def test_fp8_inputs_are_normal_numbers(inputs: str, largest: int, step: float) -> None:
    """Rounded to nearest, not cut off, and within the type's range and grid."""
    problem = fp8_problem(512, 64, 512, inputs=inputs)
    a = random_inputs(problem, 0)[0]
    assert a.dtype == element_type(inputs).dtype and a.dtype.itemsize == 1
    wide = a.astype(np.float64)
    assert np.isfinite(wide).all() and np.abs(wide).max() < largest
    assert (wide / step == np.round(wide / step)).all()
    assert abs(wide.std() - 1) < 0.01 and abs(wide.mean()) < 0.01


def test_fp8_sums_would_not_pass_for_f32() -> None:
    """The tolerance of fp8 is needed, and it is that of fp8 alone."""
    problem = fp8_problem(k=4096)
    report = verdicts(problem, Fp8(problem))["random"]
    assert report.norm_error > 2 * Tolerance.of(make_problem(k=4096)).norm
    assert verdicts(problem, TensorCore(problem))["random"].passed


@pytest.mark.parametrize("bits", [9, 10])
def test_narrower_fp8_sums_fail(bits: int) -> None:
    problem = fp8_problem(k=4096)
    executor = Fp8(problem)
    executor.bits = bits
    assert not verdicts(problem, executor)["random"].passed


@pytest.mark.parametrize("inputs", ["f8E4M3FN", "f8E5M2"])
def test_exact_fp8_sums_stay_below_2_to_13(inputs: str) -> None:
    problem = fp8_problem(32, 32, 16384, inputs=inputs)
    a, b, _c = (operand.astype(np.float64) for operand in exact_inputs(problem, seed=5))
    assert exact_density(problem) == 1
    assert set(np.unique(a)) == set(np.unique(b)) == {-1, 1}
    partial = np.cumsum(a.T[:, :, None] * b[:, None, :], axis=0)
    assert np.abs(partial).max() + EXACT_C < 2**13
    assert exact_density(fp8_problem(k=470_000, inputs=inputs)) == 1
    assert exact_density(fp8_problem(k=480_000, inputs=inputs)) < 1


@pytest.mark.parametrize(
    "inputs, c_type", [("f16", "f16"), ("f16", "bf16"), ("bf16", "f16"), ("bf16", "bf16"), ("f8E4M3FN", "bf16")]
)
@pytest.mark.parametrize("accumulate", [False, True])
def test_sums_rounded_once_pass_and_twice_fail(inputs: str, c_type: str, accumulate: bool) -> None:
    """C is narrower than the accumulators: it may be rounded at the end, and not after every 64 products."""
    problem = make_problem(24, 40, 8192, "f32", c_type, accumulate, inputs)
    once = GPUS[inputs](problem)
    for report in verdicts(problem, once).values():
        assert report.passed, report.describe()
    many = NumPyGpu(problem)

    def product(c: np.ndarray) -> np.ndarray:
        total = c.astype(np.float64) if accumulate else np.zeros(c.shape)
        for start in range(0, problem.k, 64):
            part = many.a[:, start : start + 64].astype(np.float64) @ many.b[start : start + 64].astype(np.float64)
            total = (total + part).astype(element_type(c_type).dtype).astype(np.float64)
        return total

    many.product = product
    assert not verdicts(problem, many)["random"].passed


def test_f32_products_pass() -> None:
    problem = make_problem(24, 40, 4096, inputs="f32")
    executor = NumPyGpu(problem)
    executor.product = lambda c: np.add.accumulate(
        [c, *(np.multiply.outer(executor.a[:, i], executor.b[i]) for i in range(problem.k))], dtype=np.float32
    )[-1]
    for report in verdicts(problem, executor).values():
        assert report.passed, report.describe()


@pytest.mark.parametrize(
    "gpu, problem",
    [
        (Tf32, tf32_problem(16, 16, 4096)),
        (TensorCore, make_problem(16, 16, 4096, inputs="bf16")),
        (Fp8, fp8_problem(16, 16, 4096)),
        (Fp8, fp8_problem(16, 16, 4096, inputs="f8E5M2")),
        (NumPyGpu, i8_problem(16, 16, 4096)),
        (NumPyGpu, i8_problem(16, 16, 4096, b_layout="column")),
    ],
)
def test_one_dropped_product_of_other_types(gpu: type[Fp8 | NumPyGpu | TensorCore | Tf32], problem: Problem) -> None:
    executor = gpu(problem)
    product = executor.product

    def drop_one(c: np.ndarray) -> np.ndarray:
        full = product(c)
        full[5, 7] -= float(executor.a[5, 999]) * float(executor.b[999, 7])
        return full

    executor.product = drop_one
    report = check_exact(problem, matmul_program(problem), executor, seed=1)
    assert not report.passed
    assert (report.mismatches, report.first_mismatch, report.max_error) == (1, (5, 7), 1)
