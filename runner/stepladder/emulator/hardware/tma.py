"""The tensor memory accelerator: boxes between global memory and the shared memory of one block or of several."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.hardware import bulk_stores, landings, shared_memory_layouts
from stepladder.emulator.hardware.asynchronous import bytes_touched, granules_of
from stepladder.emulator.hardware.bulk_stores import BulkStore
from stepladder.emulator.memory import initialized
from stepladder.emulator.memory.memory import Allocation
from stepladder.emulator.memory.touches import Granules, Rows, Touch

if TYPE_CHECKING:
    from stepladder.emulator.core.types import Scalar
    from stepladder.emulator.hardware.mbarriers import MBarrier

ALIGNMENT = 128  # bytes, of a box in shared memory
_BOX_LIMIT = 256  # elements a dimension
_GLOBAL_ALIGNMENT = 16  # bytes, of the tensor, its rows, and the rows of a box
_UNIT = np.dtype(np.complex128)  # of 16 bytes, which are moved and never interpreted


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
        fills_nan: whether elements outside of the tensor are NaN, and not zero.
    """

    memory: Allocation
    start: int
    element: Scalar
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    alignment: int = ALIGNMENT
    fills_nan: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of a box, which count for an mbarrier wherever the box is."""
        return math.prod(self.box) * self.element.bytes

    def problems(self) -> list[str]:
        """Returns the violations of hardware limits, as texts."""
        item = self.element.bytes
        row = self.box[-1] * item
        texts = []
        if (self.memory.address + self.start) % _GLOBAL_ALIGNMENT:
            texts.append(f"the tensor's address is not a multiple of {_GLOBAL_ALIGNMENT} bytes")
        if self.strides[-1] != 1:
            texts.append(f"neighbours of its innermost dimension are {self.strides[-1]} elements apart")
        if any(stride * item % _GLOBAL_ALIGNMENT for stride in self.strides[:-1]):
            texts.append(
                f"strides of {list(self.strides[:-1])} {self.element.name} are not multiples of {_GLOBAL_ALIGNMENT} "
                "bytes"
            )
        if max(self.box) > _BOX_LIMIT:
            texts.append(f"a box of {list(self.box)} has more than {_BOX_LIMIT} elements one way")
        if row % _GLOBAL_ALIGNMENT or (self.swizzle and row > self.swizzle):
            texts.append(
                f"rows of a box are {row} bytes, which is not a multiple of {_GLOBAL_ALIGNMENT}"
                if row % _GLOBAL_ALIGNMENT
                else f"rows of a box are {row} bytes, more than the swizzle's {self.swizzle}"
            )
        if self.fills_nan and not (self.element.is_float and item > 1):
            texts.append(f"elements outside of a tensor of {self.element.name} are NaN, which this type does not have")
        return texts

    def elements(self, origin: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the elements of a box, counted from the allocation's first, and which of them there are.

        Args:
            origin: of the box in the tensor; may be outside.
        """
        positions = np.asarray(self.start // self.element.bytes, np.int64)
        inside = np.ones((), bool)
        for axis, (first, size) in enumerate(zip(origin, self.box)):
            place = first + np.arange(size, dtype=np.int64)
            shape = (-1, *(1,) * (len(self.box) - 1 - axis))
            positions = positions + (place * self.strides[axis]).reshape(shape)
            inside = inside & ((place >= 0) & (place < self.sizes[axis])).reshape(shape)
        return positions, np.broadcast_to(inside, self.box)

    def rows(self, origin: Sequence[int]) -> Rows | None:
        """Returns the elements of a box as rows, counted from the first of the allocation.

        Args:
            origin: the coordinates where the box begins, the outermost first.

        Returns:
            The rows; None where elements are outside of the tensor, or do not form rows of one length at one distance.
        """
        first = self.start // self.element.bytes
        for place, size, stride, of in zip(origin, self.sizes, self.strides, self.box):
            if place < 0 or place + of > size:
                return None
            first += place * stride
        width = self.box[-1]
        outer = [axis for axis, size in enumerate(self.box[:-1]) if size > 1]
        if self.strides[-1] != 1 or len(outer) > 1:
            return None
        count, pitch = (self.box[outer[0]], self.strides[outer[0]]) if outer else (1, width)
        rows = Rows(first, pitch, count, width)
        return rows if rows.is_within(len(self.memory.data) // self.element.bytes) else None


class _Placement:
    """Where a box is in the shared memory of a block.

    Attributes:
        addresses: of its elements, in bytes of the cluster's shared memory: int array of the box's shape.
        low, high: its first byte, and the one after its last, in the block's shared memory.
    """

    def __init__(self, addresses: np.ndarray, base: int, item: int) -> None:
        self.addresses = base + addresses
        self.item = item
        self.low, self.high = int(addresses.min()), int(addresses.max()) + item
        self.starts = self.addresses[..., :: max(1, shared_memory_layouts.UNIT // item)]
        has_whole_units = addresses.shape[-1] * item % shared_memory_layouts.UNIT == 0
        self._units = None
        if has_whole_units and not (self.starts % shared_memory_layouts.UNIT).any():
            self._units = self.starts // shared_memory_layouts.UNIT
        self._granules: dict[int, Granules] = {}

    def granules(self, granule: int) -> Granules:
        """Returns its granules of `granule` bytes."""
        if granule not in self._granules:
            self._granules[granule] = granules_of(self.starts, shared_memory_layouts.UNIT, granule)
        return self._granules[granule]

    def gather(self, window: Allocation, dtype: np.dtype) -> np.ndarray:
        """Returns the elements of the box."""
        if self._units is None:
            return window.typed(dtype)[self.addresses // self.item]
        return window.typed(_UNIT)[self._units].view(dtype)

    def scatter(self, window: Allocation, elements: np.ndarray) -> None:
        """Writes the elements of the box."""
        if self._units is None:
            window.typed(elements.dtype)[self.addresses // self.item] = elements
        else:
            window.typed(_UNIT)[self._units] = np.ascontiguousarray(elements).view(_UNIT)


@functools.lru_cache(maxsize=256)
def _placement(address: int, box: tuple[int, ...], item: int, swizzle: int, base: int) -> _Placement:
    return _Placement(shared_memory_layouts.box_addresses(address, box, item, swizzle), base, item)


class _Box:
    """A box in both memories.

    Attributes:
        rows: of its elements in global memory, where all of them are there and they are rows; else None.
        positions, inside: `Descriptor.elements`, where `rows` is None.
    """

    def __init__(
        self, fiber: Fiber, op: Instruction, descriptor: Descriptor, origin: Sequence[int], address: int
    ) -> None:
        self.group = fiber.group
        self.descriptor = descriptor
        self.item = descriptor.element.bytes
        self.address = address
        self.rows = descriptor.rows(origin)
        self.positions = self.inside = np.zeros(0, np.int64)
        if self.rows is None:
            self.positions, self.inside = descriptor.elements(origin)
        if address % descriptor.alignment:
            self.group.sanitizer.misaligned(fiber, op, address, descriptor.alignment)
        # A GPU (H200) stops with an illegal instruction.
        if origin[-1] * self.item % _GLOBAL_ALIGNMENT:
            self.group.sanitizer.report(
                "misaligned",
                f"the box begins at byte {origin[-1] * self.item} of a row, which is not a multiple of "
                f"{_GLOBAL_ALIGNMENT}",
                op,
            )

    def placement(self, block: int) -> _Placement:
        """Returns where it is in a block's shared memory."""
        descriptor = self.descriptor
        base = block * self.group.shared.size
        return _placement(self.address, descriptor.box, self.item, descriptor.swizzle, base)

    def fits(self, op: Instruction) -> bool:
        """Whether it is in shared memory; a finding if it is not."""
        place = self.placement(0)
        if place.low >= 0 and place.high <= self.group.shared.size:
            return True
        self.group.sanitizer.report(
            "out-of-bounds",
            f"the box ends at byte {place.high} of shared memory, and a block has {self.group.shared.size}",
            op,
        )
        return False

    def in_global(self, actor: int) -> Touch | None:
        """Returns the Touch of what there is of it in global memory."""
        sanitizer, memory, item = self.group.sanitizer, self.descriptor.memory, self.item
        if self.rows is None:
            return bytes_touched(self.group, memory, actor, self.positions[self.inside] * item, item)
        if not sanitizer.enabled:
            return None
        rows = self.rows.in_granules(item, sanitizer.granule_of(memory))
        if rows is None:
            return bytes_touched(self.group, memory, actor, self.rows.places() * item, item)
        return Touch(memory, int(actor), rows)

    def in_shared(self, actor: int, block: int, lane: int | None = None) -> Touch | None:
        """Returns the Touch of it in a block's shared memory, by a lane of a warp where one is given."""
        sanitizer = self.group.sanitizer
        if not sanitizer.enabled:
            return None
        granule = sanitizer.granule_of(self.group.shared)
        touch = Touch.once(self.group.shared, int(actor), self.placement(block).granules(granule), granule)
        if lane is not None:
            touch.lanes = np.full(touch.places.shape, lane)
        return touch

    def global_elements(self) -> np.ndarray:
        """Returns its elements in global memory; zeros, or NaN, where there are none."""
        elements = self.descriptor.memory.typed(self.descriptor.element.dtype)
        if self.rows is not None:
            return self.rows.of(elements).reshape(self.descriptor.box)
        outside = elements.dtype.type(np.nan if self.descriptor.fills_nan else 0)
        return np.where(self.inside, elements[np.where(self.inside, self.positions, 0)], outside)

    def write_global(
        self, elements: np.ndarray, combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
    ) -> None:
        """Writes its elements to global memory where there are any, or `combine`s them with what is there."""
        descriptor = self.descriptor
        memory_elements = descriptor.memory.typed(descriptor.element.dtype)
        if self.rows is not None:
            target = self.rows.of(memory_elements)
            elements = elements.reshape(target.shape)
            target[...] = elements if combine is None else combine(target, elements)
            places = self.rows.places() if descriptor.memory.written is not None else None
        else:
            places = self.positions[self.inside]
            elements = elements[self.inside]
            memory_elements[places] = elements if combine is None else combine(memory_elements[places], elements)
        if places is not None:
            initialized.note(descriptor.memory, self.item, places)


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
    """Begins the load of a box by a thread; the data arrives at a wait for the mbarrier.

    Args:
        fiber: the threads.
        op: the instruction.
        descriptor: of the tensor.
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
    clocks = sanitizer.release([group.warp_of_lane[lane]])
    if group.counters is not None:
        group.counters.bulk(op, "global", "load", descriptor.bytes)
        for _ in barriers:
            group.counters.bulk(op, "shared", "store", descriptor.bytes)
    for target, barrier in barriers:
        if not barrier.is_fenced:
            sanitizer.report(
                "proxy",
                "completes on an mbarrier, and no fence.mbarrier_init or fence.proxy.async follows its initialization",
                op,
            )
        sanitizer.acquire([barrier.agent], clocks)
        source, write_touch = box.in_global(barrier.agent), box.in_shared(barrier.agent, target)
        if source is not None:
            sanitizer.begin_read(op, source)
        if write_touch is not None:
            sanitizer.check_lanes(op, write_touch, int(group.warp_of_lane[lane]), lane)
            sanitizer.begin_write(op, write_touch)
        landing = _Landing(box, op, target, barrier, write_touch)
        landings.add(group, barrier, landing)
        group.begins("TMA loads", op, landing, f"box at {list(origin)} to block {target}")


class _Landing:
    """The arrival of a box in a block's shared memory: called, it happens."""

    def __init__(self, box: _Box, op: Instruction, block: int, barrier: MBarrier, write_touch: Touch | None) -> None:
        self.box, self.op, self.block, self.barrier, self.write_touch = box, op, block, barrier, write_touch

    def __call__(self) -> None:
        sanitizer = self.box.group.sanitizer
        box = self.box
        box.placement(self.block).scatter(box.group.shared, box.global_elements())
        if self.write_touch is not None:
            sanitizer.end_write(self.op, self.write_touch)
        self.barrier.update(came=self.box.descriptor.bytes, clocks=sanitizer.release([self.barrier.agent]))
        self.box.group.ends(self)


def store(
    fiber: Fiber,
    op: Instruction,
    descriptor: Descriptor,
    origin: Sequence[int],
    *,
    lane: int,
    address: int,
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> None:
    """Begins the store of a box by a thread; elements outside of the tensor are left out.

    Args:
        fiber: the threads.
        op: the instruction.
        descriptor: of the tensor.
        origin: of the box, in the tensor's order of dimensions.
        lane: the thread.
        address: of the box in shared memory.
        combine: returns the tensor's elements combined with the box, rounded once to their type; None to store the box.
    """
    group = fiber.group
    sanitizer = group.sanitizer
    box = _Box(fiber, op, descriptor, origin, address)
    if not box.fits(op):
        return
    warp, block = group.warp_of_lane[lane], int(group.block_of_lane[lane])
    agent = bulk_stores.agent_of(fiber, lane)
    source, target = box.in_shared(warp, block, lane), box.in_global(agent)
    if source is not None:
        sanitizer.begin_read(op, source)
    if target is not None:
        sanitizer.acquire([agent], sanitizer.release([warp]))
        sanitizer.begin_write(op, target, updates=combine is not None)
    if group.counters is not None:
        group.counters.bulk(op, "shared", "load", descriptor.bytes)
        group.counters.bulk(op, "global", "store", descriptor.bytes)
    data: list[np.ndarray] = []

    def read() -> None:
        data.append(box.placement(block).gather(group.shared, descriptor.element.dtype))
        if source is not None:
            sanitizer.end_read(op, source)

    def write() -> None:
        box.write_global(data[0], combine)

    clocks = sanitizer.release([agent]) if target is not None else None
    bulk_stores.begin(fiber, lane, BulkStore(op, read, write, clocks))
