"""Splits f32 values into two tf32 values each."""

import functools
import itertools
from collections.abc import Sequence

from stepladder.extension.lib import vectors
from stepladder.extension.lib.arithmetic import integer
from stepladder.mlir.bindings import arith, ir, nvvm, scf

_DROPPED = 13  # bits of f32 that tf32 does not have
_ROUNDS_TO_INFINITY = float.fromhex("0x1.ffep127")  # the least f32 whose first 11 bits, rounded, are an infinity
_ALL_BUT_LAST = -1 << _DROPPED
_MIN_NORMAL = float.fromhex("0x1p-126")
# Mask of an infinity, whose bits are 0x7f800000, that leaves 1 with its sign.
_SIGN_AND_ONE = -1 << 31 | 0x3F800000
_SCALE = float.fromhex("0x1p24")  # by whose inverse a subnormal value loses all of its bits
_JUST_ABOVE_ONE = float.fromhex("0x1.004p0")  # by which what rounds to an infinity becomes one


def split(number: ir.Value, *, keeps_infinities: bool) -> tuple[ir.Value, ir.Value]:
    """Returns the first 11 bits of values, rounded to nearest with ties away from zero, and what is left.

    Args:
        number: of f32, or a vector of them; the ops are created at the current insertion point.
        keeps_infinities: whether the sum of the three products of parts, without that of the small ones, is the product
            in f32 also where a value is not finite, for almost three times as many ops. The large part of an infinity
            is then 1 with its sign, and the small part the infinity: were it the large part, a small part of the other
            value that is 0, or has the other sign, would make the sum NaN. A large part that would round to an
            infinity is cut off instead, and that of a subnormal value is rounded up, as an infinity times 0 is NaN.
            Otherwise the small part of values that are, or round to, infinities is NaN or an infinity.
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

    half, mask = bits_of(1 << (_DROPPED - 1)), bits_of(_ALL_BUT_LAST)
    if keeps_infinities:
        size = ir.Operation.create("math.absf", results=[like], operands=[number]).results[0]
        half = arith.select(at_least(size, _MIN_NORMAL), half, bits_of(~_ALL_BUT_LAST))
        half = arith.select(at_least(size, _ROUNDS_TO_INFINITY), bits_of(0), half)
        mask = arith.select(at_least(size, float("inf")), bits_of(_SIGN_AND_ONE), mask)
    bits = arith.bitcast(of_shape(i32), number)
    large = arith.bitcast(like, arith.andi(arith.addi(bits, half), mask))
    return large, arith.subf(number, large)


def split_in_warp(numbers: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns what `split` does with `keeps_infinities`, by half as many instructions where no number of the warp needs
    the others.

    Args:
        numbers: a vector of two dimensions or more, of f32. All threads of a warp execute this, and take one branch,
            as warpgroup MMAs after it require.
    """
    everyone, all_of = integer(-1, 32), ir.Attribute.parse("#nvvm<vote_sync_kind all>")
    ordinary = nvvm.vote_sync(everyone, _are_ordinary(numbers), all_of, results=[ir.IntegerType.get_signless(1)])
    branch = scf.IfOp(ordinary, [numbers.type] * 2, has_else=True)
    for block, keeps_infinities in ((branch.then_block, False), (branch.else_block, True)):
        with ir.InsertionPoint(block):
            scf.yield_(list(split(numbers, keeps_infinities=keeps_infinities)))
    return branch.results[0], branch.results[1]


def _are_ordinary(numbers: ir.Value) -> ir.Value:
    """Returns whether the parts of all values, rounded to nearest, are finite, and the large parts no zeros but those
    of zeros. It may be false of values below 2^-102, or with a sum of 2^127 and more.

    A value that times 2^-24 is subnormal loses bits, which a multiplication and an addition find. The instructions are
    additions and multiplications of f32, of which a multiprocessor executes twice as many a clock as comparisons.
    Source: CUDA C++ Programming Guide, throughput of arithmetic instructions.
    """
    type_ = ir.VectorType(numbers.type)
    *outer, lanes = type_.shape
    f32 = type_.element_type

    def splat(value: float, shape: Sequence[int] = type_.shape) -> ir.Value:
        like = ir.VectorType.get(shape, f32)
        return arith.constant(like, ir.DenseElementsAttr.get_splat(like, ir.FloatAttr.get(f32, value)))

    def function(name: str, *operands: ir.Value) -> ir.Value:
        return ir.Operation.create(f"math.{name}", results=[operands[0].type], operands=list(operands)).results[0]

    scaled_numbers = arith.mulf(numbers, splat(1 / _SCALE))
    error = function("absf", function("fma", scaled_numbers, splat(-_SCALE), numbers))
    size = function("absf", numbers)
    row = ir.VectorType.get([lanes], f32)
    sums = []
    for values in (error, size):
        rows = [vectors.extract(values, place, row) for place in itertools.product(*map(range, outer))]
        sums.append(functools.reduce(arith.addf, rows))
    error, size = sums
    # 0 times an infinity is NaN, which is not 0.
    large = arith.mulf(size, splat(_JUST_ABOVE_ONE, [lanes]))
    error = function("fma", large, splat(0.0, [lanes]), error)
    total = ir.Operation.create(
        "vector.reduction",
        results=[f32],
        operands=[error],
        attributes={"kind": ir.Attribute.parse("#vector.kind<add>")},
    ).results[0]
    return arith.cmpf(arith.CmpFPredicate.OEQ, total, arith.constant(f32, ir.FloatAttr.get(f32, 0.0)))
