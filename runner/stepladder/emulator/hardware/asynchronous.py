"""Asynchronous operations: copies by `cp.async`, products by wgmma.

Each kind is committed in groups, and a wait states how many of the latest groups may be pending. An operation takes
effect at the wait for its group and not before, so that IR without the wait reads old data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware.fragments import WARPGROUP
from stepladder.emulator.hardware.warps import narrowed
from stepladder.emulator.memory import memory
from stepladder.emulator.memory.memory import Access, Allocation
from stepladder.emulator.memory.touches import Granules, Touch

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group

_UNCOMMITTED = -1


def bytes_touched(group: Group, space: Allocation, actor: int, starts: np.ndarray, size: int) -> Touch | None:
    """Returns the Touch of one actor and the bytes of an allocation; None without the sanitizer.

    Args:
        group: with the sanitizer.
        space: the allocation.
        actor: of the sanitizer.
        starts: int array of bytes from the allocation's first, of pieces that do not overlap.
        size: bytes of each piece.
    """
    if not group.sanitizer.enabled or not starts.size:
        return None
    granule = group.sanitizer.granule_of(space)
    return Touch.once(space, int(actor), granules_of(starts, size, granule), granule)


def granules_of(starts: np.ndarray, size: int, granule: int) -> Granules:
    """Returns the granules of pieces of memory that do not overlap.

    Args:
        starts: int array of the bytes where the pieces begin.
        size: bytes of a piece.
        granule: bytes of a granule.
    """
    first = starts.reshape(-1, 1) // granule
    places = first + np.arange(size // granule) if size >= granule else np.unique(first)
    return Granules(places.reshape(-1))


def agent_for(group: Group, warps: Sequence[int] | np.ndarray) -> int:
    """Returns a new actor of the sanitizer that is ordered after what all of these warps are; 0 without the sanitizer.

    Args:
        group: of the warps.
        warps: their indices.
    """
    sanitizer = group.sanitizer
    if not sanitizer.enabled:
        return 0
    agent = sanitizer.agent()
    tell_common(group, agent, warps)
    return agent


def tell_common(group: Group, agent: int, warps: Sequence[int] | np.ndarray) -> None:
    """Adds to an agent's clock what each of these warps knows: the minimum of their clocks.

    Args:
        group: of the warps.
        agent: the actor.
        warps: their indices.
    """
    sanitizer = group.sanitizer
    if sanitizer.enabled:
        sanitizer.acquire([agent], sanitizer.clocks[np.asarray(warps)].min(axis=0))


# cp.async.


class _Copy:
    """A `cp.async` of some threads: `source` and `target` have a row for each of its `lanes`."""

    def __init__(self, fiber: Fiber, op: Instruction, source: Access, target: Access) -> None:
        self.op = op
        self.source, self.target = source, target
        self.row = np.full(fiber.count, -1)
        self.row[fiber.lanes] = np.arange(len(fiber.lanes))
        self.number = np.full(fiber.count, _UNCOMMITTED)
        self.pending = fiber.active.copy()

    @property
    def has_data(self) -> bool:
        """Whether it copies more than zeros: loops that load ahead end with copies of no elements."""
        return self.source.valid is None or bool(self.source.valid[self.row[self.pending]].any())

    def land(self, fiber: Fiber, mask: np.ndarray) -> None:
        """Lets the data of these lanes arrive."""
        rows = self.row[mask]
        source, target = (
            Access(
                access.memory,
                access.element,
                access.positions[rows],
                None if access.valid is None else access.valid[rows],
                True,
            )
            for access in (self.source, self.target)
        )
        memory.scatter(target, memory.gather(source))
        sanitizer = fiber.group.sanitizer
        touch = sanitizer.touch(narrowed(fiber, mask), target)
        if touch is not None:
            sanitizer.end_write(self.op, touch, proxy=False)
        self.pending &= ~mask
        if not self.pending.any():
            fiber.group.ends(self)


class _Copies:
    """The `cp.async` copies of a group of blocks, by thread."""

    def __init__(self, group: Group) -> None:
        self.waiting: list[_Copy] = []
        self.committed = np.zeros(group.count, np.int64)
        group.at_end.append(
            lambda: _report_unwaited(
                group,
                [pending_copy.op for pending_copy in self.waiting if pending_copy.has_data],
                "copies to shared memory, and no thread waits for its group",
            )
        )


def _report_unwaited(group: Group, ops: Sequence, text: str) -> None:
    for op in ops:
        group.sanitizer.report("unwaited", text, op)


def kept_by(group: Group, kind: str, make: Callable) -> Value:
    """Returns what a group of blocks keeps of a kind, made when it is first asked for.

    Args:
        group: of blocks.
        kind: such as "cp.async".
        make: makes it for the group.
    """
    if kind not in group.state:
        group.state[kind] = make(group)
    return group.state[kind]


def copy(fiber: Fiber, op: Instruction, source: Access, target: Access) -> None:
    """Lets each active thread begin a copy of its row of `source` to its row of `target`.

    Both have a dimension of lanes; elements of `source` that are not valid become zero.

    Args:
        fiber: the threads.
        op: the copy, for findings.
        source: of global memory, (L, elements) for the L active lanes.
        target: of shared memory, of the same shape.
    """
    group = fiber.group
    group.sanitizer.read(fiber, op, source)
    touch = group.sanitizer.touch(fiber, target)
    if touch is not None:
        group.sanitizer.begin_write(op, touch)
    pending_copy = _Copy(fiber, op, source, target)
    kept_by(group, "cp.async", _Copies).waiting.append(pending_copy)
    group.begins("cp.async", op, pending_copy, f"{len(fiber.lanes)} threads")


def commit_copies(fiber: Fiber) -> None:
    """Makes a group of what each active thread has copied since its last one.

    Args:
        fiber: the threads.
    """
    copies = kept_by(fiber.group, "cp.async", _Copies)
    active = fiber.active
    for pending_copy in copies.waiting:
        mine = active & pending_copy.pending & (pending_copy.number == _UNCOMMITTED)
        pending_copy.number[mine] = copies.committed[mine]
    copies.committed[fiber.lanes] += 1


def wait_for_copies(fiber: Fiber, latest: int | None) -> None:
    """Waits until all but the latest groups of copies of each active thread have arrived.

    Args:
        fiber: the threads that wait.
        latest: groups that may be in flight; None waits for all copies, committed or not.
    """
    copies = kept_by(fiber.group, "cp.async", _Copies)
    active = fiber.active
    for pending_copy in copies.waiting:
        mine = active & pending_copy.pending
        if latest is not None:
            mine &= (pending_copy.number != _UNCOMMITTED) & (pending_copy.number < copies.committed - latest)
        if mine.any():
            pending_copy.land(fiber, mine)
    copies.waiting = [pending_copy for pending_copy in copies.waiting if pending_copy.pending.any()]


# Products of warpgroups.


class Product:
    """A wgmma: what it reads in flight, and whether it is done."""

    __slots__ = ("is_done", "lanes", "op", "touches")

    def __init__(self, op: Instruction, lanes: slice, touches: Sequence[Touch]) -> None:
        self.op = op
        self.lanes = lanes
        self.touches = touches
        self.is_done = False


class Warpgroup:
    """The products of a warpgroup: those not committed, and groups, the oldest first.

    Attributes:
        lanes: a slice of its threads.
        block: that it belongs to.
        agent: the actor that its products are.
        is_fenced: whether its registers were fenced for wgmma since its last commit.
        unfenced: slots of registers with A that were written since the last fence (`register_operands`).
    """

    def __init__(self, group: Group, number: int) -> None:
        self.group = group
        self.lanes = slice(number * WARPGROUP, (number + 1) * WARPGROUP)
        self.block = int(group.block_of_lane[self.lanes.start])
        self.warps = np.unique(group.warp_of_lane[self.lanes])
        self.agent = agent_for(group, self.warps)
        self.open: list[Product] = []
        self.groups: list[list[Product]] = []
        self.is_fenced = False
        self.unfenced: frozenset[int] = frozenset()

    def products(self) -> list[Product]:
        """Returns the products in flight, the oldest first."""
        return [product for products in (*self.groups, self.open) for product in products]

    def begin(self, op: Instruction, touches: Sequence[Touch | None]) -> Product:
        """Returns a product that has begun, whose reads are by `agent`.

        Args:
            op: the product.
            touches: what it reads; None without the sanitizer.
        """
        tell_common(self.group, self.agent, self.warps)
        self.group.sanitizer.read_behind_fences(self.agent, self.warps)
        touches = [touch for touch in touches if touch is not None]
        for touch in touches:
            self.group.sanitizer.begin_read(op, touch)
        self.open.append(Product(op, self.lanes, touches))
        self.group.begins("wgmma", op, self.open[-1], f"threads from {self.lanes.start}")
        return self.open[-1]

    def commit(self) -> None:
        """Makes a group of the products since the last one."""
        self.groups.append(self.open)
        self.open = []
        self.is_fenced = False

    def wait(self, latest: int) -> None:
        """Waits until all but the latest groups are done.

        Args:
            latest: groups that may be in flight.
        """
        sanitizer = self.group.sanitizer
        complete_groups = self.groups[: max(0, len(self.groups) - latest)]
        self.groups = self.groups[len(complete_groups) :]
        for product in (product for products in complete_groups for product in products):
            product.is_done = True
            self.group.ends(product)
            for touch in product.touches:
                sanitizer.end_read(product.op, touch)
        if complete_groups:
            sanitizer.acquire(self.warps, sanitizer.release([self.agent]))


class _Warpgroups:
    """The warpgroups of a group of blocks that multiply, by index."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.of_number: dict[int, Warpgroup] = {}
        group.at_end.append(self.end)

    def end(self) -> None:
        """The blocks end."""
        for warpgroup in self.of_number.values():
            _report_unwaited(
                self.group,
                [product.op for product in warpgroup.products()],
                "multiplies, and nothing has waited for it",
            )


