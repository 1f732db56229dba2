"""Views, slices and transposes of a tensor as strides in its buffer, by which a kernel reads them in place."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from stepladder.extension.lib.multi_kernel.argument_parts import SLICE
from stepladder.extension.lib.multi_kernel.columns import reshaped
from stepladder.mlir.bindings import ir, memref
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import producer
from stepladder.mlir.types import byte_width, row_major_strides

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_UNIT = 16  # bytes of a copy
_TRANSPOSE = "linalg.transpose"


@dataclass(frozen=True)
class StridedView:
    """Elements of a tensor.

    Attributes:
        root: the tensor.
        ops: that make the view of it, in order.
        shape: of the view; `strides`, in elements of the root's buffer, and `offset`, of the first element.
    """

    root: ir.Value
    ops: tuple[ir.Operation, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def of_buffer(self, buffer: ir.Value) -> ir.Value:
        """Returns the view of the root's buffer, at the insertion point.

        Args:
            buffer: row-major.
        """
        type_ = ir.MemRefType(buffer.type)
        layout = ir.StridedLayoutAttr.get(self.offset, list(self.strides))
        view = ir.MemRefType.get(list(self.shape), type_.element_type, layout, type_.memory_space)
        return memref.reinterpret_cast(view, buffer, [], [], [], [self.offset], list(self.shape), list(self.strides))


def strided_view(value: ir.Value) -> StridedView | None:
    """Returns a tensor as a view of the one that is sliced or transposed first; None where none is, or where rows begin
    elsewhere than at multiples of 16 bytes.

    Args:
        value: the tensor.
    """
    ops: list[ir.Operation] = []
    op = producer(value)
    while op is not None and op.name in (*TENSOR_VIEWS, SLICE, _TRANSPOSE):
        ops.insert(0, op)
        op = producer(op.operands[0])
    first = next((place for place, item in enumerate(ops) if item.name not in TENSOR_VIEWS), None)
    if first is None:
        return None
    ops = ops[first:]
    root = ops[0].operands[0]
    shape = list(ir.RankedTensorType(root.type).shape)
    strides: list[int] | None = row_major_strides(shape)
    offset = 0
    for item, following in itertools.zip_longest(ops, ops[1:]):
        if item.name == SLICE:
            offsets, shape, steps = numbers_of(item)
            if _DYNAMIC in (*offsets, *shape) or set(steps) != {1}:
                return None
            offset += sum(at * stride for at, stride in zip(offsets, strides))
        if item.name == _TRANSPOSE:
            order = list(ir.DenseI64ArrayAttr(item.attributes["permutation"]))
            shape, strides = ([numbers[axis] for axis in order] for numbers in (shape, strides))
        if following is not None and item.name in TENSOR_VIEWS and following.name in TENSOR_VIEWS:
            continue  # what both make may be a view where what one makes is none
        result = list(ir.RankedTensorType(item.results[0].type).shape)
        strides = reshaped(shape, strides, result)
        if strides is None:
            return None
        shape = result
    size = byte_width(ir.RankedTensorType(value.type).element_type)
    steps = [offset, *(stride for stride, extent in zip(strides[:-1], shape) if extent > 1)]
    if strides[-1] != 1 or any(step * size % _UNIT for step in steps):
        return None
    return StridedView(root, tuple(ops), tuple(shape), tuple(strides), offset)
