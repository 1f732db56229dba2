"""Arithmetic on the sign bit of floating-point values, by casts to integers and back, as floating-point ops.

If such casts and the ops between them change only the sign, the result is the magnitude, the negative, or the magnitude
with the sign of another value, for all values and NaN. The error bounds of floating-point ops also hold across zero,
unlike those of ops on bits.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.traverse import producer, walk
from stepladder.mlir.types import bit_width, element_of

_CAST = "arith.bitcast"
_FUSE = "linalg-fuse-elementwise-ops"
# The ops on a value, in order, by what changes its bits: the op, whether its mask is the sign, or all other bits.
_CHANGES = {
    ("arith.andi", False, True): ("math.absf",),
    ("arith.xori", True, False): ("arith.negf",),
    ("arith.ori", True, False): ("math.absf", "arith.negf"),
}


def replace(function: ir.Operation) -> None:
    """Replaces casts of bits to floating point by ops on the values that the bits are of, where only the sign differs.

    Casts and masks in several `linalg.generic` ops are fused before.

    Args:
        function: a function; it is changed where there are such casts.
    """
    if not walk(function, _CAST):
        return
    _replace(function)
    if len(walk(function, _CAST)) > 1 and function.parent is not None:
        passmanager.PassManager.parse(f"func.func({_FUSE})").run(function)
        _replace(function)


def _replace(function: ir.Operation) -> None:
    for cast in walk(function, _CAST):
        if not isinstance(element_of(cast.results[0].type), ir.FloatType):
            continue
        with ir.InsertionPoint(cast), cast.location:
            number = _number(cast.operands[0], cast.results[0].type)
        if number is None:
            continue
        bits = cast.operands[0]
        cast.results[0].replace_all_uses_with(number)
        cast.erase()
        _erase_unread(bits)


def _number(bits: ir.Value, type_: ir.Type) -> ir.Value | None:
    """Creates the ops that compute the number of some bits; None for bits that are no such number's."""
    source = producer(bits)
    if source is None:
        return None
    if source.name == _CAST:
        cast_operand = source.operands[0]
        return cast_operand if cast_operand.type == type_ else _number(cast_operand, type_)
    if source.name not in ("arith.andi", "arith.ori", "arith.xori"):
        return None
    sign = _sign_of(type_)
    for value, other in (source.operands, reversed(list(source.operands))):
        sign_number = _number_of_sign(value, type_)
        if source.name == "arith.ori" and sign_number is not None and _has_no_sign(other, sign):
            magnitude = _number(other, type_)
            return None if magnitude is None else _created("math.copysign", type_, magnitude, sign_number)
        names = _CHANGES.get((source.name, (_mask(other, sign) or 0) == sign, _mask(other, sign) == sign - 1), ())
        number = _number(value, type_) if names else None
        if number is not None:
            for name in names:
                number = _created(name, type_, number)
            return number
    return None


def _mask(value: ir.Value, sign: int) -> int | None:
    """Returns the bits of a constant, without those above the sign; None for no constant."""
    number = repeated_number(value)
    return number.value & 2 * sign - 1 if isinstance(number, ir.IntegerAttr) else None


def _has_no_sign(bits: ir.Value, sign: int) -> bool:
    """Returns whether the sign of bits is masked out."""
    source = producer(bits)
    is_masked = source is not None and source.name == "arith.andi"
    return source is not None and is_masked and any(_mask(value, sign) == sign - 1 for value in source.operands)


def _number_of_sign(bits: ir.Value, type_: ir.Type) -> ir.Value | None:
    """Returns the value whose sign alone some bits are."""
    source = producer(bits)
    if source is None or source.name != "arith.andi":
        return None
    sign = _sign_of(type_)
    for value, other in (source.operands, reversed(list(source.operands))):
        cast = producer(value)
        is_cast = cast is not None and cast.name == _CAST and cast.operands[0].type == type_
        if _mask(other, sign) == sign and cast is not None and is_cast:
            return cast.operands[0]
    return None


def _erase_unread(value: ir.Value) -> None:
    """Erases the op that makes a value which nothing reads any more, and those that only it reads."""
    source = producer(value)
    if source is None or any(list(result.uses) for result in source.results):
        return
    operands = list(source.operands)
    source.erase()
    for operand in dict.fromkeys(operands):
        _erase_unread(operand)


def _sign_of(type_: ir.Type) -> int:
    """Returns the bit that is the sign of values of a type."""
    return 1 << bit_width(element_of(type_)) - 1


def _created(name: str, type_: ir.Type, *operands: ir.Value) -> ir.Value:
    return ir.Operation.create(name, results=[type_], operands=list(operands)).results[0]
