"""Parts of a function's arguments that kernels are launched on: elements that follow each other in memory."""

from __future__ import annotations

import math

from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import producer
from stepladder.mlir.types import row_major_strides
from stepladder.runtime.bundle.function import part_alignment
from stepladder.runtime.element_types import BUFFER_TYPES, element_type

# The same elements in the same order.
SLICE = "tensor.extract_slice"
# The attribute of a function's argument with the layout of its buffer.
LAYOUT = "bufferization.buffer_layout"
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def part_of(value: ir.Value, *, is_multiplied: bool = False) -> list[ir.Operation]:
    """Returns the ops that make a part of a function's argument, the last one first; none where a value is no part.

    A part is elements that follow each other in memory, such as the weights of one layer in those of all. A kernel is
    launched on its address, as on that of an argument, where the address is a multiple of what the kernel takes it for.

    Args:
        value: a tensor of the function.
        is_multiplied: whether the kernel is that of a matmul or an attention.
    """
    chain: list[ir.Operation] = []
    source = producer(value)
    begin = 0
    while source is not None and source.name in (*TENSOR_VIEWS, SLICE):
        chain.append(source)
        if source.name == SLICE:
            offset = offset_within(source, ir.RankedTensorType(source.operands[0].type))
            if offset is None:
                return []
            begin += offset
        source = producer(source.operands[0])
    if source is not None or all(op.name != SLICE for op in chain):
        return []
    type_ = ir.RankedTensorType(value.type)
    if str(type_.element_type) not in BUFFER_TYPES or not type_.has_static_shape:
        return []
    size = element_type(str(type_.element_type)).bytes
    alignment = part_alignment(math.prod(type_.shape) * size, is_multiplied=is_multiplied)
    return [] if begin * size % alignment else chain


def offset_within(part: ir.Operation, type_: ir.RankedTensorType) -> int | None:
    """Returns where a slice begins in a tensor, in elements; None where its elements are apart or its position is not
    static.

    Args:
        part: a `tensor.extract_slice` or a `tensor.insert_slice`.
        type_: type of the tensor.
    """
    offsets, sizes, steps = numbers_of(part)
    if not type_.has_static_shape or _DYNAMIC in (*offsets, *sizes) or set(steps) - {1}:
        return None
    shape = list(type_.shape)
    outer = next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes))
    if sizes[outer + 1 :] != shape[outer + 1 :]:
        return None
    return sum(offset * stride for offset, stride in zip(offsets, row_major_strides(shape)))


def layout_of_part(type_: ir.RankedTensorType) -> ir.Attribute:
    """Returns the layout of a part's buffer: row-major behind any offset. Bufferization computes other strides of
    dimensions of one element.

    Args:
        type_: of the part.
    """
    strides = row_major_strides(list(type_.shape))
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    return ir.StridedLayoutAttr.get(unknown, [unknown if size == 1 else at for size, at in zip(type_.shape, strides)])
