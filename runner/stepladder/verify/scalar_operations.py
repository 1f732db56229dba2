"""The scalar ops of reference programs, on whole arrays of NumPy or PyTorch."""

from __future__ import annotations

from collections.abc import Callable

from stepladder.verify.arrays import Array, NumPyArrays

Relation = Callable[[Array, Array], Array]
_SIGN = -(1 << 63)
_INTEGER: dict[int, Relation] = {
    0: lambda x, y: x == y,
    1: lambda x, y: x != y,
    2: lambda x, y: x < y,
    3: lambda x, y: x <= y,
    4: lambda x, y: x > y,
    5: lambda x, y: x >= y,
    # Unsigned: numbers are held with their sign, which comes behind all others without one.
    6: lambda x, y: (x ^ _SIGN) < (y ^ _SIGN),
    7: lambda x, y: (x ^ _SIGN) <= (y ^ _SIGN),
    8: lambda x, y: (x ^ _SIGN) > (y ^ _SIGN),
    9: lambda x, y: (x ^ _SIGN) >= (y ^ _SIGN),
}
# By MLIR's numbers: oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno.
_FLOAT: dict[int, Relation] = {
    1: lambda x, y: x == y,
    2: lambda x, y: x > y,
    3: lambda x, y: x >= y,
    4: lambda x, y: x < y,
    5: lambda x, y: x <= y,
    6: lambda x, y: (x < y) | (x > y),
    7: lambda x, y: (x == x) & (y == y),
    8: lambda x, y: ~((x < y) | (x > y)),
    9: lambda x, y: ~(x <= y),
    10: lambda x, y: ~(x < y),
    11: lambda x, y: ~(x >= y),
    12: lambda x, y: ~(x > y),
    13: lambda x, y: x != y,
    14: lambda x, y: (x != x) | (y != y),
}


def _add(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    return x + y


def _multiply(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    return x * y


def _round_away(arrays: NumPyArrays, x: Array) -> Array:
    """Returns the nearest whole numbers; of two, that which is farther from 0."""
    whole = arrays.xp.trunc(x)
    return whole + arrays.xp.where(arrays.xp.abs(x - whole) >= 0.5, arrays.xp.sign(x), arrays.xp.zeros_like(x))


def _of(name: str) -> Callable[..., Array]:
    """Returns a function that NumPy and PyTorch have under one name."""
    return lambda arrays, *operands: getattr(arrays.xp, name)(*operands)


# Ops on numbers of one type, by name.
ARITHMETIC: dict[str, Callable[..., Array]] = {
    "arith.addf": _add,
    "arith.addi": _add,
    "arith.mulf": _multiply,
    "arith.muli": _multiply,
    "arith.subf": lambda arrays, x, y: x - y,
    "arith.subi": lambda arrays, x, y: x - y,
    "arith.divf": lambda arrays, x, y: x / y,
    "arith.negf": lambda arrays, x: -x,
    "arith.maximumf": _of("maximum"),
    "arith.minimumf": _of("minimum"),
    "arith.maxnumf": _of("fmax"),
    "arith.minnumf": _of("fmin"),
    "arith.maxsi": _of("maximum"),
    "arith.minsi": _of("minimum"),
    "arith.andi": lambda arrays, x, y: x & y,
    "arith.ori": lambda arrays, x, y: x | y,
    "arith.xori": lambda arrays, x, y: x ^ y,
    "arith.shli": lambda arrays, x, y: x << y,
    "arith.shrsi": lambda arrays, x, y: x >> y,
    # Quotients are cut off towards zero, and remainders have the sign of the dividend.
    "arith.divsi": lambda arrays, x, y: (x - arrays.xp.fmod(x, y)) // y,
    "arith.remsi": _of("fmod"),
    "arith.select": _of("where"),
    "math.absf": _of("abs"),
    "math.absi": _of("abs"),
    "math.ceil": _of("ceil"),
    "math.floor": _of("floor"),
    "math.exp": _of("exp"),
    "math.exp2": _of("exp2"),
    "math.expm1": _of("expm1"),
    "math.log": _of("log"),
    "math.log2": _of("log2"),
    "math.log1p": _of("log1p"),
    "math.sqrt": _of("sqrt"),
    "math.tanh": _of("tanh"),
    "math.sin": _of("sin"),
    "math.cos": _of("cos"),
    "math.round": _round_away,
    "math.roundeven": _of("round"),
    "math.rsqrt": lambda arrays, x: 1 / arrays.xp.sqrt(x),
    "math.erf": lambda arrays, x: arrays.erf(x),
    "math.powf": lambda arrays, x, y: x**y,
    "math.fma": lambda arrays, x, y, z: x * y + z,
}

PREDICATES: dict[str, dict[int, Relation]] = {"arith.cmpf": _FLOAT, "arith.cmpi": _INTEGER}
