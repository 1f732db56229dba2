"""gpu: allocations and copies of the host, tokens, prints of kernels, and dynamic shared memory.

Launches, copies and allocations execute in program order, so that tokens are empty. A kernel that is launched
asynchronously and waits for a later one is resumed with that one (`Machine.launch`).
"""

from __future__ import annotations

import math

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.host import array_of, say
from stepladder.emulator.core.printing import formatted
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes, shared
from stepladder.emulator.core.types import Opaque
from stepladder.emulator.core.values import Value
from stepladder.emulator.memory import initialized, memory
from stepladder.emulator.memory.memory import contiguous

# Of dynamic shared memory, in bytes: what a TMA box and the widest swizzle need, as CUDA's launches give it.
_DYNAMIC_ALIGNMENT = 1024


def _with_token(op: Instruction, *results: Value) -> Value:
    """Returns an op's results, and a token after them where it has one."""
    with_token = (*results, None)[: len(op.result_types)]
    return with_token if len(with_token) > 1 else with_token[0] if with_token else None


@executes("gpu.alloc")
def alloc(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """New memory of the device, which the host reads and writes as well."""
    type_ = op.result_types[0]
    if not fiber.group.is_host:
        raise Unsupported(op, "inside of a kernel: expected an allocation of the host")
    sizes = list(operands[op.attributes["operandSegmentSizes"][0] :])
    shape = [int(sizes.pop(0)) if size is None else size for size in type_.shape]
    place = fiber.group.machine.heap.allocate(math.prod(shape) * type_.element.bytes)
    initialized.begin(place)
    return _with_token(op, contiguous(place, type_.element, shape))


@executes("gpu.dealloc")
def dealloc(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Frees memory; a later access is a finding."""
    view = operands[-1]
    fiber.group.machine.free(op, view.memory)
    return _with_token(op)


@executes("gpu.memcpy")
def memcpy(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Copies a memref."""
    target, source = operands[-2:]
    array = array_of(fiber, op, source)
    memory.write(fiber, op, target, np.ix_(*map(np.arange, array.shape)), array, array.shape)
    return _with_token(op)


@executes("gpu.memset")
def memset(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Fills a memref with a value."""
    target, value = operands[-2:]
    shape = tuple(int(size) for size in target.sizes)
    memory.write(fiber, op, target, np.ix_(*map(np.arange, shape)), value, shape)
    return _with_token(op)


@executes("gpu.host_register", "gpu.host_unregister", "gpu.set_default_device")
def nothing(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: host and device see one memory."""


@executes("gpu.wait")
def wait(fiber: Fiber, op: Instruction, *tokens: Value) -> Value:
    """Waits for what was launched, where the host waits; a new token otherwise, and nothing in a kernel."""
    if not op.result_types and fiber.group.is_host:
        fiber.group.machine.finish_launches()
    return _with_token(op)


@executes("gpu.printf")
def printf(fiber: Fiber, op: Instruction, *numbers: Value) -> None:
    """Prints, one thread after the other."""
    for lane in fiber.lanes:
        arguments = []
        for value, type_ in zip(numbers, op.operand_types):
            number = value if values.is_uniform(value) else value[lane]
            arguments.append((number, 64 if isinstance(type_, Opaque) else max(32, type_.width)))
        say(fiber, formatted(op.attributes["format"], arguments))


@executes("gpu.dynamic_shared_memory")
def dynamic_shared_memory(fiber: Fiber, op: Instruction) -> Value:
    """The shared memory that the launch gives, as bytes; every such op has the same."""
    window = fiber.group.shared
    start = fiber.group.layout[_SYMBOL]
    return contiguous(window, op.result_types[0].element, (window.size - start,), start)


_SYMBOL = "gpu.dynamic_shared_memory"


@shared("gpu.dynamic_shared_memory")
def _dynamic_shared(op: Instruction) -> Value:
    return None, _DYNAMIC_ALIGNMENT, _SYMBOL
