"""Compares what a kernel computed with the reference, block of rows by block of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import Program
from stepladder.verify.arrays import Array, NumPyArrays
from stepladder.verify.inputs import Operands, initial_c, logical_operands
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.report import CheckReport
from stepladder.verify.tolerance import Tolerance


def _evaluation(
    problem: Problem, reference: Program, operands: Operands, backend: NumPyArrays, wide: str
) -> Evaluation:
    """Returns the reference on A, B and what C holds before a launch."""
    a, b, c = operands
    stored = {"a": a, "b": b, "c": initial_c(problem, c)}
    return Evaluation(reference, {number: stored[role] for number, role in reference.roles.items()}, backend, wide)


def compare_random(
    problem: Problem, reference: Program, operands: Operands, got: np.ndarray, backend: NumPyArrays
) -> CheckReport:
    """Compares a result on random inputs with the reference in float64, within `Tolerance.of(problem)`.

    Args:
        problem: of m x n elements of C.
        reference: what the kernel must compute.
        operands: A, B, and the C that the kernel adds to, as stored.
        got: C after the launch, m x n.
        backend: computes the reference.
    """
    xp = backend.xp
    tolerance = Tolerance.of(problem)
    evaluation = _evaluation(problem, reference, operands, backend, "float64")
    a, b = logical_operands(problem, *operands[:2])
    b_squared = backend.load(b, "float32") ** 2
    report = CheckReport("random", True, got.size, reference=backend.name)
    error_squared = reference_squared = largest = 0.0
    for rows in row_blocks(problem):
        expected = evaluation.rows(reference.output("c"), rows)
        scale = backend.load(a[rows], "float32") ** 2 @ b_squared
        if problem.accumulate:
            scale = scale + backend.load(operands[2][rows], "float64") ** 2
        values = backend.load(got[rows], "float64")
        error = xp.abs(values - expected)
        bound = tolerance.element * xp.sqrt(scale) + tolerance.stored * xp.abs(expected)
        # Written so that NaN, which compares as false, is a mismatch.
        _count(report, ~(error <= bound), values, expected, error, rows, backend)
        finite = xp.where(xp.isfinite(error), error, xp.zeros_like(error))
        largest = max(largest, float((finite / bound).max()))
        error_squared += float((finite**2).sum())
        reference_squared += float((expected**2).sum())
    report.max_error_over_tolerance = largest
    report.norm_error = math.sqrt(error_squared / reference_squared)
    report.norm_tolerance = tolerance.norm
    report.passed = report.mismatches == 0 and report.norm_error <= tolerance.norm
    return report


def compare_exact(
    check: str,
    wide: str,
    problem: Problem,
    reference: Program,
    operands: Operands,
    got: np.ndarray,
    backend: NumPyArrays,
) -> CheckReport:
    """Compares a result with the reference for equality.

    Args:
        check: the name of the check, for the report.
        wide: the type of the reference, `float32` or `float64`, which holds all sums exactly.
        problem, reference, operands, got, backend: as for `compare_random`.
    """
    xp = backend.xp
    evaluation = _evaluation(problem, reference, operands, backend, wide)
    report = CheckReport(check, True, got.size, reference=backend.name)
    for rows in row_blocks(problem):
        # Integers of i32 are exact in float64.
        expected = backend.cast(evaluation.rows(reference.output("c"), rows), "float64")
        # Not in float32, which would round a wrong i32, perhaps to the right one.
        values = backend.load(got[rows], "float64")
        _count(report, ~(values == expected), values, expected, xp.abs(values - expected), rows, backend)
    report.passed = report.mismatches == 0
    return report


def _count(
    report: CheckReport, wrong: Array, values: Array, expected: Array, error: Array, rows: slice, backend: NumPyArrays
) -> None:
    """Adds a block of rows to a report: its mismatches, and its largest error."""
    xp = backend.xp
    finite = xp.isfinite(error)
    report.max_error = max(report.max_error, float(xp.where(finite, error, xp.zeros_like(error)).max()))
    count = int(wrong.sum())
    if count and report.first_mismatch is None:
        row, column = backend.first(wrong)
        report.first_mismatch = (rows.start + row, column)
        report.got, report.expected = (_text(block[row, column]) for block in (values, expected))
    report.mismatches += count
    report.not_finite += int((~finite).sum())


def _text(value: Array | float) -> str:
    """Returns an element as text: 9 digits, which tell all f32 apart, or all of a large integer's."""
    number = float(value)
    return f"{number:.0f}" if number.is_integer() and abs(number) >= 1e9 else f"{number:.9g}"


def compare_launches(first: np.ndarray, second: np.ndarray) -> CheckReport:
    """Compares the bits of C after two launches on the same inputs.

    Args:
        first, second: C, m x n, of the same type.
    """
    bits = np.dtype(f"u{first.itemsize}")
    # Bits are compared: NaN is like itself.
    differ = first.view(bits) != second.view(bits)
    report = CheckReport("repeatable", True, first.size)
    if differ.any():
        row, column = NumPyArrays().first(differ)
        error = np.abs(first.astype(np.float64) - second.astype(np.float64))
        report.passed = False
        report.mismatches = int(differ.sum())
        report.not_finite = int((~np.isfinite(error)).sum())
        report.first_mismatch = (row, column)
        report.got = _text(second[row, column])
        report.expected = f"{_text(first[row, column])} as in the launch before"
        report.max_error = float(np.where(np.isfinite(error), error, 0).max())
    return report


def row_blocks(problem: Problem) -> Iterator[slice]:
    """Yields blocks of C's rows of about 2^25 elements: memory for temporaries is bounded, and products stay large."""
    rows = max(1, (1 << 25) // problem.n)
    for start in range(0, problem.m, rows):
        yield slice(start, min(start + rows, problem.m))
