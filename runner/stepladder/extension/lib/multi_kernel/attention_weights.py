"""The weights of an attention: exponentials of logits, relative to the largest one so far of their row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stepladder.extension.lib.arithmetic import constant, integer
from stepladder.extension.lib.epilogues.scalar_ops import approximated
from stepladder.extension.lib.threads import WARP
from stepladder.extension.lib.vectors import extract
from stepladder.mlir.bindings import arith, gpu, ir

_LOG2_E = 1 / math.log(2)
_LANES = (1, 2)  # distances of the lanes with elements of one row
# Numbers whose products with it may be infinite, and what they are multiplied by.
_LARGE, _OF_LARGE = 2.0**127, 2.0**-20


def powers(values: Sequence[ir.Value], base: ir.Value, *, factor: float, exponent: int, fast: bool) -> list[ir.Value]:
    """Returns the exponentials of the differences of values to another one, times a power of two.

    Args:
        values: of f32.
        base: the other one.
        factor: that the differences are multiplied by; 1 where exponentials are not approximated.
        exponent: of the power of two.
        fast: whether they are approximated.
    """
    f32 = base.type
    if not fast:
        exact = [_created("math.exp", arith.subf(value, base)) for value in values]
        return [arith.mulf(power, constant(f32, 2.0**exponent)) for power in exact] if exponent else exact
    # Rounded once: the product with the base is the same for all, and for what they are divided by.
    scale = _scale(base, factor)
    shift = arith.negf(arith.mulf(base, scale))
    if exponent:
        shift = arith.addf(shift, constant(f32, float(exponent)))
    return [approximated("math.exp2", _created("math.fma", value, scale, shift)) for value in values]


def correction(largest: ir.Value, base: ir.Value, *, factor: float, fast: bool) -> ir.Value:
    """Returns what earlier exponentials are multiplied by: those of differences to another base.

    Args:
        largest: the earlier base.
        base: the new one.
        factor: that the difference is multiplied by; 1 where exponentials are not approximated.
        fast: whether exponentials are approximated.
    """
    if not fast:
        return _created("math.exp", arith.subf(largest, base))
    scale = _scale(base, factor)
    return approximated("math.exp2", arith.subf(arith.mulf(largest, scale), arith.mulf(base, scale)))


def _scale(base: ir.Value, factor: float) -> ir.Value:
    """Returns what makes exponents of e, times a factor, those of 2.

    The product with a base near the least number, which hides a key, would be infinite. Another number differs from
    such a base by so much that its power is zero with any factor.
    """
    f32 = base.type
    is_large = arith.cmpf(arith.CmpFPredicate.OGT, _created("math.absf", base), constant(f32, _LARGE))
    return arith.select(is_large, constant(f32, _OF_LARGE), constant(f32, factor * _LOG2_E))


def reciprocal(total: ir.Value, *, zeroes: bool) -> ir.Value:
    """Returns what the sums of a row's products are multiplied by.

    Args:
        total: the sum of the row's weights.
        zeroes: whether it is zero where this sum is zero: for a row without keys.
    """
    zero = constant(total.type, 0.0)
    factor = arith.divf(constant(total.type, 1.0), total)
    return arith.select(arith.cmpf(arith.CmpFPredicate.OEQ, total, zero), zero, factor) if zeroes else factor


def divided(weights: ir.Value, type_: ir.VectorType, count: int) -> list[ir.Value]:
    """Returns vectors of a narrower type whose sum is a vector of weights, the largest first.

    Args:
        weights: two of f32.
        type_: of 16-bit elements.
        count: of the terms; one is the rounded vector.
    """
    terms = [arith.truncf(type_, weights)]
    while len(terms) < count:
        is_bf16 = isinstance(type_.element_type, ir.BF16Type)
        largest = extended(terms[-1]) if is_bf16 else arith.extf(weights.type, terms[-1])
        weights = arith.subf(weights, largest)
        terms.append(arith.truncf(type_, weights))
    return terms


def pair_of(elements: Sequence[ir.Value]) -> ir.Value:
    """Returns a vector of two values, at the insertion point.

    Args:
        elements: of one type.
    """
    type_ = ir.VectorType.get([len(elements)], elements[0].type)
    return ir.Operation.create("vector.from_elements", results=[type_], operands=list(elements)).results[0]


def extended(pair: ir.Value) -> ir.Value:
    """Returns two bf16 values in f32, by their bits: conversions take as long as exponentials.

    Args:
        pair: a vector.
    """
    i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
    word = ir.Operation.create("vector.bitcast", results=[ir.VectorType.get([1], i32)], operands=[pair]).results[0]
    bits = extract(word, [0], i32)
    low, high = arith.shli(bits, integer(16, 32)), arith.andi(bits, integer(-(1 << 16), 32))
    return pair_of([arith.bitcast(f32, low), arith.bitcast(f32, high)])


def folded(values: Sequence[ir.Value], fold: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Returns values folded by pairs.

    Args:
        values: one at least.
        fold: of two.
    """
    values = list(values)
    while len(values) > 1:
        rest = values[len(values) // 2 * 2 :]
        values = [fold(left, right) for left, right in zip(values[::2], values[1::2])] + rest
    return values[0]


def over_lanes(value: ir.Value, fold: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Returns a value folded over the four lanes that have elements of one row.

    Args:
        value: of f32.
        fold: of two.
    """
    for distance in _LANES:
        other, _ = gpu.shuffle(value, integer(distance, 32), integer(WARP, 32), gpu.ShuffleMode.XOR)
        value = fold(value, other)
    return value


def _created(name: str, *operands: ir.Value) -> ir.Value:
    """Returns the result of an op of the dialect `math`."""
    return ir.Operation.create(name, results=[operands[0].type], operands=list(operands)).results[0]
