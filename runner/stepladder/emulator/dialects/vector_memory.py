"""vector: transfers, loads and stores, gathers and scatters."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core.elements import plain
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Type
from stepladder.emulator.core.values import MemRef, Value, in_lanes, is_uniform, leading
from stepladder.emulator.hardware.warps import narrowed, once_a_warp, varying
from stepladder.emulator.memory import alignment, memory
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import FAILED, StepladderError


def offset_by(start: Value, along: Value, rank: int) -> Value:
    """Returns coordinates along a dimension of a vector.

    Args:
        start: the first coordinate, uniform or (T,).
        along: offsets from it, of `rank` dimensions.
        rank: dimensions of the vector.
    """
    if isinstance(start, np.ndarray):
        start = start.reshape(-1, *(1,) * rank)
    return start + along


def along(shape: Sequence[int], axis: int) -> np.ndarray:
    """Returns the coordinates along one axis of a shape, with size 1 along the others; they must not be written to.

    Args:
        shape: of the vector.
        axis: its index.
    """
    return _along(shape[axis], axis, len(shape))


@functools.cache
def _along(size: int, axis: int, rank: int) -> np.ndarray:
    coordinates = np.arange(size).reshape([-1 if other == axis else 1 for other in range(rank)])
    coordinates.flags.writeable = False
    return coordinates


def _read(
    fiber: Fiber,
    op: Instruction,
    source: Value,
    coordinates: Sequence[Value],
    shape: tuple[int, ...],
    valid: np.ndarray | None = None,
    fill: Value = None,
) -> Value:
    """Returns elements of memory or of a tensor; those that are not valid are `fill`."""
    if isinstance(source, MemRef):
        return memory.read(fiber, op, source, coordinates, shape, valid, fill)
    coordinates, valid = _in_tensor(op, source, coordinates, shape, valid)
    return np.where(valid, source[coordinates], fill).astype(source.dtype)


def _write(
    fiber: Fiber,
    op: Instruction,
    target: Value,
    coordinates: Sequence[Value],
    value: Value,
    shape: tuple[int, ...],
    valid: np.ndarray | None = None,
) -> Value:
    """Writes elements of memory, or returns a tensor with other elements."""
    if isinstance(target, MemRef):
        return memory.write(fiber, op, target, coordinates, value, shape, valid)
    coordinates, valid = _in_tensor(op, target, coordinates, shape, valid)
    result = target.copy()
    result[tuple(coordinate[valid] for coordinate in coordinates)] = value[valid]
    return result


def _in_tensor(
    op: Instruction, tensor: np.ndarray, coordinates: Sequence[Value], shape: tuple[int, ...], valid: np.ndarray | None
) -> tuple[tuple, np.ndarray]:
    """Returns coordinates that can be used everywhere, and where they should be."""
    coordinates = [np.broadcast_to(coordinate, shape) for coordinate in coordinates]
    valid = np.broadcast_to(True if valid is None else valid, shape)
    inside = np.ones(shape, bool)
    for coordinate, size in zip(coordinates, tensor.shape):
        inside &= (coordinate >= 0) & (coordinate < size)
    if (valid & ~inside).any():
        raise StepladderError(
            f"{op.name} goes beyond the {list(tensor.shape)} of a tensor", location=op.location, status=FAILED
        )
    return tuple(np.where(inside, coordinate, 0) for coordinate in coordinates), valid


def _shape_of(source: Value) -> Value:
    return source.sizes if isinstance(source, MemRef) else source.shape


class _Transfer:
    """The layout of a transfer's vector in memory.

    Attributes:
        shape: of the vector.
        axes: for each of its dimensions, that of the memory, or None where it is broadcast.
        in_bounds: for each of its dimensions, whether all elements are known to be in the memory.
    """

    def __init__(self, op: Instruction, shape: Sequence[int]) -> None:
        self.shape = shape
        self.axes = []
        for expression in op.attributes["permutation_map"].results:
            self.axes.append(expression.position if isinstance(expression, ir.AffineDimExpr) else None)
        self.in_bounds = op.attributes.get("in_bounds") or [False] * len(shape)

    @staticmethod
    def of(op: Instruction, shape: Sequence[int]) -> _Transfer:
        if "transfer" not in op.cache:
            op.cache["transfer"] = _Transfer(op, shape)
        return op.cache["transfer"]

    def coordinates(self, starts: Sequence[Value]) -> list:
        """Returns the elements' coordinates, given those of the first."""
        rank = len(self.shape)
        places = {axis: along(self.shape, number) for number, axis in enumerate(self.axes) if axis is not None}
        return [offset_by(start, places.get(axis, 0), rank) for axis, start in enumerate(starts)]

    def valid(self, sizes: Sequence[Value], coordinates: Sequence[Value], mask: Value, mask_rank: int) -> Value:
        """Returns which elements are to be transferred: those in bounds and in the mask; None for all."""
        rank = len(self.shape)
        valid = None if mask is None else self._spread(mask, mask_rank)
        for number, axis in enumerate(self.axes):
            if axis is None or self.in_bounds[number]:
                continue
            size = offset_by(sizes[axis], 0, rank)
            inside = (coordinates[axis] >= 0) & (coordinates[axis] < size)
            valid = inside if valid is None else valid & inside
        return valid

    def _spread(self, mask: Value, mask_rank: int) -> np.ndarray:
        """Returns a mask in the vector's shape: its dimensions are in the memory's order, without broadcast ones."""
        mask = np.asarray(mask)
        front = len(leading(mask, mask_rank))
        memory_axes = sorted(axis for axis in self.axes if axis is not None)
        order = [front + memory_axes.index(axis) for axis in self.axes if axis is not None]
        mask = mask.transpose(*range(front), *order)
        for number, axis in enumerate(self.axes):
            if axis is None:
                mask = np.expand_dims(mask, front + number)
        return mask


