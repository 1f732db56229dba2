"""Vector clocks: the order between the threads of a group of blocks.

A clock has one entry for each warp and each agent that copies on its own (TMA that completes an mbarrier). The threads
of a warp count as one, because they execute in step in programs for matrix units. `clocks[w, x]` is the time of x up to
which barriers, mbarriers, releases and waits have ordered x before w: an access of x at time t is in w's past if
`clocks[w, x] >= t`.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stepladder.emulator.memory.shadow import SharedShadow, joined, together

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group

_AGENTS = 16  # capacity of clocks grows by so many
_LEARNED = 16  # lessons of a warp, before those that all warps know become one
_END = np.iinfo(np.int32).max  # of time
_FENCES = 16  # the latest of a warp that are kept


class Clocks:
    """Vector clocks of one group of blocks: for each warp and agent, which events of the others are ordered before it.

    Attributes:
        group: the blocks that the warps belong to.
        actors: number of warps and agents; `clocks` may have a larger capacity.
        clocks: int array (actors, actors).
        fences: when each warp made its writes to shared memory visible to the async proxy, the latest first: int array
            (actors, _FENCES), 0 where there is none.
        met_at: for each actor, its time when it last learned of others: what the threads of a warp have done since then
            is in no order among them.
        fenced_past: for each warp, what it knew at its latest such fence: int array (actors, actors); a product of
            warpgroups has here what all of its warps knew.
        converged_at: for each actor, its time when the threads of that warp last came together: what they have done
            since then, one of them alone does not release (`lone_arrivals`).
        touched_at: for each actor, its time when a thread of that warp last accessed shared memory by itself.
        lone: by warp and lane, the actor whose time in a clock is that up to which the lane alone is known.
        fenced_global: when each warp last made writes to global memory visible to the async proxy; that is for what
            the warp knows of others' writes too.
        lessons: by another group and by warp, the events of its actors that this warp has acquired.
        last_synchronized: by group, the warp that was last synchronized with it, and when.
        launch_before: the actor that the launch before is, which may not have ended; None where it has.
        triggers_late: whether the kernel states that it lets the next launch begin only after its own wait.
    """

    group: Group

    def __init__(self) -> None:
        self.actors = 0
        self.clocks = np.zeros((0, 0), np.int32)
        self.fences = np.zeros((0, _FENCES), np.int32)
        self.fenced_past = np.zeros((0, 0), np.int32)
        self.converged_at = np.zeros(0, np.int32)
        self.touched_at = np.zeros(0, np.int32)
        self.lone: dict[tuple[int, int], int] = {}
        self.met_at = np.zeros(0, np.int32)
        self.fenced_global = np.zeros(0, np.int32)
        self.lessons: dict[int, dict[int, _Lessons]] = {}
        self.last_synchronized: dict[int, tuple[int, int]] = {}
        self.launch_before: int | None = None
        self.triggers_late = False

    def attach(self, group: Group) -> None:
        """Attaches a group of blocks, with a clock for each of its warps.

        Args:
            group: of blocks.
        """
        self.group = group
        self.actors = group.warps
        self._grow(group.warps + _AGENTS)
        self.clocks[np.arange(group.warps), np.arange(group.warps)] = 1

    def _grow(self, room: int) -> None:
        old = len(self.clocks)
        for name in ("clocks", "fenced_past"):
            square = np.zeros((room, room), np.int32)
            square[:old, :old] = getattr(self, name)
            setattr(self, name, square)
        for name in ("fences", "fenced_global", "met_at", "converged_at", "touched_at"):
            times = getattr(self, name)
            longer = np.zeros((room, *times.shape[1:]), np.int32)
            longer[:old] = times
            setattr(self, name, longer)
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

    def begin_before_launch(self, triggers_late: bool) -> None:
        """Begins before the previous launch has ended: only `wait_for_launch` orders its accesses.

        Args:
            triggers_late: whether the kernel states that it lets the next launch begin only after its own wait.
        """
        self.launch_before = self.agent()
        self.triggers_late = triggers_late

    def wait_for_launch(self, warps: Sequence[int] | np.ndarray) -> None:
        """Orders the previous launch before what these warps do from now on.

        Args:
            warps: indices of warps.
        """
        if self.launch_before is not None:
            self.acquire(warps, self.clocks[self.launch_before].copy())

    def release(self, actors: Sequence[int] | np.ndarray) -> np.ndarray:
        """Returns the merged clocks of these actors, and advances them: later accesses are not included.

        Args:
            actors: indices of warps or agents.

        Returns:
            A clock: int array (actors,).
        """
        if len(actors) == 1:
            actor = actors[0]
            released = self.clocks[actor].copy()
            self.clocks[actor, actor] += 1
            return released
        actors = np.asarray(actors)
        merged = self.clocks[actors].max(axis=0)
        self.clocks[actors, actors] += 1
        return merged

    def meet(self, warps: Sequence[int] | np.ndarray) -> None:
        """Orders the accesses of the threads of each warp before and after a synchronization of the warp.

        Args:
            warps: indices of the warps.
        """
        self.converge(warps)
        self.met_at[warps] = self.clocks[warps, warps]

    def converge(self, warps: Sequence[int] | np.ndarray) -> None:
        """Orders each thread of a warp after what the others did before.

        Args:
            warps: indices of the warps.
        """
        warps = np.asarray(warps)
        self.clocks[warps, warps] += 1
        self.converged_at[warps] = self.clocks[warps, warps]

    def acquire(self, actors: Sequence[int] | np.ndarray, clocks: np.ndarray | None) -> None:
        """Merges a past that `release` returned into the clocks of actors.

        Args:
            actors: their indices.
            clocks: int array (actors,), or None for no past.
        """
        if clocks is None:
            return
        size = len(clocks)
        if len(actors) == 1:
            actor = actors[0]
            time = self.clocks[actor, actor]
            known = self.clocks[actor, :size]
            np.maximum(known, clocks, out=known)
            self.clocks[actor, actor] = time
            self.met_at[actor] = time
            self.converged_at[actor] = max(self.converged_at[actor], clocks[min(actor, size - 1)] + 1)
            return
        actors = np.asarray(actors)
        own = self.clocks[actors, actors]
        self.clocks[actors, :size] = np.maximum(self.clocks[actors, :size], clocks)
        self.clocks[actors, actors] = own
        self.met_at[actors] = own
        # All threads of a warp acquire what any of them has released.
        self.converged_at[actors] = np.maximum(self.converged_at[actors], clocks[np.minimum(actors, size - 1)] + 1)

    def knows(self, actors: Sequence[int] | np.ndarray, past: np.ndarray) -> np.ndarray:
        """Returns, for each actor, whether it knows all of a past.

        Args:
            actors: indices of warps or agents.
            past: a clock, int array (actors,).

        Returns:
            bool array, one element for each of `actors`.
        """
        if len(actors) == 1:
            return np.array([not np.count_nonzero(self.clocks[actors[0], : len(past)] < past)])
        return np.logical_and.reduce(self.clocks[np.asarray(actors), : len(past)] >= past, axis=1)

    def synchronize(self, actors: Sequence[int] | np.ndarray) -> None:
        """Orders the past of each actor before what the others do next, as a barrier among them does.

        Args:
            actors: indices of warps or agents.
        """
        self.acquire(actors, self.release(actors))

    def fence_proxy(self, warps: Sequence[int] | np.ndarray, space: str = "") -> None:
        """Makes what these warps wrote visible to the async proxy.

        Args:
            warps: indices of warps.
            space: "shared" or "global" memory, or "" for both.
        """
        warps = np.asarray(warps)
        if space != "global":
            self.fences[warps, 1:] = self.fences[warps, :-1]
            self.fences[warps, 0] = self.clocks[warps, warps]
            self.fenced_past[warps] = self.clocks[warps]
        if space != "shared":
            self.fenced_global = np.maximum(self.fenced_global, self.clocks[warps].max(axis=0))
        self.clocks[warps, warps] += 1

    def read_behind_fences(self, agent: int, warps: np.ndarray) -> None:
        """Lets an operation of several warps see what each of them knew at its own latest fence for the async proxy.

        Args:
            agent: that reads for the operation.
            warps: that begin it together.
        """
        self.fenced_past[agent] = self.fenced_past[warps].min(axis=0)

    def fenced_for(self, actor: int) -> np.ndarray:
        """Returns the time up to which the writes of each actor are visible to what one does through the async proxy.

        That is the latest fence of the writer that is ordered before, or what a product's own warps knew at theirs.

        Args:
            actor: that reads through the async proxy.

        Returns:
            int array (actors,), 0 for actors without such a fence.
        """
        own_clocks = self.clocks[actor].copy()
        if actor < self.group.warps:
            own_clocks[actor] = _END
        fences = self.fences
        latest = np.where(fences <= own_clocks[:, None], fences, 0).max(axis=1)
        # Of a warp with more fences than are kept, the one that the actor knows may be lost.
        latest = np.where(fences[:, -1] > own_clocks, own_clocks, latest)
        return latest if actor < self.group.warps else np.maximum(latest, self.fenced_past[actor])

    def learn(self, warp: int, clocks_by_group: dict[int, np.ndarray]) -> None:
        """Tells a warp what others, by group, had released to the whole GPU when it acquired that.

        Other warps of the block know it once they have met this one, at a barrier for example.

        Args:
            warp: number of the warp that acquired.
            clocks_by_group: by index of a group, the clocks of its actors.
        """
        self.clocks[warp, warp] += 1  # fences before this are none after it
        time = int(self.clocks[warp, warp])
        self.group.machine.blocks_meet = True
        for group, clocks in clocks_by_group.items():
            lessons_by_warp = self.lessons.setdefault(group, {})
            all_clocks = functools.reduce(together, [lessons.clocks[-1] for lessons in lessons_by_warp.values()], None)
            if all_clocks is None or not np.array_equal(joined(all_clocks, clocks), all_clocks):
                self.last_synchronized[group] = warp, time
            before = self._known_by(group, warp)
            more = clocks if before is None else joined(before, clocks)
            if before is None or not np.array_equal(more, before):
                lessons = lessons_by_warp.setdefault(warp, _Lessons(warp, [], []))
                lessons.times.append(time)
                lessons.clocks.append(more)
                if len(lessons.times) > _LEARNED:
                    doubles = max(0, int(lessons.known(self.clocks, np.arange(self.group.warps)).min()) - 1)
                    del lessons.times[:doubles], lessons.clocks[:doubles]

    def _known_by(self, group: int, warp: int) -> np.ndarray | None:
        lesson_counts = [
            (lessons, lessons.known_to(self.clocks, warp)) for lessons in self.lessons.get(group, {}).values()
        ]
        return functools.reduce(
            together, [lessons.clocks[count - 1] for lessons, count in lesson_counts if count], None
        )

    def known_by(self, warp: int) -> dict[int, np.ndarray]:
        """Returns the clocks of other groups' actors that a warp knows, by the index of the group.

        Args:
            warp: its index.
        """
        clocks_by_group = {group: self._known_by(group, warp) for group in self.lessons}
        return {group: clocks for group, clocks in clocks_by_group.items() if clocks is not None}

    def known_of(self, group: int, actors: np.ndarray, readers: np.ndarray | int) -> np.ndarray:
        """Returns the times up to which readers know the actors of another group.

        Args:
            group: number of the other group.
            actors: of that, an int array (pairs,).
            readers: actors of this group, an int array (pairs,), or the one of all pairs.
        """
        known_times = np.zeros(actors.shape, np.int32)
        for lessons in self.lessons.get(group, {}).values():
            counts = np.broadcast_to(lessons.known(self.clocks, readers), actors.shape)
            for count in np.unique(counts[counts > 0]):
                clocks = lessons.clocks[count - 1]
                size = len(clocks)
                times = np.where(actors < size, clocks[np.minimum(actors, size - 1)], 0)
                known_times = np.where(counts == count, np.maximum(known_times, times), known_times)
        return known_times


class _Lessons(NamedTuple):
    """Events of another group that a warp has acquired, with the times: warps ordered after it since have acquired them
    too.

    Attributes:
        warp: its index.
        times: of the warp, ascending.
        clocks: of the other group's actors at these times; each has all that those before it have.
    """

    warp: int
    times: list[int]
    clocks: list[np.ndarray]

    def known_to(self, clocks: np.ndarray, actor: int) -> int:
        """Returns how many of them an actor with these clocks knows."""
        return len(self.times) if actor == self.warp else bisect.bisect_right(self.times, clocks[actor, self.warp])

    def known(self, clocks: np.ndarray, actors: np.ndarray | int) -> np.ndarray:
        """Returns how many of them each of several actors with these clocks knows, as `known_to`."""
        lesson_counts = np.searchsorted(self.times, clocks[actors, self.warp], side="right")
        return np.where(np.asarray(actors) == self.warp, len(self.times), lesson_counts)
