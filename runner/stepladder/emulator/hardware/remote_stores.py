"""Asynchronous stores to the shared memory of blocks of a cluster, which complete on an mbarrier of the same block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.hardware import landings
from stepladder.emulator.hardware.asynchronous import bytes_touched
from stepladder.emulator.hardware.mbarriers import MBarrier, find_mbarrier
from stepladder.emulator.hardware.synchronization import by_value, warps_of
from stepladder.emulator.memory import memory
from stepladder.emulator.memory.memory import Access

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value


def store(
    fiber: Fiber, op: Instruction, access: Access, numbers: np.ndarray, block: np.ndarray, barrier: Value
) -> None:
    """Begins a store of each thread; the numbers arrive at a wait for the mbarrier.

    Args:
        fiber: the threads.
        op: the instruction.
        access: what they write, with a row for each active lane.
        numbers: of the same shape.
        block: of each lane, the rank of the block that it writes to, (T,).
        barrier: byte of the mbarrier in the shared memory of that block, uniform or (T,).
    """
    group = fiber.group
    sanitizer = group.sanitizer
    touch = sanitizer.touch(fiber, access) if sanitizer.enabled else None
    if touch is not None:
        sanitizer.check(op, touch, writes=True)
    if group.counters is not None:
        group.counters.access(fiber, op, access, "store")
    row = np.full(fiber.count, -1)
    row[fiber.lanes] = np.arange(len(fiber.lanes))
    for mask, (target, place) in by_value(fiber, block, barrier):
        warps = warps_of(fiber, mask)
        found = find_mbarrier(fiber, op, target, place, warps)
        if found is None:
            continue
        rows = row[mask]
        valid = None if access.valid is None else access.valid[rows]
        own = Access(access.memory, access.element, access.positions[rows], valid, True)
        if sanitizer.enabled:
            sanitizer.acquire([found.agent], sanitizer.release(warps))
        landing = _Landing(group, op, own, numbers[rows], found)
        landings.add(group, found, landing)
        group.begins("st.async", op, landing, f"{int(mask.sum())} threads to block {target}")


class _Landing:
    """The arrival of what some threads store to a block: called, it happens."""

    def __init__(self, group: Group, op: Instruction, access: Access, numbers: np.ndarray, barrier: MBarrier) -> None:
        self.group, self.op, self.access, self.numbers, self.barrier = group, op, access, numbers, barrier
        places = access.positions if access.valid is None else access.positions[access.valid]
        size = access.element.bytes
        self.written = bytes_touched(group, access.memory, barrier.agent, places.reshape(-1) * size, size)
        if self.written is not None:
            group.sanitizer.begin_write(op, self.written)

    def __call__(self) -> None:
        sanitizer = self.group.sanitizer
        memory.scatter(self.access, self.numbers)
        if self.written is not None:
            sanitizer.end_write(self.op, self.written, proxy=False)
        known = sanitizer.release([self.barrier.agent]) if sanitizer.enabled else None
        self.barrier.update(came=self.access.positions.size * self.access.element.bytes, known=known)
        self.group.ends(self)
