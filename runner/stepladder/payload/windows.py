"""Arguments that are buffers with a layout: with gaps, or with axes in another order than in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.types import row_major_strides
from stepladder.mlir.windows import PART, has_gaps, in_memory, place_of, span_of, window
from stepladder.payload.signature import set_signature

# Ops that take buffers of any layout.
_ANY_LAYOUT = ("linalg.", "bufferization.to_tensor", "bufferization.materialize_in_destination", "memref.copy")


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


def settle(function: ir.Operation) -> None:
    """Gives arguments whose offset is dynamic, which a caller passes at their first element, the offset 0.

    Args:
        function: a `func.func` with a body; it is changed where there are such arguments.
    """
    body, unknown = function.regions[0].blocks[0], ir.ShapedType.get_dynamic_stride_or_offset()
    for argument in body.arguments:
        type_ = argument.type
        if not isinstance(type_, ir.MemRefType) or not isinstance(type_.layout, ir.StridedLayoutAttr):
            continue
        layout = ir.StridedLayoutAttr(type_.layout)
        if layout.offset != unknown or unknown in layout.strides:
            continue
        settled = ir.StridedLayoutAttr.get(0, list(layout.strides))
        uses = [use for use in argument.uses if not use.owner.operation.name.startswith(_ANY_LAYOUT)]
        argument.set_type(ir.MemRefType.get(type_.shape, type_.element_type, settled, type_.memory_space))
        if uses:
            with ir.InsertionPoint.at_block_begin(body), function.location:
                cast = ir.Operation.create("memref.cast", results=[type_], operands=[argument]).results[0]
            for use in uses:
                use.owner.operation.operands[use.operand_number] = cast
    set_signature(function)


def slice_rows(function: ir.Operation) -> ir.Value | None:
    """Makes each argument with gaps, or behind an offset, a part of whole rows (`enclosing`), which a caller passes.

    Args:
        function: a `func.func` with a body, whose arguments have their axes in the order of memory; it is changed.

    Returns:
        An argument whose pitch is of no whole rows, which stays as it is; None where there is none.
    """
    body = function.regions[0].blocks[0]
    for argument in pitched_arguments(function):
        type_ = ir.MemRefType(argument.type)
        place, whole = place_of(type_), enclosing(type_)
        if place is None or whole.rank != type_.rank:
            return argument
        offsets, rest = [], place[0]
        for stride in row_major_strides(whole.shape):
            offsets.append(rest // stride)
            rest %= stride
        if any(first + size > extent for first, size, extent in zip(offsets, type_.shape, whole.shape)):
            return argument
        uses = list(argument.uses)
        argument.set_type(whole)
        with ir.InsertionPoint.at_block_begin(body), function.location:
            part = _part(argument, offsets, type_)
        for use in uses:
            use.owner.operation.operands[use.operand_number] = part
    set_signature(function)
    return None


def _part(buffer: ir.Value, offsets: Sequence[int], type_: ir.MemRefType) -> ir.Value:
    """Creates the part of a row-major buffer that has a type, from its first element on."""
    attributes: dict[str, ir.Attribute] = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        "static_offsets": ir.DenseI64ArrayAttr.get(list(offsets)),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(type_.shape)),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * type_.rank),
    }
    return ir.Operation.create(PART, results=[type_], operands=[buffer], attributes=attributes).results[0]


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
