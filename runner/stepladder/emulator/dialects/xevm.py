"""xevm: 2D block operations, prefetches and matrix products of subgroups of 16 lanes."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.xetile_vectors import product
from stepladder.emulator.hardware import blocks2d
from stepladder.emulator.hardware.blocks2d import LANES, Block

# Types of A and B, as `xevm.mma` names them.
KINDS = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
}
_MMA_TYPES = re.compile(r"\b([abcd]) = (\w+)")
_MMA_SHAPE = re.compile(r"m = (\d+), n = (\d+), k = (\d+)")


def _block(op: Instruction) -> Block:
    attributes = op.attributes
    order = "packed" if attributes.get("pack_register") else "transposed" if attributes.get("transpose") else "plain"
    return Block(
        attributes["elem_size_in_bits"] // 8,
        attributes["tile_height"],
        attributes["tile_width"],
        attributes.get("v_blocks", 1),
        order,
    )


@executes("xevm.blockload2d")
def blockload2d(fiber: Fiber, op: Instruction, *numbers: Value) -> Value:
    """A 2D block load: the elements of a lane, in registers of the result's type."""
    return blocks2d.as_type(blocks2d.load(fiber, op, _block(op), numbers), op.result_types[0].element.dtype)


@executes("xevm.blockstore2d")
def blockstore2d(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Writes a block."""
    *numbers, value = operands
    blocks2d.store(fiber, op, _block(op), numbers, value)


@executes("xevm.blockprefetch2d")
def blockprefetch2d(fiber: Fiber, op: Instruction, *numbers: Value) -> None:
    """Nothing but checks: caches are not modelled."""
    blocks2d.prefetch(fiber, op, _block(op), numbers)


@executes("xevm.prefetch", "xevm.memfence")
def nothing(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: caches are not modelled, and accesses are in order."""


@executes("xevm.mma")
def mma(fiber: Fiber, op: Instruction, a: Value, b: Value, *c: Value) -> Value:
    """A product of one matrix instruction, added to C."""
    kinds = dict(_MMA_TYPES.findall(str(op.attributes["types"])))
    match = _MMA_SHAPE.search(str(op.attributes["shape"]))
    m, n, k = (int(size) for size in match.groups()) if match else (0, 0, 0)
    if n != LANES or kinds.get("a") not in KINDS or kinds.get("b") not in KINDS:
        raise Unsupported(op, f"of {n} columns, {op.attributes['types']}: {LANES}, and {', '.join(KINDS)} are known")
    return lane_product(fiber, op, (a, b, *c), (kinds["a"], kinds["b"]), (m, k))


def lane_product(
    fiber: Fiber, op: Instruction, operands: tuple[Value, ...], kinds: tuple[str, str], shape: tuple[int, int]
) -> np.ndarray:
    """Returns A B + C of a matrix instruction, as lanes hold it.

    Args:
        fiber: whose subgroups multiply.
        op: for findings; its result has the type of the sums.
        operands: A, B and, unless it is zero, C, in registers of any types.
        kinds: element types of A and B.
        shape: rows of A, and columns of it.

    Raises:
        Unsupported: operands of another number of elements than the shape requires.
    """
    dtypes = [KINDS[kind] for kind in kinds]
    operand_elements = [
        blocks2d.as_type(values.lanes(np.asarray(operand), fiber.count, 1), dtype)
        for operand, dtype in zip(operands, dtypes)
    ]
    rows, depth = shape
    if operand_elements[0].shape[1] * LANES != rows * depth or operand_elements[1].shape[1] != depth:
        raise Unsupported(
            op,
            f"of {operand_elements[0].shape[1]} and {operand_elements[1].shape[1]} elements per lane, {rows} x {depth}",
        )
    left, right, lanes = blocks2d.multiply(fiber, op, *operand_elements)
    element: Scalar = op.result_types[0].element
    sums = [values.lanes(np.asarray(value), fiber.count, 1)[lanes].swapaxes(1, 2) for value in operands[2:]]
    total = product(left, right, *sums, element=element)
    result = np.zeros((fiber.count, total.shape[1]), total.dtype)
    result[lanes] = total.swapaxes(1, 2)
    return result
