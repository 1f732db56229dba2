"""nvvm: 8 x 8 matrices of a warp (ldmatrix, stmatrix), and products of fragments (mma.sync)."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value, lanes
from stepladder.emulator.dialects import nvgpu
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.hardware import fragments, warpgroups
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.fragments import REGISTER_BITS
from stepladder.emulator.hardware.sparse_operands import Sparsity, selectors
from stepladder.emulator.hardware.warps import together
from stepladder.emulator.memory import memory
from stepladder.emulator.memory.memory import contiguous
from stepladder.emulator.memory.sanitizer import WARP
from stepladder.mlir.printed import keyword, shape_numbers

_B16 = Scalar("i16", np.dtype(np.int16), 16)


def _window(fiber: Fiber) -> Value:
    """Returns shared memory as elements of 16 bits."""
    window = fiber.group.shared
    return contiguous(window, _B16, (window.size // _B16.bytes,))


@executes("nvvm.ldmatrix")
def ldmatrix(fiber: Fiber, op: Instruction, pointer: Value) -> Value:
    """Loads one, two or four 8 x 8 matrices of 16 bits: thread 8 j + r gives the address of row r of matrix j."""
    _only_16_bits(op)
    elements = nvgpu.load_matrices(
        fiber,
        op,
        _window(fiber),
        [pointer // _B16.bytes],
        op.attributes["num"],
        transposed=keyword(op.attributes["layout"]) == "col",
    )
    registers = np.ascontiguousarray(elements).view(np.int32)[..., 0]
    return AccumulatorRegisters(registers) if op.attributes["num"] > 1 else registers[:, 0]


def _only_16_bits(op: Instruction) -> None:
    if "b16" not in op.attributes["eltType"]:
        raise Unsupported(op, f"of {op.attributes['eltType']}")


@executes("nvvm.stmatrix")
def stmatrix(fiber: Fiber, op: Instruction, pointer: Value, *registers: Value) -> None:
    """Stores one, two or four 8 x 8 matrices of 16 bits: thread 8 j + r gives the address of row r of matrix j."""
    _only_16_bits(op)
    group = fiber.group
    count = len(registers)
    threads = nvgpu.warps_of(fiber, op)
    words = np.stack([lanes(register, fiber.count)[threads] for register in registers], axis=1).astype(np.int32)
    fragment = fragments.matrix(transposed=keyword(op.attributes["layout"]) == "col")
    matrices = fragment.join(words[..., None].view(np.int16))
    rows = np.zeros((fiber.count, fragments.MATRIX_ROWS), np.int16)
    rows[threads[:, : count * fragments.MATRIX_ROWS]] = matrices.reshape(len(threads), -1, fragments.MATRIX_ROWS)
    gives = group.thread_of_lane % WARP < count * fragments.MATRIX_ROWS
    address = lanes(pointer, fiber.count)
    wrong = gives[fiber.lanes] & (address[fiber.lanes] % fragments.ROW_BYTES != 0)
    if wrong.any():
        group.sanitizer.misaligned(fiber, op, int(address[fiber.lanes][wrong][0]), fragments.ROW_BYTES)
    columns = np.arange(fragments.MATRIX_ROWS)
    memory.write(
        together(fiber),
        op,
        _window(fiber),
        [address[:, None] // _B16.bytes + columns],
        rows,
        (fragments.MATRIX_ROWS,),
        np.broadcast_to(gives[:, None], rows.shape),
    )


_NARROW = {"s4": (4, True), "u4": (4, False), "b1": (1, False)}  # bits, and whether there is a sign


@executes("nvvm.mma.sync", "nvvm.mma.sp.sync")
def mma_sync(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """A product of a warp, of fragments in registers; of a sparse one, A has half of its elements."""
    rows, columns, k = shape_numbers(op.attributes["shape"])
    kinds = [
        keyword(op.attributes[name]) if name in op.attributes else None
        for name in ("multiplicandAPtxType", "multiplicandBPtxType")
    ]
    parts = nvgpu.segments(op, operands)
    a, b, c = (_registers_of(fiber, part, kind) for part, kind in zip(parts, (*kinds, None)))
    are_alike = a.dtype == b.dtype or {a.dtype.kind, b.dtype.kind} == {"i", "u"}
    if kinds[0] not in (None, "f64", *_NARROW, *warpgroups.TYPES) or not are_alike or a.shape[-1] != b.shape[-1]:
        raise Unsupported(op, f"of {kinds[0]} by {kinds[1]}")
    sparsity = None
    if op.name == "nvvm.mma.sp.sync":
        sparsity = _sparsity(fiber, op, parts[3][0], parts[4][0], REGISTER_BITS // a.shape[-1], k)
    sums = nvgpu.multiply_in_warps(
        fiber,
        op,
        a,
        b,
        c.reshape(fiber.count, -1, 2),
        (rows, columns, k),
        tf32=kinds[0] == "tf32",
        saturates=keyword(op.attributes.get("intOverflowBehavior", "wrapped")) == "satfinite",
        differs="b1Op" in op.attributes and keyword(op.attributes["b1Op"]) == "xor_popc",
        sparsity=sparsity,
    )
    if c.shape[2] == 2:  # two accumulators of 16 bits are a vector
        return Struct(tuple(sums[:, pair] for pair in range(sums.shape[1])))
    return AccumulatorRegisters(sums.reshape(fiber.count, -1))


def _sparsity(fiber: Fiber, op: Instruction, metadata: Value, selector: Value, bits: int, k: int) -> Sparsity:
    """Returns the metadata of a sparse product of elements of `bits` bits."""
    number = fiber.agreed(selector)
    if isinstance(number, np.ndarray) or not 0 <= number < selectors(bits, k):
        raise Unsupported(op, f"with the sparsity selector {number}")
    return Sparsity(metadata, int(number), bool(op.attributes.get("orderedMetadata")))


def _registers_of(fiber: Fiber, registers: Value, kind: str | None) -> np.ndarray:
    """Returns registers as elements (T, registers, elements of one); integers of 32 bits may represent a type."""
    rank = 1 if np.ndim(registers[0]) and np.shape(registers[0])[-1] == 2 and kind is None else 0
    elements = np.stack([lanes(np.asarray(register), fiber.count, rank) for register in registers], axis=1)
    if elements.ndim == 2:
        elements = elements[..., None]
    if kind in _NARROW:
        return fragments.narrow(elements, *_NARROW[kind])
    return np.ascontiguousarray(elements).view(warpgroups.TYPES[kind]) if kind in warpgroups.TYPES else elements
