"""The tensor memory accelerator: boxes between global memory and the shared memory of one block or of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.hardware import asynchronous, shared_memory_layouts
from stepladder.emulator.hardware.asynchronous import BulkStore, bytes_touched
from stepladder.emulator.hardware.mbarriers import mbarriers
from stepladder.emulator.memory import initialized
from stepladder.emulator.memory.memory import Allocation

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.types import Scalar
    from stepladder.emulator.hardware.mbarriers import MBarrier
    from stepladder.emulator.memory.shadow import Touch

ALIGNMENT = 128  # bytes, of a box in shared memory
_BOX_LIMIT = 256  # elements a dimension
_GLOBAL_ALIGNMENT = 16  # bytes, of the tensor, its rows, and the rows of a box


@dataclass(frozen=True)
class Descriptor:
    """A tensor in global memory, seen in boxes; dimensions are in order, the outermost first.

    Attributes:
        memory, start: the allocation, and the byte where the tensor begins.
        element: type of an element.
        sizes, strides: in elements.
        box: its sizes, in elements.
        swizzle: bytes that a box's rows are swizzled over in shared memory, or 0.
        alignment: bytes, of a box in shared memory.
    """

    memory: Allocation
    start: int
    element: Scalar
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    alignment: int = ALIGNMENT

    @property
    def bytes(self) -> int:
        """Bytes of a box, which count for an mbarrier wherever the box lies."""
        return math.prod(self.box) * self.element.bytes

    def problems(self) -> list[str]:
        """Returns what the hardware does not take, as texts."""
        item = self.element.bytes
        row = self.box[-1] * item
        found = []
        if (self.memory.address + self.start) % _GLOBAL_ALIGNMENT:
            found.append(f"the tensor's address is no multiple of {_GLOBAL_ALIGNMENT} bytes")
        if self.strides[-1] != 1:
            found.append(f"neighbours of its innermost dimension are {self.strides[-1]} elements apart")
        if any(stride * item % _GLOBAL_ALIGNMENT for stride in self.strides[:-1]):
            found.append(
                f"strides of {list(self.strides[:-1])} {self.element.name} are no multiples of "
                f"{_GLOBAL_ALIGNMENT} bytes"
            )
        if max(self.box) > _BOX_LIMIT:
            found.append(f"a box of {list(self.box)} has more than {_BOX_LIMIT} elements one way")
        if row % _GLOBAL_ALIGNMENT or (self.swizzle and row > self.swizzle):
            found.append(
                f"rows of a box are {row} bytes, which is no multiple of {_GLOBAL_ALIGNMENT}"
                if row % _GLOBAL_ALIGNMENT
                else f"rows of a box are {row} bytes, more than the swizzle's {self.swizzle}"
            )
        return found

    def elements(self, origin: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the elements of a box, counted from the allocation's first, and which of them there are.

        Args:
            origin: of the box in the tensor; may lie outside.
        """
        positions = np.asarray(self.start // self.element.bytes, np.int64)
        inside = np.ones((), bool)
        for axis, (first, size) in enumerate(zip(origin, self.box)):
            place = first + np.arange(size, dtype=np.int64)
            shape = (-1, *(1,) * (len(self.box) - 1 - axis))
            positions = positions + (place * self.strides[axis]).reshape(shape)
            inside = inside & ((place >= 0) & (place < self.sizes[axis])).reshape(shape)
        return positions, np.broadcast_to(inside, self.box)

    def addresses(self, address: int) -> np.ndarray:
        """Returns where the elements of a box lie in shared memory: int array of the box's shape, in bytes."""
        return shared_memory_layouts.box_addresses(address, self.box, self.element.bytes, self.swizzle)


class _Box:
    """A box in both memories.

    Attributes:
        positions, inside: `Descriptor.elements`.
        addresses: in shared memory, in bytes.
    """

    def __init__(
        self, fiber: Fiber, op: Instruction, descriptor: Descriptor, origin: Sequence[int], address: int
    ) -> None:
        self.group = fiber.group
        self.descriptor = descriptor
        self.positions, self.inside = descriptor.elements(origin)
        self.addresses = descriptor.addresses(address)
        self.item = descriptor.element.bytes
        if address % descriptor.alignment:
            self.group.sanitizer.misaligned(fiber, op, address, descriptor.alignment)
        # A GPU (H200) stops with an illegal instruction.
        if origin[-1] * self.item % _GLOBAL_ALIGNMENT:
            self.group.sanitizer.report(
                "misaligned",
                f"the box begins at byte {origin[-1] * self.item} of a row, "
                f"which is no multiple of {_GLOBAL_ALIGNMENT}",
                op,
            )

    def fits(self, op: Instruction) -> bool:
        """Whether it lies in shared memory; a finding where it does not."""
        if self.addresses.min() >= 0 and self.addresses.max() + self.item <= self.group.shared.size:
            return True
        self.group.sanitizer.report(
            "out-of-bounds",
            f"the box ends at byte {self.addresses.max() + self.item} of "
            f"shared memory, and a block has {self.group.shared.size}",
            op,
        )
        return False

    def in_global(self, actor: int) -> Touch | None:
        """Returns the Touch of what there is of it in global memory."""
        return bytes_touched(
            self.group, self.descriptor.memory, actor, self.positions[self.inside] * self.item, self.item
        )

    def in_shared(self, actor: int, block: int, lane: int | None = None) -> Touch | None:
        """Returns the Touch of it in a block's shared memory, by a lane of a warp where one is given."""
        window = self.group.shared
        units = self.addresses[..., :: max(1, shared_memory_layouts.UNIT // self.item)]
        touch = bytes_touched(self.group, window, actor, block * window.size + units, shared_memory_layouts.UNIT)
        if touch is not None and lane is not None:
            touch.lanes = np.full(touch.places.shape, lane)
        return touch

    def global_elements(self) -> np.ndarray:
        """Returns its elements in global memory; zeros where there are none."""
        typed = self.descriptor.memory.typed(self.descriptor.element.dtype)
        return np.where(self.inside, typed[np.where(self.inside, self.positions, 0)], typed.dtype.type(0))

    def shared_elements(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns a block's shared memory as elements, and which of them are the box's."""
        window = self.group.shared
        return window.typed(self.descriptor.element.dtype), (block * window.size + self.addresses) // self.item


def load(
    fiber: Fiber,
    op: Instruction,
    descriptor: Descriptor,
    origin: Sequence[int],
    *,
    lane: int,
    address: int,
    barriers: Sequence[tuple[int, MBarrier]],
) -> None:
    """Lets a thread begin to load a box, which arrives when somebody waits for it.

    Args:
        origin: of the box, in the tensor's order of dimensions.
        lane: the thread.
        address: in shared memory, the same in all blocks that the box is written to.
        barriers: those blocks, each with its own mbarrier, which counts the bytes.
    """
    group = fiber.group
    sanitizer = group.sanitizer
    box = _Box(fiber, op, descriptor, origin, address)
    if not box.fits(op):
        return
    if "tma loads" not in group.state:
        group.state["tma loads"] = True
        group.at_end.append(lambda: _report_unwaited(group))
    known = sanitizer.release([group.warp_of_lane[lane]])
    if group.counters is not None:
        group.counters.bulk(op, "global", "load", descriptor.bytes)
        for _ in barriers:
            group.counters.bulk(op, "shared", "store", descriptor.bytes)
    for target, barrier in barriers:
        if not barrier.is_fenced:
            sanitizer.report("proxy", "completes on an mbarrier, and no fence is behind the initialization of that", op)
        sanitizer.acquire([barrier.agent], known)
        source, written = box.in_global(barrier.agent), box.in_shared(barrier.agent, target)
        if source is not None:
            sanitizer.begin_read(op, source)
        if written is not None:
            own = box.in_shared(int(group.warp_of_lane[lane]), target, lane)
            sanitizer.check_lanes(op, own)
            sanitizer.begin_write(op, written)
        landing = _Landing(box, op, target, barrier, written)
        barrier.copies.append(landing)
        group.begins("TMA loads", op, landing, f"box at {list(origin)} to block {target}")


class _Landing:
    """The arrival of a box in a block's shared memory: called, it happens."""

    def __init__(self, box: _Box, op: Instruction, block: int, barrier: MBarrier, written: Touch | None) -> None:
        self.box, self.op, self.block, self.barrier, self.written = box, op, block, barrier, written

    def __call__(self) -> None:
        sanitizer = self.box.group.sanitizer
        typed, places = self.box.shared_elements(self.block)
        typed[places] = self.box.global_elements()
        if self.written is not None:
            sanitizer.end_write(self.op, self.written)
        self.barrier.update(came=self.box.descriptor.bytes, known=sanitizer.release([self.barrier.agent]))
        self.box.group.ends(self)


def _report_unwaited(group: Group) -> None:
    """The blocks end: says which boxes nobody has waited for."""
    for barrier in mbarriers(group).values():
        for landing in barrier.copies:
            group.sanitizer.report(
                "unwaited", "writes shared memory when the block ends: nothing has waited for it", landing.op
            )


def store(
    fiber: Fiber,
    op: Instruction,
    descriptor: Descriptor,
    origin: Sequence[int],
    *,
    lane: int,
    address: int,
    add: bool = False,
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> None:
    """Lets a thread begin to store a box, or to add it to what is there; what lies outside of the tensor is left out.

    Args as for `load`; `combine` returns what stands there combined with the box, rounded once to the tensor's type.
    """
    if add:
        combine = np.add
    group = fiber.group
    sanitizer = group.sanitizer
    box = _Box(fiber, op, descriptor, origin, address)
    if not box.fits(op):
        return
    warp, block = group.warp_of_lane[lane], int(group.block_of_lane[lane])
    source, target = box.in_shared(warp, block, lane), box.in_global(warp)
    if source is not None:
        sanitizer.begin_read(op, source)
    if target is not None:
        sanitizer.begin_write(op, target, updates=combine is not None)
    if group.counters is not None:
        group.counters.bulk(op, "shared", "load", descriptor.bytes)
        group.counters.bulk(op, "global", "store", descriptor.bytes)
    data: list[np.ndarray] = []

    def read() -> None:
        typed, places = box.shared_elements(block)
        data.append(typed[places])
        if source is not None:
            sanitizer.end_read(op, source)

    def write() -> None:
        typed = descriptor.memory.typed(descriptor.element.dtype)
        places = box.positions[box.inside]
        values = data[0][box.inside]
        typed[places] = values if combine is None else combine(typed[places], values)
        initialized.note(descriptor.memory, descriptor.element.bytes, places)
        if target is not None:
            sanitizer.end_write(op, target, updates=combine is not None)

    asynchronous.store_in_bulk(fiber, lane, BulkStore(op, read, write))
