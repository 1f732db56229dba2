"""How far functions of several or of periodic arguments can be off, for operands with errors.

`error_propagation` lists the rules. Each function takes what computes, the operands, bounds of their errors,
and the result, and returns bounds of the result's error, without its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stepladder.verify.arrays import Array, NumPyArrays

Rule = Callable[[NumPyArrays, Sequence[Array], Sequence[Array], Array], Array]


def unbounded_where(arrays: NumPyArrays, condition: Array, bounds: Array) -> Array:
    """Returns bounds that are unbounded where a condition holds.

    Args:
        arrays: what computes.
        condition: of bool.
        bounds: elsewhere.
    """
    xp = arrays.xp
    filled = bounds + xp.zeros_like(condition, dtype=xp.float64)
    return xp.where(condition, xp.full_like(filled, math.inf), filled)


def as_number(arrays: NumPyArrays, value: Array) -> Array:
    """Returns truth values as integers, which have differences; other values as they are.

    Args:
        arrays: what computes.
        value: of any type.
    """
    return arrays.cast(value, "int64") if "bool" in str(value.dtype) else value


def range_of(type_: str, *, is_signed: bool) -> tuple[int, int]:
    """Returns the least integer of a type, and the first one above its largest.

    Args:
        type_: MLIR's name of an integer type.
        is_signed: whether its numbers have a sign.
    """
    count = 1 << int(type_[1:])
    return (-count // 2, count // 2) if is_signed else (0, count)


def _tan(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    xp = arrays.xp
    size = abs(xp.cos(values[0]))
    room = size - errors[0]
    bounds = errors[0] / (size * xp.where(room > 0, room, xp.ones_like(room)))
    return unbounded_where(arrays, (room <= 0) & (errors[0] > 0), bounds)


def _cosh(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    xp = arrays.xp
    return xp.cosh(abs(values[0]) + errors[0]) - result


def _copysign(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    xp = arrays.xp
    is_uncertain = (abs(values[1]) <= errors[1]) & (errors[1] > 0)
    return errors[0] + xp.where(is_uncertain, abs(result) * 2, xp.zeros_like(result))


def _atan2(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    xp = arrays.xp
    (y, x), (of_y, of_x) = values, errors
    moved, radius = xp.hypot(of_y, of_x), xp.hypot(y, x)
    share = moved / xp.where(radius > moved, radius, xp.ones_like(radius))
    crosses = (abs(y) <= of_y) & (x <= of_x) & (moved > 0)
    return unbounded_where(arrays, crosses | ((radius <= moved) & (moved > 0)), share * (math.pi / 2))


def _powf(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    xp = arrays.xp
    (x, y), (of_x, of_y) = values, errors
    ends = [abs(base**power - result) for base in (x - of_x, x + of_x) for power in (y - of_y, y + of_y)]
    largest = xp.maximum(xp.maximum(ends[0], ends[1]), xp.maximum(ends[2], ends[3]))
    across = abs(y) * (abs(x) + of_x) ** (y - 1) * of_x
    is_one_power = (of_y == 0) & (y >= 1)
    bounds = xp.where(x > of_x, largest, xp.where(is_one_power, across, xp.full_like(result, math.inf)))
    # What is not a number has no bound, unless both operands are exact.
    return xp.where((of_x == 0) & (of_y == 0), xp.zeros_like(bounds), bounds)


def _remf(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    xp = arrays.xp
    (x, y), (of_x, of_y) = values, errors
    least, largest = xp.trunc((x - of_x) / y), xp.trunc((x + of_x) / y)
    is_uncertain = ((least != largest) & (of_x > 0)) | (of_y > 0)
    return unbounded_where(arrays, is_uncertain, of_x + xp.zeros_like(result))


# By the name of the op.
FURTHER: dict[str, Rule] = {
    "arith.remf": _remf,
    "math.atan2": _atan2,
    "math.copysign": _copysign,
    "math.cosh": _cosh,
    "math.powf": _powf,
    "math.tan": _tan,
}
