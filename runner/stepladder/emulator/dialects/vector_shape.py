"""vector: shapes, single elements and masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core.elements import plain, reinterpreted
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import (
    Value,
    in_lanes,
    is_uniform,
    lanes,
    leading,
    with_rank,
)
from stepladder.emulator.dialects.ub import POISON, poison_of
from stepladder.emulator.dialects.vector_memory import along, offset_by
from stepladder.mlir.bindings import ir

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@executes("vector.broadcast", "vector.splat")
def broadcast(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A scalar or a vector repeated before, and along, its dimensions of one."""
    type_ = op.result_types[0]
    value = with_rank(value, op.operand_types[0].rank, type_.rank)
    value = np.broadcast_to(value, (*leading(value, type_.rank), *type_.shape))
    return value.astype(type_.element.dtype, copy=False)


@executes("vector.shape_cast")
def shape_cast(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The same elements, in the same order, in another shape."""
    type_ = op.result_types[0]
    return np.reshape(value, (*leading(value, op.operand_types[0].rank), *type_.shape))


@executes("vector.transpose")
def transpose(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The dimensions in another order."""
    order = op.attributes["permutation"]
    front = value.ndim - len(order)
    return value.transpose(*range(front), *(front + axis for axis in order))


@executes("vector.bitcast")
def bitcast(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The same bits as elements of another type."""
    source, target = op.operand_types[0].element, op.result_types[0].element
    return reinterpreted(value, source, target)


def _positions(op: Instruction, dynamic: Sequence[Value]) -> list:
    remaining = iter(dynamic)
    return [next(remaining) if position == _DYNAMIC else position for position in op.attributes["static_position"]]


def _inside(fiber: Fiber, op: Instruction, positions: list, shape: Sequence[int]) -> list:
    """Returns positions in a vector; those of active lanes that are outside become a finding."""
    for axis, (position, size) in enumerate(zip(positions, shape)):
        own = position[fiber.lanes] if isinstance(position, np.ndarray) else np.asarray([position])
        wrong = (own < 0) | (own >= size)
        if wrong.any():
            place = int(own[wrong.argmax()])
            fiber.group.sanitizer.report("out-of-bounds", f"position {place} of {size} in dimension {axis}", op)
    # Lanes that are not active may have any index.
    return [np.clip(position, 0, size - 1) for position, size in zip(positions, shape)]


@executes("vector.extract")
def extract(fiber: Fiber, op: Instruction, value: Value, *dynamic: Value) -> Value:
    """An element, or a vector of them."""
    rank = op.operand_types[0].rank
    positions = _positions(op, dynamic)
    if POISON in op.attributes["static_position"]:
        return plain(poison_of(op.result_types[0].element, op.result_types[0].shape))
    front = len(leading(value, rank))
    if dynamic:
        positions = _inside(fiber, op, positions, op.operand_types[0].shape)
    if not any(isinstance(position, np.ndarray) for position in positions):
        return plain(np.asarray(value)[(slice(None),) * front + tuple(positions)])
    return value[((np.arange(fiber.count),) if front else ()) + tuple(positions)]


@executes("vector.insert")
def insert(fiber: Fiber, op: Instruction, part: Value, value: Value, *dynamic: Value) -> Value:
    """A vector with another element, or another vector of them."""
    rank, part_rank = op.operand_types[1].rank, op.operand_types[0].rank
    positions = _positions(op, dynamic)
    if POISON in op.attributes["static_position"]:
        return poison_of(op.result_types[0].element, op.result_types[0].shape)
    if dynamic:
        positions = _inside(fiber, op, positions, op.operand_types[1].shape)
    if (
        is_uniform(part, part_rank)
        and is_uniform(value, rank)
        and not any(isinstance(position, np.ndarray) for position in positions)
    ):
        result = np.array(value)
        result[tuple(positions)] = part
        return plain(result)
    result = np.array(lanes(value, fiber.count, rank))
    result[(np.arange(fiber.count), *positions)] = part
    return result


@executes("vector.extract_strided_slice")
def extract_strided_slice(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """An element or a subvector of a vector."""
    front = value.ndim - op.operand_types[0].rank
    parts = zip(*(op.attributes[name] for name in ("offsets", "sizes", "strides")))
    return value[
        (slice(None),) * front + tuple(slice(offset, offset + size * stride, stride) for offset, size, stride in parts)
    ]


@executes("vector.insert_strided_slice")
def insert_strided_slice(fiber: Fiber, op: Instruction, part: Value, value: Value) -> Value:
    """A vector with an element or a subvector replaced."""
    part_rank, rank = op.operand_types[0].rank, op.operand_types[1].rank
    part, value = in_lanes([part, value], [part_rank, rank], fiber.count)
    offsets, strides = op.attributes["offsets"], op.attributes["strides"]
    front = value.ndim - rank
    inner = [
        slice(offset, offset + size * stride, stride)
        for offset, size, stride in zip(offsets[rank - part_rank :], part.shape[front:], strides)
    ]
    result = np.array(value)
    result[(slice(None),) * front + (*offsets[: rank - part_rank], *inner)] = part
    return result


@executes("vector.from_elements")
def from_elements(fiber: Fiber, op: Instruction, *elements: Value) -> Value:
    """A vector of scalars."""
    type_ = op.result_types[0]
    if all(map(is_uniform, elements)):
        return plain(np.array(elements, type_.element.dtype).reshape(type_.shape))
    value = np.empty((fiber.count, len(elements)), type_.element.dtype)
    for number, element in enumerate(elements):
        value[:, number] = element
    return value.reshape(-1, *type_.shape)


@executes("vector.to_elements")
def to_elements(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The elements of a vector."""
    value = np.reshape(value, (*leading(value, op.operand_types[0].rank), -1))
    results = tuple(plain(value[..., number]) for number in range(value.shape[-1]))
    return results[0] if len(results) == 1 else results


@executes("vector.shuffle")
def shuffle(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Elements of two vectors, by their index along the first dimension."""
    ranks = [max(type_.rank, 1) for type_ in op.operand_types]
    left, right = in_lanes(
        [with_rank(value, type_.rank, rank) for value, type_, rank in zip((left, right), op.operand_types, ranks)],
        ranks,
        fiber.count,
    )
    axis = left.ndim - ranks[0]
    order = np.array(op.attributes["mask"])
    result = np.concatenate([left, right], axis=axis).take(order, axis=axis, mode="clip")
    if (order == POISON).any():
        result[(slice(None),) * axis + (order == POISON,)] = poison_of(op.result_types[0].element)
    return result


@executes("vector.interleave")
def interleave(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Interleaves the elements of two vectors along the last dimension."""
    rank = op.operand_types[0].rank
    left, right = in_lanes([left, right], [rank] * 2, fiber.count)
    result = np.stack([left, right], axis=-1)
    return result.reshape((*leading(left, rank), *op.result_types[0].shape))


@executes("vector.deinterleave")
def deinterleave(fiber: Fiber, op: Instruction, value: Value) -> tuple[Value, ...]:
    """The elements with even and those with odd indices along the last dimension."""
    return value[..., 0::2], value[..., 1::2]


@executes("vector.step")
def step(fiber: Fiber, op: Instruction) -> Value:
    """0, 1, 2, ..."""
    return np.arange(op.result_types[0].shape[0])


def _mask_of(shape: Sequence[int], sizes: Sequence[Value]) -> np.ndarray:
    """Returns true for the elements with coordinates below sizes, which are the same for all lanes or differ."""
    if not shape:  # one element, and one size all the same
        return np.asarray(sizes[0]) > 0
    result = np.ones(shape, bool)
    for axis, size in enumerate(sizes):
        result = result & (along(shape, axis) < offset_by(size, 0, len(shape)))
    return result


@executes("vector.constant_mask")
def constant_mask(fiber: Fiber, op: Instruction) -> Value:
    """A mask of a box at the origin."""
    return plain(_mask_of(op.result_types[0].shape, op.attributes["mask_dim_sizes"]))


@executes("vector.create_mask")
def create_mask(fiber: Fiber, op: Instruction, *sizes: Value) -> Value:
    """A mask of a box at the origin."""
    return plain(_mask_of(op.result_types[0].shape, sizes))
