"""Vector clocks: the order between the threads of a group of blocks.

A clock has one entry for each warp and each agent that copies on its own (TMA that completes an mbarrier). The threads
of a warp count as one, because they execute in step in programs for matrix units. `clocks[w, x]` is the time of x up to
which barriers, mbarriers, releases and waits have ordered x before w: an access of x at time t is in w's past if
`clocks[w, x] >= t`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory.shadow import SharedShadow, joined

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group

_AGENTS = 16  # room for clocks grows by so many


class Clocks:
    """What each warp and agent of one group of blocks knows of the others' past.

    Attributes:
        group: the blocks that the warps belong to.
        actors: number of warps and agents; `clocks` may have room for more.
        clocks: int array (actors, actors).
        fenced: when each warp last made its writes to shared memory visible to the async proxy.
        fenced_global: the same for global memory, where a fence is for what the warp knows of others' writes too.
        known: by group, the clocks of its actors that this one has been told of.
        told: by group, the warp that was told last, and when.
        launch_before: the actor that the launch before is, which may not have ended; None where it has.
    """

    group: Group

    def __init__(self) -> None:
        self.actors = 0
        self.clocks = np.zeros((0, 0), np.int32)
        self.fenced = np.zeros(0, np.int32)
        self.fenced_global = np.zeros(0, np.int32)
        self.known: dict[int, np.ndarray] = {}
        self.told: dict[int, tuple[int, int]] = {}
        self.launch_before: int | None = None

    def attach(self, group: Group) -> None:
        """Begins with a group of blocks: a clock for each of its warps."""
        self.group = group
        self.actors = group.warps
        self._grow(group.warps + _AGENTS)
        self.clocks[np.arange(group.warps), np.arange(group.warps)] = 1

    def _grow(self, room: int) -> None:
        clocks = np.zeros((room, room), np.int32)
        old = len(self.clocks)
        clocks[:old, :old] = self.clocks
        self.clocks = clocks
        for name in ("fenced", "fenced_global"):
            fenced = np.zeros(room, np.int32)
            fenced[:old] = getattr(self, name)
            setattr(self, name, fenced)
        window = self.group.window
        if window is not None and isinstance(window.shadow, SharedShadow):
            window.shadow.room_for(room)

    def agent(self) -> int:
        """Returns a new actor: one that is no warp."""
        if self.actors == len(self.clocks):
            self._grow(self.actors + _AGENTS)
        self.actors += 1
        self.clocks[self.actors - 1, self.actors - 1] = 1
        return self.actors - 1

    def begin_before_launch(self) -> None:
        """Begins before the launch before has ended: only `wait_for_launch` tells of what that does."""
        self.launch_before = self.agent()

    def wait_for_launch(self, warps: Sequence[int] | np.ndarray) -> None:
        """Tells warps of what the launch before has done."""
        if self.launch_before is not None:
            self.acquire(warps, self.clocks[self.launch_before].copy())

    def release(self, actors: Sequence[int] | np.ndarray) -> np.ndarray:
        """Returns what these actors know, together, and lets their time go on: what they do later is not in it."""
        actors = np.asarray(actors)
        known = self.clocks[actors].max(axis=0)
        self.clocks[actors, actors] += 1
        return known

    def acquire(self, actors: Sequence[int] | np.ndarray, known: np.ndarray | None) -> None:
        """Tells actors of a past that `release` returned.

        Args:
            actors: numbers of those who are told.
            known: clocks, an int array (actors,); None tells them nothing.
        """
        if known is None:
            return
        actors = np.asarray(actors)
        size = len(known)
        own = self.clocks[actors, actors]
        self.clocks[actors, :size] = np.maximum(self.clocks[actors, :size], known)
        self.clocks[actors, actors] = own

    def knows(self, actors: Sequence[int] | np.ndarray, past: np.ndarray) -> np.ndarray:
        """Returns, for each actor, whether it knows all of a past."""
        return np.logical_and.reduce(self.clocks[np.asarray(actors), : len(past)] >= past, axis=1)

    def synchronize(self, actors: Sequence[int] | np.ndarray) -> None:
        """Lets actors know of each other's past: a barrier among them."""
        self.acquire(actors, self.release(actors))

    def fence_proxy(self, warps: Sequence[int] | np.ndarray, space: str = "") -> None:
        """Makes what these warps wrote visible to the async proxy, in "shared" or "global" memory, or in both ("")."""
        warps = np.asarray(warps)
        if space != "global":
            self.fenced[warps] = self.clocks[warps, warps]
        if space != "shared":
            self.fenced_global = np.maximum(self.fenced_global, self.clocks[warps].max(axis=0))
        self.clocks[warps, warps] += 1

    def learn(self, warp: int, known: dict[int, np.ndarray]) -> None:
        """Tells this group of what others, by group, had released to the whole GPU when this warp acquired it.

        Args:
            warp: number of the warp that acquired.
            known: by number of a group, the clocks of its actors.
        """
        self.clocks[warp, warp] += 1  # fences before this are none behind it
        for group, clocks in known.items():
            before = self.known.get(group)
            more = clocks if before is None else joined(before, clocks)
            if before is None or not np.array_equal(more, before):
                self.known[group] = more
                self.told[group] = warp, self.clocks[warp, warp]
