"""nvvm: arithmetic with the rounding of PTX, approximations, dot products and byte permutations.

Approximations (`ex2`, `sin`, ...) are computed exactly and rounded once: those of hardware are less exact.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from stepladder.emulator.core.elements import plain, rounded, rounded_sum
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value, lanes
from stepladder.emulator.dialects import math
from stepladder.mlir.printed import keyword

_NEAREST = ("none", "rn")


def _only_nearest(op: Instruction) -> None:
    rounding = keyword(op.attributes.get("rnd", op.attributes.get("rndMode", "none")))
    if rounding not in _NEAREST:
        raise Unsupported(op, f"with the rounding {rounding}")


def _floats(function: Callable) -> Callable:
    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        """The result, rounded once."""
        _only_nearest(op)
        element = op.result_types[0].element
        return rounded(function(*(np.asarray(operand).astype(np.float64) for operand in operands)), element)

    return execute


for _name, _function in {
    "sin": np.sin,
    "cos": np.cos,
    "ex2": np.exp2,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "sqrt.approx": np.sqrt,
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "rcp.approx.ftz.f": lambda value: 1 / value,
    "divf": np.divide,
    "mulf": np.multiply,
}.items():
    executes(f"nvvm.{_name}")(_floats(_function))
executes("nvgpu.rcp")(_floats(lambda value: 1 / value))


@executes("nvvm.addf", "nvvm.subf")
def addf(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """A sum or a difference, rounded once."""
    _only_nearest(op)
    left, right = (np.asarray(operand).astype(np.float64) for operand in (left, right))
    return rounded_sum(left, -right if op.name == "nvvm.subf" else right, op.result_types[0].element)


@executes("nvvm.fma")
def fma(fiber: Fiber, op: Instruction, left: Value, right: Value, addend: Value) -> Value:
    """A product and a sum, rounded once."""
    _only_nearest(op)
    return math.fma(fiber, op, left, right, addend)


@executes("nvvm.dot.accumulate.4way", "nvvm.dot.accumulate.2way")
def dot_accumulate(fiber: Fiber, op: Instruction, left: Value, right: Value, total: Value) -> Value:
    """The products of the bytes (or halves and bytes) of vectors, added to a number."""
    b_type = op.operand_types[1]
    left, right = (np.asarray(operand) for operand in (left, right))
    for name, place in (("a_type", 0), ("b_type", 1)):
        if keyword(op.attributes.get(name, "signed")) == "unsigned":
            part = (left, right)[place]
            changed = part.view(f"u{part.dtype.itemsize}")
            left, right = (changed, right) if place == 0 else (left, changed)
    if op.name.endswith("2way"):
        half = b_type.shape[0] // 2
        right = right[..., half:] if op.attributes.get("b_hi") else right[..., :half]
    products = left.astype(np.int64) * right.astype(np.int64)
    return plain((products.sum(axis=-1) + np.asarray(total)).astype(np.int32))


@executes("nvvm.convert.f8x2.to.f16x2")
def convert_fp8(fiber: Fiber, op: Instruction, bits: Value) -> Value:
    """Two numbers of fp8, as bytes, in f16, which has them all."""
    if op.attributes.get("relu"):
        raise Unsupported(op, "with relu")
    return np.asarray(bits).view(op.attributes["srcType"].dtype).astype(np.float16)


@executes("nvvm.convert.f32x2.to.f8x2")
def round_to_fp8(fiber: Fiber, op: Instruction, high: Value, low: Value) -> Value:
    """Two numbers of f32 as bytes of fp8, rounded to nearest; what is larger is its largest number."""
    _only_nearest(op)
    if op.attributes.get("relu") or keyword(op.attributes.get("sat", "none")) != "satfinite":
        raise Unsupported(op, "with relu, or without satfinite")
    dtype = op.attributes["dstTy"].dtype
    largest = float(ml_dtypes.finfo(dtype).max)
    both = np.stack([lanes(np.asarray(part), fiber.count) for part in (low, high)], axis=-1)
    return np.clip(both, -largest, largest).astype(dtype).view(np.int8)


@executes("nvvm.prmt")
def prmt(fiber: Fiber, op: Instruction, low: Value, selector: Value, *high: Value) -> Value:
    """Bytes of two numbers, each chosen by four bits; the highest of the four repeats the byte's sign."""
    if keyword(op.attributes.get("mode", "default")) != "default":
        raise Unsupported(op, f"of {op.attributes['mode']}")
    both = [lanes(np.asarray(part), fiber.count).astype(np.int64) & 0xFFFFFFFF for part in (low, *(high or (0,)))]
    chosen = lanes(np.asarray(selector), fiber.count).astype(np.int64)
    word = both[0] | both[1] << 32
    result = np.zeros(fiber.count, np.int64)
    for number in range(4):
        nibble = chosen >> (4 * number) & 15
        byte = word >> (8 * (nibble & 7)) & 0xFF
        byte = np.where(nibble & 8, np.where(byte & 0x80, 0xFF, 0), byte)
        result |= byte << (8 * number)
    return result.astype(np.uint32).view(np.int32)
