"""memref: unchecked assertions of ops about sizes and layouts, such as the static size that a cast gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.registry import checks, executes
from stepladder.emulator.core.types import Buffer
from stepladder.emulator.core.values import MemRef
from stepladder.emulator.hardware.warps import alike

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.mlir.bindings import ir

KIND = "assumption"


def _before(check: Callable[..., str]) -> Callable:
    """Returns a decorator that checks the operands of an op before the function that executes it."""

    def checked(op: ir.Operation, execute: Callable) -> Callable:
        def run(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
            if fiber.group.sanitizer.enabled:
                messages = (check(part, op, *operands) for part in alike(fiber, _numbers(operands)))
                wrong = next(filter(None, messages), "")
                if wrong:
                    fiber.group.sanitizer.report(KIND, wrong, op)
            return execute(fiber, op, *operands)

        return run

    return checked


def _numbers(operands: Sequence[Value]) -> list[Value]:
    """Returns the sizes and strides of views, and other operands."""
    numbers = []
    for operand in operands:
        numbers += [*operand.sizes, *operand.strides] if isinstance(operand, MemRef) else [operand]
    return numbers


def _sizes(fiber: Fiber, view: MemRef) -> list[int]:
    return [int(fiber.first(size)) for size in view.sizes]


def _strides(fiber: Fiber, view: MemRef) -> list[int]:
    return [int(fiber.first(stride)) for stride in view.strides]


@checks("memref.cast")
@_before
def check_cast(fiber: Fiber, op: Instruction, view: MemRef) -> str:
    """A static size or stride must be that of the view."""
    type_ = op.result_types[0]
    if not isinstance(type_, Buffer) or len(type_.shape) != view.rank:
        return ""
    sizes = _sizes(fiber, view)
    for axis, (static_value, size) in enumerate(zip(type_.shape, sizes)):
        if static_value not in (None, size):
            return f"says that dimension {axis} has {static_value} elements, and it has {size}"
    for axis, (static_value, stride) in enumerate(zip(type_.strides, _strides(fiber, view))):
        if static_value not in (None, stride) and sizes[axis] > 1:
            return f"says that the stride of dimension {axis} is {static_value}, and it is {stride}"
    return ""


@checks("memref.expand_shape")
@_before
def check_expansion(fiber: Fiber, op: Instruction, view: MemRef, *dynamic: Value) -> str:
    """The sizes that a dimension is cut into must multiply to it."""
    remaining = [int(fiber.first(size)) for size in dynamic]
    # The smallest 64-bit integer represents a size that is an operand.
    sizes = [remaining.pop(0) if size < 0 else size for size in op.attributes["static_output_shape"]]
    for group, size in zip(op.attributes["reassociation"], _sizes(fiber, view)):
        parts = [sizes[axis] for axis in group]
        if math.prod(parts) != size:
            return f"cuts a dimension of {size} into {' x '.join(map(str, parts))}"
    return ""


@checks("memref.collapse_shape")
@_before
def check_collapse(fiber: Fiber, op: Instruction, view: MemRef) -> str:
    """Dimensions that are joined must be contiguous."""
    sizes, strides = _sizes(fiber, view), _strides(fiber, view)
    for group in op.attributes["reassociation"]:
        wide = [axis for axis in group if sizes[axis] != 1]
        for outer, inner in zip(wide, wide[1:]):
            if strides[outer] != strides[inner] * sizes[inner]:
                return f"joins dimensions {outer} and {inner}, whose elements are not contiguous"
    return ""


@checks("memref.copy")
@_before
def check_copy(fiber: Fiber, op: Instruction, source: MemRef, target: MemRef) -> str:
    """Both views must have the same shape; a target that is smaller is out of bounds."""
    shapes = _sizes(fiber, source), _sizes(fiber, target)
    if shapes[0] != shapes[1] and all(old <= new for old, new in zip(*shapes)):
        return " to ".join(f"{'x'.join(map(str, shape))}" for shape in shapes) + ": the shapes are to be the same"
    return ""


@checks("memref.view")
def check_view(op: ir.Operation, execute: Callable) -> Callable:
    """Adds the check that the bytes of a view are those of the buffer that it shows; it has no others then."""

    def run(fiber: Fiber, op: Instruction, view: MemRef, shift: Value, *sizes: Value) -> Value:
        result = execute(fiber, op, view, shift, *sizes)
        for part in alike(fiber, _numbers((view, result, shift))):
            first = int(part.first(shift))
            end = first + math.prod(_sizes(part, result)) * result.element.bytes
            byte_count = math.prod(_sizes(part, view)) * view.element.bytes
            if end > byte_count or first < 0:
                fiber.group.sanitizer.report("out-of-bounds", f"shows bytes {first} to {end} of {byte_count}", op)
                return _without_rest(view, result, shift)
        return result

    return run


def _without_rest(view: MemRef, result: MemRef, shift: Value) -> MemRef:
    """Returns a view without the outermost elements that are beyond the buffer that it shows."""
    if not result.sizes:
        return result
    bytes_left = math.prod(view.sizes) * view.element.bytes - shift
    row = math.prod(result.sizes[1:]) * result.element.bytes
    rows = np.where(np.asarray(shift) < 0, 0, np.clip(bytes_left // np.maximum(row, 1), 0, result.sizes[0]))
    return result.view(result.offset, [rows if rows.ndim else int(rows), *result.sizes[1:]], result.strides)


@executes("memref.distinct_objects")
def distinct_objects(fiber: Fiber, op: Instruction, *views: MemRef) -> Value:
    """The same views; the op states that no two are of one allocation."""
    places = [(id(view.memory), view.start if view.memory.space == "shared" else 0) for view in views]
    if len(set(places)) < len(places):
        fiber.group.sanitizer.report(KIND, "two of its operands alias: they are of one allocation", op)
    return views[0] if len(views) == 1 else views
