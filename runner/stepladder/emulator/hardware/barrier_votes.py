"""Barriers of a block that combine a predicate of its threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware import synchronization

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group


def vote(fiber: Fiber, op: Instruction, combine: str, predicate: Value, *barrier_numbers: Value) -> np.ndarray:
    """Lets threads meet at a barrier, and returns what they vote, for each lane.

    Args:
        fiber: the threads.
        op: for findings.
        combine: `popc` for the number of threads whose predicate holds, `and`, or `or`.
        predicate: the predicates.
        barrier_numbers: of the barrier, and the threads that meet where those are not all of the block.
    """
    group = fiber.group
    own = values.lanes(np.asarray(predicate, bool), fiber.count)
    numbers = values.lanes(np.asarray(barrier_numbers[0]), fiber.count)
    # Warps that execute in step may meet at several barriers.
    meetings = [
        (int(number), fiber.lanes[numbers[fiber.lanes] == number]) for number in np.unique(numbers[fiber.lanes])
    ]
    for number, lanes in meetings:
        votes, turns = _of_barrier(group, number)
        if fiber.pending is None:
            votes[lanes] = own[lanes] + 2 * (1 + turns[0])
    synchronization.synchronize(fiber, op, *barrier_numbers)
    results = np.zeros(fiber.count, np.int32 if combine == "popc" else bool)
    for number, lanes in meetings:
        votes, turns = _of_barrier(group, number)
        turn = int(votes[lanes[0]]) // 2
        turns[0] = max(turn, turns[0])
        for block in np.unique(group.block_of_lane[lanes]):
            bits = votes[(group.block_of_lane == block) & (votes // 2 == turn)] % 2
            outcome = {"popc": bits.sum(), "and": bits.all(), "or": bits.any()}[combine]
            results[lanes[group.block_of_lane[lanes] == block]] = outcome
    return results


def _of_barrier(group: Group, number: int) -> tuple[np.ndarray, list[int]]:
    """Returns the votes at a barrier, each with its turn, and how many turns there were, in a list of one."""
    return group.state.setdefault(("barrier", number, "votes"), (np.zeros(group.count, np.int64), [0]))
