"""cf: assertions. `core.control_flow` executes jumps and branches."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Left, Stopped
from stepladder.emulator.core.host import say
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import lowers
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware import synchronization
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir


@lowers("cf.assert")
def lower_assert(builder: Builder, op: ir.Operation) -> None:
    """`cf.assert`: ends the program, or the threads of a kernel, for which it does not hold."""
    attributes = decode_attributes(op)
    attributes["place"] = diagnostics.call_site(op.location)
    builder.emit(op.name, assert_, builder.used(op.operands), (), attributes)


def assert_(fiber: Fiber, op: Instruction, condition: Value) -> None:
    """Goes on where a condition holds; prints the message elsewhere, and ends there.

    In the body of a linalg op it has to hold in all iterations.
    """
    if op.cache.get("in_loops"):
        condition = bool(np.all(condition))
    holds = np.broadcast_to(np.asarray(condition, bool), fiber.count)
    failing = fiber.active & ~holds
    if not failing.any():
        return
    fail(fiber, op, op.attributes["msg"], op.attributes["place"], failing)


def fail(fiber: Fiber, op: Instruction, text: str, place: tuple[str, str, int], failing: np.ndarray) -> None:
    """Reports that an assertion does not hold for some lanes, and ends them.

    Args:
        fiber: the threads.
        op: the assertion.
        text: its message.
        place: file, function and line, for the text that CUDA prints.
        failing: bool array (T,) of active lanes.

    Raises:
        Left: it holds for no thread of the fiber, and all of them have ended.
        Stopped: the assertion is of the host, and ends the program.
    """
    group = fiber.group
    lanes = np.flatnonzero(failing)
    group.sanitizer.report("assertion", f"does not hold for {group.thread_name(lanes[0])}: {text}", op)
    if group.is_host:
        say(fiber, text + "\n")
        if group.machine.stops_at_assertions:
            group.machine.stopped = True
            raise Stopped
        return
    file, function, line = place
    for lane in lanes:
        block = ",".join(map(str, group.block_ids[group.block_of_lane[lane]]))
        thread = ",".join(str(number if isinstance(number, int) else number[lane]) for number in group.thread_id)
        say(fiber, f"{file}:{line}: {function}: block: [{block}], thread: [{thread}] Assertion `{text}` failed.\n")
    if failing.sum() == len(fiber.lanes):
        synchronization.leave(fiber)
        raise Left
    synchronization.leave(fiber.split(failing))
