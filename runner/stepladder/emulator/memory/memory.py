"""Memory, and its reads and writes.

An allocation is an array of bytes: one for all threads (global memory, and all memory of the host), one for each block
of a cluster (shared memory), or one for each thread (private memory).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.values import MemRef, broadcast, lanes
from stepladder.emulator.memory import bounds, initialized
from stepladder.runtime import host_memory

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.types import Scalar
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.memory.shadow import GlobalShadow, SharedShadow

# Where threads' own memory is, at the same addresses for all of them.
PRIVATE_BASE = 0x10_0000_0000

# Addresses of shared memory in a cluster, as `mapa` makes them: the block's rank plus one above (0 is the block's own),
# the address below.
RANK_SHIFT = 24


class Allocation:
    """Bytes of memory.

    Attributes:
        data: uint8 array (copies * size,).
        size: bytes of one copy.
        copies: 1 for all threads, or one for each block or thread.
        space: "global", "shared" or "private".
        address: of the first byte, as programs see it.
        name: for messages.
        shadow: what the sanitizer knows about it, or None.
        freed: the op that freed it, or None.
        is_array: whether it is data that launches share, and no parameters or constants of one.
        is_kept: whether the program states that the launches before one do not write it (`read_early`).
        recently_written: whether a launch has written it that may not have ended when a dependent launch begins.
        written: which bytes are, where that is noted (`initialized`): bool array, else None.
        ever_written: for each granule of the sanitizer, whether a launch has written it; None where none has.
    """

    __slots__ = (
        *("address", "copies", "data", "ever_written", "freed", "is_array", "is_kept", "name", "recently_written"),
        *("shadow", "size", "space", "written"),
    )

    def __init__(self, size: int, *, copies: int = 1, space: str = "global", address: int = 0, name: str = "") -> None:
        host_memory.require(size * copies, name or "an allocation")
        # All bits set: NaN in every floating-point type, and an improbable integer.
        self.data = np.full(max(size, 1) * copies, 0xFF, np.uint8)
        self.size = size
        self.copies = copies
        self.space = space
        self.address = address
        self.name = name
        self.shadow: SharedShadow | GlobalShadow | None = None
        self.freed: Instruction | None = None
        self.ever_written: np.ndarray | None = None
        self.is_array = True
        self.is_kept = False
        self.recently_written = False
        self.written: np.ndarray | None = None

    def typed(self, dtype: np.dtype) -> np.ndarray:
        """Returns the bytes as elements of a type: a view where the size allows it.

        Args:
            dtype: the type.
        """
        byte_count = len(self.data) // dtype.itemsize * dtype.itemsize
        return self.data[:byte_count].view(dtype)


def contiguous(memory: Allocation, element: Scalar, shape: Sequence[Value], start: int = 0) -> MemRef:
    """Returns a view of an allocation as a row-major array.

    Args:
        memory: the allocation.
        element: type of an element.
        shape: in elements.
        start: byte of the first element in the allocation.
    """
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return MemRef(memory, element, start, 0, shape, strides)


def content(view: MemRef) -> np.ndarray:
    """Returns the contents of a view, as a new array.

    Args:
        view: without lanes.
    """
    elements = view.memory.typed(view.element.dtype)
    first = view.start // view.element.dtype.itemsize + view.offset
    positions = np.full((), first, np.int64)
    for size, stride in zip(view.sizes, view.strides):
        positions = positions[..., None] + np.arange(size) * stride
    return elements[positions]


@dataclass(slots=True)
class Access:
    """The elements that an op touches.

    Attributes:
        memory: the allocation.
        element: type of an element.
        positions: int array of elements from the allocation's first: (*shape,) where all lanes touch the same, else
            (L, *shape) for the L active lanes.
        valid: bool array like positions, or None where all are touched.
        per_lane: whether there is a dimension of lanes.
    """

    memory: Allocation
    element: Scalar
    positions: np.ndarray
    valid: np.ndarray | None
    per_lane: bool


def _restricted(fiber: Fiber, value: Value, rank: int) -> Value:
    """Returns a scalar or array of the convention of `values` with the active lanes only."""
    if not isinstance(value, np.ndarray) or value.ndim <= rank or fiber.mask is None or value.shape[0] == 1:
        return value
    return value[fiber.lanes]


def locate(
    fiber: Fiber,
    op: Instruction,
    view: MemRef,
    coordinates: Sequence[Value],
    shape: tuple[int, ...] = (),
    valid: np.ndarray | None = None,
) -> Access:
    """Returns the elements at `coordinates` of a view; what is outside of the view becomes a finding and is left out.

    Args:
        fiber: the threads.
        op: for findings.
        view: of memory.
        coordinates: one a dimension: an int, an array that broadcasts to `shape`, or one with leading lanes.
        shape: of the elements that each lane touches.
        valid: of the same form, bool: what is touched at all.
    """
    rank = len(shape)

    def aligned(number: Value) -> Value:
        """Offsets, sizes and strides have no dimensions but lanes."""
        number = _restricted(fiber, number, 0)
        return number.reshape(-1, *(1,) * rank) if isinstance(number, np.ndarray) else number

    item = view.element.dtype.itemsize
    positions = aligned(view.offset) + view.start // item
    inside = None if valid is None else np.asarray(_restricted(fiber, np.asarray(valid), rank))
    missing = None
    for coordinate, size, stride in zip(coordinates, view.sizes, view.strides):
        coordinate = _restricted(fiber, coordinate, rank)
        steps = coordinate if type(stride) is int and stride == 1 else coordinate * aligned(stride)
        positions = steps if type(positions) is int and positions == 0 else positions + steps
        size = aligned(size)
        if not bounds.is_inside(coordinate, size):
            out = np.asarray((coordinate < 0) | (coordinate >= size))
            missing = out if missing is None else missing | out
    positions = np.asarray(positions)
    report = partial(fiber.group.sanitizer.out_of_bounds, fiber, op, view, coordinates, rank=rank)
    is_within = missing is None and bounds.is_within_memory(view, item)
    if missing is not None:
        inside = bounds.without(missing, inside, np.broadcast_shapes(positions.shape, shape), report)
    memory = view.memory
    _check_view(fiber, op, view)
    if memory.copies > 1:
        base = _restricted(fiber, fiber.group.copy_of_lane(memory), 0) * (memory.size // item)
        positions = positions + base.reshape(-1, *(1,) * rank)
    per_lane = positions.ndim > rank or (inside is not None and inside.ndim > rank)
    full = (len(fiber.lanes) if per_lane else 1, *shape)
    positions = broadcast(positions, full)
    if inside is not None:
        inside = broadcast(inside, full)
    limit = len(memory.data) // item
    if not is_within and not bounds.is_inside(positions, limit):  # a view that is larger than its memory
        beyond = (positions < 0) | (positions >= limit)
        inside = bounds.without(beyond, inside, full, report)
    if not per_lane:
        positions = positions[0]
        inside = None if inside is None else inside[0]
    return Access(memory, view.element, positions, inside, per_lane)


def _check_view(fiber: Fiber, op: Instruction, view: MemRef) -> None:
    """Reports a view of memory that has been freed, and one that begins within an element."""
    memory, item = view.memory, view.element.dtype.itemsize
    if memory.freed is not None:
        fiber.group.sanitizer.report(
            "use-after-free", f"touches {memory.name or 'memory'} that has been freed", op, memory.freed
        )
    if view.start % item:
        fiber.group.sanitizer.misaligned(fiber, op, view.start, item)


def _element_of_host(fiber: Fiber, view: MemRef, coordinates: Sequence[Value]) -> int | None:
    """Returns the position of one element that the host touches; None for `locate` to find it, or what is wrong.

    Loops of the host touch one element at a time, for which arrays are slow.
    """
    memory = view.memory
    item = view.element.dtype.itemsize
    position = view.offset
    if not (fiber.group.is_host and type(position) is int) or memory.freed is not None or view.start % item:
        return None
    for coordinate, size, stride in zip(coordinates, view.sizes, view.strides):
        if type(coordinate) is not int or type(size) is not int or type(stride) is not int:
            return None
        if not 0 <= coordinate < size:
            return None
        position += coordinate * stride
    position += view.start // item
    return position if 0 <= position < len(memory.data) // item else None


def gather(access: Access, fill: Value = None) -> np.ndarray:
    """Returns the elements of an access; those that are not touched are `fill`.

    Args:
        access: what is read.
        fill: a scalar, or an array that matches the elements that are not touched; zero unless given.

    Returns:
        An array in the shape of `access.positions`.
    """
    elements = access.memory.typed(access.element.dtype)
    if access.valid is None:
        return np.asarray(elements[access.positions])
    values = np.zeros(access.positions.shape, elements.dtype)
    values[access.valid] = elements[access.positions[access.valid]]
    if fill is not None:
        values[~access.valid] = fill
    return values


def scatter(access: Access, values: Value) -> None:
    """Writes the elements of an access.

    Args:
        access: what is written.
        values: of its shape, or of one that broadcasts to it.
    """
    elements = access.memory.typed(access.element.dtype)
    values = broadcast(np.asarray(values), access.positions.shape)
    positions = access.positions if access.valid is None else access.positions[access.valid]
    elements[positions] = values if access.valid is None else values[access.valid]
    initialized.note(access.memory, access.element.bytes, positions)


def take(fiber: Fiber, op: Instruction, access: Access, *, fill: Value = None, is_matrix: bool = False) -> np.ndarray:
    """Returns the elements of an access, checked and counted: as a warp's matrix, or as what each thread reads.

    Args:
        fiber: the threads that read.
        op: for findings and counters.
        access: what they read.
        fill: as for `gather`.
        is_matrix: whether `access` is one matrix a warp.
    """
    group = fiber.group
    group.sanitizer.read(fiber, op, access)
    if group.counters is not None:
        (group.counters.matrix if is_matrix else group.counters.access)(fiber, op, access, "load")
    return gather(access, fill)


def put(fiber: Fiber, op: Instruction, access: Access, values: np.ndarray, *, is_matrix: bool = False) -> None:
    """Writes the elements of an access, checked and counted.

    Args:
        fiber, op, access, is_matrix: as for `take`.
        values: of the access' shape.
    """
    group = fiber.group
    group.sanitizer.write(fiber, op, access, values)
    if group.counters is not None:
        (group.counters.matrix if is_matrix else group.counters.access)(fiber, op, access, "store")
    scatter(access, values)
    group.sanitizer.written(fiber, op, access, values)


def spread(fiber: Fiber, values: np.ndarray) -> np.ndarray:
    """Returns what the active lanes have as an array for all lanes.

    Args:
        fiber: with L active lanes.
        values: (L, ...).

    Returns:
        (T, ...), zeros for the others; `values` themselves where all lanes are active.
    """
    if fiber.mask is None:
        return values
    all_values = np.zeros((fiber.count, *values.shape[1:]), values.dtype)
    all_values[fiber.lanes] = values
    return all_values


def read(
    fiber: Fiber,
    op: Instruction,
    view: MemRef,
    coordinates: Sequence[Value],
    shape: tuple[int, ...] = (),
    valid: np.ndarray | None = None,
    fill: Value = None,
) -> Value:
    """Returns the elements at `coordinates` of a view: (*shape,), or (T, *shape) where lanes differ.

    Args:
        fiber, op, view, coordinates, shape, valid: as for `locate`.
        fill: what elements that are not touched are.
    """
    position = _element_of_host(fiber, view, coordinates) if not shape and valid is None else None
    if position is not None:
        return np.asarray(view.memory.typed(view.element.dtype)[position])
    access = locate(fiber, op, view, coordinates, shape, valid)
    if isinstance(fill, np.ndarray) and access.per_lane and access.valid is not None:
        fill = broadcast(
            _restricted(fiber, lanes(fill, fiber.count, 0).reshape(-1, *(1,) * len(shape)), len(shape)),
            access.positions.shape,
        )[~access.valid]
    values = take(fiber, op, access, fill=fill)
    return spread(fiber, values) if access.per_lane else values


def write(
    fiber: Fiber,
    op: Instruction,
    view: MemRef,
    coordinates: Sequence[Value],
    value: Value,
    shape: tuple[int, ...] = (),
    valid: np.ndarray | None = None,
) -> None:
    """Writes to the elements at `coordinates` of a view.

    Args:
        fiber, op, view, coordinates, shape, valid: as for `locate`.
        value: uniform or with lanes.
    """
    position = _element_of_host(fiber, view, coordinates) if not shape and valid is None else None
    if position is not None and (not isinstance(value, np.ndarray) or value.ndim == 0):
        view.memory.typed(view.element.dtype)[position] = value
        initialized.note(view.memory, view.element.bytes, position)
        return
    access = locate(fiber, op, view, coordinates, shape, valid)
    value = np.asarray(value, view.element.dtype)
    value = _restricted(fiber, value, len(shape))
    if value.ndim > len(shape) and not access.per_lane:  # every lane writes its own value to the same address
        access = with_lanes(access, len(fiber.lanes))
    put(fiber, op, access, broadcast(value, access.positions.shape))


def with_lanes(access: Access, count: int) -> Access:
    """Returns an access of the same elements by each of several lanes.

    Args:
        access: of all lanes at once.
        count: of lanes.
    """
    shape = (count, *access.positions.shape)
    valid = None if access.valid is None else broadcast(access.valid, shape)
    return Access(access.memory, access.element, broadcast(access.positions, shape), valid, True)
