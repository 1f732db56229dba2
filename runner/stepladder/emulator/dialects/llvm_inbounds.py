"""llvm: `getelementptr inbounds`, whose address must be in the memory that its base is of, or at its end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.registry import checks
from stepladder.emulator.core.types import Opaque
from stepladder.emulator.memory import pointers
from stepladder.mlir import printed

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.memory.memory import Allocation
    from stepladder.mlir.bindings import ir

_INBOUNDS = re.compile(r"llvm\.getelementptr inbounds\b")
_SPACES = ("!llvm.ptr", "!llvm.ptr<1>", f"!llvm.ptr<{pointers.SHARED}>")


@checks("llvm.getelementptr")
def checked(op: ir.Operation, execute: Callable) -> Callable:
    """Returns what executes the op and reports the threads whose address is out of bounds."""
    # The bindings give the flags of the LLVM dialect in the text alone.
    if not _INBOUNDS.search(printed.without_names(op)):
        return execute

    def run(fiber: Fiber, op: Instruction, pointer: Value, *indices: Value) -> Value:
        result = execute(fiber, op, pointer, *indices)
        type_ = op.result_types[0]
        if fiber.group.sanitizer.enabled and isinstance(type_, Opaque) and type_.text in _SPACES:
            _check(fiber, op, pointer, result)
        return result

    return run


def _check(fiber: Fiber, op: Instruction, base: Value, address: Value) -> None:
    bases, addresses = (
        np.atleast_1d(number if values.is_uniform(number) else number[fiber.lanes]) for number in (base, address)
    )
    objects = fiber.group.state.setdefault("objects of pointers", {})
    known_object: Allocation | None = objects.get(op.number)
    if known_object is not None and _holds(known_object, bases).all() and _holds(known_object, addresses).all():
        return
    bases, addresses = np.broadcast_arrays(bases, addresses)
    for number in np.unique(bases):
        memory = pointers.object_at(fiber, int(number))
        if memory is None:
            continue
        objects[op.number] = memory
        wrong = (bases == number) & ~_holds(memory, addresses)
        if wrong.any():
            place = int(wrong.argmax())
            lane = int(fiber.lanes[place if len(bases) == len(fiber.lanes) else 0])
            name = "shared memory" if memory is fiber.group.window else memory.name or "its memory"
            fiber.group.sanitizer.report(
                "out-of-bounds",
                f"{fiber.group.thread_name(lane)}: the address is byte {int(addresses[place]) - memory.address} of "
                f"{name}, which has {memory.size} bytes, although the op states inbounds",
                op,
            )
            return


def _holds(memory: Allocation, addresses: np.ndarray) -> np.ndarray:
    """Returns which addresses are of memory, or of its end."""
    return (addresses >= memory.address) & (addresses <= memory.address + memory.size)
