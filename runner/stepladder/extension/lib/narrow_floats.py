"""Conversions of fp8 to wider types and back, by arithmetic on their bits: LLVM has no types for them, and not
every GPU has conversion instructions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.mlir.bindings import arith, ir, vector
from stepladder.mlir.constant_numbers import number_in
from stepladder.mlir.rounding import rounds_to_nearest
from stepladder.mlir.traverse import producer
from stepladder.mlir.types import element_of

_MAGNITUDE, _SIGN = 0x7F, 0x80  # bits of a byte
_MANTISSA = 10  # bits of f16's
_NAN = 0x7E00  # of f16
# Bits of the mantissa, and what f16's exponent is more than the type's.
_LAYOUTS = {"f8E5M2": (2, 0), "f8E4M3FN": (3, 8)}

TYPES = tuple(_LAYOUTS)
# Casts between integers and floating point, which upstream's canonicalizer makes of two casts.
INTEGER_CASTS = ("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui")

# Of f32: bits of the mantissa, the bias of the exponent, the bits of a magnitude, and of that of infinity.
_F32_MANTISSA, _F32_BIAS, _F32_MAGNITUDE, _F32_INFINITY = 23, 127, 0x7FFFFFFF, 0x7F800000
_LARGEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}
_CEILING = {"f8E4M3FN": 0x7F, "f8E5M2": 0x7C}  # bits of what is larger: NaN, or infinity
_EXPONENT = {"f8E4M3FN": -6, "f8E5M2": -14}  # of the smallest normal value
_SOURCES = (ir.F16Type, ir.BF16Type, ir.F32Type)  # f32 represents all their values: they are rounded once


def is_fp8(value: ir.Value) -> bool:
    """Returns whether a value is a scalar or a vector of fp8.

    Args:
        value: of any type.
    """
    return str(element_of(value.type)) in TYPES


def extended_pair(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns two fp8 values in a wider type, by the conversion instruction of sm_89 and later.

    Args:
        value: a vector of two.
        type_: a vector of two of f16, bf16 or f32.
    """
    i8, f16 = (_like(value.type, ir.Type.parse(name)) for name in ("i8", "f16"))
    attributes = {"srcType": ir.TypeAttr.get(element_of(value.type))}
    bits = arith.bitcast(i8, value)
    halves = ir.Operation.create("nvvm.convert.f8x2.to.f16x2", results=[f16], operands=[bits], attributes=attributes)
    return _widened(halves.results[0], type_)


