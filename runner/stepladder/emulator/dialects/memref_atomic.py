"""memref: atomic updates. They acquire and release, like the LLVM instructions that they lower to."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.elements import plain
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware.reductions import atomic_kind, combined
from stepladder.emulator.memory import atomics, memory

_ORDERS = atomics.Orders(acquires=True, releases=True)


@executes("memref.atomic_rmw")
def atomic_rmw(fiber: Fiber, op: Instruction, value: Value, view: Value, *indices: Value) -> Value:
    """Combines a value with one in memory; returns the previous value."""
    element = op.result_types[0]
    access = memory.locate(fiber, op, view, indices)
    own = values.lanes(np.asarray(value, element.dtype), fiber.count)[fiber.lanes]
    kind = atomic_kind(op.attributes["kind"])

    def after(number: int, before: Value) -> Value:
        return own[number] if kind == "assign" else combined(kind, element, before, own[number])

    return spread(fiber, atomics.update(fiber, op, access, after, _ORDERS))


@executes("memref.generic_atomic_rmw")
def generic_atomic_rmw(fiber: Fiber, op: Instruction, view: Value, *indices: Value) -> Value:
    """Replaces a value by the value that the region computes from it; the result is that value."""
    element = op.result_types[0]
    access = memory.locate(fiber, op, view, indices)
    body = op.regions[0]
    results = np.zeros(fiber.count, element.dtype)

    def after(number: int, before: Value) -> Value:
        lane = fiber.lanes[number]
        results[lane] = values.lanes(np.asarray(fiber.evaluate(body, [plain(np.asarray(before))])[0]), fiber.count)[
            lane
        ]
        return results[lane]

    atomics.update(fiber, op, access, after, _ORDERS)
    return plain(results[0]) if fiber.group.is_host else results


def spread(fiber: Fiber, before: np.ndarray) -> Value:
    """Returns what the active lanes read as a value, uniform on the host.

    Args:
        fiber: the threads.
        before: array (active lanes,).
    """
    return plain(before[0]) if fiber.group.is_host else memory.spread(fiber, before)
