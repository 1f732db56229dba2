"""Asynchronous stores, updates and copies to shared memory of a cluster, which complete on an mbarrier there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.hardware import landings, synchronization
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
    fiber: Fiber,
    op: Instruction,
    access: Access,
    numbers: np.ndarray,
    block: np.ndarray,
    barrier: Value,
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> None:
    """Begins a store or an update of each thread; the values arrive at a wait for the mbarrier.

    Args:
        fiber: the threads.
        op: the instruction.
        access: what they write, with a row for each active lane.
        numbers: the stored values, of the same shape.
        block: of each lane, the rank of the block that it writes to, (T,).
        barrier: byte of the mbarrier in the shared memory of that block, uniform or (T,).
        combine: returns the bits that an update leaves, of those in memory and the thread's; None for a store.
    """
    group = fiber.group
    sanitizer = group.sanitizer
    touch = sanitizer.touch(fiber, access) if sanitizer.enabled else None
    if touch is not None:
        if combine is None:
            sanitizer.check(op, touch, writes=True)
        else:
            sanitizer.check_update(op, touch)
    if group.counters is not None:
        group.counters.access(fiber, op, access, "store" if combine is None else "atomic")
    row = np.full(fiber.count, -1)
    row[fiber.lanes] = np.arange(len(fiber.lanes))
    for mask, (target, place) in by_value(fiber, block, barrier):
        warps = warps_of(fiber, mask)
        mbarrier = find_mbarrier(fiber, op, target, place, warps)
        if mbarrier is None:
            continue
        rows = row[mask]
        valid = None if access.valid is None else access.valid[rows]
        own = Access(access.memory, access.element, access.positions[rows], valid, True)
        if sanitizer.enabled:
            sanitizer.acquire([mbarrier.agent], sanitizer.release(warps))
        landing = _Landing(fiber, op, own, numbers[rows], mbarrier, combine)
        landings.add(group, mbarrier, landing)
        group.begins(
            "st.async" if combine is None else "red.async", op, landing, f"{int(mask.sum())} threads to block {target}"
        )


class _Landing:
    """The arrival of what some threads store to a block, or combine with its numbers: called, it happens."""

    def __init__(
        self,
        fiber: Fiber,
        op: Instruction,
        access: Access,
        numbers: np.ndarray,
        barrier: MBarrier,
        combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
    ) -> None:
        self.fiber, self.op, self.access, self.numbers, self.barrier = fiber, op, access, numbers, barrier
        self.group = group = fiber.group
        self.combine = combine
        places = access.positions if access.valid is None else access.positions[access.valid]
        size = access.element.bytes
        starts = np.unique(places) * size  # threads may update one number
        self.write_touch = bytes_touched(group, access.memory, barrier.agent, starts, size)
        if self.write_touch is not None:
            group.sanitizer.begin_write(op, self.write_touch, updates=combine is not None, proxy=False)

    def __call__(self) -> None:
        sanitizer = self.group.sanitizer
        if self.combine is None:
            memory.scatter(self.access, self.numbers)
            sanitizer.written(self.fiber, self.op, self.access, self.numbers)
        else:
            self._update(self.combine)
        if self.write_touch is not None:
            sanitizer.end_write(self.op, self.write_touch, updates=self.combine is not None, proxy=False)
        clocks = sanitizer.release([self.barrier.agent]) if sanitizer.enabled else None
        self.barrier.update(came=self.access.positions.size * self.access.element.bytes, clocks=clocks)
        self.group.ends(self)

    def _update(self, combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        """Combines the numbers of one thread after the other with what is there."""
        access = self.access
        elements = access.memory.typed(access.element.dtype)
        valid = np.ones(access.positions.shape, bool) if access.valid is None else access.valid
        for place, number in zip(access.positions[valid], self.numbers[valid]):
            elements[place : place + 1] = combine(elements[place : place + 1], np.array([number]))


_UNIT = 16  # bytes, that addresses and the size of a bulk copy are multiples of


def copy(
    fiber: Fiber,
    op: Instruction,
    lane: int,
    source: int,
    size: int,
    target: int,
    place: int,
    barrier: MBarrier,
    dtype: np.dtype,
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> None:
    """Begins a copy of bytes by a thread, from its block's shared memory; they are read and arrive at a wait.

    Args:
        fiber: the threads.
        op: the instruction.
        lane: the thread.
        source: the first byte, in the shared memory of its own block.
        size: how many bytes are copied.
        target: the rank of the block that they are copied to, `place` where.
        barrier: of that block, which counts the bytes.
        dtype: of the numbers, which `combine` combines; without it they replace those that are there.
        combine: returns an array of numbers, of those there and those that are copied.
    """
    group = fiber.group
    sanitizer, window = group.sanitizer, group.shared
    for number in (source, place, size):
        if number % _UNIT:
            sanitizer.misaligned(fiber, op, number, _UNIT)
            return
    if max(source, place) + size > window.size or min(source, place) < 0:
        sanitizer.report(
            "out-of-bounds",
            f"{size} bytes from {source:#x} to {place:#x} are not in shared memory, and a block has {window.size}",
            op,
        )
        return
    if not barrier.is_fenced:
        sanitizer.report(
            "proxy",
            "completes on an mbarrier, and no fence.mbarrier_init or fence.proxy.async follows its initialization",
            op,
        )
    if group.counters is not None:
        group.counters.bulk(op, "shared", "load", size)
        group.counters.bulk(op, "shared", "store", size)
    if sanitizer.enabled:
        sanitizer.acquire([barrier.agent], sanitizer.release([group.warp_of_lane[lane]]))
    places = (int(group.block_of_lane[lane]) * window.size + source, target * window.size + place)
    landing = _CopyLanding(group, op, places, size, barrier, dtype, combine)
    landings.add(group, barrier, landing)
    group.begins("bulk copies", op, landing, f"{size} bytes to block {target}")


class _CopyLanding:
    """The arrival of bytes of one block in another: called, they are read and arrive."""

    def __init__(
        self,
        group: Group,
        op: Instruction,
        places: tuple[int, int],
        size: int,
        barrier: MBarrier,
        dtype: np.dtype,
        combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
    ) -> None:
        self.group, self.op, self.places, self.size, self.barrier = group, op, places, size, barrier
        self.dtype, self.combine = dtype, combine
        touches = [
            bytes_touched(group, group.shared, barrier.agent, start + np.arange(0, size, _UNIT), _UNIT)
            for start in places
        ]
        self.read_touch, self.write_touch = touches
        if self.read_touch is not None and self.write_touch is not None:
            group.sanitizer.begin_read(op, self.read_touch)
            group.sanitizer.begin_write(op, self.write_touch, updates=combine is not None)

    def __call__(self) -> None:
        group, sanitizer = self.group, self.group.sanitizer
        data = group.shared.typed(self.dtype)
        item = self.dtype.itemsize
        source, target = (slice(start // item, (start + self.size) // item) for start in self.places)
        data[target] = data[source] if self.combine is None else self.combine(data[target], data[source])
        if self.read_touch is not None and self.write_touch is not None:
            sanitizer.end_read(self.op, self.read_touch)
            block = self.places[0] // group.shared.size
            synchronization.note_actor(group, self.op, block, self.barrier.agent, "reads shared memory of a block")
            sanitizer.end_write(self.op, self.write_touch, updates=self.combine is not None)
        clocks = sanitizer.release([self.barrier.agent]) if sanitizer.enabled else None
        self.barrier.update(came=self.size, clocks=clocks)
        group.ends(self)
