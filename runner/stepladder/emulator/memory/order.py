"""The order between threads that the order and scope of accesses, and fences, establish.

A release stores the clocks of its thread at the address that it writes; an acquire that reads the address merges them
into those of its own thread. Both have a scope: the threads that they synchronize with. A fence before a relaxed write
is a release with it, and one after a relaxed read is an acquire. Source: PTX ISA, "Memory Consistency Model".
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory.memory import RANK_SHIFT
from stepladder.emulator.memory.shadow import joined, together

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.groups import Group

SCOPES = ("cta", "cluster", "gpu", "sys")


class Release(dict):
    """A release: the clocks when a value was written, by group of blocks, for threads of a scope around a block."""

    def __init__(self, clocks: dict, scope: str, group: int, block: int) -> None:
        super().__init__(clocks)
        self.scope = scope
        self.group = group
        self.block = block

    def reaches(self, group: int, block: int, scope: str) -> bool:
        """Whether an acquire by a thread of a block, at a scope, synchronizes with the release.

        Args:
            group: the number of the group of the thread that acquires.
            block: its block in that group.
            scope: of the acquire, one of `SCOPES`.
        """
        narrow = min(SCOPES.index(self.scope), SCOPES.index(scope))
        return narrow >= 2 or (group == self.group and (narrow == 1 or block == self.block))


def place_of(group: Group, block: int, address: int, space: str) -> tuple[dict, object]:
    """Returns the table of the releases at an address, and the key of the address in it.

    Args:
        group: of the thread that accesses the address.
        block: of the thread, in the group.
        address: as the program has it; in shared memory it may name a block of the cluster.
        space: "global" or "shared".

    Returns:
        (table, key); the key of shared memory includes the block.
    """
    if space == "global":
        return group.machine.published, address
    rank = address >> RANK_SHIFT
    owner = rank - 1 if rank else block
    return group.state.setdefault("published", {}), (owner, address % (1 << RANK_SHIFT))


def release(
    fiber: Fiber,
    lane: int,
    space: str,
    address: int,
    scope: str,
    *,
    is_relaxed: bool,
    replaces: bool,
    owner: int | None = None,
) -> None:
    """Stores the clocks of a thread at an address that it writes.

    Args:
        fiber: the threads that execute the write.
        lane: the thread.
        space: "global" or "shared".
        address: that it writes.
        scope: of the write, one of `SCOPES`.
        is_relaxed: whether the write is relaxed: what the thread knew at its last fence is recorded, if there was one.
        replaces: whether earlier records at the address are dropped; an atomic update retains them.
        owner: block whose shared memory the address is in, if the address has no rank; default: that of the thread.
    """
    group = fiber.group
    if group.is_host or not group.sanitizer.enabled:
        return
    warp, block = int(group.warp_of_lane[lane]), int(group.block_of_lane[lane])
    notes, key = place_of(group, block if owner is None else owner, address, space)
    if replaces:
        notes.pop(key, None)
    if is_relaxed:
        last = group.state.get(("fenced", warp))
        if last is None:
            return
        clocks, fence_scope = last
        scope = SCOPES[min(SCOPES.index(scope), SCOPES.index(fence_scope))]
    else:
        clocks = group.sanitizer.known_by(warp) | {group.number: group.sanitizer.release([warp])}
    notes.setdefault(key, {})
    release_key = scope, group.number, block
    before = notes[key].get(release_key)
    # Who acquires one of those of a block at a scope acquires all of them.
    notes[key][release_key] = Release(clocks if before is None else _both(before, clocks), *release_key)


def _both(first: dict, second: dict) -> dict:
    """Returns what two records know together."""
    return {
        group: joined(first[group], second[group]) if group in first and group in second else clocks
        for group, clocks in (first | second).items()
    }


def acquire(
    fiber: Fiber, lane: int, space: str, address: int, scope: str, *, is_relaxed: bool, owner: int | None = None
) -> None:
    """Acquires the clocks that were released at an address that a thread reads.

    Args:
        fiber: the threads that execute the read.
        lane: the thread.
        space: "global" or "shared".
        address: that it reads.
        scope: of the read, one of `SCOPES`.
        is_relaxed: whether the read is relaxed: the warp acquires at its next fence, not at once.
        owner: the block whose shared memory it is; default: that of the thread.
    """
    group = fiber.group
    if group.is_host or not group.sanitizer.enabled:
        return
    warp, block = int(group.warp_of_lane[lane]), int(group.block_of_lane[lane])
    notes, key = place_of(group, block if owner is None else owner, address, space)
    releases = notes.get(key, {})
    if not is_relaxed:
        _learn(group, warp, block, [(record, scope) for record in releases.values()])
        return
    records_read = group.state.setdefault(("read", warp), {})
    for release_key, record in releases.items():
        before, _ = records_read.get((release_key, scope), (None, scope))
        records_read[release_key, scope] = (
            record if before is None else Release(_both(before, record), *release_key),
            scope,
        )


def is_idle(fiber: Fiber) -> bool:
    """Whether relaxed accesses of threads order nothing: nothing was released, and their warps executed no fence.

    Args:
        fiber: the threads.
    """
    group = fiber.group
    if group.machine.published or group.state.get("published"):
        return False
    return all(("fenced", int(warp)) not in group.state for warp in fiber.warps)


def _learn(group: Group, warp: int, block: int, releases: Iterable[tuple[dict, str]]) -> None:
    """Orders a warp after what was released, each at the scope of the acquire."""
    reached_records = [
        record
        for record, scope in releases
        if not isinstance(record, Release) or record.reaches(group.number, block, scope)
    ]
    if all(len(record) == 1 and group.number in record for record in reached_records):
        # Threads that wait in a loop read what hundreds of updates released, of one group most of the time.
        pasts = [record[group.number] for record in reached_records]
        group.sanitizer.acquire([warp], functools.reduce(together, pasts, None))
        return
    for record in reached_records:
        group.sanitizer.acquire([warp], record.get(group.number))
        others = {owner: clocks for owner, clocks in record.items() if owner != group.number}
        if others:
            group.sanitizer.learn(warp, others)


def fence(fiber: Fiber, scope: str, *, acquires: bool = True, releases: bool = True) -> None:
    """Orders the accesses of threads before a fence and after it, for threads of a scope.

    Args:
        fiber: the threads that execute the fence.
        scope: one of `SCOPES`.
        acquires: whether the fence has acquire semantics.
        releases: whether it has release semantics.
    """
    group = fiber.group
    if group.is_host or not group.sanitizer.enabled:
        return
    for warp in fiber.warps:
        if acquires:
            block = int(warp) // group.warps_per_block
            records_read = group.state.pop(("read", int(warp)), {})
            narrow = [
                (clocks, SCOPES[min(SCOPES.index(scope), SCOPES.index(at))]) for clocks, at in records_read.values()
            ]
            _learn(group, int(warp), block, narrow)
        if releases:
            clocks = group.sanitizer.known_by(int(warp)) | {group.number: group.sanitizer.release(np.array([warp]))}
            group.state["fenced", int(warp)] = clocks, scope
