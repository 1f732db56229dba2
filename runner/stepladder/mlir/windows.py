"""Windows: memrefs that are dense rows of a larger buffer, which `memref.reinterpret_cast` makes of an argument."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import origin, producer, users_of
from stepladder.mlir.types import offset_of, row_major_strides, strides_of
from stepladder.runtime.problem import Window

CAST = "memref.reinterpret_cast"
PART = "memref.subview"
# Makes a buffer of bytes of a buffer of elements.
BYTES = "builtin.unrealized_conversion_cast"


def place_of(type_: ir.MemRefType) -> tuple[int, tuple[int, ...]] | None:
    """Returns the offset and the strides of a memref whose rows are dense and do not overlap, else None.

    Args:
        type_: of a buffer, or of a view of one; None represents dynamic ones too.
    """
    strides, offset = strides_of(type_), offset_of(type_)
    if not type_.has_static_shape or strides is None or offset is None or not strides or strides[-1] != 1:
        return None
    span = 1
    for size, stride in zip(reversed(type_.shape), reversed(strides)):
        if stride is None or (stride < span and size > 1):
            return None
        span = (size - 1) * stride + span
    return offset, tuple(stride for stride in strides if stride is not None)


def has_gaps(type_: ir.MemRefType) -> bool:
    """Returns whether a memref is dense rows with a pitch, or after an offset.

    Args:
        type_: of a buffer, or of a view of one.
    """
    place = place_of(type_)
    return place is not None and place != (0, tuple(row_major_strides(type_.shape)))


def window(buffer: ir.Value, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> ir.Value:
    """Returns a part of a buffer, at the insertion point.

    Args:
        buffer: a row-major buffer.
        offset: of the first element, in elements.
        sizes: extents of the part.
        strides: of each dimension, in elements.
    """
    type_ = ir.MemRefType(buffer.type)
    layout = ir.StridedLayoutAttr.get(offset, list(strides))
    result = ir.MemRefType.get(list(sizes), type_.element_type, layout, type_.memory_space)
    attributes: dict[str, ir.Attribute] = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(sizes)),
        "static_strides": ir.DenseI64ArrayAttr.get(list(strides)),
    }
    return ir.Operation.create(CAST, results=[result], operands=[buffer], attributes=attributes).results[0]


def span_of(type_: ir.MemRefType, offset: int, strides: Sequence[int]) -> int:
    """Returns the elements of the shortest buffer that a view is in.

    Args:
        type_: of the view.
        offset: of its first element, in elements.
        strides: of each dimension, in elements.
    """
    return offset + sum((size - 1) * stride for size, stride in zip(type_.shape, strides)) + 1


def is_window(cast: ir.Operation) -> bool:
    """Returns whether a view is dense rows that do not overlap, and within its buffer; axes but the rows' may be in any
    order in memory. Where the view is only read, its rows may be repeated, by a stride of 0.

    Args:
        cast: a `memref.reinterpret_cast` of a row-major buffer.
    """
    view = cast.results[0]
    type_ = ir.MemRefType(view.type)
    reads = (user.name == "bufferization.to_tensor" and "writable" not in user.attributes for user in users_of(view))
    type_, _ = in_memory(without_repeats(type_) if all(reads) else type_)
    place = place_of(type_)
    return place is not None and span_of(type_, *place) <= math.prod(ir.MemRefType(cast.operands[0].type).shape)


def without_repeats(type_: ir.MemRefType) -> ir.MemRefType:
    """Returns a buffer's type without the axes along which its elements are repeated, by a stride of 0.

    Args:
        type_: of a buffer; one that is not static stays as it is.
    """
    strides, offset = strides_of(type_), offset_of(type_)
    if strides is None or offset is None or 0 not in strides:
        return type_
    kept = [(size, stride) for size, stride in zip(type_.shape, type_.get_strides_and_offset()[0]) if stride != 0]
    layout = ir.StridedLayoutAttr.get(offset, [stride for _, stride in kept])
    return ir.MemRefType.get([size for size, _ in kept], type_.element_type, layout, type_.memory_space)


def in_memory(type_: ir.MemRefType) -> tuple[ir.MemRefType, list[int]]:
    """Returns a buffer's type with its axes in the order of memory, and which axis each of these is.

    Args:
        type_: of a buffer; one that is not static stays as it is.
    """
    strides, offset = strides_of(type_), offset_of(type_)
    static_strides = [stride for stride in strides or () if stride is not None]
    if not type_.has_static_shape or offset is None or len(static_strides) < type_.rank:
        return type_, list(range(type_.rank))
    order = sorted(range(type_.rank), key=lambda axis: -static_strides[axis])
    layout = ir.StridedLayoutAttr.get(offset, [static_strides[axis] for axis in order])
    shape = [type_.shape[axis] for axis in order]
    return ir.MemRefType.get(shape, type_.element_type, layout, type_.memory_space), order


def window_of(view: ir.Value) -> Window | None:
    """Returns what part of an argument or of another buffer a view is; None for all of it.

    Args:
        view: an argument, an allocation, or a view that is a window of one, maybe reshaped, or has its axes in another
            order.
    """
    while not isinstance(view.owner, ir.Block) and view.owner.name != CAST:
        if not len(view.owner.operands):
            return None
        view = view.owner.operands[0]
    if isinstance(view.owner, ir.Block):
        return None
    type_ = ir.MemRefType(view.type)
    strides, offset = type_.get_strides_and_offset()
    batch = tuple(type_.shape[:-2]) if type_.rank > 3 else ()
    return Window(tuple(ir.MemRefType(view.owner.operands[0].type).shape), offset, tuple(strides), batch)


def division_of(store: ir.Operation) -> ir.Operation | None:
    """Returns the op that divides the batch of what is stored, where C has several strides between its matrices.

    Args:
        store: a `bufferization.materialize_in_destination`.
    """
    source = producer(store.operands[0])
    return source if source is not None and source.name == "tensor.reshape" else None


def strided_reads(reshape: ir.Operation) -> ir.Operation | None:
    """Returns the op that reads a buffer whose batch a reshape joins, where A or B has several strides between its
    matrices; None for another reshape.

    Args:
        reshape: a `tensor.reshape`.
    """
    source = producer(reshape.operands[0])
    return source if source is not None and source.name == "bufferization.to_tensor" else None


def begin_of_part(value: ir.Value, views: Collection[str]) -> int | None:
    """Returns where a part of a row-major argument begins, in elements; None of another buffer.

    Args:
        value: the buffer: a `memref.subview` at static offsets, or views of one, of the argument or of such views.
        views: names of ops that make a view of all elements of their source.
    """
    part = origin(value, views)
    source = producer(part)
    if source is None or source.name != PART or producer(origin(part, (*views, PART))) is not None:
        return None
    return offset_of(ir.MemRefType(part.type))  # of the argument
