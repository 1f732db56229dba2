"""Bit fields of a larger integer, such as two i4 in a byte, as 16-bit values.

The ops of a body cut them out by shifts and masks, in vectors of narrow integers that a GPU has no instructions for.
`FieldsOf` finds which bits a value is, and `converted` puts both into the mantissas of two 16-bit values at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant_value, integer
from stepladder.extension.lib.narrow_integers import BIAS, MANTISSA, splat
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, vector
from stepladder.mlir.traverse import producer

_PAIR, _HALF, _WORD = 2, 16, 32
_CONSTANT_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi")


@dataclass(frozen=True)
class Fields:
    """Bits of an integer that the elements of a vector are.

    Attributes:
        source: the integer.
        offsets, widths: of the bits of each element.
        left: zeros below them.
        is_signed: whether the bits above them repeat their sign; None where there are none above.
        added: what is added to them.
    """

    source: ir.Value
    offsets: tuple[int, ...]
    widths: tuple[int, ...]
    left: tuple[int, ...]
    is_signed: bool | None
    added: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether the elements are the bits alone."""
        return not self.added and not any(self.left)

    def range(self, *, is_signed: bool) -> tuple[int, int]:
        """Returns the least and the largest element.

        Args:
            is_signed: whether the bits have a sign.
        """
        width = max(self.widths)
        half = 1 << (width - 1)
        return (-half + self.added, half - 1 + self.added) if is_signed else (self.added, 2 * half - 1 + self.added)


class FieldsOf:
    """Which bits of integers the values of a body are, as these are created."""

    def __init__(self) -> None:
        self._fields_of: dict[ir.Value, Fields] = {}

    def of(self, value: ir.Value) -> Fields | None:
        """Returns the bits that the elements of a vector are; None where they are not known.

        Args:
            value: of any type.
        """
        if value in self._fields_of:
            return self._fields_of[value]
        maker = producer(value)
        if maker is None or maker.name != "vector.broadcast" or not isinstance(maker.operands[0].type, ir.IntegerType):
            return None
        zeros = (0,) * _PAIR
        return Fields(maker.operands[0], zeros, (maker.operands[0].type.width,) * _PAIR, zeros, None)

    def note(self, op: ir.Operation, operands: Sequence[ir.Value], result: ir.Value) -> None:
        """Finds which bits a result is.

        Args:
            op: of a body.
            operands: in place of its own.
            result: of the op that represents it.
        """
        fields = self.of(operands[0]) if operands and isinstance(result.type, ir.VectorType) else None
        element = result.type.element_type if fields is not None else None
        if fields is None or not isinstance(element, ir.IntegerType):
            return
        numbers = constants(operands[1]) if len(operands) == _PAIR else ()
        result_fields = None if numbers is None else _applied(op.name, fields, numbers, element.width)
        if result_fields is not None:
            self._fields_of[result] = result_fields


def constants(value: ir.Value) -> tuple[int, ...] | None:
    """Returns the elements of a vector of constant integers, a scalar as a vector of copies; None of another value.

    Args:
        value: of any type.
    """
    number = constant_value(value)
    if number is not None:
        return (number,) * _PAIR
    maker = producer(value)
    if maker is None:
        return None
    operands = [constants(operand) for operand in maker.operands]
    values = [operand for operand in operands if operand is not None]
    if len(values) < len(operands) or not values:
        return None
    if maker.name == "vector.from_elements":
        return tuple(operand[0] for operand in values)
    if maker.name in (*_CONSTANT_CASTS, "vector.broadcast"):
        return values[0]
    if maker.name in ("arith.muli", "arith.addi", "arith.subi"):
        return tuple(_COMPUTED[maker.name](left, right) for left, right in zip(*values))
    return None


_COMPUTED = {
    "arith.muli": lambda left, right: left * right,
    "arith.addi": lambda left, right: left + right,
    "arith.subi": lambda left, right: left - right,
}


def _applied(name: str, fields: Fields, numbers: tuple[int, ...], width: int) -> Fields | None:
    """Returns the bits that the result of an op is.

    Args:
        name: of the op.
        fields: of its first operand.
        numbers: of its second one; none where it has one.
        width: of the result.
    """
    if name in ("arith.addi", "arith.subi"):
        return _plus(fields, numbers, width, -1 if name == "arith.subi" else 1)
    if name == "arith.trunci" and fields.added:
        low, high = fields.range(is_signed=bool(fields.is_signed))
        return fields if -1 << (width - 1) <= low and high < 1 << (width - 1) else None
    if name == "arith.extsi" and fields.is_signed is not None and not any(fields.left):
        return fields
    if fields.added:
        return None
    match name:
        case "arith.shli":
            shifts = tuple(map(sum, zip(fields.left, numbers)))
            widths = tuple(min(own, width - shift) for own, shift in zip(fields.widths, shifts))
            return dataclasses.replace(fields, left=shifts, widths=widths) if min(widths) > 0 else None
        case "arith.shrui" | "arith.shrsi":
            return _moved_down(fields, numbers, width, keeps_sign=name == "arith.shrsi")
        case "arith.trunci" if fields.is_plain:
            widths = tuple(min(own, width) for own in fields.widths)
            return dataclasses.replace(fields, widths=widths, is_signed=_sign(fields.is_signed, widths, width))
        case "arith.extsi" | "arith.extui" if fields.is_plain and fields.is_signed is not True:
            is_signed = fields.is_signed is None and name == "arith.extsi"
            return dataclasses.replace(fields, is_signed=is_signed)
        case "arith.andi" if fields.is_plain:
            return _masked(fields, numbers, width)
    return None


