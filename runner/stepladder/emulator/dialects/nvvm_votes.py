"""nvvm: votes, matches and reductions of a warp."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Blocked, Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value, lanes
from stepladder.emulator.dialects.gpu_reduce import ballots, over_groups
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.hardware.reductions import combined
from stepladder.emulator.memory.sanitizer import WARP
from stepladder.mlir.printed import keyword

_WAITED = "threads that have let members of their warps go first"
_REDUX = ("add", "and", "or", "xor", "max", "min", "umax", "umin", "fmax", "fmin")


def meet(fiber: Fiber, op: Instruction, members: Value) -> np.ndarray:
    """Lets the members of a warp wait for each other at an op.

    Threads that execute it without being members, and members that do not execute it and have not ended, are findings.

    Args:
        fiber: the threads.
        op: the instruction.
        members: a mask of 32 bits, one for each thread of the warp; uniform or (T,).

    Returns:
        For each lane the bits of the threads that it meets: members that execute the op with the same mask. Parts of a
        warp may each have a mask of their own. int64 array (T,).
    """
    group = fiber.group
    mask = lanes(np.asarray(members), fiber.count).astype(np.int64) & 0xFFFFFFFF
    own = group.thread_of_lane % WARP
    left_out = (mask[fiber.lanes] >> own[fiber.lanes] & 1) == 0
    if left_out.any():
        lane = fiber.lanes[left_out.argmax()]
        group.sanitizer.report(
            "divergent-barrier", f"{group.thread_name(int(lane))} executes it, and is not in its member mask", op
        )
    active_bits = ballots(fiber, np.ones(fiber.count, bool))
    present = np.where(group.about_to_end(), 0, 1 << own)
    exist = np.bincount(group.warp_of_lane, present, group.warps).astype(np.int64)[group.warp_of_lane]
    missing = mask[fiber.lanes] & exist[fiber.lanes] & ~active_bits[fiber.lanes]
    reported = group.state.setdefault(_WAITED, set())
    key = op.number, fiber.active.tobytes()
    if missing.any() and key not in reported:
        reported.add(key)
        raise Blocked("members of its warp have not arrived")  # they may be about to end
    reported.discard(key)
    group.sanitizer.converge(fiber.warps)
    if missing.any():
        lane = fiber.lanes[(missing != 0).argmax()]
        group.sanitizer.report(
            "divergent-barrier",
            f"{group.thread_name(int(lane))} waits for threads of its member mask that do not execute it",
            op,
        )
    own_masks = mask[fiber.lanes]
    if (own_masks == own_masks[0]).all():
        return active_bits & mask
    result = np.zeros(fiber.count, np.int64)
    for part in np.unique(own_masks):
        result = np.where(mask == part, ballots(fiber, mask == part) & mask, result)
    return result


def meetings_of(fiber: Fiber, members_met: np.ndarray) -> np.ndarray:
    """Returns an id for each lane, the same for lanes that meet: int64 array (T,).

    Args:
        fiber: the threads.
        members_met: as `meet` returns it.
    """
    return fiber.group.warp_of_lane * (np.int64(1) << WARP) + members_met


@executes("nvvm.vote.ballot.sync", "nvvm.vote.sync")
def vote(fiber: Fiber, op: Instruction, members: Value, predicate: Value) -> Value:
    """The bits of the threads for which a predicate holds, or whether it holds for all, for any, or is the same."""
    members_met = meet(fiber, op, members)
    kind = keyword(op.attributes.get("kind", "ballot"))
    bits = ballots(fiber, lanes(np.asarray(predicate, bool), fiber.count)) & members_met
    if kind == "ballot":
        return bits.astype(np.int32)
    return {"any": bits != 0, "all": bits == members_met, "uni": (bits == 0) | (bits == members_met)}[kind]


@executes("nvvm.match.sync")
def match(fiber: Fiber, op: Instruction, members: Value, value: Value) -> Value:
    """The bits of the threads that have the same value; of all threads, and whether it is the same for all."""
    members_met = meet(fiber, op, members)
    group = fiber.group
    own = lanes(np.asarray(value), fiber.count)
    bits = np.zeros(fiber.count, np.int64)
    for warp in fiber.warps:
        mine = fiber.lanes[group.warp_of_lane[fiber.lanes] == warp]
        is_same = own[mine][:, None] == own[mine][None, :]
        bits[mine] = (is_same.astype(np.int64) << (group.thread_of_lane[mine] % WARP)[None, :]).sum(axis=1)
    bits &= members_met
    if keyword(op.attributes["kind"]) == "any":
        return bits.astype(np.int32)
    is_same_for_all = bits == members_met
    return Struct((np.where(is_same_for_all, members_met, 0).astype(np.int32), is_same_for_all))


@executes("nvvm.redux.sync")
def redux(fiber: Fiber, op: Instruction, value: Value, members: Value) -> Value:
    """A reduction over the threads of a warp."""
    members_met = meet(fiber, op, members)
    kind = keyword(op.attributes["kind"])
    if kind not in _REDUX or op.attributes.get("nan") or op.attributes.get("abs"):
        raise Unsupported(op, f"of {kind} with these flags: expected one of {', '.join(_REDUX)}, without nan and abs")
    element = op.result_types[0]
    return over_groups(
        fiber, op, value, meetings_of(fiber, members_met), lambda left, right: combined(kind, element, left, right)
    )


@executes("nvvm.activemask")
def activemask(fiber: Fiber, op: Instruction) -> Value:
    """The bits of the active threads of the warp."""
    return ballots(fiber, np.ones(fiber.count, bool)).astype(np.int32)
