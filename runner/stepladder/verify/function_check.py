"""Checks the results of a function with several kernels against its reference program.

**Random.** Normal inputs, scaled so that the products of matmuls stay near 1, against the program in float64. A right
kernel rounds where the function's types say so, and its results differ from exact ones by about as much as those of a
second evaluation that rounds every value to its type (`RoundedEvaluation`). The errors, squared and averaged over a
result, may be 3 times those of that evaluation, and the largest one 8 times; what orders of summation and units of
matrix products add (`tolerance.Tolerance`) is allowed besides, and what sums of n terms in other kernels add. Integers
must be equal, unless the two evaluations round values halfway between two of them differently: then each is that of
either evaluation, and of as many as these differ in, errors may be within the same factors.

**Repeatable.** Two runs on the same inputs give the same bits: a race between kernels, or a buffer that another one
overwrites too early, shows as a difference.

An element may be NaN or infinite only where the reference is, and must be so there, as the logarithm of a negative
number is; where one of the two evaluations has a finite value or infinity and the other one NaN, roundings decide, and
either is right. The kernels of matmuls are bundles of their own, with checks of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from stepladder.runtime.bundle import FunctionBundle
from stepladder.runtime.element_types import BUFFER_TYPES, FP8_TYPES, element_type
from stepladder.runtime.reference import Program
from stepladder.verify import arrays
from stepladder.verify.arrays import NumPyArrays, on_host
from stepladder.verify.comparison import compare_launches
from stepladder.verify.extremum_comparison import distances
from stepladder.verify.function_inputs import random_inputs
from stepladder.verify.function_tolerance import (
    error_of_matmuls,
    error_of_rounded_weights,
    error_of_sums,
    problems_of,
)
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.report import CheckReport
from stepladder.verify.rounded_evaluation import RoundedEvaluation

# How often the errors of the evaluation that rounds are allowed: their mean square root, and the largest.
_MEAN = 3.0
_LARGEST = 8.0
_SMALLEST = 2.0**-24  # below it, f16 values are flushed to zero


class FunctionExecutor(Protocol):
    """Runs a function: on the GPU, or on the emulator."""

    def run(self, inputs: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        """Runs it once on arrays by argument number; returns its results, in order.

        Args:
            inputs: arrays of the arguments' types and shapes.
        """
        ...


def check_function(
    bundle: FunctionBundle, executor: FunctionExecutor, seed: int, ordinal: int = 0
) -> list[CheckReport]:
    """Runs the checks on every result of a function.

    Args:
        bundle: of the function.
        executor: runs it.
        seed: of the random inputs.
        ordinal: the GPU on which PyTorch may compute the reference of a large function.

    Returns:
        A report for each result.
    """
    inputs = random_inputs(bundle, seed)
    first, second = executor.run(inputs), executor.run(inputs)
    problems = problems_of(bundle)
    backend = arrays.choose(sum(problem.flops for problem in problems), ordinal)
    is_tf32 = any(problem.compute_type == "tf32" for problem in problems)
    extra = error_of_matmuls(problems) + error_of_sums(bundle.reference, in_f32=True) + error_of_rounded_weights(bundle)
    reports = compare_results(bundle.reference, inputs, first, backend, extra, is_tf32)
    for random, first_result, second_result in zip(list(reports), first, second):
        repeatable = compare_launches(first_result, second_result)
        repeatable.check = random.check.replace("random", repeatable.check)
        reports.append(repeatable)
    return reports


@np.errstate(all="ignore")  # of infinite values and NaN, which results may have
def compare_results(
    program: Program,
    inputs: dict[int, np.ndarray],
    results: Sequence[np.ndarray],
    backend: NumPyArrays,
    extra: float,
    is_tf32: bool = False,
) -> list[CheckReport]:
    """Compares the results of a function with its reference program; a report each.

    Args:
        program: the reference.
        inputs: arrays by argument number.
        results: in order.
        backend: computes the reference.
        extra: error that matmuls add, as a part of the root mean square of the values.
        is_tf32: whether matmuls of f32 multiply in TF32.

    Returns:
        The reports, in the order of the results.
    """
    exact = Evaluation(program, inputs, backend)
    rounded = RoundedEvaluation(program, inputs, backend, is_tf32)
    return [
        _compare("random" if len(results) == 1 else f"random, result {number}", exact, rounded, item.value, got, extra)
        for number, (item, got) in enumerate(zip(program.results, results))
    ]


def _limits(typical: np.ndarray, size: float, extra: float, roundoff: float) -> tuple[float, float]:
    """Returns what is allowed beside the errors of an evaluation that rounds, and the largest error.

    Args:
        typical: the errors of that evaluation.
        size: the root mean square of the values.
        extra: error that matmuls add, as a part of it.
        roundoff: of the result's type.
    """
    # The result itself is rounded, and may be rounded once more where a kernel keeps its sums.
    tolerance = (extra + roundoff) * size + _SMALLEST
    return tolerance, _LARGEST * (float(typical.max(initial=0.0)) + tolerance)


def largest_errors(program: Program, inputs: dict[int, np.ndarray], extra: float) -> list[float]:
    """Returns the largest errors that results may have beside another exact evaluation than that of the program, such
    as one of the module that the program is of: as `compare_results` allows; 0 for integers.

    Args:
        program, inputs, extra: as for `compare_results`.
    """
    exact = Evaluation(program, inputs, NumPyArrays())
    rounded = RoundedEvaluation(program, inputs, NumPyArrays(), is_tf32=False)
    limits = []
    for item in program.results:
        reference = on_host(exact.whole(item.value))
        typical = np.abs(on_host(rounded.whole(item.value)) - reference)
        # Infinite values, such as those of masks, are the same or wrong.
        typical, size = (
            np.where(np.isfinite(typical), typical, 0.0),
            _mean(np.where(np.isfinite(reference), reference, 0.0)),
        )
        element = element_type(item.type)
        limits.append(0.0 if element.is_integer else _limits(typical, size, extra, element.unit_roundoff)[1])
    return limits


def _compare(
    check: str, exact: Evaluation, rounded: RoundedEvaluation, value: int, got: np.ndarray, extra: float
) -> CheckReport:
    """Compares a result with the reference."""
    name = exact.arrays.name
    reference = on_host(exact.whole(value))
    numbers = got.reshape(reference.shape).astype(np.float64)
    report = CheckReport(check, True, got.size, reference=name)
    element = next(item for item in BUFFER_TYPES.values() if item.dtype == got.dtype)
    near = on_host(rounded.whole(value)) if not element.is_integer or rounded.has_floats else reference
    is_same = (
        (numbers == reference)
        | (np.isnan(numbers) & np.isnan(reference))
        | (np.isfinite(near) != np.isfinite(reference))
    )
    is_number = np.isfinite(numbers) & np.isfinite(reference)
    expected, actual = (np.where(is_number, values, 0) for values in (reference, numbers))
    size = _mean(expected)
    errors = np.where(is_same, 0.0, np.where(is_number, np.abs(actual - expected), np.inf))
    limit: float | np.ndarray = 0.0
    norms: tuple[float, float] | None = None  # of the errors, and the most they may be
    if not element.is_integer:
        typical = np.abs(np.where(is_number & np.isfinite(near), near, expected) - expected)
        allowed, limit = _limits(typical, size, extra, element.unit_roundoff)
        if element.name in FP8_TYPES:  # a large value may be rounded to its neighbour
            limit = limit + 2 * element.unit_roundoff * np.abs(expected)
        norms = _mean(errors), _MEAN * _mean(typical) + allowed
        report.max_error_over_tolerance = float((errors / limit).max(initial=0.0))
    elif (choice := distances(exact, rounded, value, got)) is not None:  # of nearly equal values, any is the extremum
        distance, terms, typical = choice
        # Where no value exceeds the initial one, the index that the search begins with is right too.
        errors = np.where(numbers == expected, 0.0, distance)
        limit = _LARGEST * (float(typical.max(initial=0.0)) + extra * _mean(terms) + _SMALLEST)
    elif np.any(near != reference):  # values halfway between integers were rounded
        errors = np.where(numbers == near, 0.0, errors)
        typical = np.abs(near - reference)
        is_few = np.count_nonzero(errors) <= np.count_nonzero(typical)
        limit = _LARGEST * float(typical.max()) if is_few else 0.0
        norms = _mean(errors), _MEAN * _mean(typical)
    relative = (norms[0] / size, norms[1] / size) if norms is not None and size else None
    _fill_in(report, errors, limit, relative, numbers, reference)
    report.not_finite = int((~(is_number | is_same)).sum())
    is_far = norms is not None and not norms[0] <= norms[1]
    report.passed = not report.mismatches and not is_far
    return report


def _fill_in(
    report: CheckReport,
    errors: np.ndarray,
    limit: float | np.ndarray,
    norms: tuple[float, float] | None,
    numbers: np.ndarray,
    reference: np.ndarray,
) -> None:
    """Writes mismatches, the first of them, and the largest and mean errors of a result into its report."""
    wrong = errors > limit
    report.mismatches = int(wrong.sum())
    report.max_error = float(errors[np.isfinite(errors)].max(initial=0.0))
    if report.mismatches:
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        report.first_mismatch = place
        report.got, report.expected = str(numbers[place]), str(reference[place])
    if norms is not None:
        report.norm_error, report.norm_tolerance = norms


def _mean(numbers: np.ndarray) -> float:
    return math.sqrt(float(np.mean(np.square(numbers)))) if numbers.size else 0.0
