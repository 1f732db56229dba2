"""bufferization: conversions between tensors and memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.dialects.tensor import empty
from stepladder.emulator.dialects.vector_memory import along
from stepladder.emulator.memory import memory

executes("bufferization.alloc_tensor")(empty)


def everywhere(sizes: Sequence[Value]) -> tuple:
    """Returns the coordinates of all elements of a view; they must not be written to.

    Args:
        sizes: of the view, the same for all lanes.
    """
    return tuple(along(sizes, axis) for axis in range(len(sizes)))


@executes("bufferization.to_tensor")
def to_tensor(fiber: Fiber, op: Instruction, view: MemRef) -> Value:
    """The current content of a buffer, without later writes: with `restrict`, none is visible in the tensor."""
    return memory.read(fiber, op, view, everywhere(view.sizes), tuple(view.sizes))


@executes("bufferization.to_buffer")
def to_buffer(fiber: Fiber, op: Instruction, tensor: np.ndarray) -> Value:
    """A new buffer with a tensor's elements, which no other buffer aliases."""
    return memory.contiguous(fiber.group.machine.heap.array(tensor), op.result_types[0].element, tensor.shape)


@executes("bufferization.materialize_in_destination")
def materialize_in_destination(fiber: Fiber, op: Instruction, source: Value, target: Value) -> Value:
    """Puts a tensor into a buffer, or in place of another tensor."""
    if isinstance(target, np.ndarray):
        return source
    return memory.write(fiber, op, target, everywhere(target.sizes), source, tuple(target.sizes))


@executes("bufferization.clone")
def clone(fiber: Fiber, op: Instruction, view: MemRef) -> Value:
    """A new buffer with the elements of another."""
    return to_buffer(fiber, op, to_tensor(fiber, op, view))


@executes("bufferization.dealloc_tensor", "bufferization.dealloc")
def dealloc(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: memory is kept until the end."""
