"""Views of buffers in reference programs: reshapes, transposes, casts that keep the elements, and parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.windows import has_gaps, place_of
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import Empty, Generic, Insert, Instruction, Reshape, Slice

VIEWS = (
    *("memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.subview", "memref.transpose"),
    "memref.reinterpret_cast",
)


@dataclass(frozen=True)
class BufferView:
    """A view of a buffer: of all its elements, or of dense rows of it.

    Attributes:
        source: the buffer, or a view of it.
        type: element type.
        source_shape, shape: extents of the source and the view.
        order: for a transpose, the axis of the source that each axis of the view is; None for a reshape.
        part: for a part of the buffer, the offset and the strides of the view, in elements; None for all of it.
    """

    source: ir.Value
    type: str
    source_shape: tuple[int, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...] | None = None
    part: tuple[int, tuple[int, ...]] | None = None


def view_of(op: ir.Operation) -> BufferView:
    """Returns the view that an op of `VIEWS` makes.

    Args:
        op: of a reference program on buffers.

    Raises:
        StepladderError: dynamic shapes, or a part that is not dense rows of an argument at a static offset.
    """
    source, result = (ir.MemRefType(value.type) for value in (op.operands[0], op.results[0]))
    is_static = source.has_static_shape and result.has_static_shape
    is_part = not is_static or math.prod(source.shape) != math.prod(result.shape) or has_gaps(result)
    place = place_of(result) if isinstance(op.operands[0].owner, ir.Block) else None
    if is_part and place is None and op.name != "memref.transpose":
        raise StepladderError(
            f"'{op.name}' of a part of a buffer has no reference computation, so that results could not be checked",
            location=diagnostics.location_text(op.location),
        )
    part = place if is_part else None
    order = None
    if op.name == "memref.transpose":
        axes = ir.AffineMapAttr(op.attributes["permutation"]).value.results
        order = tuple(item.position for item in axes if isinstance(item, ir.AffineDimExpr))
    return BufferView(op.operands[0], str(source.element_type), tuple(source.shape), tuple(result.shape), order, part)


def moved(
    number: int, view: BufferView, new: Callable[[], int], *, back: bool = False, held: int = -1
) -> list[Instruction]:
    """Returns the instructions that make a view of a buffer's content, or the content of a view (`back`).

    Args:
        number: the value that is moved.
        view: the view.
        new: returns the number of a new value; the last instruction makes the last one.
        back: from the view to the source.
        held: what the source of a view of a part holds before, for `back`.
    """
    if view.part is not None:
        return _inserted(number, held, view, new) if back else _taken(number, view, new)[0]
    shape = view.source_shape if back else view.shape
    if view.order is None:
        return [Reshape(number, new(), view.type, shape)]
    empty, old, element, result = new(), new(), new(), new()
    loops = tuple(range(len(shape)))  # the axes of the source
    maps = (view.order, loops) if back else (loops, view.order)
    generic = Generic(
        "memref.transpose",
        "",
        (number,),
        (empty,),
        (result,),
        (view.type,),
        maps,
        view.source_shape,
        (element, old),
        (),
        (element,),
    )
    return [Empty(empty, view.type, shape), generic]


def _strips(view: BufferView) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Returns how a run of memory becomes a view of dense rows, dimension by dimension: the extents that the run is
    padded to, those that it is then reshaped to, and those that are taken of it."""
    assert view.part is not None
    strips, outer = [], ()
    for axis, (size, stride) in enumerate(list(zip(view.shape, view.part[1]))[:-1]):
        inner = zip(view.shape[axis + 1 :], view.part[1][axis + 1 :])
        span = sum((extent - 1) * step for extent, step in inner) + 1
        # The pitch of a single row is not used, and may be less than the row.
        pitch = max(stride, span)
        strips.append(((*outer, size * pitch), (*outer, size, pitch), (*outer, size, span)))
        outer = (*outer, size)
    return strips


def _run_of(view: BufferView) -> int:
    """Returns the elements from the first one of a part to its last one."""
    assert view.part is not None
    return sum((size - 1) * stride for size, stride in zip(view.shape, view.part[1])) + 1


def _taken(number: int, view: BufferView, new: Callable[[], int]) -> tuple[list[Instruction], list[int]]:
    """Returns the instructions that make a part of a buffer's content, and the values that its slices are taken from,
    the flat buffer first."""
    assert view.part is not None
    flat, run = new(), new()
    instructions: list[Instruction] = [
        Reshape(number, flat, view.type, (math.prod(view.source_shape),)),
        Slice(flat, run, view.type, (view.part[0],), (_run_of(view),), (1,), (0,)),
    ]
    held, values = run, [flat]
    for padded, rows, taken in _strips(view):
        empty, filled, split, kept = new(), new(), new(), new()
        zeros = (0,) * len(padded)
        sizes = (*padded[:-1], _length(padded, rows, taken))
        instructions += [
            Empty(empty, view.type, padded),
            Insert(held, empty, filled, view.type, padded, zeros, sizes, (1,) * len(padded)),
            Reshape(filled, split, view.type, rows),
            Slice(split, kept, view.type, (0,) * len(rows), taken, (1,) * len(rows), tuple(range(len(rows)))),
        ]
        values += [split]
        held = kept
    return instructions, values


def _length(padded: tuple[int, ...], rows: tuple[int, ...], taken: tuple[int, ...]) -> int:
    """Returns the length of the run of memory that has all rows of a pitch: no gap follows the last row."""
    return padded[-1] - rows[-1] + taken[-1]


def _inserted(number: int, held: int, view: BufferView, new: Callable[[], int]) -> list[Instruction]:
    """Returns the instructions that make the content of a buffer of which a part is new."""
    assert view.part is not None
    instructions, values = _taken(held, view, new)
    for (padded, rows, taken), split in zip(reversed(_strips(view)), reversed(values[1:])):
        filled, joined, run = new(), new(), new()
        zeros, sizes = (0,) * len(rows), (*padded[:-1], _length(padded, rows, taken))
        instructions += [
            Insert(number, split, filled, view.type, rows, zeros, taken, (1,) * len(rows)),
            Reshape(filled, joined, view.type, padded),
            Slice(joined, run, view.type, zeros[1:], sizes, (1,) * len(padded), tuple(range(len(padded)))),
        ]
        number = run
    flat, result = new(), new()
    instructions += [
        Insert(
            number, values[0], flat, view.type, (math.prod(view.source_shape),), (view.part[0],), (_run_of(view),), (1,)
        ),
        Reshape(flat, result, view.type, view.source_shape),
    ]
    return instructions
