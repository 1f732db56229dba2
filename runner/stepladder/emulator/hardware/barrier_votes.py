"""Barriers of a block that combine a predicate of its threads."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware import synchronization


def vote(fiber: Fiber, op: Instruction, combine: str, given: Value, *barrier_numbers: Value) -> np.ndarray:
    """Lets threads meet at a barrier, and returns what they vote, for each lane.

    Args:
        fiber: the threads.
        op: for findings.
        combine: `popc` for the number of threads whose predicate holds, `and`, or `or`.
        given: the predicates.
        barrier_numbers: of the barrier, and the threads that meet where those are not all of the block.
    """
    group = fiber.group
    key = "barrier", int(fiber.first(barrier_numbers[0]))
    held = group.state.setdefault((key, "predicates"), np.zeros(group.count, np.int64))
    if fiber.pending is None:
        own = values.lanes(np.asarray(given, bool), fiber.count)
        held[fiber.lanes] = own[fiber.lanes] + 2 * (1 + group.state.get((key, "turns"), 0))
    synchronization.synchronize(fiber, op, *barrier_numbers)
    turn = int(held[fiber.lanes[0]]) // 2
    group.state[key, "turns"] = max(turn, group.state.get((key, "turns"), 0))
    found = np.zeros(fiber.count, np.int32 if combine == "popc" else bool)
    for block in np.unique(group.block_of_lane[fiber.lanes]):
        here = (group.block_of_lane == block) & (held // 2 == turn)
        bits = held[here] % 2
        found[group.block_of_lane == block] = {"popc": bits.sum(), "and": bits.all(), "or": bits.any()}[combine]
    return found
