"""Shapes that a payload computes become static, where they follow from static shapes.

Upstream's canonicalization folds `tensor.dim`, `tensor.empty`, index arithmetic and casts. A `tensor.reshape`, whose
shape is a tensor, stays: front ends write one for each view of a tensor with dynamic dimensions.
"""

from __future__ import annotations

import math

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.refusal import refuse

# Casts and sizes of tensors fold until shapes are static.
_PASSES = "func.func(canonicalize,resolve-shaped-type-result-dims,canonicalize,cse)"


def fold(function: ir.Operation) -> None:
    """Makes shapes in a function static.

    Args:
        function: whose arguments have static shapes.

    Raises:
        StepladderError: a cast, or a reshape, to a shape that the tensor does not have.
        ir.MLIRError: of upstream's passes.
    """
    _run(function)
    while _reshape(function) or _concatenate(function):
        _run(function)


def _run(function: ir.Operation) -> None:
    passmanager.PassManager.parse(_PASSES).run(function)
    for cast in walk(function, "tensor.cast"):  # before one that nothing reads any more goes
        source_type, result_type = _before(cast.operands[0]).type, cast.results[0].type
        if not _may_be(source_type, result_type):
            raise refuse(
                cast,
                f"'tensor.cast' to {result_type} of a tensor that is {source_type}",
                "accepted: casts that keep the extents; some front ends write 1 for a dimension that is dynamic",
            )


def _before(value: ir.Value) -> ir.Value:
    """Returns the tensor that casts are made of."""
    source = producer(value)
    while source is not None and source.name == "tensor.cast":
        value = source.operands[0]
        source = producer(value)
    return value


def _may_be(source_type: ir.Type, result_type: ir.Type) -> bool:
    """Returns whether a tensor of one type may have the other."""
    if not isinstance(source_type, ir.RankedTensorType) or not isinstance(result_type, ir.RankedTensorType):
        return True
    return source_type.rank == result_type.rank and all(
        source_type.is_dynamic_dim(axis)
        or result_type.is_dynamic_dim(axis)
        or source_type.shape[axis] == result_type.shape[axis]
        for axis in range(source_type.rank)
    )


def _reshape(function: ir.Operation) -> bool:
    """Replaces each `tensor.reshape` of a static tensor to a constant shape by views; tells whether there was one."""
    is_changed = False
    for op in walk(function, "tensor.reshape"):
        source, shape = _before(op.operands[0]), producer(op.operands[1])
        type_ = ir.RankedTensorType(source.type)
        if not type_.has_static_shape or shape is None or shape.name != "arith.constant":
            continue
        attribute = ir.DenseIntElementsAttr(shape.attributes["value"])
        new_shape = [int(attribute[axis]) for axis in range(len(attribute))]
        if math.prod(new_shape) != math.prod(type_.shape):
            raise refuse(op, f"'tensor.reshape' of {type_} to {'x'.join(map(str, new_shape))}, of other size")
        with ir.InsertionPoint(op), op.location:
            view = _viewed(source, new_shape)
            cast = ir.Operation.create("tensor.cast", results=[op.results[0].type], operands=[view])
        op.results[0].replace_all_uses_with(cast.results[0])
        op.erase()
        is_changed = True
    return is_changed


def _concatenate(function: ir.Operation) -> bool:
    """Has concatenations take static tensors without casts; tells whether one has a new operand."""
    is_changed = False
    for op in walk(function, "tensor.concat"):
        for place, operand in enumerate(op.operands):
            source = _before(operand)
            if source != operand and ir.RankedTensorType(source.type).has_static_shape:
                op.operands[place] = source
                is_changed = True
    return is_changed


def _viewed(tensor: ir.Value, shape: list[int]) -> ir.Value:
    """Returns the elements of a tensor in another shape, by way of one dimension."""
    rank = ir.RankedTensorType(tensor.type).rank
    if rank > 1 and shape:
        tensor = reshaped(tensor, [math.prod(shape)], [list(range(rank))])
    if not shape:
        return reshaped(tensor, [], [])
    groups = [list(range(len(shape)))] if rank else []
    return reshaped(tensor, shape, groups) if len(shape) > 1 or not rank else tensor
