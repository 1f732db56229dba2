"""llvm: functions and where they end; jumps and branches are `blocks`."""

from __future__ import annotations

from stepladder.emulator.core.machine import Left, Unsupported
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.dialects.func import define
from stepladder.emulator.hardware import synchronization


@lowers("llvm.func")
def lower_func(builder, op) -> None:
    """`llvm.func`: a kernel, by its module's name and its own; one without a body is left out."""
    define(builder, op, "::".join([*builder.modules, op.attributes["sym_name"].value]))


@executes("llvm.return")
def return_(fiber, op, *results) -> None:
    """The thread ends."""
    if results:
        raise Unsupported(op, "with a result: functions of a kernel are not called")
    synchronization.leave(fiber)
    raise Left


@executes("llvm.unreachable")
def unreachable(fiber, op) -> None:
    """What no thread may come to."""
    fiber.group.sanitizer.report("order", f"{fiber.group.thread_name(fiber.lanes[0])} comes to it", op)
    synchronization.leave(fiber)
    raise Left
