"""Splits f32 values into two tf32 values each."""

from stepladder.mlir.bindings import arith, ir

_DROPPED = 13  # bits of f32 that tf32 does not have
_ROUNDS_TO_INFINITY = float.fromhex("0x1.ffep127")  # the least f32 whose first 11 bits, rounded, are an infinity
_ALL_BUT_LAST = -1 << _DROPPED
_MIN_NORMAL = float.fromhex("0x1p-126")
# What is kept of an infinity, whose bits are 0x7f800000: 1 with its sign.
_SIGN_AND_ONE = -1 << 31 | 0x3F800000


def split(number: ir.Value, *, keeps_infinities: bool) -> tuple[ir.Value, ir.Value]:
    """Returns the first 11 bits of numbers, rounded to nearest with ties away from zero, and what is left.

    Args:
        number: of f32, or a vector of them; the ops are created at the current insertion point.
        keeps_infinities: whether the sum of the three products of parts, without that of the small ones, is the product
            in f32 also where a number is not finite, for almost three times as many ops. The large part of an infinity
            is then 1 with its sign, and the small part the infinity: were it the large part, a small part of the other
            number that is 0, or has the other sign, would make the sum NaN. A large part that would round to an
            infinity is cut off instead, and that of a subnormal number is rounded up, as an infinity times 0 is NaN.
            Otherwise the small part of numbers that are, or round to, infinities is NaN or an infinity.
    """
    like = number.type
    shape = ir.VectorType(like).shape if isinstance(like, ir.VectorType) else None

    def of_shape(element: ir.Type) -> ir.Type:
        return element if shape is None else ir.VectorType.get(shape, element)

    def constant(value: ir.Attribute, element: ir.Type) -> ir.Value:
        type_ = of_shape(element)
        return arith.constant(type_, value if shape is None else ir.DenseElementsAttr.get_splat(type_, value))

    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)

    def bits_of(value: int) -> ir.Value:
        return constant(ir.IntegerAttr.get(i32, value), i32)

    def at_least(size: ir.Value, bound: float) -> ir.Value:
        return arith.cmpf(arith.CmpFPredicate.OGE, size, constant(ir.FloatAttr.get(f32, bound), f32))

    half, kept = bits_of(1 << (_DROPPED - 1)), bits_of(_ALL_BUT_LAST)
    if keeps_infinities:
        size = ir.Operation.create("math.absf", results=[like], operands=[number]).results[0]
        half = arith.select(at_least(size, _MIN_NORMAL), half, bits_of(~_ALL_BUT_LAST))
        half = arith.select(at_least(size, _ROUNDS_TO_INFINITY), bits_of(0), half)
        kept = arith.select(at_least(size, float("inf")), bits_of(_SIGN_AND_ONE), kept)
    bits = arith.bitcast(of_shape(i32), number)
    large = arith.bitcast(like, arith.andi(arith.addi(bits, half), kept))
    return large, arith.subf(number, large)