def known_warpgroups(group: Group) -> dict[int, Warpgroup]:
    """Returns the warpgroups that multiply, or that have reached an op of warpgroups, by index.

    Args:
        group: of blocks.
    """
    return kept_by(group, "warpgroups", _Warpgroups).of_number


def warpgroups(fiber: Fiber, op: Instruction) -> list[Warpgroup]:
    """Returns the warpgroups of the active threads; those of which some are missing become findings.

    Args:
        fiber: whose active threads reach the op.
        op: for the finding.
    """
    if fiber.warpgroups is not None:
        return fiber.warpgroups
    group = fiber.group
    warpgroups_by_number = known_warpgroups(group)
    complete_warpgroups = []
    counts = np.bincount(fiber.lanes // WARPGROUP)
    (numbers,) = counts.nonzero()
    for number, size in zip(numbers.tolist(), counts[numbers].tolist()):
        lanes = group.block_of_lane[number * WARPGROUP : (number + 1) * WARPGROUP]
        if size < WARPGROUP or lanes[0] != lanes[-1]:
            group.sanitizer.report(
                "divergent-barrier", f"{size} threads of a warpgroup execute it, not {WARPGROUP} of one block", op
            )
            continue
        if number not in warpgroups_by_number:
            warpgroups_by_number[number] = Warpgroup(group, number)
        complete_warpgroups.append(warpgroups_by_number[number])
    if len(complete_warpgroups) == len(numbers):
        fiber.warpgroups = complete_warpgroups
    return complete_warpgroups
