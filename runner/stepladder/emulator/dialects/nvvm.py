"""nvvm: barriers, fences, groups of asynchronous operations, wgmma, and inline PTX."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value, lanes
from stepladder.emulator.dialects import nvgpu, nvgpu_tma
from stepladder.emulator.dialects.nvvm_votes import meet
from stepladder.emulator.hardware import (
    asynchronous,
    barrier_votes,
    bulk_stores,
    dependent_launch,
    mbarriers,
    registers,
    synchronization,
    tma,
)
from stepladder.emulator.memory import alignment, memory, pointers
from stepladder.emulator.memory.memory import RANK_SHIFT
from stepladder.mlir.printed import keyword

_MBARRIER_BYTES = 8
_CLUSTER = 7  # address space of shared memory of the cluster
# Memory that a fence of the async proxy is for, by the last word of its kind.
_ASYNC_PROXIES = {"async": "", "shared": "shared", "global": "global"}
_BYTE = Scalar("i8", np.dtype(np.int8), 8)


# Barriers and fences.


@executes("nvvm.barrier")
def barrier(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """A named barrier of threads of the block."""
    number, threads = nvgpu.segments(op, operands) if "operandSegmentSizes" in op.attributes else ((), ())
    synchronization.synchronize(fiber, op, number[0] if number else 0, threads[0] if threads else None)


@executes("nvvm.barrier.reduction")
def barrier_reduction(fiber: Fiber, op: Instruction, predicate: Value) -> Value:
    """The barrier of the block, which combines a predicate of its threads."""
    combine = keyword(op.attributes["reductionOp"])
    return barrier_votes.vote(fiber, op, combine, np.asarray(predicate) != 0, 0).astype(np.int32)


@executes("nvvm.barrier.arrive")
def barrier_arrive(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Arrives at a barrier, and continues."""
    number, threads = operands if len(operands) == 2 else (0, operands[0])
    synchronization.arrive(fiber, op, number, threads)


@executes("nvvm.cluster.arrive", "nvvm.cluster.arrive.relaxed")
def cluster_arrive(fiber: Fiber, op: Instruction) -> None:
    """Arrives at the cluster's barrier."""
    mbarriers.arrive_at_cluster(fiber, op, releases=not op.name.endswith("relaxed"))


@executes("nvvm.cluster.wait")
def cluster_wait(fiber: Fiber, op: Instruction) -> None:
    """Waits for the cluster."""
    synchronization.wait_for_cluster(fiber, op)


@executes("nvvm.bar.warp.sync")
def warp_sync(fiber: Fiber, op: Instruction, mask: Value) -> None:
    """Lets the threads of a warp wait for each other: they run in step, so that only what they touch is in order."""
    meet(fiber, op, mask)
    fiber.group.sanitizer.meet(fiber.warps)


@executes("nvvm.fence.proxy")
def fence_proxy(fiber: Fiber, op: Instruction) -> None:
    """Makes what threads wrote visible to the async proxy."""
    kind = keyword(op.attributes["kind"])
    if kind in _ASYNC_PROXIES:
        fence_async(fiber, op, _ASYNC_PROXIES[kind])


@executes("nvvm.fence.mbarrier.init")
def fence_mbarrier_init(fiber: Fiber, op: Instruction) -> None:
    """Makes initialized mbarriers visible to the async proxy."""
    mbarriers.fence_initialization(fiber)


