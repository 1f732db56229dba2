"""Atomic updates of numbers in memory, one thread after the other, and the order that they establish.

An update that acquires sees what the threads that released at the same address before have seen; in global memory
across blocks (`Machine.published`). A thread that reads the same number at the same address again and again is waiting:
it is suspended (`spin`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepladder.emulator.core.fibers import Blocked, Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.memory import memory
from stepladder.emulator.memory.memory import Access

# LLVM's orderings by number: which acquire, and which release.
ACQUIRES = (4, 6, 7)
RELEASES = (5, 6, 7)
_PATIENCE = 16  # times that the same number is found before others go on


def update(
    fiber: Fiber, op: Instruction, access: Access, function: Callable, *, acquires: bool, releases: bool
) -> np.ndarray:
    """Updates the number of each active lane, in the order of lanes; returns what stood there, (L,).

    Args:
        access: one number a lane: positions (L,).
        function: returns from the place of a lane among the active ones, and what stands there, what is put there.
    """
    group = fiber.group
    if not access.per_lane:
        access = memory.with_lanes(access, len(fiber.lanes))
    typed = access.memory.typed(access.element.dtype)
    group.sanitizer.update(fiber, op, access)
    if group.counters is not None:
        group.counters.access(fiber, op, access, "atomic")
    before = np.zeros(len(fiber.lanes), access.element.dtype)
    changed = False
    for number, place in enumerate(access.positions):
        if access.valid is not None and not access.valid[number]:
            continue
        before[number] = typed[place]
        after = function(number, before[number])
        changed |= bool(after != before[number])
        typed[place] = after
    spin(fiber, op, (access.memory, before.tobytes()), changed)
    if group.sanitizer.enabled:
        for number, place in enumerate(access.positions):
            if access.valid is None or access.valid[number]:
                _order(fiber, int(fiber.lanes[number]), access, int(place), acquires=acquires, releases=releases)
    return before


def spin(fiber: Fiber, op: Instruction, found: object, changed: bool) -> None:
    """Lets others go on where a thread asks again and again, and nothing has changed.

    Args:
        found: what it found, to be compared with what it found the last time.
        changed: whether it changed anything.
    """
    seen, times = fiber.group.state.get(("spin", op.number, int(fiber.lanes[0])), (None, 0))
    times = times + 1 if seen == found and not changed else 0
    fiber.group.state["spin", op.number, int(fiber.lanes[0])] = found, times
    if times >= _PATIENCE and not fiber.group.state.pop(("resumed", op.number, int(fiber.lanes[0])), False):
        fiber.group.state["resumed", op.number, int(fiber.lanes[0])] = True
        raise Blocked("the same number again and again", pauses=True)


def _order(fiber: Fiber, lane: int, access: Access, place: int, *, acquires: bool, releases: bool) -> None:
    """Releases a lane's clock at an address, and acquires the clocks that others released there."""
    group = fiber.group
    warp = group.warp_of_lane[lane]
    published = group.machine.published if access.memory.space == "global" else group.state.setdefault("published", {})
    key = access.memory.address + place * access.element.bytes
    if acquires:
        for known in published.get(key, ()):
            group.sanitizer.acquire([warp], known.get(group.number))
            others = {owner: clocks for owner, clocks in known.items() if owner != group.number}
            if others:
                group.sanitizer.learn(warp, others)
    if releases:
        clocks = group.sanitizer.release([warp])
        published.setdefault(key, []).append(group.sanitizer.known | {group.number: clocks})
