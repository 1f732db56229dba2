"""Atomic updates of memory, one thread after the other, and the order that they establish.

An update that acquires sees what the threads that released at the same address before have seen; in global memory
across blocks (`Machine.published`). One that does neither does so with a fence beside it (`order`). A thread that reads
the same value at the same address repeatedly is waiting: it is suspended (`spin`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from stepladder.emulator.core.fibers import Blocked, Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.memory import initialized, memory, order
from stepladder.emulator.memory.memory import Access

# LLVM's orderings by index: which acquire, and which release.
ACQUIRES = (4, 6, 7)
RELEASES = (5, 6, 7)


@dataclass(frozen=True)
class Orders:
    """The ordering of an atomic access.

    Attributes:
        acquires, releases: whether it does so itself, without a fence.
        scope: for which threads, one of `order.SCOPES`.
        reads, writes: whether it is more than a store, or than a load.
    """

    acquires: bool
    releases: bool
    scope: str = "sys"
    reads: bool = True
    writes: bool = True


_PATIENCE = 16  # times that the same value is read before other threads go on


def update(
    fiber: Fiber,
    op: Instruction,
    access: Access,
    function: Callable,
    orders: Orders | None,
    *,
    of_arrays: bool = False,
) -> np.ndarray:
    """Updates the number of each active lane, in the order of lanes; returns the numbers before, (L,).

    Args:
        fiber: the threads.
        op: the instruction.
        access: one value per lane: positions (L,).
        function: returns the new value, given the index of a lane among the active ones and the previous value.
        orders: the memory ordering; None where the caller sees to that.
        of_arrays: whether `function` takes arrays, of lanes that update different numbers.
    """
    group = fiber.group
    if not access.per_lane:
        access = memory.with_lanes(access, len(fiber.lanes))
    elements = access.memory.typed(access.element.dtype)
    group.sanitizer.update(fiber, op, access)
    if group.counters is not None:
        group.counters.access(fiber, op, access, "atomic")
    before = np.zeros(len(fiber.lanes), access.element.dtype)
    is_changed = False
    for numbers in _rounds(access) if of_arrays else _single(access):
        places = access.positions[numbers]
        before[numbers] = elements[places]
        after = function(numbers, before[numbers])
        is_changed |= bool(np.any(after != before[numbers]))
        elements[places] = after
        initialized.note(access.memory, access.element.bytes, places)
    spin(fiber, op, (access.memory, before.tobytes()), is_changed)
    if group.sanitizer.enabled and orders is not None:
        for number, place in enumerate(access.positions):
            if access.valid is None or access.valid[number]:
                _order(fiber, int(fiber.lanes[number]), access, int(place), orders)
    return before


def _single(access: Access) -> Iterator[int]:
    """Yields the active lanes whose access is valid, in their order."""
    for number in range(len(access.positions)):
        if access.valid is None or access.valid[number]:
            yield number


def _rounds(access: Access) -> Iterator[np.ndarray]:
    """Yields arrays of such lanes with different places each; lanes with one place are in their order."""
    remaining = np.arange(len(access.positions)) if access.valid is None else np.flatnonzero(access.valid)
    while remaining.size:
        _, first = np.unique(access.positions[remaining], return_index=True)
        yield remaining[first]
        remaining = np.delete(remaining, first)


def spin(fiber: Fiber, op: Instruction, value: object, is_changed: bool) -> None:
    """Yields to other threads where a thread reads the same value repeatedly, and nothing has changed.

    Args:
        fiber: the threads.
        op: the instruction.
        value: what it has read, to be compared with what it read the last time.
        is_changed: whether it has changed anything.

    Raises:
        Blocked: the value has been the same several times in a row; the thread pauses.
    """
    last_value, times = fiber.group.state.get(("spin", op.number, int(fiber.lanes[0])), (None, 0))
    times = times + 1 if last_value == value and not is_changed else 0
    fiber.group.state["spin", op.number, int(fiber.lanes[0])] = value, times
    if times >= _PATIENCE and not fiber.group.state.pop(("resumed", op.number, int(fiber.lanes[0])), False):
        fiber.group.state["resumed", op.number, int(fiber.lanes[0])] = True
        raise Blocked("the same value again and again", pauses=True)


def _order(fiber: Fiber, lane: int, access: Access, place: int, orders: Orders) -> None:
    """Acquires for a lane the clocks that others released at an address, and releases its own there."""
    memory_, address = access.memory, place * access.element.bytes
    owner = None
    if memory_.copies > 1:
        owner, address = divmod(address, memory_.size)
    address += memory_.address
    if orders.reads:
        order.acquire(fiber, lane, memory_.space, address, orders.scope, is_relaxed=not orders.acquires, owner=owner)
    if orders.writes:
        order.release(
            fiber,
            lane,
            memory_.space,
            address,
            orders.scope,
            is_relaxed=not orders.releases,
            replaces=not orders.reads,
            owner=owner,
        )
