"""Mbarriers: barriers with phases, which count arrivals and transaction bytes.

An arrival releases the clock of the thread to the mbarrier (`Sanitizer.release`), and a completed wait acquires it
(`acquire`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Blocked, Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware import synchronization
from stepladder.emulator.hardware.synchronization import by_block, by_value, warps_of
from stepladder.emulator.memory import lone_arrivals
from stepladder.emulator.memory.shadow import together
from stepladder.emulator.memory.touches import Granules, Touch

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group


BYTES = 8  # of an mbarrier
_MAX = 2**20 - 1  # arrivals, and expected bytes. Source: PTX ISA, "Contents of the mbarrier object".


@dataclass
class MBarrier:
    """An mbarrier: a phase ends when `count` have arrived, and the bytes that were announced.

    Attributes:
        phase: number of phases that have ended.
        pending: arrivals that are missing; `transaction`: bytes that are.
        initialized_at: the clock of the warp that initialized it: other warps must be ordered after that before they
            use it.
        last_uses: when each warp used it last: the warp that invalidates it must be ordered after that.
        op: that initialized it.
        informed_warps: the warps that are ordered after the initialization, and after nothing else before it.
        made_by: the warps that initialized it.
        is_fenced: whether they made the initialization visible to TMA, which completes on it.
        agent: the actor that copies which complete on it are, for the sanitizer.
        copies: what completes on it and has not yet: each a function that makes it do so.
    """

    count: int
    pending: int
    made_by: np.ndarray
    transaction: int = 0
    phase: int = 0
    clocks: np.ndarray | None = None
    clocks_before: np.ndarray | None = None
    initialized_at: np.ndarray | None = None
    last_uses: np.ndarray | None = None
    op: Instruction | None = None
    informed_warps: set[int] = field(default_factory=set)
    is_fenced: bool = False
    agent: int = 0
    copies: list[Callable[[], None]] = field(default_factory=list)

    def tell(self, warps: np.ndarray) -> None:
        """Records that warps know of the initialization.

        Args:
            warps: their indices.
        """
        self.informed_warps.update(int(warp) for warp in warps)

    def update(self, *, arrivals: int = 0, expected: int = 0, came: int = 0, clocks: np.ndarray | None = None) -> None:
        """Counts arrivals, bytes announced and bytes that came, and ends the phase where none is missing.

        Args:
            arrivals: threads that arrive, or copies that count as one.
            expected: bytes that are announced.
            came: bytes that copies have brought.
            clocks: what the arriving warps know, an array (actors,), or None without the sanitizer.
        """
        self.transaction += expected - came
        self.pending -= arrivals
        self.clocks = together(self.clocks, clocks)
        if self.pending == 0 and self.transaction == 0:
            self.phase += 1
            self.pending = self.count
            self.clocks_before, self.clocks = self.clocks, self.clocks


def mbarriers(group: Group) -> dict[tuple[int, int], MBarrier]:
    """Returns a group's mbarriers by block and address.

    Args:
        group: of blocks; the table is created at the first use.
    """
    return group.state.setdefault("mbarriers", {})


def find_mbarrier(
    fiber: Fiber, op: Instruction, block: int, address: int, warps: Sequence[int] | np.ndarray
) -> MBarrier | None:
    """Returns an mbarrier that some warps use; None where none is initialized.

    That, and one that is used unordered, is a finding.

    Args:
        fiber: of the group that has the mbarrier.
        op: for the finding.
        block: number of the block in its cluster.
        address: byte in the block's shared memory.
        warps: indices of the warps that use it.
    """
    sanitizer = fiber.group.sanitizer
    barrier = mbarriers(fiber.group).get((block, address))
    if barrier is None:
        sanitizer.report(
            "uninitialized",
            f"no mbarrier has been initialized at byte {address:#x} of shared memory of block {block}",
            op,
        )
    elif barrier.initialized_at is not None:
        knows = sanitizer.knows(warps, barrier.initialized_at)
        if not knows.all() and not (knows | np.isin(warps, list(barrier.informed_warps))).all():
            sanitizer.report(
                "race",
                f"uses the mbarrier at byte {address:#x} of shared memory without synchronization after its "
                "initialization",
                op,
                barrier.op,
            )
        if barrier.last_uses is not None:
            barrier.last_uses[warps] = sanitizer.clocks[warps, warps]
    return barrier


def initialize(fiber: Fiber, op: Instruction, address: Value, count: Value) -> None:
    """Initializes mbarriers, at one address (uniform or (T,)) in each lane's block.

    Args:
        fiber: whose active lanes each initialize one.
        op: for findings.
        address: byte in the lane's block's shared memory, uniform or (T,).
        count: arrivals that end a phase, uniform or (T,).
    """
    group = fiber.group
    if not mbarriers(group):
        group.on_deadlock.append(lambda: _explain(group))
    sanitizer = group.sanitizer
    for mask, (block, place, arrivals) in by_block(fiber, address, count):
        warps = warps_of(fiber, mask)
        barrier = MBarrier(arrivals, arrivals, warps, op=op)
        if sanitizer.enabled:
            _check_initialization(fiber, op, mask, block, place, arrivals)
            touch = _bytes_of(group, int(warps[0]), block, place)
            if touch is not None:
                sanitizer.begin_mbarrier(op, touch)
            barrier.agent = sanitizer.agent()
            barrier.last_uses = np.zeros(group.warps, np.int32)
            barrier.last_uses[warps] = sanitizer.clocks[warps, warps]
            barrier.initialized_at = sanitizer.release(warps)
        mbarriers(group)[block, place] = barrier


def _bytes_of(group: Group, warp: int, block: int, place: int) -> Touch | None:
    """Returns a warp's Touch of the bytes of an mbarrier; None where these are not in shared memory."""
    window = group.shared
    if not 0 <= place <= window.size - BYTES:
        return None
    granule = group.sanitizer.granule_of(window)
    return Touch.once(window, warp, _granules(block * window.size + place, granule), granule)


