"""Ops of reference programs on unsigned integers of 64 bits, which are held in signed arrays (int64).

Narrower unsigned integers need none of this: int64 has all their values.
"""

from __future__ import annotations

from collections.abc import Callable

from stepladder.verify.arrays import Array, NumPyArrays

_SIGN = -(1 << 63)
_LARGEST = (1 << 63) - 1
_HALF = (1 << 32) - 1


def less(x: Array, y: Array) -> Array:
    """Returns where a number without a sign is less than another one.

    Args:
        x: int64, the bits of the number.
        y: likewise.
    """
    return (x ^ _SIGN) < (y ^ _SIGN)


def to_float(arrays: NumPyArrays, x: Array, kind: str) -> Array:
    """Returns the numbers in floating point: in float64 rounded once, in float32 up to twice.

    Args:
        arrays: what computes.
        x: int64, the bits of the numbers.
        kind: `float64` or `float32`.
    """
    high, low = (arrays.cast(half, kind) for half in (x >> 32 & _HALF, x & _HALF))
    return high * 2.0**32 + low


def from_float(arrays: NumPyArrays, x: Array) -> Array:
    """Returns the bits of floating-point numbers, cut off towards 0, as int64.

    Args:
        arrays: what computes.
        x: numbers from 0 to 2^64; what others become is not defined.
    """
    is_large = x >= 2.0**63
    return arrays.cast(arrays.xp.where(is_large, x - 2.0**63, x), "int64") ^ arrays.cast(is_large, "int64") << 63


def _shifted(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    """Returns numbers that are shifted to the right, by less than 64."""
    distance = y - arrays.cast(y > 0, "int64")
    return arrays.xp.where(y > 0, (x >> 1 & _LARGEST) >> distance, x)


def _divided(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    """Returns quotients: of half the dividend, twice, and one more where the remainder is not below the divisor."""
    divisor = arrays.xp.where(y > 0, y, arrays.xp.ones_like(y))
    quotient = (x >> 1 & _LARGEST) // divisor << 1
    quotient = quotient + arrays.cast(~less(x - quotient * divisor, divisor), "int64")
    # A divisor of 2^63 or more is contained once or not at all.
    return arrays.xp.where(y > 0, quotient, arrays.cast(~less(x, y), "int64"))


def _remainder(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    return x - _divided(arrays, x, y) * y


def _divided_upwards(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    quotient = _divided(arrays, x, y)
    return quotient + arrays.cast(quotient * y != x, "int64")


WIDE_UNSIGNED: dict[str, Callable[[NumPyArrays, Array, Array], Array]] = {
    "arith.shrui": _shifted,
    "arith.divui": _divided,
    "arith.remui": _remainder,
    "arith.ceildivui": _divided_upwards,
}