def _sign(is_signed: bool | None, widths: tuple[int, ...], width: int) -> bool | None:
    return None if min(widths) == width else is_signed


def _plus(fields: Fields, numbers: tuple[int, ...], width: int, factor: int) -> Fields | None:
    if any(fields.left) or fields.is_signed is None or len(set(numbers)) != 1:
        return None
    sum_ = dataclasses.replace(fields, added=fields.added + factor * numbers[0])
    low, high = sum_.range(is_signed=bool(fields.is_signed))
    return sum_ if -1 << (width - 1) <= low and high < 1 << (width - 1) else None


def _moved_down(fields: Fields, numbers: tuple[int, ...], width: int, *, keeps_sign: bool) -> Fields | None:
    """Returns the bits after a shift to the right, which must take all zeros below them away."""
    fills = all(own + left == width for own, left in zip(fields.widths, fields.left))
    lost_bits = tuple(number - left for number, left in zip(numbers, fields.left))
    widths = tuple(own - less for own, less in zip(fields.widths, lost_bits))
    if min(lost_bits) < 0 or min(widths) <= 0 or (fields.is_signed is not False and not fills and not keeps_sign):
        return None
    if not fills and any(fields.left) and fields.is_signed is not False:
        return None
    is_signed = keeps_sign and (fills or bool(fields.is_signed))
    offsets = tuple(own + less for own, less in zip(fields.offsets, lost_bits))
    result_sign = _sign(is_signed, widths, width)
    return dataclasses.replace(fields, offsets=offsets, widths=widths, left=(0,) * len(widths), is_signed=result_sign)


def _masked(fields: Fields, numbers: tuple[int, ...], width: int) -> Fields | None:
    masks = [number & (1 << width) - 1 for number in numbers]
    mask_bits = [mask.bit_length() for mask in masks]
    if any(mask != (1 << bits) - 1 or not bits for mask, bits in zip(masks, mask_bits)):
        return None
    if fields.is_signed and any(bits > own for bits, own in zip(mask_bits, fields.widths)):
        return None
    widths = tuple(min(own, bits) for own, bits in zip(fields.widths, mask_bits))
    return dataclasses.replace(fields, widths=widths, is_signed=_sign(False, widths, width))


def converted(op: ir.Operation, fields: Fields | None) -> ir.Value | None:
    """Returns two integers as 16-bit values, at the insertion point; None where another way does it.

    Args:
        op: the cast.
        fields: the bits that the integers are.
    """
    if op.name not in ("arith.sitofp", "arith.uitofp") or fields is None or any(fields.left):
        return None
    name, width = types.name_of(op.results[0].type), fields.widths[0]
    is_signed = fields.is_signed if fields.is_signed is not None else op.name == "arith.sitofp"
    low, high = fields.range(is_signed=bool(is_signed))
    if name not in MANTISSA or width > MANTISSA[name] or set(fields.widths) != {width}:
        return None
    if op.name == "arith.uitofp" and low < 0:
        return None
    sign_bit = 1 << (width - 1) if is_signed else 0
    above = (1 << MANTISSA[name]) + sign_bit - fields.added
    if max(abs(low), abs(high), abs(above)) > 2 << MANTISSA[name]:
        return None
    exponent_bits = (BIAS[name] + MANTISSA[name]) << MANTISSA[name]
    bits = arith.andi(_halves(fields, width), _in_halves((1 << width) - 1))
    bits = arith.xori(bits, _in_halves(exponent_bits | sign_bit))
    word = ir.VectorType.get([1], bits.type)
    word_vector = ir.Operation.create("vector.from_elements", results=[word], operands=[bits]).results[0]
    pair = vector.bitcast(ir.VectorType.get([_PAIR], op.results[0].type), word_vector)
    return arith.subf(pair, splat(pair.type, float(above)))


def _in_halves(bits: int) -> ir.Value:
    return integer(_signed(bits | bits << _HALF), _WORD)


def _halves(fields: Fields, width: int) -> ir.Value:
    """Returns a word whose halves have the bits at their ends, with any other bits above them."""
    first, second = fields.offsets
    word, bits = fields.source, ir.IntegerType(fields.source.type).width
    if bits < _WORD:
        word = arith.extui(ir.IntegerType.get_signless(_WORD), word)
    if first == 0 and bits <= _HALF - second:  # a product, since shifts share a unit with logical operations
        return arith.muli(word, integer(1 + (1 << (_HALF - second)), _WORD))
    low = arith.shrui(word, integer(first, _WORD)) if first else word
    if second - first == _HALF:
        return low
    distance = _HALF - second
    high = arith.shli(word, integer(distance, _WORD)) if distance > 0 else word
    high = arith.shrui(word, integer(-distance, _WORD)) if distance < 0 else high
    mask = (1 << width) - 1
    return arith.ori(arith.andi(low, integer(mask, _WORD)), arith.andi(high, integer(_signed(mask << _HALF), _WORD)))


def _signed(word: int) -> int:
    return word - (1 << _WORD) if word >> (_WORD - 1) else word
