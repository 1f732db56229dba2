"""Functions of MLIR's runtime library for CUDA: those that lowered programs of the host call beside `gpu` ops."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.host import brings
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value
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
    if interleave or fill:
        raise Unsupported(op, "with an interleaved layout, or with NaN out of bounds: only with 0 for both")
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
    )
    for problem in made.problems():
        fiber.group.sanitizer.report("descriptor", problem, op)
    return made
