"""Scalar ops of an operand's producers, on scalars and on vectors of adjacent elements, at the insertion point."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib import narrow_floats
from stepladder.extension.lib.epilogues.vector_bodies import create_scalar_op
from stepladder.mlir.bindings import ir


def created(op: ir.Operation, operands: Sequence[ir.Value], width: int | None) -> ir.Value:
    """Returns the result of a scalar op of a body on scalars, or on vectors of `width` elements.

    Args:
        op: of a body.
        operands: in place of its own.
        width: None for scalars.
    """
    if op.name == "arith.extf" and narrow_floats.is_fp8(operands[0]):
        type_ = op.results[0].type
        return narrow_floats.extended(operands[0], type_ if width is None else ir.VectorType.get([width], type_))
    return create_scalar_op(op, operands, width)
