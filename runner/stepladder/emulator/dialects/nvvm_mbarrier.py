"""nvvm: mbarriers: transaction counts, arrivals that drop the thread, and waits that may fail."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value, lanes
from stepladder.emulator.dialects import nvgpu
from stepladder.emulator.hardware import asynchronous, mbarriers, synchronization
from stepladder.emulator.memory import order
from stepladder.mlir.printed import keyword


@executes("nvvm.mbarrier.expect_tx")
def expect_tx(fiber: Fiber, op: Instruction, address: Value, count: Value, *predicate: Value) -> None:
    """Announces bytes, without arriving."""
    active = nvgpu.where(fiber, predicate)
    if active is not None:
        mbarriers.arrive_at(active, op, address, expected=count, arrivals=0)


@executes("nvvm.mbarrier.complete_tx")
def complete_tx(fiber: Fiber, op: Instruction, address: Value, count: Value) -> None:
    """Completes bytes of the transaction count."""
    for mask, (block, place, number) in synchronization.by_block(fiber, address, count):
        barrier = mbarriers.find_mbarrier(fiber, op, block, place, synchronization.warps_of(fiber, mask))
        if barrier is not None:
            clocks = fiber.group.sanitizer.release(synchronization.warps_of(fiber, mask))
            barrier.update(came=number * int(mask.sum()), clocks=clocks)


@executes("nvvm.mbarrier.inval", "nvvm.mbarrier.inval.shared")
def inval(fiber: Fiber, op: Instruction, address: Value) -> None:
    """Invalidates an mbarrier: its bytes are plain memory again."""
    mbarriers.invalidate(fiber, op, address)


@executes("nvvm.mbarrier.arrive.nocomplete", "nvvm.mbarrier.arrive.nocomplete.shared")
def arrive_nocomplete(fiber: Fiber, op: Instruction, address: Value, count: Value) -> Value:
    """Arrives `count` times, where the phase does not end by that."""
    token = nvgpu.phases(fiber, op, address)
    mbarriers.arrive_at(fiber, op, address, arrivals=count)
    return token if op.results else None


@executes("nvvm.mbarrier.arrive_drop", "nvvm.mbarrier.arrive_drop.nocomplete")
def arrive_drop(fiber: Fiber, op: Instruction, address: Value, *count: Value) -> Value:
    """Arrives, and lowers the number of arrivals that later phases wait for."""
    token = nvgpu.phases(fiber, op, address)
    arrivals = count[0] if count else 1
    mbarriers.arrive_at(fiber, op, address, arrivals=arrivals, releases=not op.attributes.get("relaxed"), drops=True)
    return token if op.results else None


@executes("nvvm.mbarrier.try_wait")
def try_wait(fiber: Fiber, op: Instruction, address: Value, state: Value, *ticks: Value) -> Value:
    """Whether the phase of a token or a parity has ended. The op waits for that: IR repeats the test."""
    phase = lanes(np.asarray(state), fiber.count).astype(np.int64) % 2
    mbarriers.wait_at(fiber, op, address, phase, acquires=not op.attributes.get("relaxed"))
    return True


@executes("nvvm.cp.async.mbarrier.arrive", "nvvm.cp.async.mbarrier.arrive.shared")
def cp_async_arrive(fiber: Fiber, op: Instruction, address: Value) -> None:
    """Lets the copies of each thread arrive at an mbarrier when they have landed: here at once."""
    asynchronous.wait_for_copies(fiber, None)
    # Without `noinc` the arrival is one more than the mbarrier was initialized for.
    if op.attributes.get("noinc"):
        mbarriers.arrive_at(fiber, op, address)


@executes(
    "nvvm.nanosleep",
    "nvvm.pmevent",
    "nvvm.breakpoint",
    "nvvm.fence.sync_restrict",
    "nvvm.fence.proxy.sync_restrict",
    "nvvm.fence.proxy.release",
    "nvvm.cp.async.bulk.prefetch",
    "nvvm.cp.async.bulk.tensor.prefetch",
)
def nothing(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: there are no caches, and tensor maps do not change."""


@executes("nvvm.memory.barrier", "nvvm.fence.sc.cluster")
def memory_barrier(fiber: Fiber, op: Instruction) -> None:
    """Orders the accesses of a thread before the fence and after it, for threads of a scope."""
    order.fence(fiber, keyword(op.attributes["scope"]) if "scope" in op.attributes else "cluster")


@executes("nvvm.movmatrix")
def movmatrix(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The 8 x 8 matrix of 16 bits that the threads of a warp hold, transposed."""
    threads = nvgpu.warps_of(fiber, op)
    words = lanes(np.asarray(value, np.int32), fiber.count)[threads]
    rows = np.ascontiguousarray(words).view(np.int16).reshape(len(threads), 8, 8).swapaxes(1, 2)
    result = np.zeros(fiber.count, np.int32)
    result[threads] = np.ascontiguousarray(rows).reshape(len(threads), -1).view(np.int32)
    return result
