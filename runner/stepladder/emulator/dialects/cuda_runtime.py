"""Functions of MLIR's runtime library for CUDA, which hosts call after gpu-to-llvm and convert-nvgpu-to-nvvm.

Launches and copies execute in program order, so that streams and events are null.
"""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.host import brings
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects import c_library
from stepladder.emulator.dialects.llvm import NUMBERS
from stepladder.emulator.hardware import tma
from stepladder.emulator.memory import pointers

# CUtensorMapDataType (cuda.h), and the swizzles of CUtensorMapSwizzle.
_ELEMENTS = {
    0: "i8",
    1: "i16",
    2: "i32",
    3: "i32",
    4: "i64",
    5: "i64",
    6: "f16",
    7: "f32",
    8: "f64",
    9: "bf16",
    10: "f32",
    11: "f32",
    12: "f32",
}
_SWIZZLES = (0, 32, 64, 128)
_WORD = Scalar("i64", np.dtype(np.int64), 64)
_BYTE = Scalar("i8", np.dtype(np.int8), 8)


@brings("mgpuStreamCreate", "mgpuEventCreate")
def new_handle(fiber: Fiber, op: Instruction) -> int:
    """Returns a stream or an event."""
    return 0


@brings(
    *("mgpuStreamDestroy", "mgpuStreamWaitEvent", "mgpuEventDestroy", "mgpuEventRecord", "mgpuSetDefaultDevice"),
    *(f"mgpuMemHost{verb}{form}" for verb in ("Register", "Unregister") for form in ("", "MemRef")),
)
def nothing(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: host and device see one memory."""


@brings("mgpuStreamSynchronize", "mgpuEventSynchronize")
def synchronize(fiber: Fiber, op: Instruction, handle: Value) -> None:
    """Waits for all launches."""
    fiber.group.machine.finish_launches()


@brings("mgpuMemAlloc")
def allocate_on_device(fiber: Fiber, op: Instruction, size: Value, *stream: Value) -> int:
    """Returns the address of new memory of the device, which the host reads and writes as well."""
    return c_library.allocate(fiber, op, size)


@brings("mgpuMemFree")
def free_on_device(fiber: Fiber, op: Instruction, address: Value, *stream: Value) -> None:
    """Frees memory of the device."""
    c_library.free(fiber, op, address)


@brings("mgpuMemcpy")
def copy(fiber: Fiber, op: Instruction, target: Value, source: Value, size: Value, *stream: Value) -> None:
    """Copies bytes."""
    shape = (int(size),)
    pointers.write(fiber, op, target, pointers.read(fiber, op, source, _BYTE, shape), _BYTE, shape)


@brings("mgpuMemset16", "mgpuMemset32")
def fill(fiber: Fiber, op: Instruction, target: Value, value: Value, count: Value, *stream: Value) -> None:
    """Fills memory with a number of 16 or of 32 bits, which is repeated `count` times."""
    width = int(op.attributes["callee"][-2:])
    element = Scalar(f"i{width}", np.dtype(f"i{width // 8}"), width)
    pointers.write(fiber, op, target, np.full(int(count), value, element.dtype), element, (int(count),))


@brings("mgpuTensorMapEncodeTiledMemref")
def encode_tiled_memref(
    fiber: Fiber,
    op: Instruction,
    rank: Value,
    descriptor: Value,
    element: Value,
    interleave: Value,
    swizzle: Value,
    promotion: Value,
    fill: Value,
    boxes: Value,
) -> tma.Descriptor:
    """A TMA descriptor of a memref, given the address of its ranked descriptor, as convert-nvgpu-to-nvvm calls it.

    The library takes the aligned address as that of the first element, whatever the offset is.
    """
    if interleave or fill not in (0, 1):
        raise Unsupported(op, f"with the interleaved layout {interleave} and the fill {fill}: 0, and 0 or 1 are known")
    if element not in _ELEMENTS or not 0 <= swizzle < len(_SWIZZLES):
        raise Unsupported(op, f"with the data type {element} and the swizzle {swizzle}: 0 to 12 and 0 to 3 are known")
    words = np.asarray(pointers.read(fiber, op, descriptor, _WORD, (3 + 2 * rank,))).reshape(-1)
    box = np.asarray(pointers.read(fiber, op, boxes, _WORD, (rank,))).reshape(-1)
    address, offset = int(words[1]), int(words[2])
    memory = pointers.object_at(fiber, address)
    if memory is None or offset:
        raise Unsupported(op, "of a memref that begins behind its aligned address" if offset else "of no memory")
    name = _ELEMENTS[element]
    made = tma.Descriptor(
        memory,
        address - memory.address,
        Scalar(name, np.dtype(NUMBERS[name]), 8 * np.dtype(NUMBERS[name]).itemsize),
        tuple(map(int, words[3 : 3 + rank])),
        tuple(map(int, words[3 + rank :])),
        tuple(map(int, box)),
        _SWIZZLES[swizzle],
        fills_nan=bool(fill),
    )
    for problem in made.problems():
        fiber.group.sanitizer.report("descriptor", problem, op)
    return made
