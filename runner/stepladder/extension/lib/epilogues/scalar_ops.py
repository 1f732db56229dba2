"""Ops on f32 in the body of an elementwise op: constants, and ops that may be approximated."""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer


def constant(number: float) -> ir.Value:
    """Creates a constant of f32, at the current insertion point, and returns it.

    Args:
        number: its value.
    """
    return arith.constant(ir.F32Type.get(), number)


def approximated(name: str, *operands: ir.Value) -> ir.Value:
    """Creates an op on f32 that may be approximated, at the current insertion point, and returns its result.

    Args:
        name: of the op.
        operands: of f32, as many as the op has.
    """
    flags = {"fastmath": ir.Attribute.parse("#arith.fastmath<afn>")}
    return ir.Operation.create(name, results=[operands[0].type], operands=operands, attributes=flags).results[0]


def constant_of(value: ir.Value) -> float | None:
    """Returns the value of an f32 constant, or None.

    Args:
        value: any value.
    """
    source = producer(value)
    if source is None or source.name != "arith.constant" or not isinstance(value.type, ir.F32Type):
        return None
    return ir.FloatAttr(source.attributes["value"]).value


def other(op: ir.Operation, value: ir.Value) -> ir.Value:
    """Returns the operand of an op on two values that is not the one given.

    Args:
        op: of two operands.
        value: one of them.
    """
    return op.operands[1] if op.operands[0] == value else op.operands[0]
