"""Kernels that may begin before the launch before them has ended (programmatic dependent launch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction

CONTROL = "griddepcontrol"  # attribute of an instruction of PTX: what it does


def waits(op: Instruction) -> bool:
    """Whether an instruction waits for the previous launch.

    Args:
        op: of MLIR or PTX.
    """
    kind = op.attributes.get("kind" if op.name == "nvvm.griddepcontrol" else CONTROL, "")
    return "wait" in str(kind)


def control(fiber: Fiber, op: Instruction) -> None:
    """Makes what the previous launch has done visible to threads that wait for it; launches run one after the other.

    Args:
        fiber: the threads that execute the instruction.
        op: of MLIR or PTX.
    """
    sanitizer = fiber.group.sanitizer
    if waits(op):
        sanitizer.wait_for_launch(fiber.warps)
    else:
        sanitizer.check_trigger(op, fiber.warps)


def is_dependent(code: Sequence[Instruction]) -> bool:
    """Whether a kernel waits for the previous launch, so that it may begin before that has ended.

    Args:
        code: the instructions of the kernel.
    """
    return any(waits(op) for op in code if CONTROL in op.name or CONTROL in op.attributes)
