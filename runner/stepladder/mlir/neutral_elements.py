"""Neutral elements of folds: initial values of threads without a term, and terms that a mask leaves out.

They change no bit of a result: 0.0 would change sums of -0.0 only, and an infinity would change extrema of NaN only, if
the op ignores NaN.
"""

from __future__ import annotations

import math

from stepladder.mlir.bindings import ir

# By the name of the op of the dialect arith. Products are left out: few reductions accept them.
NEUTRAL_FLOATS = {
    "addf": -0.0,
    "maximumf": -math.inf,
    "maxnumf": math.nan,
    "minimumf": math.inf,
    "minnumf": math.nan,
}
# -1 has all bits.
_NEUTRAL = {f"arith.{name}": value for name, value in NEUTRAL_FLOATS.items()} | {
    "arith.addi": 0,
    "arith.andi": -1,
    "arith.maxui": 0,
    "arith.minui": -1,
    "arith.mulf": 1.0,
    "arith.muli": 1,
    "arith.ori": 0,
    "arith.xori": 0,
}
# Extrema of signed integers, whose neutral elements depend on the type.
_SIGNED = ("arith.maxsi", "arith.minsi")
# Ops that fold two values in any order, and have a neutral element.
FOLDS = frozenset((*_NEUTRAL, *_SIGNED))


def neutral_number(name: str, type_: ir.Type) -> float:
    """Returns the number that a fold leaves every number as it is with, one of integers as that with a sign.

    Args:
        name: one of `FOLDS`.
        type_: of the numbers.
    """
    if name not in _SIGNED:
        return _NEUTRAL[name]
    lowest = -(1 << ir.IntegerType(type_).width - 1)
    return lowest if name == "arith.maxsi" else -1 - lowest
