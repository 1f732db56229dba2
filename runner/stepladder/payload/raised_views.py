"""Views of buffers as ops on tensors: reading a view, and the buffer after a view of it is written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_loop_index, create_named_op
from stepladder.mlir.reshapes import groups_of, reshaped
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import producer
from stepladder.mlir.types import row_major_strides
from stepladder.mlir.windows import place_of
from stepladder.payload.refusal import refuse

_PLACED = "memref.reinterpret_cast"
VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.subview", "memref.transpose", _PLACED)
_FIELDS = ("static_offsets", "static_sizes", "static_strides")
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def tensor_of(type_: ir.Type) -> ir.RankedTensorType:
    """Returns the type of the tensor that a buffer holds.

    Args:
        type_: of the buffer, of static shape.
    """
    memref = ir.MemRefType(type_)
    return ir.RankedTensorType.get(memref.shape, memref.element_type)


def read_view(view: ir.Operation, source: ir.Value, places: Sequence[ir.Value]) -> ir.Value:
    """Returns the tensor that a view of a buffer holds, created at the insertion point.

    Args:
        view: one of VIEWS.
        source: the tensor that the buffer holds.
        places: its other operands, as scalars of the function on tensors.

    Raises:
        StepladderError: a slice whose size is not static, or elements beside the buffer.
    """
    type_ = tensor_of(view.results[0].type)
    source_op = producer(source)
    if source_op is not None and source_op.name == "linalg.fill":
        empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        return create_named_op("linalg.fill", [source_op.operands[0]], empty).results[0]
    match view.name:
        case "memref.cast":
            return source
        case "memref.subview":
            return _slice("tensor.extract_slice", view, [source], places, type_)
        case "memref.transpose":
            return _transposed(source, _permutation(view), type_)
        case name if name == _PLACED:
            return _read_placed(view, source, places, type_)
    return reshaped(source, type_.shape, groups_of(view))


def write_view(view: ir.Operation, value: ir.Value, source: ir.Value, places: Sequence[ir.Value]) -> ir.Value:
    """Returns the tensor that a buffer holds after a view of it is written, created at the insertion point.

    Args:
        view: one of VIEWS.
        value: the tensor that is written to the view.
        source: the tensor that the buffer holds before.
        places: its other operands, as scalars of the function on tensors.

    Raises:
        StepladderError: as `read_view`; also a `memref.reinterpret_cast` of other than all elements.
    """
    match view.name:
        case "memref.cast":
            return value
        case "memref.subview":
            return _slice("tensor.insert_slice", view, [value, source], places, source.type)
        case "memref.transpose":
            order = _permutation(view)
            return _transposed(value, [order.index(axis) for axis in range(len(order))], source.type)
        case name if name == _PLACED:
            return _write_placed(view, value, ir.RankedTensorType(source.type))
    return reshaped(value, ir.MemRefType(view.operands[0].type).shape, groups_of(view))


def element_order(op: ir.Operation) -> list[ir.AffineMap]:
    """Returns the indexing maps of a `linalg.map`: each operand is accessed in the order of the loops.

    Args:
        op: the `linalg.map`.
    """
    rank = ir.ShapedType(op.operands[0].type).rank
    return [ir.AffineMap.get_identity(rank)] * len(op.operands)


def _permutation(view: ir.Operation) -> list[int]:
    """Returns the axis of the source that each axis of a `memref.transpose` is."""
    map_ = ir.AffineMapAttr(view.attributes["permutation"]).value
    return [ir.AffineDimExpr(axis).position for axis in map_.results]


def _transposed(value: ir.Value, order: Sequence[int], type_: ir.Type) -> ir.Value:
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    permutation = {"permutation": ir.DenseI64ArrayAttr.get(list(order))}
    return create_named_op("linalg.transpose", [value], empty, permutation).results[0]


def _within(offset: ir.Value, most: int) -> ir.Value:
    """Returns an offset that is moved into the buffer where elements would be beyond it."""
    index = ir.IndexType.get()
    return arith.minsi(arith.maxsi(offset, arith.constant(index, 0)), arith.constant(index, most))


def _place(view: ir.Operation, of_offset: int = 0) -> tuple[int, list[int], list[int]]:
    """Returns the offset, sizes and strides of a `memref.reinterpret_cast`, whose elements the buffer has.

    Args:
        view: the op.
        of_offset: 1 where the offset may be computed; then the largest one is returned.
    """
    offsets, sizes, strides = numbers_of(view)
    source = ir.MemRefType(view.operands[0].type)
    if of_offset and offsets[0] == _DYNAMIC and _DYNAMIC not in (*sizes, *strides):
        span = sum((size - 1) * stride for size, stride in zip(sizes, strides))
        offsets = [math.prod(source.shape) - 1 - span]
    last = offsets[0] + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    is_static = _DYNAMIC not in (*offsets, *sizes, *strides) and min((*offsets, *strides)) >= 0
    is_plain = place_of(source) == (0, tuple(row_major_strides(source.shape)))
    if not is_static or not is_plain or last >= math.prod(source.shape):
        raise refuse(
            view,
            f"{_PLACED} at an offset that is not static, or of elements that its source does not have",
            "accepted: static offsets, sizes and strides of at least 0, within a row-major source",
        )
    return offsets[0], sizes, strides


def _dense_order(view: ir.Operation) -> list[int] | None:
    """Returns the axes of a `memref.reinterpret_cast` in the order of memory, where it has each element of the buffer
    once; None where it does not."""
    offset, sizes, strides = _place(view)
    order = sorted(range(len(sizes)), key=lambda axis: (-strides[axis], axis))
    shape = [sizes[axis] for axis in order]
    is_whole = offset == 0 and math.prod(sizes) == math.prod(ir.MemRefType(view.operands[0].type).shape)
    dense = row_major_strides(shape)
    is_dense = all(size == 1 or strides[axis] == stride for axis, size, stride in zip(order, shape, dense))
    return order if is_whole and is_dense else None


def _read_placed(
    view: ir.Operation, source: ir.Value, places: Sequence[ir.Value], type_: ir.RankedTensorType
) -> ir.Value:
    """Returns the elements that a `memref.reinterpret_cast` takes: in another order, or by computed offsets."""
    offset, sizes, strides = _place(view, of_offset=len(places))
    order = None if places else _dense_order(view)
    if order is not None:
        value = _of_shape(source, [sizes[axis] for axis in order])
        return (
            value
            if order == sorted(order)
            else _transposed(value, [order.index(axis) for axis in range(len(order))], type_)
        )
    flat = _of_shape(source, [math.prod(ir.RankedTensorType(source.type).shape)])
    begin = _within(places[0], offset) if places else arith.constant(ir.IndexType.get(), offset)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic([], [empty], [ir.AffineMap.get_identity(len(sizes))])
    with ir.InsertionPoint(body):
        place = begin
        for loop, stride in enumerate(strides):
            place = arith.addi(place, arith.muli(create_loop_index(loop), arith.constant(ir.IndexType.get(), stride)))
        element = ir.Operation.create("tensor.extract", results=[type_.element_type], operands=[flat, place])
        ir.Operation.create("linalg.yield", operands=list(element.results))
    return generic.results[0]


def _write_placed(view: ir.Operation, value: ir.Value, type_: ir.RankedTensorType) -> ir.Value:
    """Returns the tensor of a buffer of which a `memref.reinterpret_cast` of all elements is written."""
    order = _dense_order(view)
    if order is None:
        raise refuse(
            view, f"{_PLACED} of a part of a buffer, which is written", "accepted: each element of the buffer once"
        )
    if order != sorted(order):
        shape = [ir.RankedTensorType(value.type).shape[axis] for axis in order]
        value = _transposed(value, order, ir.RankedTensorType.get(shape, type_.element_type))
    return _of_shape(value, list(type_.shape))


def _of_shape(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Returns a tensor's elements in row-major order in another shape."""
    type_ = ir.RankedTensorType(value.type)
    if list(type_.shape) == list(shape):
        return value
    if type_.rank > 1:
        value = reshaped(value, [math.prod(shape)], [range(type_.rank)])
    return value if len(shape) == 1 else reshaped(value, shape, [range(len(shape))])


def _slice(
    name: str, view: ir.Operation, operands: Sequence[ir.Value], places: Sequence[ir.Value], type_: ir.Type
) -> ir.Value:
    """Returns the slice of a tensor, or the tensor with a slice replaced, that a `memref.subview` of static size is."""
    if any(_DYNAMIC in numbers for numbers in numbers_of(view)[1:]):
        raise refuse(
            view, "a memref.subview whose sizes or strides are not static", "accepted: static ones, at any offset"
        )
    attributes: dict[str, ir.Attribute] = {field: view.attributes[field] for field in _FIELDS}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1] * len(operands) + [len(places), 0, 0])
    return ir.Operation.create(name, results=[type_], operands=[*operands, *places], attributes=attributes).results[0]
