"""Numbers of fp8 in wider types, by arithmetic on their bits: LLVM has no type for them, and not every GPU a cast."""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir

_MAGNITUDE, _SIGN = 0x7F, 0x80  # bits of a byte
_MANTISSA = 10  # bits of f16's
_NAN = 0x7E00  # of f16
# Bits of the mantissa, and what f16's exponent is more than the type's.
_LAYOUTS = {"f8E5M2": (2, 0), "f8E4M3FN": (3, 8)}

TYPES = tuple(_LAYOUTS)


def is_fp8(value: ir.Value) -> bool:
    """Tells whether a value is a number or a vector of fp8.

    Args:
        value: of any type.
    """
    return str(_element(value.type)) in TYPES


def extended_pair(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns two numbers of fp8 in a wider type, by the conversion instruction of sm_89 and later.

    Args:
        value: a vector of two.
        type_: a vector of two of f16, bf16 or f32.
    """
    i8, f16 = (_like(value.type, ir.Type.parse(name)) for name in ("i8", "f16"))
    attributes = {"srcType": ir.TypeAttr.get(_element(value.type))}
    bits = arith.bitcast(i8, value)
    found = ir.Operation.create("nvvm.convert.f8x2.to.f16x2", results=[f16], operands=[bits], attributes=attributes)
    return _widened(found.results[0], type_)


def extended(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns numbers of fp8 in a wider type, which has them all, at the insertion point.

    The bits are put where f16 has exponent and mantissa. Where its exponent has another bias, a product with a power of
    two makes the number of them, also where it is subnormal.

    Args:
        value: a number or a vector.
        type_: f16, bf16, f32 or f64, or a vector of them, of as many elements.
    """
    mantissa, distance = _LAYOUTS[str(_element(value.type))]
    i8, i16, f16 = (_like(value.type, ir.Type.parse(name)) for name in ("i8", "i16", "f16"))
    bits = arith.extui(i16, arith.bitcast(i8, value))
    magnitude = arith.andi(bits, _constant(i16, _MAGNITUDE))
    sign = arith.shli(arith.andi(bits, _constant(i16, _SIGN)), _constant(i16, 8))
    moved = arith.shli(magnitude, _constant(i16, _MANTISSA - mantissa))
    found = arith.bitcast(f16, arith.ori(moved, sign))
    if distance:
        found = arith.mulf(found, _constant(f16, 2.0**distance))
        is_number = arith.cmpi(arith.CmpIPredicate.ne, magnitude, _constant(i16, _MAGNITUDE))
        nan = arith.bitcast(f16, arith.ori(_constant(i16, _NAN), sign))
        found = arith.select(is_number, found, nan)
    return _widened(found, type_)


def _widened(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns numbers of fp8, in f16, in another type that has them all."""
    if type_ == value.type:
        return value
    if isinstance(_element(type_), (ir.F32Type, ir.F64Type)):
        return arith.extf(type_, value)
    return arith.truncf(type_, arith.extf(_like(value.type, ir.F32Type.get()), value))


def _element(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _like(type_: ir.Type, element: ir.Type) -> ir.Type:
    """Returns the type of as many numbers of another type."""
    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element


def _constant(type_: ir.Type, value: float) -> ir.Value:
    """Returns a number, or a vector of copies of it."""
    element = _element(type_)
    is_float = isinstance(element, ir.FloatType)
    attribute = ir.FloatAttr.get(element, value) if is_float else ir.IntegerAttr.get(element, int(value))
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return arith.constant(type_, attribute)
