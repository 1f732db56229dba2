"""Pointers, and the allocations that they point into.

A pointer is an integer, uniform or (T,). In shared memory it counts from the first byte of a block, in every address
space; the rank of a block in the cluster is in the bits from `memory.RANK_SHIFT` on. Addresses of global memory are
above all of these. The allocation is looked up at the access: an address outside of all allocations counts as one
before or after the nearest, and becomes a finding.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Unsupported
from stepladder.emulator.core.types import Opaque
from stepladder.emulator.core.values import MemRef
from stepladder.emulator.hardware import synchronization
from stepladder.emulator.hardware.warps import narrowed
from stepladder.emulator.memory import memory
from stepladder.emulator.memory.memory import RANK_SHIFT, Allocation, contiguous

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.types import Scalar
    from stepladder.emulator.core.values import Value

SHARED = 3  # address space
_MAX_BLOCKS = 16  # of a cluster
_LONGEST_TEXT = 1 << 16
# Addresses below are in shared memory.
_SHARED_END = (_MAX_BLOCKS + 1) << RANK_SHIFT


def is_shared(type_: Opaque) -> bool:
    """Whether a pointer type is of shared memory.

    Args:
        type_: an opaque type, such as `!llvm.ptr<3>`.
    """
    return type_.text == f"!llvm.ptr<{SHARED}>"


def _nearest(fiber: Fiber, address: int) -> Allocation | None:
    """Returns the memory that an address is of, or the nearest; None where there is none."""
    if address < _SHARED_END and fiber.group.window is not None:
        return fiber.group.window
    allocations = [*fiber.group.machine.heap.allocations, *fiber.group.private.values()]
    for allocation in allocations:
        if allocation.address <= address < allocation.address + allocation.size:
            return allocation
    return min(
        allocations,
        default=None,
        key=lambda allocation: max(allocation.address - address, address - allocation.address - allocation.size + 1, 0),
    )


def object_at(fiber: Fiber, address: int) -> Allocation | None:
    """Returns the allocation that contains an address, or ends at it; None where there is none.

    Args:
        fiber: the threads that use the address.
        address: in bytes.
    """
    allocation = _nearest(fiber, address)
    return (
        allocation
        if allocation is not None and allocation.address <= address <= allocation.address + allocation.size
        else None
    )


def first_element(view: MemRef) -> Value:
    """Returns the address of a view's first element, uniform or (T,).

    Args:
        view: of memory.
    """
    return view.memory.address + view.start + view.offset * view.element.bytes


def aligned(view: MemRef) -> Value:
    """Returns the address from where a view's offset counts: what the convention of bare pointers passes.

    Args:
        view: of memory.
    """
    return view.memory.address + view.start


def descriptor(view: MemRef) -> list:
    """Returns the fields of a memref descriptor: two addresses, the offset, the sizes and the strides.

    Args:
        view: of memory.
    """
    return [aligned(view), aligned(view), view.offset, *view.sizes, *view.strides]


def view_at(
    fiber: Fiber,
    op: Instruction,
    address: Value,
    element: Scalar,
    offset: Value,
    sizes: Sequence[Value],
    strides: Sequence[Value],
) -> MemRef:
    """Returns the view that a descriptor's aligned address, offset, sizes and strides describe.

    Args:
        fiber: whose active lanes use the view.
        op: for the error.
        address: in bytes, uniform or (T,).
        element: type of an element.
        offset: elements from the address to the view's first, uniform or (T,).
        sizes, strides: of each dimension in elements, each uniform or (T,).

    Raises:
        Unsupported: there is no memory at the address, or the addresses of threads are of different memory, or are not
            a multiple of an element apart.
    """
    low = address if values.is_uniform(address) else address[fiber.lanes].min()
    allocation = _nearest(fiber, int(low))
    if allocation is None:
        raise Unsupported(op, "of a descriptor, where there is no memory")
    start = address - allocation.address
    if not values.is_uniform(start):
        last = object_at(fiber, int(address[fiber.lanes].max()))
        if last is not None and last is not allocation:
            raise Unsupported(op, f"of {values.OF_SEVERAL}")
        return MemRef(allocation, element, 0, in_elements(fiber, op, start, element) + offset, sizes, strides)
    return MemRef(allocation, element, int(start), offset, sizes, strides)


def in_elements(fiber: Fiber, op: Instruction, start: np.ndarray, element: Scalar) -> np.ndarray:
    """Returns bytes that differ among threads as elements.

    Args:
        fiber: whose active lanes use them.
        op: for the error.
        start: bytes, (T,).
        element: the type.

    Raises:
        Unsupported: they are no multiple of an element.
    """
    if (start[fiber.lanes] % element.bytes).any():
        raise Unsupported(op, f"of addresses that differ among threads and are no multiple of {element.bytes} bytes")
    return start // element.bytes


def parts(fiber: Fiber, op: Instruction, pointer: Value, *, shared: bool = False) -> list[tuple]:
    """Returns the active threads grouped by the allocation that their pointers are in.

    Threads whose pointer is in no allocation are left out, and are a finding.

    Args:
        fiber: the threads.
        op: the instruction.
        pointer: addresses, uniform or (T,).
        shared: whether the pointer is of shared memory, whatever its value is.

    Returns:
        (fiber, allocation, byte in it, uniform or (T,)) for each allocation.
    """
    if shared:
        return [(fiber, fiber.group.shared, pointer)]
    if values.is_uniform(pointer):
        candidates = [(fiber, _nearest(fiber, int(pointer)))]
    else:
        own = pointer[fiber.lanes]
        low, high = (_nearest(fiber, int(end)) for end in (own.min(), own.max()))
        if low is high:
            candidates = [(fiber, low)]
        else:
            of_lane = {int(address): _nearest(fiber, int(address)) for address in np.unique(own)}
            candidates = []
            for allocation in {id(allocation): allocation for allocation in of_lane.values()}.values():
                mask = np.zeros(fiber.count, bool)
                mask[fiber.lanes] = [of_lane[int(address)] is allocation for address in own]
                candidates.append((narrowed(fiber, mask), allocation))
    result = []
    for part, allocation in candidates:
        if allocation is None:
            part.group.sanitizer.report("out-of-bounds", f"there is no memory at {int(part.first(pointer)):#x}", op)
        else:
            result.append((part, allocation, pointer - allocation.address))
    return result


def check_alignment(fiber: Fiber, op: Instruction, pointer: Value, alignment: int) -> None:
    """Reports addresses that are not a multiple of `alignment` bytes.

    Args:
        fiber: the threads that use them.
        op: the instruction, for findings.
        pointer: addresses, uniform or (T,).
        alignment: bytes.
    """
    own = pointer if values.is_uniform(pointer) else pointer[fiber.lanes]
    beyond = own % alignment
    if np.count_nonzero(beyond):
        first = own if values.is_uniform(pointer) else own[(beyond != 0).argmax()]
        fiber.group.sanitizer.misaligned(fiber, op, int(first), alignment)


def elements(allocation: Allocation, start: Value, element: Scalar, offsets: Value, rank: int) -> tuple[MemRef, Value]:
    """Returns an allocation as elements of a type, and the coordinate of those at `offsets` from a byte of it.

    Args:
        allocation: that contains the elements.
        start: of the byte, uniform or (T,).
        element: the type.
        offsets: in elements, an array of `rank` dimensions or an int.
        rank: dimensions of the offsets without lanes.
    """
    first = start // element.bytes if element.bytes > 1 else start
    if isinstance(first, np.ndarray):
        first = first.reshape(-1, *(1,) * rank)
    view = MemRef(allocation, element, 0, 0, (allocation.size // element.bytes,), (1,))
    return view, first + offsets if rank else first


def read(
    fiber: Fiber, op: Instruction, pointer: Value, element: Scalar, shape: tuple[int, ...] = (), *, shared: bool = False
) -> Value:
    """Returns the neighbours that threads read, (*shape,) or (T, *shape).

    Args:
        fiber: whose active lanes read.
        op: for findings.
        pointer: address of the first element, uniform or (T,).
        element: type of an element.
        shape: of what each lane reads.
        shared: whether addresses are of shared memory, from its first byte.
    """
    rank, offsets = len(shape), offsets_in(shape)
    parts_read, masks = [], []
    for part, allocation, start in parts(fiber, op, pointer, shared=shared):
        if allocation is part.group.window and not shared and _is_of_others(part, start):
            parts_read.append(_read_in_cluster(part, op, start, element, shape))
            masks.append(part.active)
            continue
        view, places = elements(allocation, start, element, offsets, rank)
        parts_read.append(memory.read(part, op, view, [places], shape))
        masks.append(part.active)
    if not parts_read:
        return np.zeros(shape, element.dtype)
    return parts_read[0] if len(parts_read) == 1 else values.merge(parts_read, masks, fiber.count, rank)


def write(
    fiber: Fiber,
    op: Instruction,
    pointer: Value,
    value: Value,
    element: Scalar,
    shape: tuple[int, ...] = (),
    *,
    shared: bool = False,
) -> None:
    """Writes adjacent elements, (*shape,) or (T, *shape).

    Args:
        fiber: the threads.
        op: the instruction.
        pointer: addresses of the first elements, uniform or (T,).
        value: uniform or with leading lanes.
        element: the type.
        shape: elements that one thread writes.
        shared: whether the pointer is of shared memory, whatever its value is.
    """
    rank, offsets = len(shape), offsets_in(shape)
    for part, allocation, start in parts(fiber, op, pointer, shared=shared):
        if allocation is part.group.window and not shared and _is_of_others(part, start):
            _write_in_cluster(part, op, start, value, element, shape)
            continue
        view, places = elements(allocation, start, element, offsets, rank)
        memory.write(part, op, view, [places], value, shape)


def text_at(fiber: Fiber, op: Instruction, address: int) -> str:
    """Returns the text at an address, which ends with a zero or with the memory that it is in.

    Args:
        fiber: the threads.
        op: that reads it.
        address: of the first character.
    """
    for _part, allocation, start in parts(fiber, op, int(address)):
        data = allocation.data[int(start) : int(start) + _LONGEST_TEXT].tobytes()
        return data.split(b"\0")[0].decode("utf-8", "replace")
    return ""


def _is_of_others(fiber: Fiber, address: Value) -> bool:
    own = address if values.is_uniform(address) else address[fiber.lanes]
    return bool(np.any(own >= 1 << RANK_SHIFT))


def _in_cluster(
    fiber: Fiber, op: Instruction, address: Value, element: Scalar, shape: tuple[int, ...], description: str
) -> memory.Access:
    """Returns the elements that threads access in the shared memory of blocks of their cluster: (lanes, elements)."""
    group = fiber.group
    address = values.lanes(np.asarray(address), fiber.count)
    block = (address >> RANK_SHIFT) - 1
    block = np.where(block < 0, group.block_of_lane, block)
    if group.sanitizer.enabled:
        synchronization.note_remote(fiber, op, block, description)
    window, item, count = group.shared, element.bytes, int(np.prod(shape, dtype=int))
    places = (address % (1 << RANK_SHIFT))[fiber.lanes][:, None] // item + np.arange(count)
    inside = (places < window.size // item) & (block[fiber.lanes] < group.blocks)[:, None]
    if not inside.all():
        view = contiguous(window, element, (window.size // item,))
        group.sanitizer.out_of_bounds(fiber, op, view, [memory.spread(fiber, places)], ~inside, 1)
    positions = block[fiber.lanes][:, None] * (window.size // item) + places
    return memory.Access(window, element, positions, None if inside.all() else inside, True)


def _read_in_cluster(
    fiber: Fiber, op: Instruction, address: Value, element: Scalar, shape: tuple[int, ...]
) -> np.ndarray:
    """Returns what threads read from the shared memory of blocks of their cluster."""
    group = fiber.group
    access = _in_cluster(fiber, op, address, element, shape, "reads shared memory")
    group.sanitizer.read(fiber, op, access)
    if group.counters is not None:
        group.counters.access(fiber, op, access, "load")
    return memory.spread(fiber, memory.gather(access).reshape(-1, *shape))


def _write_in_cluster(
    fiber: Fiber, op: Instruction, address: Value, value: Value, element: Scalar, shape: tuple[int, ...]
) -> None:
    """Writes to the shared memory of blocks of the threads' cluster."""
    access = _in_cluster(fiber, op, address, element, shape, "writes shared memory")
    value = np.asarray(value, element.dtype)
    if value.ndim > len(shape):
        value = value[fiber.lanes]
    value = np.broadcast_to(value.reshape(*value.shape[: value.ndim - len(shape)], -1), access.positions.shape)
    memory.put(fiber, op, access, value)


@functools.cache
def offsets_in(shape: tuple[int, ...]) -> np.ndarray | int:
    """Returns the number of each element of a row-major array, as an array that must not be written to; 0 for a scalar.

    Args:
        shape: of the array.
    """
    if not shape:
        return 0
    offsets = np.arange(math.prod(shape)).reshape(shape)
    offsets.flags.writeable = False
    return offsets
