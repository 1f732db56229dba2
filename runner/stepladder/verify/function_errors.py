"""How far functions of several or of periodic arguments, and those of bits, can be off, for operands with errors.

`error_propagation` lists the rules. Each function takes what computes, the operands, bounds of their errors,
and the result, and returns bounds of the result's error, without its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stepladder.runtime.reference import Operation
from stepladder.runtime.reference_operations import is_float
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
    broadcast = bounds + xp.zeros_like(condition, dtype=xp.float64)
    return xp.where(condition, xp.full_like(broadcast, math.inf), broadcast)


def as_number(arrays: NumPyArrays, value: Array) -> Array:
    """Returns booleans as integers, which have differences; other values as they are.

    Args:
        arrays: what computes.
        value: of any type.
    """
    return arrays.cast(value, "int64") if "bool" in str(value.dtype) else value


def range_of(type_: str, *, is_signed: bool) -> tuple[int, int]:
    """Returns the least integer of a type, and the first one above its largest.

    Args:
        type_: MLIR's name of an integer type.
        is_signed: whether its values have a sign.
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
    distance, radius = xp.hypot(of_y, of_x), xp.hypot(y, x)
    share = distance / xp.where(radius > distance, radius, xp.ones_like(radius))
    crosses = (abs(y) <= of_y) & (x <= of_x) & (distance > 0)
    return unbounded_where(arrays, crosses | ((radius <= distance) & (distance > 0)), share * (math.pi / 2))


def _powf(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    xp = arrays.xp
    (x, y), (of_x, of_y) = values, errors
    ends = [abs(base**power - result) for base in (x - of_x, x + of_x) for power in (y - of_y, y + of_y)]
    largest = xp.maximum(xp.maximum(ends[0], ends[1]), xp.maximum(ends[2], ends[3]))
    slope_error = abs(y) * (abs(x) + of_x) ** (y - 1) * of_x
    is_one_power = (of_y == 0) & (y >= 1)
    bounds = xp.where(x > of_x, largest, xp.where(is_one_power, slope_error, xp.full_like(result, math.inf)))
    # NaN has no bound, unless both operands are exact.
    return xp.where((of_x == 0) & (of_y == 0), xp.zeros_like(bounds), bounds)


def _remf(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    xp = arrays.xp
    (x, y), (of_x, of_y) = values, errors
    least, largest = xp.trunc((x - of_x) / y), xp.trunc((x + of_x) / y)
    is_uncertain = ((least != largest) & (of_x > 0)) | (of_y > 0)
    return unbounded_where(arrays, is_uncertain, of_x + xp.zeros_like(result))


def of_bits(arrays: NumPyArrays, op: Operation, value: Array, error: Array, result: Array) -> Array:
    """Returns how far the bits of a value, taken as a value of another type, can be off.

    Of values of one sign, more is more, or less of negative ones; across zero, and of NaN, nothing is known.

    Args:
        arrays: what computes.
        op: takes the bits.
        value: the value.
        error: of it.
        result: what its bits are.
    """
    xp = arrays.xp
    value = arrays.cast(value, "float64")
    if not is_float(op.operand_type):
        error = xp.ceil(error)
    ends = value - error, value + error
    bounds = [abs(arrays.bits(end, op.operand_type, op.type) - result) for end in ends]
    is_known = ((ends[0] >= 0) | (ends[1] < 0)) & (xp.maximum(*bounds) < math.inf)
    if not is_float(op.operand_type):
        least, end = range_of(op.operand_type, is_signed=True)
        is_known = is_known & (ends[0] >= least) & (ends[1] < end)
    return unbounded_where(arrays, ~is_known, xp.maximum(*bounds))


def _shifted(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """Of values that are shifted to the right by exact distances: those with a sign, or that have none."""
    xp = arrays.xp
    (value, distance), (error, of_distance) = values, errors
    is_known = (of_distance == 0) & ((value >= error) | (value < -error))
    bounds = xp.where(error > 0, error / (distance * 0 + 2.0) ** distance + 1, xp.zeros_like(error))
    return unbounded_where(arrays, ~is_known & (error + of_distance > 0), bounds)


def _masked(arrays: NumPyArrays, values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """Of values of which an exact mask clears low bits, or no bits that the value may have."""
    xp = arrays.xp
    mask, (error, of_mask) = values[1], errors
    unit = -mask
    is_known = (of_mask == 0) & (mask < 0) & ((unit & (unit - 1)) == 0)
    bounds = xp.where(error > 0, error + unit, xp.zeros_like(error))
    return unbounded_where(arrays, ~is_known & (error + of_mask > 0), bounds)


# By the name of the op.
FURTHER: dict[str, Rule] = {
    "arith.andi": _masked,
    "arith.remf": _remf,
    "arith.shrsi": _shifted,
    "arith.shrui": _shifted,
    "math.atan2": _atan2,
    "math.copysign": _copysign,
    "math.cosh": _cosh,
    "math.powf": _powf,
    "math.tan": _tan,
}
