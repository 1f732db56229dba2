"""The ops that reference programs may hold, and the reductions that can be computed.

The export of a payload checks its ops against these, and the evaluation computes them.
"""

from __future__ import annotations

from stepladder.runtime.reference import Generic, Operation
from stepladder.runtime.reference_extrema import indexed_extremum, unknown_choice

# Ops on values of one type.
ARITHMETIC = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "addi", "mulf", "muli", "subf", "subi", "divf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf"),
        *("maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori", "select", "shli", "shrsi", "divsi", "remsi"),
        *("floordivsi", "ceildivsi", "remf"),
    )
) | frozenset(
    f"math.{name}"
    for name in (
        *("absf", "absi", "ceil", "floor", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
        *("cbrt", "powf", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh"),
        *("acosh", "atanh", "round", "roundeven", "erf", "erfc", "fma", "copysign"),
    )
)
# Ops on the bits of integers as unsigned integers.
UNSIGNED = frozenset(f"arith.{name}" for name in ("shrui", "divui", "remui", "ceildivui"))
# The bits of a number as a number of another type of as many bits.
BITCAST = "arith.bitcast"
# Casts between floating-point types: they keep a value as it is.
FLOAT_CASTS = ("arith.extf", "arith.truncf")
CASTS = (
    *FLOAT_CASTS,
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.sitofp",
    "arith.uitofp",
    "arith.fptosi",
    "arith.fptoui",
    "arith.index_cast",
    BITCAST,
)
# An element of a value of the program, by indices.
GATHER = "tensor.extract"
OPERATIONS = ARITHMETIC.union(CASTS, UNSIGNED, ("arith.cmpf", "arith.cmpi", "arith.constant", "linalg.index", GATHER))
# MLIR's encoding of the predicates: false to true for floating point, eq to uge for integers.
PREDICATES = {"arith.cmpf": range(16), "arith.cmpi": range(10)}
# Those of arith.cmpf that depend on no value.
CONSTANT_PREDICATES = (0, 15)

# The ops that fold the values of reduction loops, by the function of an array that does.
FOLDS = {
    "arith.addf": "sum",
    "arith.addi": "sum",
    "arith.subf": "sum",
    "arith.subi": "sum",
    "arith.mulf": "prod",
    "arith.muli": "prod",
    "arith.maximumf": "amax",
    "arith.minimumf": "amin",
    "arith.maxsi": "amax",
    "arith.minsi": "amin",
}
# The same of booleans alone (i1), of which true is -1 to the ops with a sign.
_FOLDS_OF_TRUTH = {"arith.ori": "amax", "arith.andi": "amin", "arith.maxsi": "amin", "arith.minsi": "amax"}
# Ops that subtract what they fold from the result so far.
_DIFFERENCES = ("arith.subf", "arith.subi")
# Ops that fold values in any order, and that arrays have no function for: `maxnumf` and `minnumf` skip each NaN.
_IN_ANY_ORDER = tuple(f"arith.{name}" for name in ("maxnumf", "minnumf", "andi", "ori", "xori", "maxui", "minui"))


def fold_of(op: Operation) -> str | None:
    """Returns the function of an array that folds values as a scalar op does, or the name of an op that folds two at a
    time; None for an op that no reduction ends in.

    Args:
        op: the last one of a reduction.
    """
    if op.type == "i1" and op.name in _FOLDS_OF_TRUTH:
        return _FOLDS_OF_TRUTH[op.name]
    return FOLDS.get(op.name) or (op.name if op.name in _IN_ANY_ORDER else None)


def is_float(type_: str) -> bool:
    """Returns whether MLIR's name of a type is that of a floating-point type.

    Args:
        type_: its name.
    """
    return type_.startswith(("f", "bf", "tf"))


def unsupported_reduction(generic: Generic) -> str | None:
    """Returns why an op's reduction cannot be computed, or None where it can or there is none.

    Args:
        generic: op of a reference program.
    """
    inputs = len(generic.inputs)
    extrema = [indexed_extremum(generic, output) for output, _ in enumerate(generic.yields)]
    for output, yielded in enumerate(generic.yields):
        loops = {loop for loop in generic.maps[inputs + output] if loop is not None}
        if loops == {loop for loop, _ in enumerate(generic.sizes)} or extrema[output] is not None:
            continue
        made = {op.result: op for op in generic.body}
        fold = made.get(yielded)
        sums = generic.arguments[inputs + output]
        folded = () if fold is None else fold.operands[:1] if fold.name in _DIFFERENCES else fold.operands
        if fold is None or fold_of(fold) is None or sums not in folded:
            return unknown_choice(generic) or "a reduction whose last op does not fold the values into the result"
        reads = sum(op.operands.count(sums) for op in generic.body) + generic.yields.count(sums)
        if reads > 1 + sum(item is not None and item.extremum == output for item in extrema):
            other = "a reduction that reads the result so far for more than to fold the next value into it"
            return unknown_choice(generic) or other
    return None
