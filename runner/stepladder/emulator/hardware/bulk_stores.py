"""Stores by TMA in flight: each thread commits its own in groups, and waits for all but the latest groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.hardware.asynchronous import kept_by

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group


@dataclass
class BulkStore:
    """A store by TMA: `read` takes its data from shared memory, `write` writes them to global memory, each once.

    Who has waited for it has `known`, a clock.
    """

    op: Instruction
    read: Callable[[], None]
    write: Callable[[], None]
    clocks: np.ndarray | None = None
    has_read: bool = False

    def finish_reading(self) -> None:
        """Lets it have read."""
        if not self.has_read:
            self.has_read = True
            self.read()

    def finish(self) -> None:
        """Lets it be done."""
        self.finish_reading()
        self.write()


@dataclass
class _Bulk:
    """The stores of a thread: those not committed, and groups, the oldest first; and their actor for the sanitizer."""

    agent: int
    open: list[BulkStore] = field(default_factory=list)
    groups: list[list[BulkStore]] = field(default_factory=list)


class _BulkStores:
    """The stores by TMA of a group of blocks, by thread."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.of_lane: dict[int, _Bulk] = {}
        group.at_end.append(self.end)

    def end(self) -> None:
        """The blocks end: pending operations are written, unless their shared memory ends before it was read."""
        for bulk in self.of_lane.values():
            for store in [store for stores in [*bulk.groups, bulk.open] for store in stores]:
                if not store.has_read:
                    self.group.sanitizer.report(
                        "unwaited", "still reads shared memory when the block exits: no wait for its group", store.op
                    )
                store.finish()
                self.group.ends(store)


def _bulk(fiber: Fiber, lane: int | np.integer) -> _Bulk:
    of_lane = kept_by(fiber.group, "bulk", _BulkStores).of_lane
    if int(lane) not in of_lane:
        sanitizer = fiber.group.sanitizer
        of_lane[int(lane)] = _Bulk(sanitizer.agent() if sanitizer.enabled else 0)
    return of_lane[int(lane)]


def agent_of(fiber: Fiber, lane: int) -> int:
    """Returns the actor that writes what a thread stores by TMA; 0 without the sanitizer.

    Args:
        fiber: the threads.
        lane: the thread.
    """
    return _bulk(fiber, lane).agent


def begin(fiber: Fiber, lane: int, store: BulkStore) -> None:
    """Lets a thread begin a store by TMA.

    Args:
        fiber: the threads.
        lane: the one that begins it.
        store: what it stores.
    """
    fiber.group.begins("TMA stores", store.op, store)
    _bulk(fiber, lane).open.append(store)


def commit(fiber: Fiber) -> None:
    """Makes a group of what each active thread has begun to store since its last one.

    Args:
        fiber: the threads.
    """
    for lane in fiber.lanes:
        bulk = _bulk(fiber, lane)
        bulk.groups.append(bulk.open)
        bulk.open = []


def wait(fiber: Fiber, latest: int, *, read: bool) -> None:
    """Waits until all but the latest groups of bulk stores of each active thread are complete.

    Args:
        fiber: the threads that wait.
        latest: groups that may be in flight.
        read: wait only until their sources in shared memory are read.
    """
    for lane in fiber.lanes:
        bulk = _bulk(fiber, lane)
        complete_groups = bulk.groups[: max(0, len(bulk.groups) - latest)]
        for store in (store for stores in complete_groups for store in stores):
            store.finish_reading() if read else store.finish()
            if not read:
                fiber.group.sanitizer.acquire([fiber.group.warp_of_lane[lane]], store.clocks)
                fiber.group.ends(store)
        if not read:
            bulk.groups = bulk.groups[len(complete_groups) :]