def mask_of(op: Instruction, mask: Value, type_: Type | None) -> tuple[Value, int]:
    """Returns the mask of an op, its own or that of the enclosing `vector.mask`, and the mask's rank.

    Args:
        op: the instruction.
        mask: its own, or None.
        type_: of its own mask, or None.
    """
    return op.cache.get("mask", (mask, 0 if type_ is None else type_.rank))


@executes("vector.transfer_read")
def transfer_read(fiber: Fiber, op: Instruction, source: Value, *operands: Value) -> Value:
    """A vector from memory or a tensor. One of several dimensions is what a warp reads together."""
    shape = op.result_types[0].shape
    rank = len(shape)
    count = op.attributes["operandSegmentSizes"][1]
    starts, fill, *masks = operands[:count], *operands[count:]
    transfer = _Transfer.of(op, shape)
    mask, mask_rank = mask_of(op, masks[0] if masks else None, op.operand_types[-1] if masks else None)
    leader = None
    if rank > 1 and isinstance(source, MemRef):
        fiber, leader = once_a_warp(fiber, varying(fiber, [source], [*starts, fill, mask]))
    coordinates = transfer.coordinates(starts)
    valid = transfer.valid(_shape_of(source), coordinates, mask, mask_rank)
    value = _read(fiber, op, source, coordinates, shape, valid, fill)
    return value if leader is None or is_uniform(value, rank) else value[leader]


@executes("vector.transfer_write")
def transfer_write(fiber: Fiber, op: Instruction, value: Value, target: Value, *operands: Value) -> Value:
    """A vector to memory, or into a tensor. One of several dimensions is what a warp writes together."""
    shape = op.operand_types[0].shape
    count = op.attributes["operandSegmentSizes"][2]
    starts, masks = operands[:count], operands[count:]
    transfer = _Transfer.of(op, shape)
    mask, mask_rank = mask_of(op, masks[0] if masks else None, op.operand_types[-1] if masks else None)
    if len(shape) > 1 and isinstance(target, MemRef):
        numbers = [*starts, mask] if is_uniform(value, len(shape)) else [*starts, mask, value]
        fiber, _ = once_a_warp(fiber, varying(fiber, [target], numbers))
    coordinates = transfer.coordinates(starts)
    valid = transfer.valid(_shape_of(target), coordinates, mask, mask_rank)
    return _write(fiber, op, target, coordinates, value, shape, valid)


def contiguous_places(shape: Sequence[int], starts: Sequence[Value]) -> list:
    """Returns the coordinates of a vector along the last dimensions of a view.

    Args:
        shape: of the vector.
        starts: the coordinates of its first element, each uniform or (T,).
    """
    rank, outer = len(shape), len(starts) - len(shape)
    return [
        offset_by(start, along(shape, axis - outer) if axis >= outer else 0, rank) for axis, start in enumerate(starts)
    ]


