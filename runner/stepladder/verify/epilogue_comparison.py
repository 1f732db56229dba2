"""Compares what a kernel with elementwise ops computed with the reference, within bounds carried through the ops."""

from __future__ import annotations

import math

import numpy as np

from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import Program
from stepladder.verify.arrays import Array, NumPyArrays
from stepladder.verify.comparison import count_mismatches, inputs_by_number, row_blocks, rows_of
from stepladder.verify.error_propagation import BoundedEvaluation, SquaredProduct, product_of
from stepladder.verify.inputs import Further, Operands
from stepladder.verify.report import CheckReport
from stepladder.verify.structured_evaluation import Region
from stepladder.verify.tolerance import Tolerance


def compare_epilogue(
    check: str,
    problem: Problem,
    reference: Program,
    operands: Operands,
    further: Further,
    got: np.ndarray,
    backend: NumPyArrays,
) -> CheckReport:
    """Compares a result with the reference in float64, within the errors that a right kernel can have.

    Sums of the exact check, and integers, have none; the product of the random check has those of `Tolerance`. A kernel
    may start from zeros and add C, or another matrix, to the sums: that rounds once. The ops after the product carry
    these errors on and add their own (`error_propagation`). The norm of the error is compared with that of a second
    bound, of which the product's errors are `Tolerance.norm` of its root mean square: what most elements have.

    Args:
        check: `exact` or `random`.
        problem: what the kernel computes, with elementwise ops.
        reference: what the kernel must compute.
        operands: A, B, and what C holds before the launch, as stored.
        further: operands of the elementwise ops.
        got: C after the launch.
        backend: computes the reference.
    """
    xp = backend.xp
    tolerance = Tolerance.of(problem)
    is_exact = check == "exact" or element_type(problem.acc_type).is_integer
    inputs = inputs_by_number(problem, reference, operands, further)
    product = product_of(reference).results[0]
    once = element_type(problem.acc_type).unit_roundoff
    squares = SquaredProduct(reference, inputs, backend)

    def summed(region: Region) -> Array:
        rounding = abs(bounded.part(product, region, keep=False)) * once
        if is_exact:
            return rounding
        root = xp.sqrt(squares.part(product, region, keep=False))
        return rounding + backend.cast(root, "float64") * tolerance.element

    def typical(region: Region) -> Array:
        sums = bounded.part(product, region, keep=False)
        mean = math.sqrt(float((sums**2).sum()) / math.prod(sums.shape))
        return abs(sums) * once + (0.0 if is_exact else tolerance.norm * mean)

    bounded = BoundedEvaluation(reference, inputs, backend, summed)
    usual = BoundedEvaluation(reference, inputs, backend, typical)
    report = CheckReport(check, True, got.size, reference=backend.name)
    totals = {"error": 0.0, "usual": 0.0, "reference": 0.0}
    largest, compared = 0.0, 0
    c = reference.output("c")
    for rows in row_blocks(problem):
        with np.errstate(all="ignore"):
            expected = rows_of(bounded, c, problem, rows)
            bound, other = (each.error_of_rows(c, rows, problem.c_shape) for each in (bounded, usual))
            values = backend.load(got[rows], "float64")
            error = xp.abs(values - expected)
        # Nothing is known of elements whose values can leave their type, or have none.
        known = xp.isfinite(bound) & xp.isfinite(expected)
        compared += int(known.sum())
        count_mismatches(report, ~(error <= bound) & known, values, expected, error, rows, backend)
        zeros = xp.zeros_like(error)
        finite = xp.where(known & xp.isfinite(error), error, zeros)
        largest = max(largest, float((finite / xp.where(known & (bound > 0), bound, xp.ones_like(bound))).max()))
        totals["error"] += float((finite**2).sum())
        totals["usual"] += float((xp.where(known & xp.isfinite(other), other, zeros) ** 2).sum())
        totals["reference"] += float((xp.where(known, expected, zeros) ** 2).sum())
    report.unknown = got.size - compared
    report.max_error_over_tolerance = largest
    norm = math.sqrt(totals["reference"]) or 1.0
    report.norm_error, report.norm_tolerance = math.sqrt(totals["error"]) / norm, math.sqrt(totals["usual"]) / norm
    report.passed = report.mismatches == 0 and report.norm_error <= report.norm_tolerance and compared > 0
    return report