def extended(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns fp8 values in a wider type, which represents them all, at the insertion point.

    The bits are put where f16 has exponent and mantissa. Where its exponent has another bias, a product with a power of
    two makes the number of them, also where it is subnormal.

    Args:
        value: a scalar or a vector.
        type_: f16, bf16, f32 or f64, or a vector of them, of as many elements.
    """
    mantissa, distance = _LAYOUTS[str(element_of(value.type))]
    i8, i16, f16 = (_like(value.type, ir.Type.parse(name)) for name in ("i8", "i16", "f16"))
    bits = arith.extui(i16, arith.bitcast(i8, value))
    magnitude = arith.andi(bits, _constant(i16, _MAGNITUDE))
    sign = arith.shli(arith.andi(bits, _constant(i16, _SIGN)), _constant(i16, 8))
    shifted = arith.shli(magnitude, _constant(i16, _MANTISSA - mantissa))
    result = arith.bitcast(f16, arith.ori(shifted, sign))
    if distance:
        result = arith.mulf(result, _constant(f16, 2.0**distance))
        is_number = arith.cmpi(arith.CmpIPredicate.ne, magnitude, _constant(i16, _MAGNITUDE))
        nan = arith.bitcast(f16, arith.ori(_constant(i16, _NAN), sign))
        result = arith.select(is_number, result, nan)
    return _widened(result, type_)


def rounds(op: ir.Operation) -> bool:
    """Returns whether an op rounds values to fp8, to nearest, in a way that `rounded` and `rounded_pairs` compute.

    Args:
        op: any op.
    """
    if op.name != "arith.truncf" or not is_fp8(op.results[0]):
        return False
    return rounds_to_nearest(op) and isinstance(element_of(op.operands[0].type), _SOURCES)


def converted_by_f32(cast: ir.Operation) -> ir.Value:
    """Returns integers in fp8, or fp8 in integers, by way of f32, at the insertion point: f32 holds all that fp8 does
    not round beyond its largest value.

    Args:
        cast: of one of INTEGER_CASTS, with fp8 on one side.
    """
    value, type_ = cast.operands[0], cast.results[0].type
    if is_fp8(value):
        wide = arith.extf(_like(value.type, ir.F32Type.get()), value)
        return ir.Operation.create(cast.name, results=[type_], operands=[wide]).results[0]
    wide = ir.Operation.create(cast.name, results=[_like(type_, ir.F32Type.get())], operands=[value]).results[0]
    return arith.truncf(type_, wide)


def rounded(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns values rounded to fp8, to nearest, by arithmetic on their bits, at the insertion point.

    The bits of a normal value are rounded where fp8 ends, which may carry into the exponent. A subnormal one is
    rounded by a sum with a value whose last bit is worth one of its own. What is larger than the largest value
    becomes what the type has for it.

    Args:
        value: a scalar or a vector of f16, bf16 or f32.
        type_: of fp8, or a vector of it, of as many elements.
    """
    name = str(element_of(type_))
    mantissa, _ = _LAYOUTS[name]
    i8, i32, f32 = (_like(type_, ir.Type.parse(type_name)) for type_name in ("i8", "i32", "f32"))
    bits = arith.bitcast(i32, _in_f32(value))
    magnitude = arith.andi(bits, _constant(i32, _F32_MAGNITUDE))

    shift = _F32_MANTISSA - mantissa
    last = arith.andi(arith.shrui(magnitude, _constant(i32, shift)), _constant(i32, 1))
    near = arith.addi(magnitude, arith.addi(last, _constant(i32, (1 << shift - 1) - 1)))
    bias = 1 - _EXPONENT[name]
    normal = arith.subi(arith.shrui(near, _constant(i32, shift)), _constant(i32, (_F32_BIAS - bias) << mantissa))

    unit = _constant(f32, 2.0 ** (_EXPONENT[name] - mantissa + _F32_MANTISSA))
    sum_ = arith.bitcast(i32, arith.addf(arith.bitcast(f32, magnitude), unit))
    subnormal = arith.subi(sum_, arith.bitcast(i32, unit))

    smallest = _constant(i32, (_EXPONENT[name] + _F32_BIAS) << _F32_MANTISSA)
    fp8_bits = arith.select(arith.cmpi(arith.CmpIPredicate.ult, magnitude, smallest), subnormal, normal)
    fp8_bits = arith.minui(fp8_bits, _constant(i32, _CEILING[name]))
    is_nan = arith.cmpi(arith.CmpIPredicate.ugt, magnitude, _constant(i32, _F32_INFINITY))
    fp8_bits = arith.select(is_nan, _constant(i32, _MAGNITUDE), fp8_bits)
    sign = arith.andi(arith.shrui(bits, _constant(i32, 24)), _constant(i32, _SIGN))
    return arith.bitcast(type_, arith.trunci(i8, arith.ori(fp8_bits, sign)))


def rounded_pairs(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns values rounded to fp8 by the conversion instruction of sm_89 and later, at the insertion point.

    The instruction takes two values, and saturates larger ones to the largest value. The bits after those of the
    largest value are what the type has for it: one is added, unless a clamp bounds the values.

    Args:
        value: a scalar, or a vector of an even number of them, of f16, bf16 or f32.
        type_: of fp8, or a vector of it, of as many elements.
    """
    fp8 = element_of(type_)
    is_bounded = bounded(value, _LARGEST[str(fp8)])
    i8, i16 = (ir.IntegerType.get_signless(width) for width in (8, 16))
    wide = _in_f32(value)
    if not isinstance(type_, ir.VectorType):
        bits = vector.extract(_pair_of_bytes(wide, wide, fp8), [], [0])
        if not is_bounded:
            bits = arith.addi(bits, arith.extui(i8, _is_beyond(wide, str(fp8))))
        return arith.bitcast(type_, bits)
    count = math.prod(type_.shape)
    flat = _shaped(wide, [count])
    pairs = _constant(ir.VectorType.get([count // 2], i16), 0)
    for number in range(count // 2):
        low, high = (vector.extract(flat, [], [2 * number + place]) for place in range(2))
        bytes_ = vector.bitcast(ir.VectorType.get([1], i16), _pair_of_bytes(low, high, fp8))
        pair = vector.extract(bytes_, [], [0])
        if not is_bounded:
            first, second = (arith.extui(i16, _is_beyond(part, str(fp8))) for part in (low, high))
            pair = arith.addi(pair, arith.ori(first, arith.shli(second, _constant(i16, 8))))
        pairs = vector.insert(pair, pairs, [], [number])
    bits = vector.bitcast(ir.VectorType.get([count], i8), pairs)
    return arith.bitcast(type_, _shaped(bits, type_.shape))


def _pair_of_bytes(low: ir.Value, high: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns two f32 values as bytes of a type of fp8, what is larger as its largest value."""
    return ir.Operation.create(
        "nvvm.convert.f32x2.to.f8x2",
        results=[ir.VectorType.get([2], ir.IntegerType.get_signless(8))],
        operands=[high, low],
        attributes={
            "rnd": ir.Attribute.parse("#nvvm.fp_rnd_mode<rn>"),
            "sat": ir.Attribute.parse("#nvvm.sat_mode<satfinite>"),
            "dstTy": ir.TypeAttr.get(type_),
        },
    ).results[0]


def _is_beyond(value: ir.Value, name: str) -> ir.Value:
    """Returns whether a number of f32 is rounded to more than the largest number of a type; NaN is not.

    Halfway to what would be the next value, the last bit of the largest one decides: it is 0 in f8E4M3FN alone.
    """
    mantissa, _ = _LAYOUTS[name]
    largest = _LARGEST[name]
    halfway = largest + 2.0 ** (math.frexp(largest)[1] - 2 - mantissa)
    predicate = arith.CmpFPredicate.OGT if name == "f8E4M3FN" else arith.CmpFPredicate.OGE
    magnitude = ir.Operation.create("math.absf", results=[value.type], operands=[value]).results[0]
    return arith.cmpf(predicate, magnitude, _constant(value.type, halfway))


def bounded(value: ir.Value, limit: float) -> bool:
    """Returns whether clamps by constants show that values are not larger than a limit, or are NaN.

    Args:
        value: of a floating-point type.
        limit: of their magnitude, which all types have exactly.
    """
    return all(_is_below(value, limit, sign) for sign in (1, -1))


def _is_below(value: ir.Value, limit: float, sign: int) -> bool:
    """Returns whether the values, multiplied by a sign, are not larger than a limit, or are NaN."""
    op = producer(value)
    if op is None:
        return False
    kind = op.name.removeprefix("arith.")
    if kind == "constant":
        number = number_in(op.attributes["value"])
        return isinstance(number, ir.FloatAttr) and number.value * sign <= limit
    if kind in ("extf", "truncf", "vector.broadcast"):
        return _is_below(op.operands[0], limit, sign)
    if kind in ("maximumf", "maxnumf", "minimumf", "minnumf"):
        lowers = kind.startswith("min") == (sign > 0)
        return (any if lowers else all)(_is_below(operand, limit, sign) for operand in op.operands)
    return kind == "select" and all(_is_below(operand, limit, sign) for operand in list(op.operands)[1:])


def _in_f32(value: ir.Value) -> ir.Value:
    f32 = _like(value.type, ir.F32Type.get())
    return value if value.type == f32 else arith.extf(f32, value)


def _shaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Returns a vector with other extents."""
    type_ = ir.VectorType.get(list(shape), element_of(value.type))
    return value if value.type == type_ else vector.shape_cast(type_, value)


def _widened(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns fp8 values, in f16, in another type that has them all."""
    if type_ == value.type:
        return value
    if isinstance(element_of(type_), (ir.F32Type, ir.F64Type)):
        return arith.extf(type_, value)
    return arith.truncf(type_, arith.extf(_like(value.type, ir.F32Type.get()), value))


def _like(type_: ir.Type, element: ir.Type) -> ir.Type:
    """Returns the type of as many elements of another type."""
    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element


def _constant(type_: ir.Type, value: float) -> ir.Value:
    """Returns a scalar, or a splat vector of it."""
    element = element_of(type_)
    is_float = isinstance(element, ir.FloatType)
    attribute = ir.FloatAttr.get(element, value) if is_float else ir.IntegerAttr.get(element, int(value))
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return arith.constant(type_, attribute)
