"""nvvm: shuffles and elections of threads, and ids of threads, blocks and clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value, lanes, wrap
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.dialects.nvvm_votes import meet
from stepladder.emulator.memory.sanitizer import WARP
from stepladder.mlir.printed import constant_range, keyword

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group

# A clock advances by a part of what it shows each time that it is read, so that a wait for any time ends soon.
_TICKS, _MOST_TICKS = 8, 1 << 28


@executes("nvvm.shfl.sync")
def shfl_sync(fiber: Fiber, op: Instruction, members: Value, value: Value, offset: Value, limits: Value) -> Value:
    """The value of another thread of the warp; with whether there is one, where that is asked for.

    That of a thread that is not a member is not specified: it has all bits set.
    Source: PTX ISA, shfl.sync.
    """
    thread = fiber.group.thread_of_lane % WARP
    members_met = meet(fiber, op, members)
    offset, segment = offset & 31, (limits >> 8) & 31
    first = thread & segment
    last = first | (limits & 31 & ~segment)
    mode = keyword(op.attributes["kind"])
    other = {
        "bfly": thread ^ offset,
        "up": thread - offset,
        "down": thread + offset,
        "idx": first | (offset & ~segment),
    }[mode]
    valid = other >= last if mode == "up" else other <= last
    source_thread = np.where(valid, other, thread)
    source = np.arange(fiber.count) - thread + source_thread
    result = lanes(value, fiber.count)[np.clip(source, 0, fiber.count - 1)]
    absent = fiber.active & (np.asarray(members_met) >> source_thread & 1 == 0)
    if absent.any():
        result = result.copy()
        result.view(np.uint8).reshape(fiber.count, -1)[absent] = 0xFF
    return Struct((result, valid)) if "return_value_and_is_valid" in op.attributes else result


@executes("nvvm.elect.sync")
def elect_sync(fiber: Fiber, op: Instruction, *mask: Value) -> Value:
    """Whether the thread is the first one of those of its warp that are asked."""
    return leaders(fiber, op, *mask) == fiber.group.thread_of_lane % WARP


def leaders(fiber: Fiber, op: Instruction, members: Value = -1) -> np.ndarray:
    """Returns, for each lane, the index in the warp of the first of the threads that it meets; -1 where there is none.

    Args:
        fiber: the threads.
        op: the instruction.
        members: as `nvvm_votes.meet` takes them.
    """
    members_met = np.zeros(fiber.count, np.int64)
    members_met[fiber.lanes] = meet(fiber, op, members)[fiber.lanes]
    return np.frexp((members_met & -members_met).astype(np.float64))[1] - 1


def _axis_of(numbers: Callable[[Group], Sequence[Value]]) -> dict[str, Callable[[Group], Value]]:
    return {axis: lambda group, number=number: numbers(group)[number] for number, axis in enumerate("xyz")}


def _in_cluster(group: Group) -> tuple:
    return tuple(number % size for number, size in zip(group.block_id, group.cluster_dims))


def time_of(group: Group) -> int:
    """Returns what a clock shows, which is later each time: there is no time, and programs wait for it to pass.

    Args:
        group: of the thread that reads it.
    """
    machine = group.machine
    machine.ticks += min(1 + machine.ticks // _TICKS, _MOST_TICKS)
    return machine.steps + machine.ticks


def _lane_mask(group: Group, name: str) -> np.ndarray:
    """Returns for each thread the bits of the threads of its warp that are before it, after it, or itself."""
    own = np.int64(1) << (group.thread_of_lane % WARP)
    masks = {"eq": own, "lt": own - 1, "le": 2 * own - 1, "ge": (1 << WARP) - own, "gt": (1 << WARP) - 2 * own}
    return masks[name].astype(np.uint32).view(np.int32)


SPECIAL = {
    "laneid": lambda group: group.thread_of_lane % WARP,
    "warpid": lambda group: group.thread_of_lane // WARP,
    "warpsize": lambda group: WARP,
    "nwarpid": lambda group: group.warps_per_block,
    "nsmid": lambda group: 1,
    "smid": lambda group: 0,
    "gridid": lambda group: 0,
    "clock": lambda group: wrap(time_of(group), 32),
    "clock64": lambda group: time_of(group),
    "globaltimer": lambda group: time_of(group),
    "globaltimer.lo": lambda group: wrap(time_of(group), 32),
    "total.smem.size": lambda group: group.shared.size,
    **{f"lanemask.{name}": lambda group, name=name: _lane_mask(group, name) for name in ("eq", "le", "lt", "ge", "gt")},
    "cluster.ctarank": lambda group: group.block_of_lane,
    "cluster.nctarank": lambda group: group.blocks,
    **{
        f"{name}.{axis}": get
        for name, numbers in {
            "tid": lambda group: group.thread_id,
            "ntid": lambda group: group.block_dims,
            "ctaid": lambda group: group.block_id,
            "nctaid": lambda group: group.grid_dims,
            "cluster.ctaid": _in_cluster,
            "cluster.nctaid": lambda group: group.cluster_dims,
            "nclusterid": lambda group: tuple(size // of for size, of in zip(group.grid_dims, group.cluster_dims)),
            "clusterid": lambda group: tuple(
                int(first) // size for first, size in zip(group.block_ids[0], group.cluster_dims)
            ),
        }.items()
        for axis, get in _axis_of(numbers).items()
    },
}


def _special_register(fiber: Fiber, op: Instruction) -> Value:
    """The value of a special register."""
    value = SPECIAL[op.name.removeprefix("nvvm.read.ptx.sreg.")](fiber.group)
    if "range" in op.attributes:
        _check_range(fiber, op, value)
    return value.astype(op.result_types[0].dtype) if isinstance(value, np.ndarray) else value


def _check_range(fiber: Fiber, op: Instruction, value: Value) -> None:
    """Reports a special register whose value is outside of the op's `range` attribute."""
    if "range" not in op.cache:
        op.cache["range"] = constant_range(op.attributes["range"])
    low, high = op.cache["range"]
    smallest, largest = (
        (int(value.min()), int(value.max())) if isinstance(value, np.ndarray) else (int(value), int(value))
    )
    if smallest < low or largest >= high:
        fiber.group.sanitizer.report(
            "out-of-bounds",
            f"its value, {smallest} to {largest}, is outside of the stated range, {low} to {high - 1}",
            op,
        )


executes(*(f"nvvm.read.ptx.sreg.{name}" for name in SPECIAL))(_special_register)
