"""What a trace finds in a function: its contraction, and the ops on the product."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.payload.front.views import View


@dataclass
class Contraction:
    """The contraction of a payload.

    Attributes:
        op: the linalg op.
        a, b: its factors, in the order of its inputs; their axes are digits of the loops.
        start: what the sums begin from.
        product: the sums.
    """

    op: ir.Operation
    a: View
    b: View
    start: View
    product: View


@dataclass(frozen=True)
class Consumer:
    """An elementwise op on the product, such as its rounding to C's type, or a reduction of its rows or columns.

    Attributes:
        op: the linalg op.
        inputs: what its inputs are, in order; None for a scalar. Their axes are digits of the loops.
        output: what its output held, where the body reads it; else None.
        element: element type of the result.
        begin: the constant that a reduction begins with; None for an elementwise op.
    """

    op: ir.Operation
    inputs: tuple[View | None, ...]
    output: View | None
    element: str
    begin: ir.Attribute | None = None
