"""Compares the results of a kernel with elementwise ops with the reference, within error bounds carried through the
ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stepladder.runtime.element_types import FP8_TYPES, element_type
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import Program
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.comparison import count_mismatches, inputs_by_number, row_blocks, rows_of
from stepladder.verify.inputs import Further, Operands
from stepladder.verify.product_errors import ProductErrors
from stepladder.verify.report import CheckReport


def follows_program(problem: Problem) -> bool:
    """Returns whether results are compared op by op of the reference program, and not as sums of products of whole
    buffers.

    Args:
        problem: what the kernel computes.
    """
    return problem.has_epilogue or problem.is_prepared or problem.has_windows or problem.c_type in FP8_TYPES


def compare_results(
    check: str,
    problem: Problem,
    reference: Program,
    operands: Operands,
    further: Further,
    got: Sequence[np.ndarray],
    backend: NumPyArrays,
) -> CheckReport:
    """Compares all results of a kernel with the reference.

    Args:
        check: `exact` or `random`.
        problem: what the kernel computes, with elementwise ops.
        reference: what the kernel must compute.
        operands: A, B, and what C holds before the launch, as stored.
        further: operands of the elementwise ops.
        got: C and `problem.results`, in this order.
        backend: computes the reference.

    Returns:
        The first report that fails, or that of C; with the elements of all results.
    """
    reports = [
        compare_epilogue(
            check,
            problem,
            reference,
            operands,
            further,
            role,
            array.reshape(problem.operand(role).shape),  # a payload may have split its dimensions
            backend,
        )
        for role, array in zip(("c", *problem.result_roles), got, strict=True)
    ]
    failure = next((number for number, report in enumerate(reports) if not report.passed), 0)
    report = reports[failure]
    if failure:
        report.check = f"{check}, {problem.result_roles[failure - 1].upper()}"
    report.elements = sum(report_.elements for report_ in reports)
    report.unknown = sum(report_.unknown for report_ in reports)
    return report


def compare_epilogue(
    check: str,
    problem: Problem,
    reference: Program,
    operands: Operands,
    further: Further,
    role: str,
    got: np.ndarray,
    backend: NumPyArrays,
) -> CheckReport:
    """Compares one result with the reference in float64, within the errors that a correct kernel can have.

    Sums of the exact check, and integers, have none; the product of the random check has those of `Tolerance`. A kernel
    may start from zeros and add C, or another matrix, to the sums: that rounds once, as does a product in bf16. The ops
    after the product carry these errors on and add their own (`error_propagation`). The norm of the error is compared
    with that of a second bound, of which the product's errors are `Tolerance.norm` of its root mean square: what most
    elements have.

    Args:
        check: `exact` or `random`.
        problem: what the kernel computes, with elementwise ops.
        reference: what the kernel must compute.
        operands: A, B, and what C holds before the launch, as stored.
        further: operands of the elementwise ops.
        role: of the result: `c`, `r0` and so on.
        got: what its buffer holds after the launch.
        backend: computes the reference.

    Returns:
        The report of this result: what differs by more than its bound, and the largest error.
    """
    xp = backend.xp
    # Producers of A and B may leave values whose sums are rounded.
    is_exact = (check == "exact" and not problem.is_prepared) or element_type(problem.acc_type).is_integer
    inputs = inputs_by_number(problem, reference, operands, further)
    errors = ProductErrors(problem, reference, inputs, backend, is_exact=is_exact)
    bounded, usual = errors.bounded, errors.usual
    report = CheckReport(check, True, got.size, reference=backend.name)
    totals = {"error": 0.0, "usual": 0.0, "reference": 0.0}
    largest, compared = 0.0, 0
    result = reference.output(role)
    shape = problem.operand(role).shape
    for rows in row_blocks(shape):
        with np.errstate(all="ignore"):
            expected = rows_of(bounded, result, shape, rows)
            bound, usual_error = (evaluation.error_of_rows(result, rows, shape) for evaluation in (bounded, usual))
            values = backend.load(got[rows], "float64")
            error = xp.abs(values - expected)
        # Nothing is known of elements whose values can leave their type, or have none.
        is_known = xp.isfinite(bound) & xp.isfinite(expected)
        compared += int(is_known.sum())
        count_mismatches(report, ~(error <= bound) & is_known, values, expected, error, rows, backend)
        zeros = xp.zeros_like(error)
        finite = xp.where(is_known & xp.isfinite(error), error, zeros)
        largest = max(largest, float((finite / xp.where(is_known & (bound > 0), bound, xp.ones_like(bound))).max()))
        totals["error"] += float((finite**2).sum())
        totals["usual"] += float((xp.where(is_known & xp.isfinite(usual_error), usual_error, zeros) ** 2).sum())
        totals["reference"] += float((xp.where(is_known, expected, zeros) ** 2).sum())
    report.unknown = got.size - compared
    report.uncompared = "" if compared else role.upper()
    report.max_error_over_tolerance = largest
    norm = math.sqrt(totals["reference"]) or 1.0
    report.norm_error, report.norm_tolerance = math.sqrt(totals["error"]) / norm, math.sqrt(totals["usual"]) / norm
    report.passed = report.mismatches == 0 and report.norm_error <= report.norm_tolerance and compared > 0
    return report
