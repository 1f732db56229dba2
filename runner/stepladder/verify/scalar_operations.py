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
    # Unsigned: values are held with their sign, which comes after all others without one.
    6: lambda x, y: (x ^ _SIGN) < (y ^ _SIGN),
    7: lambda x, y: (x ^ _SIGN) <= (y ^ _SIGN),
    8: lambda x, y: (x ^ _SIGN) > (y ^ _SIGN),
    9: lambda x, y: (x ^ _SIGN) >= (y ^ _SIGN),
}
# By MLIR's encoding: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true.
_FLOAT: dict[int, Relation] = {
    0: lambda x, y: (x < y) & (x > y),
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
    15: lambda x, y: (x == y) | (x != y),
}


def _add(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    return x + y


def _multiply(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    return x * y


def _round_away(arrays: NumPyArrays, x: Array) -> Array:
    """Returns the nearest integers; of two, that which is farther from 0."""
    whole = arrays.xp.trunc(x)
    return whole + arrays.xp.where(arrays.xp.abs(x - whole) >= 0.5, arrays.xp.sign(x), arrays.xp.zeros_like(x))


def _of(name: str) -> Callable[..., Array]:
    """Returns a function that NumPy and PyTorch have under one name."""
    return lambda arrays, *operands: getattr(arrays.xp, name)(*operands)


def _cube_root(arrays: NumPyArrays, x: Array) -> Array:
    return arrays.xp.copysign(abs(x) ** (1 / 3), x)


def _divide(arrays: NumPyArrays, x: Array, y: Array) -> Array:
    """Returns quotients that are cut off towards zero."""
    return (x - arrays.xp.fmod(x, y)) // y


# Ops on values of one type, by name.
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
    "arith.maxui": lambda arrays, x, y: arrays.xp.where((x ^ _SIGN) > (y ^ _SIGN), x, y),
    "arith.minui": lambda arrays, x, y: arrays.xp.where((x ^ _SIGN) < (y ^ _SIGN), x, y),
    "arith.divsi": _divide,
    "arith.floordivsi": lambda arrays, x, y: x // y,
    "arith.ceildivsi": lambda arrays, x, y: -(-x // y),
    # Remainders have the sign of the dividend.
    "arith.remsi": _of("fmod"),
    "arith.remf": _of("fmod"),
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
    "math.log10": _of("log10"),
    "math.log1p": _of("log1p"),
    "math.sqrt": _of("sqrt"),
    "math.cbrt": _cube_root,
    "math.sin": _of("sin"),
    "math.cos": _of("cos"),
    "math.tan": _of("tan"),
    "math.asin": _of("arcsin"),
    "math.acos": _of("arccos"),
    "math.atan": _of("arctan"),
    "math.atan2": _of("arctan2"),
    "math.sinh": _of("sinh"),
    "math.cosh": _of("cosh"),
    "math.tanh": _of("tanh"),
    "math.asinh": _of("arcsinh"),
    "math.acosh": _of("arccosh"),
    "math.atanh": _of("arctanh"),
    "math.copysign": _of("copysign"),
    "math.round": _round_away,
    "math.roundeven": _of("round"),
    "math.rsqrt": lambda arrays, x: 1 / arrays.xp.sqrt(x),
    "math.erf": lambda arrays, x: arrays.erf(x),
    "math.erfc": lambda arrays, x: arrays.erfc(x),
    "math.powf": _of("float_power"),  # of a scalar 0.5, `**` is the square root, of -inf a NaN
    "math.fma": lambda arrays, x, y, z: x * y + z,
}

# Ops on integers of less than 64 bits without a sign, by name.
UNSIGNED: dict[str, Relation] = {
    "arith.shrui": lambda x, y: x >> y,
    "arith.divui": lambda x, y: x // y,
    "arith.remui": lambda x, y: x % y,
    "arith.ceildivui": lambda x, y: -(-x // y),
}

PREDICATES: dict[str, dict[int, Relation]] = {"arith.cmpf": _FLOAT, "arith.cmpi": _INTEGER}
