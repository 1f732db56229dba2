"""Recognizes reductions of the product: sums and extrema of its rows or columns, beside the elementwise ops on it."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.payload import consumers
from stepladder.payload.refusal import refuse

# How values of a row or a column are folded; none depends on the order but by rounding.
FOLDS = frozenset(
    f"arith.{name}" for name in ("addf", "addi", "maximumf", "maxnumf", "maxsi", "minimumf", "minnumf", "minsi")
)
# Element types of results. Lanes of a warp exchange f32 and i32: those of 16 bits are folded in f32, and rounded once.
TYPES = ("f16", "bf16", "f32", "i32")

_ACCEPTED = (
    "accepted: linalg.reduce, or a linalg.generic with one reduction loop, that folds the rows or the columns of the "
    f"product, or of elementwise ops on it, by one of {', '.join(sorted(FOLDS))}, in {', '.join(TYPES)}"
)


@dataclass(frozen=True)
class Reduction:
    """A reduction of a matrix by a structured op.

    Attributes:
        axis: the loop that is folded: 0 for the rows of a column, 1 for the columns of a row.
        fold: the op of the body that folds a value into the result so far.
        term: what it folds.
    """

    axis: int
    fold: ir.Operation
    term: ir.Value


def is_reduction(op: ir.Operation) -> bool:
    """Returns whether an op is a `linalg.reduce`, or a `linalg.generic` with a reduction loop.

    Args:
        op: a payload op.
    """
    if op.name == "linalg.reduce":
        return True
    return op.name == "linalg.generic" and any("reduction" in str(item) for item in op.attributes["iterator_types"])


def begins_with(op: ir.Operation, value: ir.Value) -> bool:
    """Returns whether an op is a reduction whose result begins with a tensor.

    Args:
        op: an op that takes the value.
        value: a tensor or a buffer.
    """
    return is_reduction(op) and op.operands[len(op.operands) - 1] == value


def reduction_of(op: ir.Operation) -> Reduction:
    """Returns how an op reduces a matrix.

    Args:
        op: for which `is_reduction` holds.

    Raises:
        StepladderError: other loops than those of a matrix, another fold, several results, or another element type.
    """
    body = op.regions[0].blocks[0]
    *_, end = [item.operation for item in body.operations]
    if len(end.operands) != 1:
        raise refuse(op, f"{op.name} reduces to {len(end.operands)} results; accepted: one", _ACCEPTED)
    *inputs, output = consumers.maps_of(op)
    if output.n_dims != 2:
        raise refuse(op, f"{op.name} reduces with {output.n_dims} loops; accepted: reductions of a matrix", _ACCEPTED)
    axes = [ir.AffineExpr.get_dim(1), ir.AffineExpr.get_dim(0)]
    axis = next((axis for axis in range(2) if list(output.results) == [axes[axis]]), None)
    if axis is None:
        raise refuse(
            op, f"{op.name} writes its result with the indexing map {output}; it must have one loop", _ACCEPTED
        )
    type_ = str(ir.ShapedType(op.operands[len(op.operands) - 1].type).element_type)
    if type_ not in TYPES:
        raise refuse(op, f"{op.name} reduces in {type_}; accepted types: {', '.join(TYPES)}", _ACCEPTED)
    for map_ in inputs:
        consumers.check_map(op, map_)
    for operand in op.operands:
        consumers.check_type(op, operand)
    for inner in [item.operation for item in body.operations][:-1]:
        consumers.check_scalar(inner, op)
    so_far = body.arguments[len(body.arguments) - 1]
    fold = end.operands[0].owner
    if isinstance(fold, ir.Block) or fold.name not in FOLDS or len(list(so_far.uses)) != 1:
        raise refuse(op, f"{op.name} does not simply fold a value into the result", _ACCEPTED)
    terms = [operand for operand in fold.operands if operand != so_far]
    if len(terms) != 1 or len(list(fold.results[0].uses)) != 1:
        raise refuse(op, f"{op.name} does not simply fold a value into the result", _ACCEPTED)
    return Reduction(axis, fold.operation, terms[0])
