"""gpu: reductions over the threads of a block or of a warp, votes, rotations and broadcasts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.elements import plain
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware import synchronization
from stepladder.emulator.hardware.reductions import combined
from stepladder.mlir.printed import keyword


def _kind(op: Instruction) -> str:
    return keyword(op.attributes["op"])


def _pairwise(fiber: Fiber, op: Instruction) -> Callable:
    """Returns what combines two values, by the op's kind or its region."""
    if op.attributes.get("op") is not None:
        kind, element = _kind(op), op.result_types[0].element
        return lambda left, right: combined(kind, element, left, right)
    body = op.regions[0]
    return lambda left, right: fiber.evaluate(body, [plain(np.asarray(left)), plain(np.asarray(right))])[0]


def _folded(function: Callable, rows: np.ndarray) -> np.ndarray:
    """Returns values (n, ...) combined to one, by halves as the lowering's shuffles do."""
    remaining = list(rows)
    while len(remaining) > 1:
        half = (len(remaining) + 1) // 2
        remaining = [function(left, right) for left, right in zip(remaining, remaining[half:])] + remaining[
            len(remaining) - half : half
        ]
    return remaining[0]


def over_groups(fiber: Fiber, op: Instruction, value: Value, group_of: np.ndarray, function: Callable) -> np.ndarray:
    """Returns, for each lane, the reduction over the active lanes of the same group.

    Args:
        fiber: the threads.
        op: the instruction.
        value: uniform, or with leading lanes.
        group_of: the group of each lane: int array (T,).
        function: that combines two values.

    Returns:
        Array with leading lanes; lanes that are not active hold zeros.
    """
    rank = op.result_types[0].rank
    array = values.lanes(np.asarray(value), fiber.count, rank)
    result = np.zeros(array.shape, op.result_types[0].element.dtype)
    for number in np.unique(group_of[fiber.lanes]):
        mine = fiber.lanes[group_of[fiber.lanes] == number]
        result[mine] = _folded(function, array[mine])
    return result


@executes("gpu.all_reduce")
def all_reduce(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A reduction over all threads of a block, with the effect of two barriers."""
    group = fiber.group
    # Threads may execute it again, in a loop, before all have taken the previous result.
    times = group.state.setdefault(("all_reduce", op.number), np.zeros(group.count, np.int64))
    states = group.state.setdefault(("all_reduced", op.number), {})
    if fiber.pending is None:
        times[fiber.lanes] += 1
        state = states.setdefault(int(times[fiber.lanes[0]]), {})
        state["value"] = _contributed(fiber, op, state.get("value"), value)
    synchronization.synchronize(fiber, op, at_one_op=True)
    key = int(times[fiber.lanes[0]])
    state = states[key]
    if "result" not in state:
        present = np.flatnonzero(~group.finished)
        array, function = state["value"], _pairwise(fiber, op)
        result = np.zeros(array.shape, op.result_types[0].element.dtype)
        for block in range(group.blocks):
            mine = present[group.block_of_lane[present] == block]
            if len(mine):
                result[mine] = _folded(function, array[mine])
        state["result"], state["left"] = result, len(present)
    state["left"] -= len(fiber.lanes)
    if state["left"] <= 0:
        del states[key]
    return state["result"]


def _contributed(fiber: Fiber, op: Instruction, before: np.ndarray | None, value: Value) -> np.ndarray:
    rank = op.operand_types[0].rank
    array = values.lanes(np.asarray(value, op.operand_types[0].element.dtype), fiber.count, rank)
    if before is None:
        return np.array(array)
    before[fiber.lanes] = array[fiber.lanes]
    return before


def _clusters(fiber: Fiber, op: Instruction) -> np.ndarray:
    """Returns for each lane the number of the threads that it reduces with: of its warp, or of a cluster of it."""
    group = fiber.group
    thread = group.thread_of_lane % group.warp
    size = op.attributes.get("cluster_size") or group.warp
    stride = op.attributes.get("cluster_stride") or 1
    cluster = thread // (size * stride) * stride + thread % stride
    return group.warp_of_lane * group.warp + cluster


@executes("gpu.subgroup_reduce")
def subgroup_reduce(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A reduction over the threads of a warp, or over each cluster of threads in it."""
    fiber.group.sanitizer.converge(fiber.warps)
    return over_groups(fiber, op, value, _clusters(fiber, op), _pairwise(fiber, op))


@executes("gpu.subgroup_broadcast")
def subgroup_broadcast(fiber: Fiber, op: Instruction, value: Value, *lane: Value) -> Value:
    """The value of one thread of the warp: the first active one, or that of an index."""
    group = fiber.group
    group.sanitizer.converge(fiber.warps)
    rank = op.operand_types[0].rank
    if values.is_uniform(value, rank):
        return value
    if lane:
        first = group.warp_of_lane * 0 + np.arange(fiber.count) - group.thread_of_lane % group.warp
        source = first + values.lanes(np.asarray(lane[0]), fiber.count)
    else:
        source_of_warp = np.zeros(group.warps, np.int64)
        sources = fiber.representatives().lanes
        source_of_warp[group.warp_of_lane[sources]] = sources
        source = source_of_warp[group.warp_of_lane]
    return value[np.clip(source, 0, fiber.count - 1)]


@executes("gpu.rotate")
def rotate(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The value of the thread an offset further on among neighbours of a width, and whether it is there."""
    fiber.group.sanitizer.converge(fiber.warps)
    offset, width = int(op.attributes["offset"]), int(op.attributes["width"])
    thread = fiber.group.thread_of_lane % fiber.group.warp
    source = np.arange(fiber.count) - thread + thread // width * width + (thread + offset) % width
    valid = np.ones(fiber.count, bool)
    if values.is_uniform(value, op.operand_types[0].rank):
        return value, valid
    return value[np.clip(source, 0, fiber.count - 1)], valid


@executes("gpu.ballot")
def ballot(fiber: Fiber, op: Instruction, predicate: Value) -> Value:
    """The bits of the active threads of the warp for which a predicate holds."""
    fiber.group.sanitizer.converge(fiber.warps)
    bits = values.lanes(np.asarray(predicate, bool), fiber.count)
    return ballots(fiber, bits).astype(op.result_types[0].dtype)


def ballots(fiber: Fiber, bits: np.ndarray) -> np.ndarray:
    """Returns, for each lane, the ballot of its warp as an integer: int64 array (T,).

    Args:
        fiber: the threads; bits of lanes that are not active are 0.
        bits: bool array (T,).
    """
    group = fiber.group
    own = np.zeros(fiber.count, np.int64)
    own[fiber.lanes] = bits[fiber.lanes].astype(np.int64) << (group.thread_of_lane[fiber.lanes] % group.warp)
    return np.bincount(group.warp_of_lane, own, group.warps).astype(np.int64)[group.warp_of_lane]