@executes("vector.load")
def load(fiber: Fiber, op: Instruction, view: MemRef, *starts: Value) -> Value:
    """A vector from consecutive elements."""
    shape = op.result_types[0].shape
    alignment.check_element(fiber, op, view, starts, op.attributes.get("alignment", 0))
    return memory.read(fiber, op, view, contiguous_places(shape, starts), shape)


@executes("vector.store")
def store(fiber: Fiber, op: Instruction, value: Value, view: MemRef, *starts: Value) -> None:
    """A vector to consecutive elements."""
    shape = op.operand_types[0].shape
    alignment.check_element(fiber, op, view, starts, op.attributes.get("alignment", 0))
    memory.write(fiber, op, view, contiguous_places(shape, starts), value, shape)


def _selected(fiber: Fiber, op: Instruction, mask: Value, loaded_elements: Value, otherwise: Value) -> Value:
    """Returns elements of `loaded_elements` where the mask is set, and of `otherwise` where it is not."""
    rank = op.result_types[0].rank
    mask, loaded_elements, otherwise = in_lanes([mask, loaded_elements, otherwise], [rank] * 3, fiber.count)
    return np.where(mask, loaded_elements, otherwise).astype(loaded_elements.dtype)


def _check_masked(fiber: Fiber, op: Instruction, view: MemRef, starts: Sequence[Value], mask: Value) -> None:
    """Reports a first element whose address does not have the stated alignment, where any element is touched."""
    stated_alignment = op.attributes.get("alignment", 0)
    if stated_alignment <= 1:
        return
    mask = np.asarray(mask, bool)
    active = fiber.active & (mask.reshape(len(mask), -1).any(axis=1) if mask.ndim > 1 else mask.any())
    if active.any():
        alignment.check_element(narrowed(fiber, active), op, view, starts, stated_alignment)


@executes("vector.maskedload")
def maskedload(fiber: Fiber, op: Instruction, view: MemRef, *operands: Value) -> Value:
    """Loads consecutive elements where the mask is set; the others are those of the pass-through vector."""
    *starts, mask, otherwise = operands
    shape = op.result_types[0].shape
    _check_masked(fiber, op, view, starts, mask)
    elements = memory.read(fiber, op, view, contiguous_places(shape, starts), shape, mask)
    return _selected(fiber, op, mask, elements, otherwise)


@executes("vector.maskedstore")
def maskedstore(fiber: Fiber, op: Instruction, view: MemRef, *operands: Value) -> None:
    """Stores a vector to consecutive elements where the mask is set."""
    *starts, mask, value = operands
    shape = op.operand_types[-1].shape
    _check_masked(fiber, op, view, starts, mask)
    memory.write(fiber, op, view, contiguous_places(shape, starts), value, shape, mask)


def _scattered(starts: Sequence[Value], indices: Sequence[Value], rank: int) -> list:
    return [offset_by(start, indices if axis == len(starts) - 1 else 0, rank) for axis, start in enumerate(starts)]


@executes("vector.gather")
def gather(fiber: Fiber, op: Instruction, source: Value, *operands: Value) -> Value:
    """A vector from elements along the last dimension, each with an index."""
    *starts, indices, mask, otherwise = operands
    shape = op.result_types[0].shape
    elements = _read(fiber, op, source, _scattered(starts, indices, len(shape)), shape, mask, 0)
    return _selected(fiber, op, mask, elements, otherwise)


@executes("vector.scatter")
def scatter(fiber: Fiber, op: Instruction, target: Value, *operands: Value) -> Value:
    """A vector to elements along the last dimension, each with an index."""
    *starts, indices, mask, value = operands
    shape = op.operand_types[-1].shape
    return _write(fiber, op, target, _scattered(starts, indices, len(shape)), value, shape, mask)


@executes("vector.type_cast")
def type_cast(fiber: Fiber, op: Instruction, view: MemRef) -> MemRef:
    """The memory of an array, of elements or of vectors, as one of vectors that have more or fewer dimensions of it."""
    result = op.result_types[0]
    element, shape = result.element, result.static_shape
    first = np.asarray(view.offset) * view.element.bytes
    if (first % element.bytes).any():
        raise Unsupported(op, f"of memory that does not begin at a multiple of {element.bytes} bytes")
    whole = memory.contiguous(view.memory, element, shape, view.start)
    return whole.view(plain(first // element.bytes), whole.sizes, whole.strides)