@executes("nvvm.prefetch")
def nothing(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: there are no caches."""


@executes("nvvm.griddepcontrol")
def griddepcontrol(fiber: Fiber, op: Instruction) -> None:
    """Makes what the previous launch has done visible to threads that wait for it; launches run one after the other."""
    dependent_launch.control(fiber, op)


@executes("nvvm.setmaxregister")
def setmaxregister(fiber: Fiber, op: Instruction) -> None:
    """Sets the registers of a warpgroup's threads: an increase blocks until enough registers are released."""
    registers.change(fiber, op, op.attributes["regCount"], grows=keyword(op.attributes["action"]) == "increase")


# Groups of what runs on its own.


@executes("nvvm.cp.async.shared.global")
def cp_async_shared_global(fiber: Fiber, op: Instruction, target: Value, source: Value, *size: Value) -> None:
    """Starts a copy of bytes from global to shared memory; bytes beyond `size` are zeros."""
    count = op.attributes["size"]
    if size and (lanes(size[0], fiber.count)[fiber.lanes] > count).any():
        fiber.group.sanitizer.report("out-of-bounds", f"its source size exceeds the {count} bytes that it copies", op)
    valid = np.broadcast_to(
        np.arange(count) < (lanes(size[0], fiber.count)[:, None] if size else count), (fiber.count, count)
    )
    for part, array, start in pointers.parts(fiber, op, source):
        accesses = []
        for allocation, first, active in ((array, start, valid), (fiber.group.shared, target, None)):
            view, places = pointers.elements(allocation, lanes(first, fiber.count), _BYTE, np.arange(count), 1)
            accesses.append(memory.locate(part, op, view, [places], (count,), active))
            alignment.check_access(part, op, accesses[-1], count)
        if fiber.group.counters is not None:
            for access, kind in zip(accesses, ("load", "store")):
                fiber.group.counters.access(part, op, access, kind)
        asynchronous.copy(part, op, *accesses)


@executes("nvvm.cp.async.commit.group")
def cp_async_commit_group(fiber: Fiber, op: Instruction) -> None:
    """Makes a group of copies."""
    asynchronous.commit_copies(fiber)


@executes("nvvm.cp.async.wait.group")
def cp_async_wait_group(fiber: Fiber, op: Instruction) -> None:
    """Waits for all groups of copies but the latest."""
    asynchronous.wait_for_copies(fiber, op.attributes["n"])


@executes("nvvm.cp.async.wait.all")
def cp_async_wait_all(fiber: Fiber, op: Instruction) -> None:
    """Waits for all copies."""
    asynchronous.wait_for_copies(fiber, None)


@executes("nvvm.cp.async.bulk.commit.group")
def cp_async_bulk_commit_group(fiber: Fiber, op: Instruction) -> None:
    """Makes a group of stores by TMA."""
    bulk_stores.commit(fiber)


@executes("nvvm.cp.async.bulk.wait_group")
def cp_async_bulk_wait_group(fiber: Fiber, op: Instruction) -> None:
    """Waits for all groups of stores by TMA but the latest: until they have read their source, or are done."""
    bulk_stores.wait(fiber, op.attributes["group"], read="read" in op.attributes)


# mbarriers and TMA.


@executes("nvvm.mbarrier.init", "nvvm.mbarrier.init.shared")
def mbarrier_init(fiber: Fiber, op: Instruction, address: Value, count: Value, *predicate: Value) -> None:
    """Initializes an mbarrier that `count` arrive at."""
    fiber = nvgpu.where(fiber, predicate)
    if fiber is not None:
        pointers.check_alignment(fiber, op, address, _MBARRIER_BYTES)
        _check_in_shared(fiber, op, address)
        mbarriers.initialize(fiber, op, address, count)


def _check_in_shared(fiber: Fiber, op: Instruction, address: Value) -> None:
    """Reports an mbarrier that is outside of shared memory."""
    size = fiber.group.shared.size
    own = lanes(address, fiber.count)[fiber.lanes]
    wrong = (own < 0) | (own + _MBARRIER_BYTES > size)
    if wrong.any():
        fiber.group.sanitizer.report(
            "out-of-bounds",
            f"its mbarrier at byte {int(own[wrong][0]):#x} of shared memory is beyond the {size} bytes of a block",
            op,
        )


@executes("nvvm.mbarrier.arrive", "nvvm.mbarrier.arrive.shared")
def mbarrier_arrive(fiber: Fiber, op: Instruction, address: Value, *count: Value) -> Value:
    """Arrives, `count` times where the op has one; the token is the phase.

    A pointer to shared memory of the cluster may be of another block, whose mbarrier gives no token.
    """
    if op.operand_types[0].text == f"!llvm.ptr<{_CLUSTER}>":
        arrive_in_cluster(fiber, op, address, count[0] if count else 1, releases=_releases(op))
        return np.zeros(fiber.count, np.int64) if op.results else None
    token = nvgpu.phases(fiber, op, address)
    mbarriers.arrive_at(fiber, op, address, arrivals=count[0] if count else 1, releases=_releases(op))
    return token if op.results else None


def _releases(op: Instruction) -> bool:
    """Whether an arrival has release semantics."""
    return not op.attributes.get("relaxed")


@executes("nvvm.mbarrier.arrive.expect_tx", "nvvm.mbarrier.arrive.expect_tx.shared")
def mbarrier_arrive_expect_tx(fiber: Fiber, op: Instruction, address: Value, count: Value, *predicate: Value) -> Value:
    """Arrives, and announces bytes."""
    token = nvgpu.phases(fiber, op, address) if op.results else None
    active = nvgpu.where(fiber, predicate)
    if active is not None:
        mbarriers.arrive_at(active, op, address, expected=count, releases=_releases(op))
    return token


@executes("nvvm.mbarrier.test.wait", "nvvm.mbarrier.test.wait.shared")
def mbarrier_test_wait(fiber: Fiber, op: Instruction, address: Value, token: Value) -> Value:
    """Whether the phase of a token has ended. The op waits for that: IR repeats the test until it succeeds."""
    mbarriers.wait_at(fiber, op, address, lanes(token, fiber.count) % 2, acquires=not op.attributes.get("relaxed"))
    return True


@executes("nvvm.mbarrier.try_wait.parity", "nvvm.mbarrier.try_wait.parity.shared")
def mbarrier_try_wait_parity(fiber: Fiber, op: Instruction, address: Value, parity: Value, ticks: Value) -> None:
    """Waits for the end of the phase with a parity."""
    mbarriers.wait_at(fiber, op, address, parity)


@executes("nvvm.cp.async.bulk.tensor.shared.cluster.global")
def tensor_load(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Lets each thread begin to load a box to its block, or to the blocks of a mask."""
    (address,), (descriptor,), coordinates, (barrier,), offsets, multicast, _, predicate = nvgpu.segments(op, operands)
    _only_tiles(op, offsets)
    nvgpu_tma.load_boxes(fiber, op, _descriptor(op, descriptor), coordinates, address, barrier, multicast, predicate)


@executes("nvvm.cp.async.bulk.tensor.global.shared.cta")
def tensor_store(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Lets each thread begin to store a box."""
    (descriptor,), (address,), coordinates, _, predicate = nvgpu.segments(op, operands)
    _only_tiles(op, ())
    nvgpu_tma.store_boxes(fiber, op, _descriptor(op, descriptor), coordinates, address, predicate)


def _only_tiles(op: Instruction, offsets: Sequence[Value]) -> None:
    if offsets or keyword(op.attributes["mode"]) != "tile":
        raise Unsupported(op, f"of {op.attributes['mode']}")


def _descriptor(op: Instruction, value: Value) -> tma.Descriptor:
    if not isinstance(value, tma.Descriptor):
        raise Unsupported(op, "of a descriptor that no nvgpu.tma.create.descriptor has made")
    return value


# Products.


# Matrices of a warp.


# Communication between threads, and conversions.


# PTX in text.


@executes("nvvm.mapa")
def map_address(fiber: Fiber, op: Instruction, address: Value, rank: Value) -> Value:
    """The address of another block's shared memory: 0 above represents the thread's own block."""
    return address % (1 << RANK_SHIFT) + ((rank + 1) << RANK_SHIFT)


def arrive_in_cluster(
    fiber: Fiber, op: Instruction, address: Value, arrivals: Value = 1, *, releases: bool = True
) -> None:
    """Arrives at an mbarrier of any block of the cluster.

    Args:
        fiber: the threads.
        op: the instruction.
        address: that may name a block of the cluster, uniform or (T,).
        arrivals: of each thread, uniform or (T,).
        releases: whether the arrival has release semantics.
    """
    block = (address >> RANK_SHIFT) - 1
    block = np.where(block < 0, fiber.group.block_of_lane, block)
    if fiber.group.sanitizer.enabled:
        synchronization.note_remote(fiber, op, block, "arrives at an mbarrier")
    mbarriers.arrive_at(fiber, op, address % (1 << RANK_SHIFT), arrivals=arrivals, block=block, releases=releases)


def fence_async(fiber: Fiber, op: Instruction, space: str = "") -> None:
    """Makes what threads wrote visible to the async proxy.

    Args:
        fiber: the threads.
        op: the instruction.
        space: "shared" or "global" memory, or "" for both.
    """
    fiber.group.sanitizer.fence_proxy(fiber.warps, space)
    if space != "global":
        mbarriers.fence_initialization(fiber)