@functools.lru_cache(maxsize=256)
def _granules(place: int, granule: int) -> Granules:
    """Returns the granules of the mbarrier at a byte of the shared memory of a cluster."""
    return Granules(np.arange(place // granule, (place + BYTES - 1) // granule + 1))


def _check_initialization(
    fiber: Fiber, op: Instruction, mask: np.ndarray, block: int, place: int, arrivals: int
) -> None:
    """Reports an initialization by several threads, of a wrong number of arrivals, or of what is an mbarrier."""
    group = fiber.group
    all_mbarriers = mbarriers(group)
    name = f"the mbarrier at byte {place:#x} of shared memory"
    if not 0 < arrivals <= _MAX:
        group.sanitizer.report("mbarrier", f"{name} is initialized for {arrivals} arrivals: expected 1 to {_MAX}", op)
    if mask.sum() > 1:
        group.sanitizer.report(
            "mbarrier", f"{int(mask.sum())} threads initialize {name} at once: only one thread may", op
        )
    # Mbarriers are aligned: another one can only be at the same address.
    if (block, place) in all_mbarriers:
        group.sanitizer.report(
            "mbarrier",
            f"initializes {name} again, without an mbarrier.inval",
            op,
            all_mbarriers[block, place].op,
        )


def invalidate(fiber: Fiber, op: Instruction, address: Value) -> None:
    """Ends what mbarriers are: their bytes are plain memory again, with nothing in them.

    Args:
        fiber: whose active lanes each invalidate one.
        op: for findings.
        address: byte in the lane's block's shared memory, uniform or (T,).
    """
    group = fiber.group
    sanitizer = group.sanitizer
    for mask, (block, place) in by_block(fiber, address):
        warps = warps_of(fiber, mask)
        barrier = find_mbarrier(fiber, op, block, place, warps)
        if barrier is None:
            continue
        name = f"the mbarrier at byte {place:#x} of shared memory"
        if barrier.copies:
            sanitizer.report("mbarrier", f"invalidates {name} while copies that complete on it are in flight", op)
        if barrier.last_uses is not None:
            late = barrier.last_uses > sanitizer.clocks[warps[0], : group.warps]
            late[warps[0]] = False
            if late.any():
                user = group.warp_name(int(late.argmax()))
                sanitizer.report(
                    "race",
                    f"invalidates {name}, which {user} used, without synchronization between them",
                    op,
                    barrier.op,
                )
            touch = _bytes_of(group, int(warps[0]), block, place)
            if touch is not None:
                sanitizer.end_mbarrier(op, touch)
        del mbarriers(group)[block, place]


def fence_initialization(fiber: Fiber) -> None:
    """Makes the mbarriers that the active warps have initialized visible to TMA.

    Args:
        fiber: the threads that execute the fence.
    """
    warps = set(fiber.warps.tolist())
    for barrier in mbarriers(fiber.group).values():
        if not barrier.is_fenced and warps.issuperset(barrier.made_by.tolist()):
            barrier.is_fenced = True


def arrive_at_cluster(fiber: Fiber, op: Instruction, *, releases: bool = True) -> None:
    """Arrives at the cluster's barrier.

    A relaxed arrival after a fence of initialized mbarriers orders their initialization, and nothing else.

    Args:
        fiber: the threads that arrive.
        op: the instruction.
        releases: whether the arrival has release semantics.
    """
    local_mbarriers = mbarriers(fiber.group).values() if not releases else ()
    telling = [
        barrier.tell for barrier in local_mbarriers if barrier.is_fenced and np.isin(barrier.made_by, fiber.warps).all()
    ]
    synchronization.arrive_at_cluster(fiber, op, releases=releases, telling=telling)


def _explain(group: Group) -> None:
    """Reports mbarriers that expect another byte count than that of the copies."""
    for (block, place), barrier in mbarriers(group).items():
        if barrier.pending == 0 and barrier.transaction:
            op = group.state.get(("expects", block, place)) or barrier.op
            text = (
                f"expects {barrier.transaction} bytes that no copy completes (expect_tx is too large)"
                if barrier.transaction > 0
                else f"expects {-barrier.transaction} bytes less than the copies completed (expect_tx is too small)"
            )
            group.sanitizer.report("transaction-bytes", f"the mbarrier at byte {place:#x} of shared memory {text}", op)


def arrive_at(
    fiber: Fiber,
    op: Instruction,
    address: Value,
    *,
    expected: Value = 0,
    arrivals: Value = 1,
    block: Value = None,
    releases: bool = True,
    drops: bool = False,
) -> None:
    """Arrives, for each active thread, at the mbarrier at its address, after an expect_tx of bytes.

    Args:
        fiber: the threads.
        op: the instruction.
        address: of the mbarrier, uniform or (T,).
        expected: bytes of the expect_tx, uniform or (T,).
        arrivals: of each thread, uniform or (T,).
        block: of the cluster, where the mbarrier is another block's; uniform or (T,).
        releases: whether the arrival has release semantics.
        drops: whether later phases wait for fewer arrivals, by `arrivals`.
    """
    group = fiber.group
    numbers = address, expected, arrivals
    groups = by_block(fiber, *numbers) if block is None else by_value(fiber, block, *numbers)
    for mask, (owner, place, byte_count, times) in groups:
        barrier = find_mbarrier(fiber, op, owner, place, warps_of(fiber, mask))
        if barrier is None:
            continue
        count = int(mask.sum())
        if drops:
            barrier.count -= times * count
        if byte_count:
            group.state["expects", owner, place] = op
            if byte_count > _MAX or barrier.transaction + byte_count * count > _MAX:
                bytes_ = barrier.transaction + byte_count * count
                group.sanitizer.report(
                    "transaction-bytes",
                    f"expect_tx of {bytes_} bytes: the transaction count of an mbarrier is {_MAX} at most",
                    op,
                )
        clocks = lone_arrivals.release(fiber, mask, warps_of(fiber, mask)) if releases else None
        if times * count > barrier.pending:
            group.sanitizer.report(
                "order",
                f"{times * count} arrivals at the mbarrier at byte {place:#x} of shared memory, whose current phase "
                f"has {barrier.pending} pending",
                op,
            )
        for _ in range(count):
            barrier.update(arrivals=times, expected=byte_count, clocks=clocks)


def wait_at(fiber: Fiber, op: Instruction, address: Value, parity: Value, *, acquires: bool = True) -> None:
    """Waits until the mbarrier's phase with this parity has ended, as `mbarrier.try_wait.parity` does in a loop.

    Args:
        fiber: whose active lanes each wait.
        op: for findings.
        address: byte in the lane's block's shared memory, uniform or (T,).
        parity: 0 or 1, uniform or (T,).
        acquires: whether the wait has acquire semantics.

    Raises:
        Blocked: the phase of a lane has not ended.
    """
    group = fiber.group
    ready = np.zeros(fiber.count, bool)
    reasons, ended_barriers = set(), []
    for mask, (block, place, phase) in by_block(fiber, address, parity):
        barrier = find_mbarrier(fiber, op, block, place, warps_of(fiber, mask))
        if barrier is None:
            ready |= mask
            continue
        # Copies arrive as late as possible: here, at the wait for them.
        while barrier.copies and barrier.phase % 2 == phase:
            barrier.copies.pop(0)()
        if barrier.phase % 2 != phase:
            ready |= mask
            ended_barriers.append((mask, barrier))
        else:
            reasons.add(
                f"phase {barrier.phase} of the mbarrier at byte {place:#x}, which misses {barrier.pending} "
                f"arrivals and {barrier.transaction} bytes"
            )
    if not ready[fiber.lanes].all():
        raise Blocked("; ".join(sorted(reasons)), ready if ready.any() else None)
    for mask, barrier in ended_barriers if acquires else ():
        group.sanitizer.acquire(warps_of(fiber, mask), barrier.clocks_before)


def ended_at(fiber: Fiber, op: Instruction, address: Value, parity: Value, *, acquires: bool = True) -> np.ndarray:
    """Returns whether the phase with a parity has ended already, without waiting for copies in flight.

    Args:
        fiber: the threads that test it.
        op: the instruction.
        address: of the mbarrier, uniform or (T,).
        parity: of the phase, uniform or (T,).
        acquires: whether the test has acquire semantics where the phase has ended.

    Returns:
        bool array (T,).
    """
    has_ended = np.zeros(fiber.count, bool)
    for mask, (block, place, phase) in by_block(fiber, address, parity):
        barrier = find_mbarrier(fiber, op, block, place, warps_of(fiber, mask))
        if barrier is None or barrier.phase % 2 != phase:
            has_ended |= mask
            if barrier is not None and acquires:
                fiber.group.sanitizer.acquire(warps_of(fiber, mask), barrier.clocks_before)
    return has_ended
