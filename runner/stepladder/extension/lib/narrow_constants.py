"""Constants in f64, as front ends write them, as constants of the types that kernels compute in."""

from __future__ import annotations

import math

from stepladder.extension.lib.dialect import Rewriter
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer, walk
from stepladder.runtime.element_types import element_type

# Predicates of arith.cmpf of values that are above and below another one, each without and with equal ones: the first
# of both is the one with a limit that no value is equal to.
_ABOVE = ((2, 3), (9, 10))
_BELOW = ((4, 5), (11, 12))


def narrow_constants(function: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces roundings of constants by rounded constants, and comparisons of extended values with constants by exact
    ones of the values: no epilogue computes in f64.

    Args:
        function: with linalg ops; it is changed where there are such ops.
        rewriter: of the transform op.
    """
    for op in walk(function, "arith.truncf"):
        number = _constant(op.operands[0])
        type_ = op.results[0].type
        if number is not None and isinstance(type_, ir.FloatType):
            with ir.InsertionPoint(op), op.location:
                rewriter.replace_op(op, [arith.constant(type_, number)])
    for op in walk(function, "arith.cmpf"):
        wide = producer(op.operands[0])
        limit = _constant(op.operands[1])
        if limit is None or math.isnan(limit) or wide is None or wide.name != "arith.extf":
            continue
        value = wide.operands[0]
        comparison = exact_comparison(ir.IntegerAttr(op.attributes["predicate"]).value, limit, str(value.type))
        if str(op.operands[0].type) == "f64" and isinstance(value.type, ir.FloatType) and comparison is not None:
            predicate, number = comparison
            with ir.InsertionPoint(op), op.location:
                rewriter.replace_op(
                    op, [arith.cmpf(arith.CmpFPredicate(predicate), value, arith.constant(value.type, number))]
                )
            if not list(wide.results[0].uses):
                rewriter.erase_op(wide)


def _constant(value: ir.Value) -> float | None:
    """Returns the number of a constant; None for another value."""
    source = producer(value)
    if source is None or source.name != "arith.constant" or not isinstance(value.type, ir.FloatType):
        return None
    return ir.FloatAttr(source.attributes["value"]).value


def exact_comparison(predicate: int, limit: float, name: str) -> tuple[int, float] | None:
    """Returns the comparison of values of a type that is the same as one with a limit of f64.

    Args:
        predicate: of that comparison.
        limit: no NaN.
        name: of the type.

    Returns:
        A predicate and a number of the type; None where the type is none of buffers, or nothing is equal to the limit
        and the comparison is for equality.
    """
    import numpy as np  # not needed to import the op

    if name not in ("f16", "bf16", "f32"):
        return None
    dtype = element_type(name).dtype
    with np.errstate(over="ignore"):
        near = np.asarray(limit).astype(dtype)
        is_over = float(near) > limit
        other = np.nextafter(near, np.asarray(-np.inf if is_over else np.inf).astype(dtype))
    if float(near) == limit:
        return predicate, limit
    below, above = (other, near) if is_over else (near, other)
    for kinds, number in ((_ABOVE, below), (_BELOW, above)):
        for pair in kinds:
            if predicate in pair:
                return pair[0], float(number)
    return None
