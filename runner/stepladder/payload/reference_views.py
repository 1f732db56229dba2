"""Views of whole buffers in reference programs: reshapes, transposes, and casts that keep the elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import Empty, Generic, Instruction, Reshape

VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.subview", "memref.transpose")


@dataclass(frozen=True)
class BufferView:
    """A view of all elements of a buffer.

    Attributes:
        source: the buffer, or a view of it.
        type: element type.
        source_shape, shape: extents of the source and the view.
        order: for a transpose, the axis of the source that each axis of the view is; None for a reshape.
    """

    source: ir.Value
    type: str
    source_shape: tuple[int, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...] | None = None


def view_of(op: ir.Operation) -> BufferView:
    """Returns the view that an op of `VIEWS` makes.

    Args:
        op: of a reference program on buffers.

    Raises:
        StepladderError: dynamic shapes, or a part of the buffer.
    """
    source, result = (ir.MemRefType(value.type) for value in (op.operands[0], op.results[0]))
    is_static = source.has_static_shape and result.has_static_shape
    if not is_static or math.prod(source.shape) != math.prod(result.shape):
        raise StepladderError(
            f"no reference can be computed for '{op.name}' of a part of a buffer, so that the numbers could not be "
            "checked",
            location=diagnostics.location_text(op.location),
        )
    order = None
    if op.name == "memref.transpose":
        axes = ir.AffineMapAttr(op.attributes["permutation"]).value.results
        order = tuple(each.position for each in axes if isinstance(each, ir.AffineDimExpr))
    return BufferView(op.operands[0], str(source.element_type), tuple(source.shape), tuple(result.shape), order)


def moved(number: int, view: BufferView, new: Callable[[], int], *, back: bool = False) -> list[Instruction]:
    """Returns the instructions that make a view of a buffer's content, or the content of a view (`back`).

    Args:
        number: the value that is moved.
        view: the view.
        new: returns the number of a new value; the last instruction makes the last one.
        back: from the view to the source.
    """
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
