"""Powers of integers as ops of the dialect math.

Upstream lowers them to loops in bodies of linalg ops, which have too few iterations for long exponents.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.stablehlo.builder import Tensor, created, where

# Bits of an integer, below which 2^(n - 2) is less than n.
_LEAST_WIDTH = 4


def rewrite(module: ir.Module) -> None:
    """Replaces powers of integers, with a sign or without one; those of floating-point numbers stay.

    Args:
        module: with functions of StableHLO, before integers without a sign become others.
    """
    for op in walk(module, "stablehlo.power"):
        x, y = (Tensor(operand) for operand in op.operands)
        if not isinstance(x.element, ir.IntegerType) or x.element.width < _LEAST_WIDTH:
            continue
        with ir.InsertionPoint(op), op.location:
            if x.element.is_unsigned:
                power = _without_sign(x, y)
            else:
                power = _power(x, y)
        op.results[0].replace_all_uses_with(power.value)
        op.erase()


def _power(x: Tensor, y: Tensor) -> Tensor:
    return Tensor(created("math.ipowi", x.value.type, x.value, y.value))


def _without_sign(x: Tensor, y: Tensor) -> Tensor:
    """Returns powers of the same bits with exponents that have no sign bit.

    Modulo 2^n, powers of an odd number repeat after 2^(n - 2), and those of an even number are 0 from n on: an exponent
    of 2^(n - 1) or more may lose its first bit where it gets the second one.
    """
    width = ir.IntegerType(x.element).width
    signless = ir.IntegerType.get_signless(width)
    base, exponent = x.convert(signless), y.convert(signless)
    shorter = exponent & exponent.like((1 << (width - 1)) - 1) | exponent.like(1 << (width - 2))
    return _power(base, where(exponent < 0, shorter, exponent)).convert(x.element)
