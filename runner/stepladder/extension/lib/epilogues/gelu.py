"""GELU by erf of f32, whose result is rounded to 16 bits: an exponential of a polynomial.

GELU(x) is max(x, 0) - |x| T(|x|), where T(z) is 1 - Phi(z). The logarithm of T is smooth: a polynomial of six degrees
approximates it wherever |x| T matters in a result of 16 bits. It takes one exponential; a polynomial times an
exponential, the usual form, also takes a reciprocal and a selection by the sign.
"""

from __future__ import annotations

import math

from stepladder.extension.lib.epilogues.scalar_ops import approximated, constant, constant_of, other
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer, users_of

# log2(2 T(2 h)) for h from 0 to LIMIT, from the constant on, by Lawson's iteration: an error of T of at most 2^-17 T or
# 2^-32. T(2 LIMIT) is 2^-29.9.
COEFFICIENTS = (-5.3644153e-06, -2.3021562, -1.8362128, -0.4253847, 0.127982, -0.024337908, 0.0021386908)
LIMIT = 3.0
_HALF = 0.5
_SAME = 1e-6  # relative difference up to which a value is a coefficient of GELU, rounded to f32


def find_gelu(erf: ir.Operation, total: ir.Operation) -> tuple[ir.Value, ir.Operation] | None:
    """Returns x and the last op of x/2 (1 + erf(x / sqrt(2))), in any order of the factors; None for another value.

    Args:
        erf: `math.erf` on f32.
        total: the sum of its result and 1.
    """
    x = _operand(erf.operands[0])
    product = None if x is None else _product(total, x)
    return None if x is None or product is None else (x, product)


def create_gelu(x: ir.Value) -> ir.Value:
    """Creates GELU, at the current insertion point, and returns it. That of minus infinity is NaN, as in f32.

    Args:
        x: of f32.
    """
    half = _half(x)
    magnitude = ir.Operation.create("math.absf", results=[x.type], operands=[half]).results[0]
    bounded_magnitude = arith.minimumf(magnitude, constant(LIMIT))
    exponent = constant(COEFFICIENTS[-1])
    for coefficient in reversed(COEFFICIENTS[:-1]):
        exponent = arith.addf(arith.mulf(exponent, bounded_magnitude), constant(coefficient))
    # max(x, 0) as x/2 + |x/2|, which is NaN for minus infinity; a maximum has half the throughput of an addition.
    positive = arith.addf(half, magnitude)
    return arith.subf(positive, arith.mulf(bounded_magnitude, approximated("math.exp2", exponent)))


def _half(x: ir.Value) -> ir.Value:
    """Creates x/2; that of a sum as a multiplication and addition, which contract."""
    source, half = producer(x), constant(_HALF)
    if source is not None and source.name == "arith.addf":
        return arith.addf(*(arith.mulf(operand, half) for operand in source.operands))
    return arith.mulf(x, half)


def _is(number: float | None, expected: float) -> bool:
    return number is not None and abs(number - expected) <= _SAME * expected


def _scaled_by(value: ir.Value, expected: float) -> ir.Value | None:
    """Returns the other factor of a product with a constant; None for another constant or value."""
    source = producer(value)
    if source is None or source.name != "arith.mulf":
        return None
    return next((other(source, operand) for operand in source.operands if _is(constant_of(operand), expected)), None)


def _operand(value: ir.Value) -> ir.Value | None:
    """Returns x where a value is x / sqrt(2)."""
    source = producer(value)
    if source is not None and source.name == "arith.divf" and _is(constant_of(source.operands[1]), math.sqrt(2)):
        return source.operands[0]
    return _scaled_by(value, math.sqrt(_HALF))


def _product(total: ir.Operation, x: ir.Value) -> ir.Operation | None:
    """Returns the op that makes x/2 times a sum, whose intermediate results nothing else reads; None without one."""
    op, is_halved, has_x = total, False, False
    while not (is_halved and has_x):
        users = users_of(op.results[0])
        if len(users) != 1 or users[0].name != "arith.mulf":
            return None
        factor, op = other(users[0], op.results[0]), users[0]
        double_of_factor = _scaled_by(factor, _HALF)
        if factor == x and not has_x:
            has_x = True
        elif _is(constant_of(factor), _HALF) and not is_halved:
            is_halved = True
        elif double_of_factor is not None and double_of_factor == x and not (is_halved or has_x):
            is_halved = has_x = True
        else:
            return None
    return op
