"""gpu.warp_execute_on_lane_0: a region that the first thread of each warp executes, on vectors of the whole warp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.control_flow import branch, join, jump, move
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import lowers
from stepladder.emulator.core.types import BOOL, Shaped, Type
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects import nvgpu
from stepladder.emulator.dialects.ub import poison_of
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError


@lowers("gpu.warp_execute_on_lane_0")
def lower_region(builder: Builder, op: ir.Operation) -> None:
    """The parts of vectors are joined for the region, and what it yields is divided among the threads."""
    warp = decode_attributes(op)["warp_size"]
    lane, *captured = builder.used(op.operands)
    block = op.regions[0].blocks[0]
    arguments, results = builder.defined(block.arguments), builder.defined(op.results)
    axes = [_axis(builder, builder.slot_types[a], builder.slot_types[b], warp) for a, b in zip(arguments, captured)]
    is_first = builder.new_slot(BOOL)
    builder.emit(op.name, _meet, (lane, *captured), (is_first, *arguments), {"axes": axes, "warp_size": warp})
    way = builder.emit(op.name, branch, (is_first,))
    end = builder.to_terminator(block)
    yielded_slots = builder.used(end.operands)
    result_slots = tuple(builder.new_slot(builder.slot_types[slot]) for slot in yielded_slots)
    if result_slots:
        builder.emit(op.name, move, yielded_slots, result_slots)
    leave = builder.emit(op.name, jump)
    way.attributes |= {"otherwise": builder.here, "slots": result_slots}
    if result_slots:
        builder.emit(op.name, _nothing, (), result_slots)
    way.attributes["join"] = leave.attributes["to"] = builder.here
    builder.emit(op.name, join)
    axes = [_axis(builder, builder.slot_types[a], builder.slot_types[b], warp) for a, b in zip(result_slots, results)]
    builder.emit(op.name, _divide, result_slots, results, {"axes": axes})


def _axis(builder: Builder, vector_type: Type, part_type: Type, warp: int) -> int | None:
    """Returns the dimension along which the threads of a warp have parts of a vector; None where all have the same.

    Raises:
        StepladderError: a vector that is divided in another way.
    """
    if vector_type == part_type or not isinstance(vector_type, Shaped) or not isinstance(part_type, Shaped):
        return None
    differ = [
        axis for axis, sizes in enumerate(zip(vector_type.static_shape, part_type.static_shape)) if sizes[0] != sizes[1]
    ]
    if not differ:
        return None
    axis = differ[0]
    if len(differ) > 1 or vector_type.static_shape[axis] != warp * part_type.static_shape[axis]:
        raise StepladderError(
            f"the emulator does not support {builder.lowered.name} with a vector that is divided along several "
            "dimensions",
            location=builder.location,
        )
    return axis


def _meet(fiber: Fiber, op: Instruction, lane: Value, *parts_of_vectors: Value) -> tuple:
    """Lets the threads of each warp wait for each other; returns which are first, and the whole vectors."""
    threads = nvgpu.warps_of(fiber, op)
    fiber.group.sanitizer.meet(fiber.warps)
    parts = zip(parts_of_vectors, op.operand_types[1:], op.attributes["axes"])
    return values.lanes(np.asarray(lane), fiber.count) == 0, *(
        value if axis is None else _together(fiber, value, type_, axis, threads) for value, type_, axis in parts
    )


def _together(fiber: Fiber, value: Value, type_: Shaped, axis: int, threads: np.ndarray) -> np.ndarray:
    """Returns the vectors of the threads of a warp one after the other, for each thread."""
    parts = values.lanes(np.asarray(value), fiber.count, type_.rank)[threads]  # (warps, threads, *shape)
    parts = np.moveaxis(parts, 1, 1 + axis)
    shape = list(type_.static_shape)
    shape[axis] *= threads.shape[1]
    vectors = np.zeros((fiber.count, *shape), parts.dtype)
    vectors[threads] = parts.reshape(len(threads), 1, *shape)
    return vectors


def _nothing(fiber: Fiber, op: Instruction) -> Value:
    """What threads other than the first have of the values of the region."""
    neutral_values = tuple(
        poison_of(type_.element, type_.static_shape) if isinstance(type_, Shaped) else poison_of(type_, ())
        for type_ in op.result_types
    )
    return neutral_values if len(neutral_values) != 1 else neutral_values[0]


def _divide(fiber: Fiber, op: Instruction, *vectors: Value) -> Value:
    """Returns each thread's part of what the first thread of its warp has."""
    threads = nvgpu.warps_of(fiber, op)
    fiber.group.sanitizer.meet(fiber.warps)
    results = [
        _part(fiber, value, type_, axis, threads)
        for value, type_, axis in zip(vectors, op.operand_types, op.attributes["axes"])
    ]
    return results[0] if len(results) == 1 else tuple(results)


def _part(fiber: Fiber, value: Value, type_: Type, axis: int | None, threads: np.ndarray) -> np.ndarray:
    array = values.lanes(np.asarray(value), fiber.count, type_.rank)
    first = array[threads[:, :1]]  # (warps, 1, *shape)
    shape: Sequence[int] = type_.static_shape if isinstance(type_, Shaped) else ()
    if axis is not None:
        size = shape[axis] // threads.shape[1]
        shape = (*shape[:axis], size, *shape[axis + 1 :])
        parts = first.reshape(
            len(threads), *array.shape[1 : 1 + axis], threads.shape[1], size, *array.shape[2 + axis :]
        )
        first = np.moveaxis(parts, 1 + axis, 1)
    result = np.zeros((fiber.count, *shape), array.dtype)
    result[threads] = np.broadcast_to(first, (*threads.shape, *shape))
    return result
