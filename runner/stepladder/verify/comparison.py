"""Compares the result of a kernel with the reference, block by block: of rows, or of matrices in a batch."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem, epilogue_role, operand_of
from stepladder.runtime.reference import Program
from stepladder.verify.arrays import Array, NumPyArrays
from stepladder.verify.inputs import Further, Operands, initial_c, logical_operands
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.report import CheckReport
from stepladder.verify.tolerance import Tolerance


def inputs_by_number(
    problem: Problem, reference: Program, operands: Operands, further: Further = ()
) -> dict[int, np.ndarray]:
    """Returns A, B, what C holds before a launch and the operands of elementwise ops, by argument of a reference.

    Args:
        problem: what the kernel computes.
        reference: what the kernel must compute, whose arguments have roles.
        operands: A, B, and the C that the kernel adds to, as stored.
        further: operands of elementwise ops, as stored.

    Returns:
        Arrays of the arguments' shapes.
    """
    a, b, c = operands
    by_role = {"a": a, "b": b, "c": initial_c(problem, c)}
    by_role |= {epilogue_role(number): array for number, array in enumerate(further)}
    by_role |= {
        role: element_type(result.element_type).poison(result.shape)
        for role, result in zip(problem.result_roles, problem.results)
    }
    shapes = [argument.shape for argument in reference.arguments]
    return {
        number: by_role[operand_of(role)].reshape(shapes[number])
        for number, role in reference.roles.items()
        if number < len(shapes)
    }


def _evaluation(
    problem: Problem, reference: Program, operands: Operands, backend: NumPyArrays, wide: str
) -> Evaluation:
    """Returns the reference on A, B and what C holds before a launch."""
    return Evaluation(reference, inputs_by_number(problem, reference, operands), backend, wide)


def rows_of(evaluation: Evaluation, value: int, shape: tuple[int, ...], rows: slice) -> Array:
    """Returns rows of a result in the shape that the reference computes; a payload may have split its dimensions.

    Args:
        evaluation: of the reference.
        value: index of the result in the reference.
        shape: extents of the result as the kernel stores it.
        rows: of the first dimension of `shape`.
    """
    if evaluation.shape(value) == shape:
        return evaluation.rows(value, rows)
    return evaluation.whole(value).reshape(shape)[rows]


def compare_random(
    problem: Problem, reference: Program, operands: Operands, got: np.ndarray, backend: NumPyArrays
) -> CheckReport:
    """Compares a result on random inputs with the reference in float64, within `Tolerance.of(problem)`.

    Args:
        problem: of the elements of C.
        reference: what the kernel must compute.
        operands: A, B, and the C that the kernel adds to, as stored.
        got: C after the launch.
        backend: computes the reference.

    Returns:
        What differs by more than the tolerance, with the largest error.
    """
    xp = backend.xp
    tolerance = Tolerance.of(problem)
    evaluation = _evaluation(problem, reference, operands, backend, "float64")
    a, b = logical_operands(problem, *operands[:2])
    b_squared = None if _has_matrices(problem, "b") else backend.load(b, "float32") ** 2
    report = CheckReport("random", True, got.size, reference=backend.name)
    error_squared = reference_squared = largest = 0.0
    for rows in row_blocks(problem.c_shape):
        expected = rows_of(evaluation, reference.output("c"), problem.c_shape, rows)
        a_block = a[rows] if problem.batch is None or _has_matrices(problem, "a") else a
        b_squares = backend.load(b[rows], "float32") ** 2 if b_squared is None else b_squared
        scale = backend.load(a_block, "float32") ** 2 @ b_squares
        if problem.accumulate:
            scale = scale + backend.load(operands[2][rows], "float64") ** 2
        if problem.b_is_a:
            # Sums of squares, on the diagonal of a product with the transpose, do not cancel: partial sums reach the
            # result, and what is cut off of all terms has one sign.
            scale = xp.maximum(scale, expected**2 / 9)
        values = backend.load(got[rows], "float64")
        error = xp.abs(values - expected)
        bound = tolerance.element * xp.sqrt(scale) + tolerance.stored * xp.abs(expected)
        # Written so that NaN, which compares as false, is a mismatch.
        count_mismatches(report, ~(error <= bound), values, expected, error, rows, backend)
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

    Returns:
        What differs, with the largest error.
    """
    xp = backend.xp
    evaluation = _evaluation(problem, reference, operands, backend, wide)
    report = CheckReport(check, True, got.size, reference=backend.name)
    for rows in row_blocks(problem.c_shape):
        # Integers of i32 are exact in float64.
        expected = backend.cast(rows_of(evaluation, reference.output("c"), problem.c_shape, rows), "float64")
        # Not in float32, which would round a wrong i32, perhaps to the right one.
        values = backend.load(got[rows], "float64")
        count_mismatches(report, ~(values == expected), values, expected, xp.abs(values - expected), rows, backend)
    report.passed = report.mismatches == 0
    return report


def count_mismatches(
    report: CheckReport, wrong: Array, values: Array, expected: Array, error: Array, rows: slice, backend: NumPyArrays
) -> None:
    """Adds a block of rows to a report: its mismatches, and its largest error.

    Args:
        report: of the whole result so far; its numbers grow.
        wrong: of bool, true for each mismatch of the block.
        values: what the kernel computed.
        expected: what the reference has.
        error: absolute differences; an element that is not finite counts as such.
        rows: of the block in the result.
        backend: whose arrays these are.
    """
    xp = backend.xp
    finite = xp.isfinite(error)
    report.max_error = max(report.max_error, float(xp.where(finite, error, xp.zeros_like(error)).max()))
    count = int(wrong.sum())
    if count and report.first_mismatch is None:
        row, *indices = place = backend.first(wrong)
        report.first_mismatch = (rows.start + row, *indices)
        report.got, report.expected = (_text(block[place]) for block in (values, expected))
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

    Returns:
        What differs, with the largest difference.
    """
    bits = np.dtype(f"u{first.itemsize}")
    # Bits are compared: NaN is like itself.
    differ = first.view(bits) != second.view(bits)
    report = CheckReport("repeatable", True, first.size)
    if differ.any():
        place = NumPyArrays().first(differ)
        error = np.abs(first.astype(np.float64) - second.astype(np.float64))
        report.passed = False
        report.mismatches = int(differ.sum())
        report.not_finite = int((~np.isfinite(error)).sum())
        report.first_mismatch = place
        report.got = _text(second[place])
        report.expected = f"{_text(first[place])} as in the launch before"
        report.max_error = float(np.where(np.isfinite(error), error, 0).max())
    return report


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yields blocks along a result's first dimension, of rows or of matrices of a batch, of about 2^25 elements: memory
    for temporaries is bounded, and products stay large.

    Args:
        shape: extents of the result, one at least.
    """
    extent, *extents = shape
    count = max(1, (1 << 25) // math.prod(extents))
    for start in range(0, extent, count):
        yield slice(start, min(start + count, extent))


def _has_matrices(problem: Problem, role: str) -> bool:
    """Returns whether an operand, `a` or `b`, has a matrix for each matmul of a batch."""
    return len(problem.operand(role).shape) > 2
