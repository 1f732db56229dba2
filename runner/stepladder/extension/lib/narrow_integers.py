"""Conversion of small integers to 16-bit floating point by bit operations; a conversion instruction takes several times
as long.

In f16 the values from 1024 to 2047 have the ulp 1, so that 1024 + i has the bits of 1024 with i in the last ten; in
bf16 those from 128 to 255, in the last seven. A subtraction leaves the integer, and is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant_value, integer
from stepladder.extension.lib.vectors import extract
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, vector
from stepladder.mlir.types import element_of

MANTISSA = {"f16": 10, "bf16": 7}  # bits
BIAS = {"f16": 15, "bf16": 127}
_CASTS = ("arith.sitofp", "arith.uitofp")


@dataclass(frozen=True)
class Bounds:
    """The least and the largest integer that a value of a body may be, as a signed integer."""

    low: int
    high: int


class IntegerBounds:
    """What integers the values of a body may be, as they are created."""

    def __init__(self) -> None:
        self._bounds_of: dict[ir.Value, Bounds] = {}

    def note(self, op: ir.Operation, operands: list[ir.Value], result: ir.Value) -> None:
        """Finds what integers a result may be.

        Args:
            op: of a body.
            operands: in place of its own.
            result: of the op that represents it.
        """
        bounds = self._of(op.name, operands)
        if bounds is not None:
            self._bounds_of[result] = bounds

    def of(self, value: ir.Value) -> Bounds | None:
        """Returns what integers a value may be; None where only its type is known, of 16 bits or more.

        Args:
            value: a scalar or a vector.
        """
        if value in self._bounds_of:
            return self._bounds_of[value]
        number = constant_value(value)
        if number is not None:
            return Bounds(number, number)
        element = element_of(value.type)
        if isinstance(element, ir.IntegerType) and element.width <= 8:
            return Bounds(-1 << (element.width - 1), (1 << (element.width - 1)) - 1)
        return None

    def _of(self, name: str, operands: list[ir.Value]) -> Bounds | None:
        bounds = [self.of(operand) for operand in operands]
        if name == "arith.extsi":
            return bounds[0]
        if name == "arith.extui" and bounds[0] is not None:
            element = element_of(operands[0].type)
            return bounds[0] if bounds[0].low >= 0 else Bounds(0, (1 << ir.IntegerType(element).width) - 1)
        if len(bounds) != 2 or bounds[0] is None or bounds[1] is None:
            return None
        left, right = bounds[0], bounds[1]
        match name:
            case "arith.addi":
                result = Bounds(left.low + right.low, left.high + right.high)
            case "arith.subi":
                result = Bounds(left.low - right.high, left.high - right.low)
            case "arith.andi" if right.low == right.high >= 0:
                result = Bounds(0, right.high)
            case _:
                return None
        half = 1 << (ir.IntegerType(element_of(operands[0].type)).width - 1)
        return result if -half <= result.low and result.high < half else None


def converted(op: ir.Operation, operand: ir.Value, bounds: Bounds | None) -> ir.Value | None:
    """Returns the integers of a vector as 16-bit floats, at the insertion point; None where a cast does it.

    Args:
        op: the cast.
        operand: of the op that represents it.
        bounds: what integers the operand may be.
    """
    if op.name not in _CASTS or not isinstance(operand.type, ir.VectorType) or bounds is None:
        return None
    name = types.name_of(op.results[0].type)
    if bounds.low < 0 and op.name == "arith.uitofp":
        bounds = Bounds(0, (1 << ir.IntegerType(element_of(operand.type)).width) - 1)
    below = max(0, -bounds.low)
    if name not in MANTISSA or bounds.high + below >= 1 << MANTISSA[name]:
        return None
    count = operand.type.shape[0]
    bits = _bits_above(operand, below)
    exponent_bits = (BIAS[name] + MANTISSA[name]) << MANTISSA[name]
    floats = vector.bitcast(
        ir.VectorType.get([count], op.results[0].type), arith.ori(bits, splat(bits.type, exponent_bits))
    )
    return arith.subf(floats, splat(floats.type, float((1 << MANTISSA[name]) + below)))


def _bits_above(operand: ir.Value, below: int) -> ir.Value:
    """Returns integers plus a constant that makes all of them positive, in 16 bits each."""
    i16 = ir.VectorType.get(operand.type.shape, ir.IntegerType.get_signless(16))
    width = ir.IntegerType(element_of(operand.type)).width
    if width == 8 and below in (0, 128):
        bytes_ = _apart(operand) if i16.shape == [2] else arith.extui(i16, operand)
        return arith.xori(bytes_, splat(i16, 0x80)) if below else bytes_  # the sign bit flipped
    if width < 16:
        operand = arith.extsi(i16, operand) if below else arith.extui(i16, operand)
    elif width > 16:
        operand = arith.trunci(i16, operand)
    return arith.addi(operand, splat(i16, below)) if below else operand


def _apart(bytes_: ir.Value) -> ir.Value:
    """Returns two bytes in 16 bits each, by a shift of both at once."""
    i16, i32 = (ir.IntegerType.get_signless(width) for width in (16, 32))
    word = arith.extui(i32, extract(vector.bitcast(ir.VectorType.get([1], i16), bytes_), [0], i16))
    spread_bytes = arith.andi(arith.ori(word, arith.shli(word, integer(8, 32))), integer(0x00FF00FF, 32))
    words = ir.Operation.create("vector.from_elements", results=[ir.VectorType.get([1], i32)], operands=[spread_bytes])
    return vector.bitcast(ir.VectorType.get([2], i16), words.results[0])


def splat(type_: ir.Type, number: float) -> ir.Value:
    """Returns a splat vector of a scalar.

    Args:
        type_: of the vector.
        number: integers for a vector of these.
    """
    element = ir.VectorType(type_).element_type
    is_float = isinstance(element, ir.FloatType)
    attribute = ir.FloatAttr.get(element, number) if is_float else ir.IntegerAttr.get(element, int(number))
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, attribute))
