"""Barriers of the threads of a block, and of a cluster.

An arrival releases the clock of the thread to the barrier (`Sanitizer.release`), and a thread that passes acquires it
(`acquire`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Blocked, Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.values import Value
from stepladder.emulator.memory.shadow import together

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group

_BARRIERS = 16  # of a block, by index


def warps_of(fiber: Fiber, mask: np.ndarray) -> np.ndarray:
    """Returns the warps of lanes, each once.

    Args:
        fiber: of the group.
        mask: bool array (T,) of the lanes.
    """
    if mask is fiber.active:
        return fiber.warps
    present = np.zeros(fiber.group.warps, bool)
    present[fiber.group.warp_of_lane[mask]] = True
    return present.nonzero()[0]


def by_value(fiber: Fiber, *numbers: Value) -> list[tuple[np.ndarray, tuple[int, ...]]]:
    """Groups the active lanes by their values.

    Args:
        fiber: the threads.
        numbers: integers, each uniform or (T,).

    Returns:
        Pairs of a mask (T,) and the values, which are the same for its lanes.
    """
    uniform_values = []
    for number in numbers:
        if isinstance(number, np.ndarray) and number.ndim:
            own = number if fiber.mask is None else number[fiber.lanes]
            if np.count_nonzero(own != own[0]):
                break
            number = own[0]
        uniform_values.append(int(number))
    else:
        return [(fiber.active, tuple(uniform_values))]
    table = np.stack([values.lanes(number, fiber.count)[fiber.lanes].astype(np.int64) for number in numbers], axis=1)
    differs = np.flatnonzero((table != table[:1]).any(axis=0))
    if differs.size == 1:  # a sort of rows takes several times as long
        _, first, inverse = np.unique(table[:, differs[0]], return_index=True, return_inverse=True)
        rows = table[first]
    else:
        rows, inverse = np.unique(table, axis=0, return_inverse=True)
    groups = []
    for number, row in enumerate(rows):
        mask = np.zeros(fiber.count, bool)
        mask[fiber.lanes[inverse.reshape(-1) == number]] = True
        groups.append((mask, tuple(int(value) for value in row)))
    return groups


def by_block(fiber: Fiber, *numbers: Value) -> list[tuple[np.ndarray, tuple[int, ...]]]:
    """Groups the active lanes by their block and their values.

    Args:
        fiber: the threads.
        numbers: integers, each uniform or (T,).

    Returns:
        Pairs of a mask (T,) and (block, number, ...).
    """
    block = 0 if fiber.group.blocks == 1 else fiber.group.block_of_lane
    return by_value(fiber, block, *numbers)


@dataclass
class Meeting:
    """A barrier that threads arrive at and wait for each other."""

    arrived: int = 0
    generation: int = 0
    clocks: np.ndarray | None = None
    clocks_of: dict[int, np.ndarray | None] = field(default_factory=dict)
    telling: list[Callable[[np.ndarray], None]] = field(default_factory=list)
    telling_of: dict[int, list[Callable[[np.ndarray], None]]] = field(default_factory=dict)
    op: object = None
    # The thread count of the first arrival, if its instruction gives one.
    stated_count: int | None = None
    # Whether this is a barrier of all threads of a block, of which those that have ended count as arrived.
    is_for_all: bool = False

    def arrive(self, count: int, expected: int, clocks: np.ndarray | None) -> int:
        """Lets threads arrive; returns the generation that they wait for.

        Args:
            count: threads that arrive.
            expected: threads of the barrier.
            clocks: what the arriving warps know, an array (actors,), or None without the sanitizer.
        """
        generation = self.generation
        self.arrived += count
        self.clocks = together(self.clocks, clocks)
        self.end(expected)
        return generation

    def end(self, expected: int) -> None:
        """Ends the phase of the barrier where all threads have arrived, so that those that wait continue.

        Args:
            expected: the number of threads.
        """
        if self.arrived and self.arrived >= expected:
            generation = self.generation
            self.clocks_of = {generation: self.clocks, generation - 1: self.clocks_of.get(generation - 1)}
            self.telling_of = {generation: self.telling, generation - 1: self.telling_of.get(generation - 1, [])}
            self.arrived, self.clocks, self.op, self.telling = 0, None, None, []
            self.generation += 1


def _meetings(group: Group) -> dict:
    return group.state.setdefault("meetings", {})


def arrive(fiber: Fiber, op: Instruction, number: Value = 0, threads: Value = None) -> None:
    """Arrives at a barrier of a block without waiting.

    Args:
        fiber: the threads that arrive.
        op: the instruction.
        number: of the barrier in its block, uniform or (T,).
        threads: that the barrier expects, uniform or (T,); None for all of the block.
    """
    for mask, (block, name, expected) in _at_barrier(fiber, op, number, threads):
        _join(fiber, op, block, mask, name, None if threads is None else expected)


def _join(
    fiber: Fiber, op: Instruction, block: int, mask: np.ndarray, name: int, threads: int | None
) -> tuple[Meeting, int, int]:
    """Lets lanes arrive at a barrier of `threads` threads (None: all of the block).

    Returns:
        The barrier, the generation that they wait for, and how many are expected.

    The hardware counts every arrival: more threads than the barrier has, or some that could have come while others
    still met there before, are counted for each other, which is a finding.
    """
    sanitizer = fiber.group.sanitizer
    meeting = _meetings(fiber.group).setdefault((block, name), Meeting())
    meeting.is_for_all = threads is None
    expected = _present(fiber.group, block) if threads is None else threads
    warps, count = warps_of(fiber, mask), int(mask.sum())
    before = meeting.clocks_of.get(meeting.generation - 1)
    if not 0 <= name < _BARRIERS:
        sanitizer.report("out-of-bounds", f"barrier {name} does not exist: a block has {_BARRIERS}", op)
    if meeting.arrived + count > expected:
        sanitizer.report(
            "order", f"{meeting.arrived + count} threads arrive at barrier {name}, which expects {expected}", op
        )
    elif meeting.arrived and threads is not None and meeting.stated_count not in (None, threads):
        sanitizer.report(
            "order",
            f"arrives at barrier {name} with a count of {threads} threads, and others arrived with "
            f"{meeting.stated_count}",
            op,
        )
    elif before is not None and not sanitizer.knows(warps, before).all():
        sanitizer.report("order", f"arrives at barrier {name} without synchronization after its previous phase", op)
    if not meeting.arrived:
        meeting.stated_count = threads
    clocks = sanitizer.release(warps)
    if threads is None:
        clocks = together(clocks, fiber.group.state.get(("ended", block)))
    return meeting, meeting.arrive(count, expected, clocks), expected


def synchronize(
    fiber: Fiber, op: Instruction, number: Value = 0, threads: Value = None, *, at_one_op: bool = False
) -> None:
    """Arrives at a block's barrier and waits for the others; with `at_one_op` all must arrive at the same op.

    Args:
        fiber: whose active lanes arrive.
        op: for findings.
        number: of the block's barrier, uniform or (T,).
        threads: of the barrier, uniform or (T,); None for all of the block that have not ended.
        at_one_op: whether an arrival at another op is a finding.

    Raises:
        Blocked: some have not arrived.
    """

    def arrivals() -> list:
        meetings = []
        for mask, (block, name, expected) in _at_barrier(fiber, op, number, threads):
            meeting = _meetings(fiber.group).setdefault((block, name), Meeting())
            if at_one_op and meeting.op is not None and meeting.op is not op:
                fiber.group.sanitizer.report(
                    "divergent-barrier",
                    f"{fiber.group.warp_name(fiber.warps[0])} arrives at this barrier while others wait at another one",
                    op,
                    meeting.op,
                )
            meeting.op = op
            _, generation, expected = _join(fiber, op, block, mask, name, None if threads is None else expected)
            meetings.append(
                (mask, meeting, generation, f"barrier {name}: {meeting.arrived} of {expected} threads are there")
            )
        return meetings

    _wait(fiber, arrivals)


def _at_barrier(fiber: Fiber, op: Instruction, number: Value, threads: Value) -> list:
    _whole_warps(fiber, op)
    if fiber.group.counters is not None:
        fiber.group.counters.barrier(fiber, op)
    return by_block(fiber, number, fiber.group.threads if threads is None else threads)


def _whole_warps(fiber: Fiber, op: Instruction) -> None:
    """A barrier counts warps: threads of one that diverged count as arrived, or are waited for forever."""
    group = fiber.group
    if fiber.mask is None:
        return
    sizes = np.bincount(group.warp_of_lane, minlength=group.warps)
    present = np.bincount(group.warp_of_lane[fiber.lanes], minlength=group.warps)
    part = (present > 0) & (present < sizes)
    if part.any():
        warp = int(part.argmax())
        group.sanitizer.report(
            "divergent-barrier",
            f"{present[warp]} of {min(group.warp, sizes[warp])} threads of {group.warp_name(warp)} arrive at it",
            op,
        )


def _wait(fiber: Fiber, arrivals: Callable[[], list]) -> None:
    """Arrives once, then waits: `arrivals` returns (mask, meeting, generation, reason) for the active lanes."""
    if fiber.pending is None:
        fiber.pending = arrivals()
    waits = [(mask & fiber.active, *others) for mask, *others in fiber.pending]
    waits = [wait for wait in waits if wait[0].any()]
    late = [wait for wait in waits if wait[1].generation <= wait[2]]
    if late:
        ready = np.zeros(fiber.count, bool)
        for mask, meeting, generation, _ in waits:
            if meeting.generation > generation:
                ready |= mask
        raise Blocked("; ".join(sorted({reason for *_, reason in late})), ready if ready.any() else None)
    fiber.pending = None
    for mask, meeting, generation, _ in waits:
        fiber.group.sanitizer.acquire(warps_of(fiber, mask), meeting.clocks_of.get(generation))
        for tell in meeting.telling_of.get(generation, ()):
            tell(warps_of(fiber, mask))


def arrive_at_cluster(
    fiber: Fiber, op: Instruction, *, releases: bool = True, telling: Sequence[Callable[[np.ndarray], None]] = ()
) -> None:
    """Arrives at the cluster's barrier.

    Args:
        fiber: whose active lanes arrive.
        op: for findings.
        releases: whether the arrival has release semantics.
        telling: called with the warps that pass, each time that some do.
    """
    group = fiber.group
    meeting = _meetings(group).setdefault("cluster", Meeting())
    meeting.telling.extend(telling)
    generation = meeting.arrive(
        len(fiber.lanes),
        group.count - int(group.finished.sum()),
        group.sanitizer.release(fiber.warps) if releases else None,
    )
    # Each thread waits for the generation that it arrived at.
    generations = group.state.setdefault("cluster generation", np.full(group.count, -1))
    generations[fiber.lanes] = generation


def leave(fiber: Fiber) -> None:
    """Ends the active threads; barriers of all threads do not wait for them afterwards.

    Args:
        fiber: the threads that end.
    """
    group = fiber.group
    group.finished[fiber.lanes] = True
    for meeting in reversed(fiber.stack):
        meeting.leave(fiber.active)
    meetings = _meetings(group)
    if "cluster" in meetings:
        meetings["cluster"].end(group.count - int(group.finished.sum()))
    for block in np.unique(group.block_of_lane[fiber.lanes]):
        clocks = group.sanitizer.release(fiber.warps[fiber.warps // group.warps_per_block == block])
        group.state["ended", block] = clocks = together(group.state.get(("ended", block)), clocks)
        for key, meeting in meetings.items():
            if key != "cluster" and key[0] == block and meeting.is_for_all:
                meeting.clocks = together(meeting.clocks, clocks)
                meeting.end(_present(group, block))


def _present(group: Group, block: int) -> int:
    """Returns how many threads of a block have not ended."""
    return group.threads - int(group.finished[group.block_of_lane == block].sum())


def wait_for_cluster(fiber: Fiber, op: Instruction) -> None:
    """Waits until all threads of the cluster have arrived at its barrier.

    Args:
        fiber: the threads that wait.
        op: the instruction.
    """
    meeting = _meetings(fiber.group).setdefault("cluster", Meeting())
    generations = fiber.group.state.get("cluster generation", np.full(fiber.count, -1))

    def arrivals() -> list:
        return [
            (mask, meeting, generation, f"the cluster's barrier: {meeting.arrived} of {fiber.count} threads are there")
            for mask, (generation,) in by_value(fiber, generations)
        ]

    _wait(fiber, arrivals)


def note_remote(fiber: Fiber, op: Instruction, block: np.ndarray, description: str) -> None:
    """Records that warps access other blocks' shared memory, so that an early end of those blocks is a finding.

    Args:
        fiber: the threads.
        op: the instruction.
        block: for each lane, the block whose memory it accesses.
        description: what they do there, for messages.
    """
    group = fiber.group
    other = fiber.lanes[block[fiber.lanes] != group.block_of_lane[fiber.lanes]]
    # Names are for a warp and a block once: this runs for each access, and hardly ever is one of them reported.
    for pair in np.unique(block[other] * group.warps + group.warp_of_lane[other]):
        of_block, warp = divmod(int(pair), group.warps)
        note_actor(group, op, of_block, warp, f"{group.warp_name(warp)} {description} of another block")


def note_actor(group: Group, op: Instruction, block: int, actor: int, description: str) -> None:
    """Records that an actor accesses a block's shared memory now, so that an early end of that block is a finding.

    Args:
        group: of blocks.
        op: the instruction.
        block: whose memory it accesses.
        actor: of the sanitizer.
        description: of the access and its warp, for messages.
    """
    if "remote" not in group.state:
        group.state["remote"] = {}
        group.at_end.append(lambda: _check_ends(group))
    group.state["remote"][op.number, block, actor] = op, group.sanitizer.clocks[actor, actor], description


def _check_ends(group: Group) -> None:
    """Reports blocks that end without being ordered after all accesses of others to their shared memory."""
    sanitizer = group.sanitizer
    for (_, block, actor), (op, time, description) in group.state["remote"].items():
        own = np.arange(block * group.warps_per_block, (block + 1) * group.warps_per_block)
        if sanitizer.clocks[own, actor].max() < time:
            sanitizer.report("order", f"{description}, which may have exited: no cluster barrier prevents that", op)
