"""Roundings of two adjacent elements of f32 to f16 or bf16 by one instruction."""

from __future__ import annotations

from stepladder.extension.lib import vectors
from stepladder.mlir.bindings import ir

_OPS = {"f16": "nvvm.convert.f32x2.to.f16x2", "bf16": "nvvm.convert.f32x2.to.bf16x2"}
_TO_NEAREST = "#nvvm.fp_rnd_mode<rn>"


def is_paired(op: ir.Operation, width: int | None) -> bool:
    """Returns whether an op of the body of an elementwise op, on vectors of two elements, is such a rounding.

    Args:
        op: of the body.
        width: elements of a vector; None for scalars.
    """
    is_rounding = op.name == "arith.truncf" and isinstance(op.operands[0].type, ir.F32Type)
    return width == 2 and is_rounding and str(op.results[0].type) in _OPS


def rounded_pair(pair: ir.Value, element: ir.Type) -> ir.Value:
    """Returns a vector of two elements of f32 rounded to nearest, at the insertion point.

    LLVM makes two conversions of a rounded vector whose elements are extended again, and ptxas may move these between
    the `wgmma` instructions, which it then serializes (C7514).

    Args:
        pair: the vector.
        element: f16 or bf16.
    """
    low, high = (vectors.extract(pair, [side], ir.F32Type.get()) for side in range(2))
    return ir.Operation.create(
        _OPS[str(element)],
        results=[ir.VectorType.get([2], element)],
        operands=[high, low],
        attributes={"rnd": ir.Attribute.parse(_TO_NEAREST)},
    ).results[0]
