"""Reports of checks: the compared elements and the result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class CheckReport:
    """The outcome of one check; errors are over the finite elements of C.

    Attributes:
        check: `exact`, `random` or `repeatable`.
        passed: the answer.
        elements: number of elements compared.
        mismatches: number of elements out of tolerance, NaN and infinity included.
        not_finite: number of elements that are NaN or infinite.
        first_mismatch: (row, column) of the first one, row by row; (matmul, row, column) in a batch.
        got, expected: there, as text (they may be NaN).
        max_error: largest absolute error.
        max_error_over_tolerance: largest error in units of its element's tolerance; at most 1 in a check that passes.
        norm_error, norm_tolerance: Frobenius norm of the error over that of the reference, and its bound; None of a
            reference that is zero.
        reference: what computed the reference.
        unknown: number of elements that nothing is known of, as their values can leave their type: not compared.
        uncompared: the result of which no element could be compared, so that the check fails; empty if there is none.
    """

    check: str
    passed: bool
    elements: int
    mismatches: int = 0
    not_finite: int = 0
    first_mismatch: tuple[int, ...] | None = None
    got: str | None = None
    expected: str | None = None
    max_error: float = 0.0
    max_error_over_tolerance: float | None = None
    norm_error: float | None = None
    norm_tolerance: float | None = None
    reference: str = ""
    unknown: int = 0
    uncompared: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON data."""
        return asdict(self)

    def describe(self) -> str:
        """Returns one line for people: the verdict and its numbers."""
        parts = []
        if self.uncompared:
            parts.append(
                f"nothing of {self.uncompared} could be compared, as the values of all its elements can leave their "
                "types: the results may be right or wrong"
            )
        if self.first_mismatch is not None:
            parts.append(
                f"{self.mismatches} of {self.elements} elements wrong, first at {list(self.first_mismatch)}: "
                f"got {self.got}, expected {self.expected}"
            )
            if self.not_finite:
                parts.append(f"{self.not_finite} NaN or infinite")
        if self.max_error_over_tolerance is not None:
            parts.append(f"largest error {self.max_error:.3g}, {self.max_error_over_tolerance:.3g} of its tolerance")
        elif self.mismatches:
            parts.append(f"largest error {self.max_error:.3g}")
        if self.norm_error is not None:
            parts.append(f"norm of error {self.norm_error:.3g} of norm of C (at most {self.norm_tolerance:.3g})")
        if self.unknown:
            parts.append(f"{self.unknown} elements not compared, whose values can leave their types")
        if self.passed and self.max_error_over_tolerance is None:
            parts.append(f"all {self.elements} elements equal")
        return f"{self.check}: {'PASS' if self.passed else 'FAIL'}: " + "; ".join(parts)
