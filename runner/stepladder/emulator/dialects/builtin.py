"""builtin: casts between types of different dialects, which do not change the value."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Builder, Instruction
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.types import Buffer, Opaque, Vector
from stepladder.emulator.core.values import MemRef, Value, lanes
from stepladder.emulator.dialects import nvvm_wmma
from stepladder.emulator.dialects.gpu_mma import WarpMatrix
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.warpgroups import ROWS
from stepladder.emulator.memory import pointers
from stepladder.mlir.bindings import ir
from stepladder.mlir.llvm_layouts import Layout, layout
from stepladder.mlir.printed import chips_of
from stepladder.mlir.types import warpgroup_tile

_UNRANKED = "!llvm.struct<(i64, ptr)>"


@executes("builtin.unrealized_conversion_cast")
def cast(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Passes the value on: between a memref and its descriptor, or one of another type of as many bits, between an
    accumulator of a warpgroup and its vector, a vector and an array of vectors, or a fragment of a warp and its
    registers."""
    if len(operands) == 1 and len(op.result_types) == 1:
        value, target = operands[0], op.result_types[0]
        if isinstance(value, MemRef) and isinstance(target, Buffer) and value.element.bytes == target.element.bytes:
            return MemRef(value.memory, target.element, value.start, value.offset, value.sizes, value.strides)
        if isinstance(value, WarpMatrix):
            return nvvm_wmma.registers_of(fiber, op, value)
        if isinstance(value, AccumulatorRegisters) and isinstance(target, Opaque):
            return nvvm_wmma.matrix_of(fiber, op, value)
        if isinstance(value, MemRef) and isinstance(target, Opaque) and target.text == _UNRANKED:
            return _as_unranked(fiber, value)
        if isinstance(value, MemRef) and isinstance(target, Opaque) and target.text.startswith("!llvm.struct"):
            return _as_descriptor(value, fiber.count)
        if isinstance(value, MemRef) and isinstance(target, Opaque) and target.text.startswith("!llvm.ptr"):
            return pointers.first_element(value)
        if isinstance(value, Struct) and isinstance(target, Buffer):
            return _as_view(fiber, op, value, target)
        if isinstance(value, Struct) and isinstance(target, Vector):
            return _as_vector(fiber, op, value, target.rank)
        if isinstance(value, np.ndarray) and isinstance(target, Opaque) and target.text.startswith("!llvm.array"):
            return _as_array(lanes(value, fiber.count, op.operand_types[0].rank), layout(target.text))
    if isinstance(operands[0], np.ndarray) and "warpgroup.accumulator" in getattr(op.result_types[0], "text", ""):
        rows = warpgroup_tile(op.result_types[0].text)[0]
        return AccumulatorRegisters(operands[0].reshape(fiber.count, rows // ROWS, -1))
    if isinstance(operands[0], AccumulatorRegisters):
        return operands[0].read(fiber, op).reshape(fiber.count, *op.result_types[0].shape)
    return operands[0] if len(operands) == 1 else operands


def _as_unranked(fiber: Fiber, view: MemRef) -> Struct:
    """Returns a view as the struct of an unranked memref: its rank, and the address of its descriptor in memory."""
    words = np.array([int(fiber.first(word)) for word in pointers.descriptor(view)], np.int64)
    place = fiber.group.machine.heap.allocate(words.nbytes, "a memref descriptor")
    place.data[: words.nbytes] = words.view(np.uint8)
    place.is_array = False
    return Struct((view.rank, place.address))


def _as_descriptor(view: MemRef, count: int) -> Struct:
    """Returns a view as the struct that finalize-memref-to-llvm makes of it."""
    fields = pointers.descriptor(view)
    lists = [
        AccumulatorRegisters(np.stack([lanes(np.asarray(number, np.int64), count) for number in numbers], axis=1))
        for numbers in (view.sizes, view.strides)
        if view.rank
    ]
    return Struct((*fields[:3], *lists))


def _as_vector(fiber: Fiber, op: Instruction, value: Value, rank: int) -> np.ndarray:
    """Returns an array of vectors as convert-vector-to-llvm makes it as one vector, of each lane."""
    if isinstance(value, Struct):
        return np.stack([_as_vector(fiber, op, field, rank - 1) for field in value.fields], axis=1)
    return lanes(value.read(fiber, op) if isinstance(value, AccumulatorRegisters) else value, fiber.count, rank)


def _as_array(vectors: np.ndarray, form: Layout) -> Value:
    """Returns the vector of each lane as an array of vectors, or of arrays of them."""
    if form.kind == "vector":
        return vectors
    if form.part(0).kind == "number":
        return AccumulatorRegisters(vectors)
    return Struct(tuple(_as_array(vectors[:, number], form.part(0)) for number in range(vectors.shape[1])))


def _as_view(fiber: Fiber, op: Instruction, struct: Struct, type_: Buffer) -> MemRef:
    """Returns the view that a descriptor is of."""
    _, address, offset, *lists = struct.fields
    sizes, strides = (
        ([fiber.agreed(part.array[:, axis]) for axis in range(type_.rank)] for part in lists) if lists else ([], [])
    )
    return pointers.view_at(fiber, op, address, type_.element, offset, sizes, strides)


@lowers("transform.named_sequence", "transform.sequence", "transform.library", "llvm.comdat")
def lower_schedule(builder: Builder, op: ir.Operation) -> None:
    """A transform script, which is not executed."""


@lowers("builtin.module", "gpu.module")
def lower_module(builder: Builder, op: ir.Operation) -> None:
    """A module: the ops in it."""
    outer = builder.chips
    if op.name == "gpu.module":
        builder.modules.append(op.attributes["sym_name"].value)
        if "targets" in op.attributes:
            builder.chips = chips_of(op.attributes["targets"])
    for inner in op.regions[0].blocks[0].operations:
        builder.lower(inner.operation)
    if op.name == "gpu.module":
        builder.modules.pop()
    builder.chips = outer


@lowers("ml_program.global")
def lower_global(builder: Builder, op: ir.Operation) -> None:
    """A global that no op of a payload may read: nothing."""


@lowers("gpu.module_end")
def lower_end(builder: Builder, op: ir.Operation) -> None:
    """The end of a module: nothing."""
