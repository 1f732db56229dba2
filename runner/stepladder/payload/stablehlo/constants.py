"""Compile-time constants of StableHLO: counters of loops, and values computed from them."""

from __future__ import annotations

from collections.abc import Callable

from stepladder.mlir.bindings import ir

_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "minimum": min,
    "maximum": max,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda x, y: x == y,
    "NE": lambda x, y: x != y,
    "LT": lambda x, y: x < y,
    "LE": lambda x, y: x <= y,
    "GT": lambda x, y: x > y,
    "GE": lambda x, y: x >= y,
}
# Ops that keep the number of a tensor of one element.
_MOVES = ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.slice", "stablehlo.convert")


class Known:
    """The integers that tensors of one element have, as far as ops of constants make them."""

    def __init__(self) -> None:
        self._numbers: dict[ir.Value, int | None] = {}

    def number(self, value: ir.Value) -> int | None:
        """Returns the integer that a tensor of one element has; None for a computed one, and for other tensors.

        Args:
            value: a tensor.
        """
        if value not in self._numbers:
            self._numbers[value] = self._computed(value)
        return self._numbers[value]

    def _computed(self, value: ir.Value) -> int | None:
        type_, owner = value.type, value.owner
        if isinstance(owner, ir.Block) or not isinstance(type_, ir.RankedTensorType):
            return None
        if not type_.has_static_shape or any(extent != 1 for extent in type_.shape):
            return None
        if not isinstance(type_.element_type, ir.IntegerType):
            return None
        number = self._of(owner.operation)
        return None if number is None else _wrapped(number, type_.element_type)

    def _of(self, op: ir.Operation) -> int | None:
        if op.name == "stablehlo.constant":
            return int(ir.DenseIntElementsAttr(op.attributes["value"])[0])
        operands = [self.number(operand) for operand in op.operands]
        name = op.name.removeprefix("stablehlo.")
        if name == "select" and operands[0] is not None:
            return operands[1] if operands[0] else operands[2]
        numbers = [item for item in operands if item is not None]
        if len(numbers) < len(operands) or not numbers:
            return None
        if op.name in _MOVES:
            return numbers[0]
        if name == "clamp":
            return min(max(numbers[0], numbers[1]), numbers[2])
        if name == "compare":
            direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
            return int(_COMPARED[direction](numbers[0], numbers[1]))
        return _BINARY[name](numbers[0], numbers[1]) if name in _BINARY else None


def _wrapped(number: int, type_: ir.IntegerType) -> int:
    """Returns a scalar as a type has it; a boolean is 0 or 1."""
    number &= (1 << type_.width) - 1
    has_sign = type_.width > 1 and not type_.is_unsigned
    return number - (1 << type_.width) if has_sign and number >> (type_.width - 1) else number
