"""Arguments that are buffers with a layout: with gaps, or with axes in another order than in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.windows import has_gaps, in_memory, place_of, span_of, window
from stepladder.payload.signature import set_signature


def pitched_arguments(function: ir.Operation) -> list[ir.Value]:
    """Returns the arguments of a function, of those that it uses, that are dense rows with a layout of their own.

    Args:
        function: a `func.func` with a body.
    """
    return [
        argument
        for argument in function.regions[0].blocks[0].arguments
        if isinstance(argument.type, ir.MemRefType) and list(argument.uses) and _is_strided(argument.type)
    ]


def _is_strided(type_: ir.MemRefType) -> bool:
    return isinstance(type_.layout, ir.StridedLayoutAttr) and place_of(in_memory(type_)[0]) is not None


def enclosing(type_: ir.MemRefType) -> ir.MemRefType:
    """Returns the type of a dense buffer that a buffer with gaps is a part of.

    Args:
        type_: of rows with a pitch, or behind an offset.
    """
    place = place_of(type_)
    if place is None:
        return ir.MemRefType.get(list(type_.shape), type_.element_type, memory_space=type_.memory_space)
    offset, strides = place
    inner = [outer // stride for outer, stride in zip(strides, strides[1:])]
    rows = -(-span_of(type_, offset, strides) // strides[0]) if inner else span_of(type_, offset, strides)
    shape = [rows, *inner] if math.prod(inner) == strides[0] else [span_of(type_, offset, strides)]
    return ir.MemRefType.get(shape, type_.element_type, memory_space=type_.memory_space)


def _permuted(view: ir.Value, order: Sequence[int], result: ir.Type) -> ir.Value:
    """Creates a view whose axis `order[i]` is axis i of another one."""
    axes = [ir.AffineExpr.get_dim(order.index(axis)) for axis in range(len(order))]
    permutation = ir.AffineMapAttr.get(ir.AffineMap.get(len(order), 0, axes))
    attributes: dict[str, ir.Attribute] = {"permutation": permutation}
    return ir.Operation.create("memref.transpose", [result], [view], attributes).results[0]


def spread(function: ir.Operation, *, with_gaps: bool = True) -> None:
    """Makes plain buffers of the arguments with a layout.

    One with gaps is a window of the shortest buffer that it is in. One whose axes are in another order than in memory,
    such as a column-major matrix, is a transposed view.

    Args:
        function: a `func.func` with a body; it is changed.
        with_gaps: whether arguments with gaps are changed too.
    """
    body = function.regions[0].blocks[0]
    for argument in pitched_arguments(function):
        type_ = ir.MemRefType(argument.type)
        stored, order = in_memory(type_)
        place = place_of(stored)
        assert place is not None  # it is one of those above
        if has_gaps(stored) and not with_gaps:
            continue
        uses = list(argument.uses)
        shape = [span_of(stored, *place)] if has_gaps(stored) else list(stored.shape)
        argument.set_type(ir.MemRefType.get(shape, type_.element_type, memory_space=type_.memory_space))
        view: ir.Value = argument
        with ir.InsertionPoint.at_block_begin(body), function.location:
            if has_gaps(stored):
                view = window(view, place[0], stored.shape, place[1])
            if order != sorted(order):
                view = _permuted(view, order, type_)
        for use in uses:
            use.owner.operation.operands[use.operand_number] = view
    set_signature(function)
