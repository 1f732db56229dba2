"""ub: undefined behaviour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core.elements import plain
from stepladder.emulator.core.fibers import Fiber, Left, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Scalar, Shaped
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware import synchronization

POISON = -1  # in place of an element's position: the element is poison


def poison_of(element: Scalar, shape: Sequence[int] = ()) -> np.ndarray:
    """Returns an array that represents poison: NaN, or integers with all bits set.

    Args:
        element: the type.
        shape: of the array.
    """
    return np.full(shape, np.nan if element.is_float else True if element.width == 1 else -1, element.dtype)


@executes("ub.unreachable")
def unreachable(fiber: Fiber, op: Instruction) -> None:
    """An instruction that no thread may reach."""
    fiber.group.sanitizer.report(
        "order", f"{fiber.group.thread_name(fiber.lanes[0])} executes what is stated to be unreachable", op
    )
    synchronization.leave(fiber)
    raise Left


@executes("ub.poison")
def poison(fiber: Fiber, op: Instruction) -> Value:
    """A value that shows when it is used."""
    type_ = op.result_types[0]
    if not isinstance(type_, (Scalar, Shaped)) or None in type_.shape:
        raise Unsupported(op, "of this type: expected numbers, and memrefs, vectors and tensors of static shape")
    return plain(poison_of(type_.element, type_.static_shape))
