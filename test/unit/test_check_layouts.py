"""Layouts and integers in the checks of results."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from conftest import make_problem
from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem
from stepladder.verify.inputs import INTEGER_C, exact_inputs, integer_range, random_inputs
from tensor_cores import GPUS, LAYOUTS, PROBLEMS, NumPyGpu, i8_problem, verdicts, with_layouts


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.compute_type)
def test_layouts_pass(problem: Problem, layouts: tuple[str, str]) -> None:
    problem = with_layouts(problem, layouts)
    gpu = GPUS[problem.compute_type]
    for inputs in (exact_inputs, random_inputs):
        assert [operand.shape for operand in inputs(problem, 0)] == [problem.a_shape, problem.b_shape, (24, 40)]
    for report in verdicts(problem, gpu(problem)).values():
        assert report.passed, report.describe()


@pytest.mark.parametrize("layouts, read_as", list(itertools.permutations(LAYOUTS, 2)))
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.compute_type)
def test_swapped_layouts_fail(problem: Problem, layouts: tuple[str, str], read_as: tuple[str, str]) -> None:
    reports = verdicts(with_layouts(problem, layouts), NumPyGpu(with_layouts(problem, read_as)))
    assert not reports["exact"].passed and not reports["random"].passed
    assert reports["repeatable"].passed


def test_exact_inputs_of_a_column_major_a_are_thinned_by_its_rows() -> None:
    problem = make_problem(4, 4, 200_000, "f16", "f16", a_layout="column")
    a, _, _ = exact_inputs(problem, seed=5)
    assert a.shape == (200_000, 4)
    products = np.count_nonzero(a, axis=0)
    assert (products > 20_000).all() and (products < 32_500).all()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("k", [8, 64, 4096])
def test_integers_are_exact(accumulate: bool, k: int) -> None:
    problem = i8_problem(k=k, accumulate=accumulate)
    reports = verdicts(problem, NumPyGpu(problem))
    for report in reports.values():
        assert report.passed and f"all {24 * 40} elements equal" in report.describe()

    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        c[3, 4] += 1

    report = verdicts(problem, NumPyGpu(problem, damage))["random"]
    assert not report.passed
    assert (report.mismatches, report.first_mismatch, report.max_error) == (1, (3, 4), 1)


def test_integers_of_the_whole_range() -> None:
    problem = i8_problem(256, 256, 256)
    a, b, c = random_inputs(problem, 0)
    for operand in (a, b):
        assert operand.dtype == np.int8
        assert set(np.unique(operand)) == set(range(-128, 128))
    assert c.dtype == np.int32 and np.abs(c).max() > INTEGER_C / 2


@pytest.mark.parametrize("k, largest", [(64, 128), (131_007, 128), (131_008, 127), (200_000, 103), (2**30, 1)])
def test_integer_sums_do_not_wrap(k: int, largest: int) -> None:
    problem = i8_problem(k=k)
    assert integer_range(problem) == largest
    assert k * largest**2 + INTEGER_C <= 2**31 - 1
    assert largest == 128 or k * (largest + 1) ** 2 + INTEGER_C > 2**31 - 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda total: np.clip(total, -(2**15), 2**15 - 1),  # sums that saturate at 16 bits
        lambda total: total.astype(element_type("bf16").dtype).astype(np.float64),
    ],
)  # accumulators of a floating-point type
def test_narrow_integer_sums_fail(spoil: Callable[..., object]) -> None:
    problem = i8_problem(k=1024)
    executor = NumPyGpu(problem)
    product = executor.product
    executor.product = lambda c: spoil(product(c))
    assert not verdicts(problem, executor)["random"].passed


def test_unsigned_integers_fail() -> None:
    problem = i8_problem()
    executor = NumPyGpu(problem)
    executor.product = lambda c: executor.a.astype(np.uint8) @ executor.b.astype(np.float64) + c
    assert not verdicts(problem, executor)["random"].passed


def test_unwritten_integer() -> None:
    problem = i8_problem(accumulate=False)

    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        assert (initial == -(2**31)).all()
        c[0, 1] = initial[0, 1]

    for check in ("exact", "random"):
        report = verdicts(problem, NumPyGpu(problem, damage))[check]
        assert not report.passed
        assert report.got == "-2147483648"
