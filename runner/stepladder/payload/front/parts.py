"""Parts of arguments: views of buffers, and slices of tensors, whose elements are dense rows with a pitch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stepladder.mlir.bindings import ir
from stepladder.mlir.slices import kept_axes, numbers_of
from stepladder.mlir.traverse import producer
from stepladder.mlir.types import row_major_strides
from stepladder.mlir.windows import has_gaps, place_of, span_of
from stepladder.payload.front.bodies import shape_of
from stepladder.payload.front.digits import flat
from stepladder.payload.front.views import Origin, Part, Place, View, new_view
from stepladder.payload.refusal import refuse

VIEWS = ("memref.subview", "memref.reinterpret_cast", "tensor.extract_slice")


def takes_part(op: ir.Operation) -> bool:
    """Returns whether a view leaves out elements of its source.

    Args:
        op: one of `VIEWS`, with static shapes.
    """
    source, result = (value.type for value in (op.operands[0], op.results[0]))
    extents = [[size for size in ir.ShapedType(type_).shape if size != 1] for type_ in (source, result)]
    return extents[0] != extents[1] or (isinstance(result, ir.MemRefType) and has_gaps(result))


@dataclass
class Parts:
    """The parts of a function's arguments.

    Attributes:
        first: number of the first part that is a buffer: parts are numbered after the arguments.
        numbers: indices of these parts, by argument, offset, extents and strides: equal parts are one buffer.
        homes: these parts, by index.
    """

    first: int
    numbers: dict[tuple[int, int, tuple[int, ...], tuple[int, ...]], int] = field(default_factory=dict)
    homes: dict[int, View] = field(default_factory=dict)

    def of_buffer(self, op: ir.Operation, view: View) -> View:
        """Returns what a `memref.subview` or a `memref.reinterpret_cast` of a part makes.

        Args:
            op: the op.
            view: its source.

        Raises:
            StepladderError: a part of a buffer that is no argument, or not of dense rows at a static offset.
        """
        type_ = ir.MemRefType(op.results[0].type)
        place = place_of(type_)
        if place is None or view.buffer < 0 or view.place is None:
            raise refuse(
                op,
                f"{op.name} accesses a part of a buffer that is not an argument, or not dense rows at a static offset",
                "accepted: parts of arguments, with static offsets, sizes and pitches of rows, and steps of 1",
            )
        if span_of(type_, *place) > _elements(op.operands[0]):
            raise refuse(
                op,
                f"{op.name} accesses a part that ends beyond its buffer, which has "
                f"{_elements(op.operands[0])} elements",
                "accepted: parts whose elements are all in the buffer",
            )
        key = view.place.argument, place[0], tuple(type_.shape), place[1]
        if key not in self.numbers:
            self.numbers[key] = self.first + len(self.numbers)
            part = replace(_part(op, view.place.argument, *place), buffer=self.numbers[key])
            self.homes[self.numbers[key]] = part
        return replace(self.homes[self.numbers[key]], read_only=view.read_only)

    def of_tensor(self, op: ir.Operation, view: View) -> View:
        """Returns what a `tensor.extract_slice` of a part makes.

        Args:
            op: the op.
            view: its source.

        Raises:
            StepladderError: a part of what is no argument, or not of dense rows at a static offset.
        """
        offsets, sizes, steps = numbers_of(op)
        is_argument = view.origin is Origin.ARGUMENT and view.element == view.stored
        is_whole = view.digits() == flat(view.storage)
        strides = _strides(view, shape_of(op.operands[0], op)) if is_argument and is_whole else None
        if strides is None or view.place is None or len(op.operands) > 1 or set(steps) != {1}:
            raise refuse(
                op,
                f"{op.name} accesses a part of a value other than an argument, or rows that are not dense at "
                f"a static offset",
                "accepted: parts of arguments, with static offsets and sizes, and steps of 1",
            )
        begin = 0 if view.window is None else view.window.offset
        offset = begin + sum(first * stride for first, stride in zip(offsets, strides))
        kept_strides = [strides[axis] for axis in kept_axes(sizes, shape_of(op.results[0], op))]
        return replace(_part(op, view.place.argument, offset, kept_strides), read_only=view.read_only)


def _strides(view: View, shape: Sequence[int]) -> list[int] | None:
    """Returns the strides of the axes of an argument or a part of one, in elements of the argument; None where an axis
    has none.

    Args:
        view: of the argument, whose axes have the order of its buffer.
        shape: extents of the axes.
    """
    if view.window is None:
        return row_major_strides(shape)
    stride_of = view.window.flat()
    strides = []
    for digits in map(flat, view.axes):
        if len(view.window.runs(digits)) > 1:
            return None
        strides.append(stride_of[digits[-1]] if digits else 0)
    return strides


def _elements(view: ir.Value) -> int:
    """Returns the elements of the argument that a view is of."""
    while (view_op := producer(view)) is not None:
        view = view_op.operands[0]
    return math.prod(ir.ShapedType(view.type).shape)


def _part(op: ir.Operation, argument: int, offset: int, strides: Sequence[int]) -> View:
    """Returns the part of an argument that a view makes."""
    element = str(ir.ShapedType(op.results[0].type).element_type)
    part = new_view(Origin.ARGUMENT, shape_of(op.results[0], op), element)
    window = Part(offset, tuple((digits[0], stride) for digits, stride in zip(part.axes, strides) if digits))
    return replace(part, place=Place(argument, part.storage), window=window)
