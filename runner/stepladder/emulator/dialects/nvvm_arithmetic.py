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

_TF32_DROPPED = 13  # bits of an f32 that tf32 does not have
_NEAREST = ("none", "rn")


def _only_nearest(op: Instruction) -> None:
    rounding = keyword(op.attributes.get("rnd", op.attributes.get("rndMode", "none")))
    if rounding not in _NEAREST:
        raise Unsupported(op, f"with the rounding {rounding}: expected rn")


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
    """The products of the bytes (or halves and bytes) of vectors, added to an accumulator."""
    b_type = op.operand_types[1]
    left, right = (np.asarray(operand) for operand in (left, right))
    for name, place in (("a_type", 0), ("b_type", 1)):
        if keyword(op.attributes.get(name, "signed")) == "unsigned":
            part = (left, right)[place]
            unsigned_part = part.view(f"u{part.dtype.itemsize}")
            left, right = (unsigned_part, right) if place == 0 else (left, unsigned_part)
    if op.name.endswith("2way"):
        half = b_type.shape[0] // 2
        right = right[..., half:] if op.attributes.get("b_hi") else right[..., :half]
    products = left.astype(np.int64) * right.astype(np.int64)
    return plain((products.sum(axis=-1) + np.asarray(total)).astype(np.int32))


@executes("nvvm.convert.f8x2.to.f16x2")
def convert_fp8(fiber: Fiber, op: Instruction, bits: Value) -> Value:
    """Two fp8 values, as bytes, in f16, which has them all."""
    numbers = np.asarray(bits).view(op.attributes["srcType"].dtype).astype(np.float16)
    return _clamped(op, numbers)


def _clamped(op: Instruction, values: np.ndarray) -> np.ndarray:
    """Returns values, with negative ones replaced by 0 if the op has `relu`."""
    return np.where(values < 0, np.zeros_like(values), values) if op.attributes.get("relu") else values


@executes("nvvm.convert.f32x2.to.f8x2")
def round_to_fp8(fiber: Fiber, op: Instruction, high: Value, low: Value) -> Value:
    """Two f32 values as bytes of fp8, rounded to nearest; what is larger is its largest value."""
    pair = _pair_of_floats(fiber, op, high, low, op.attributes["dstTy"].dtype)
    return pair.view(np.int8) if op.result_types[0].shape else pair.view(np.int16)[..., 0]


@executes("nvvm.convert.f32x2.to.f16x2", "nvvm.convert.f32x2.to.bf16x2")
def round_to_halves(fiber: Fiber, op: Instruction, high: Value, low: Value, *random: Value) -> Value:
    """Two f32 values as a vector of f16 or bf16, the lower one first, rounded to nearest."""
    if random:
        raise Unsupported(op, "with random bits, as stochastic rounding has: expected the rounding rn")
    return _pair_of_floats(fiber, op, high, low, op.result_types[0].element.dtype)


def _pair_of_floats(fiber: Fiber, op: Instruction, high: Value, low: Value, dtype: np.dtype) -> np.ndarray:
    """Returns two values rounded to a narrow type, (T, 2); with satfinite the largest one for what is larger."""
    _only_nearest(op)
    pair = _clamped(op, np.stack([lanes(np.asarray(part), fiber.count) for part in (low, high)], axis=-1))
    if keyword(op.attributes.get("sat", "none")) == "satfinite":
        largest = float((np.finfo if dtype == np.float16 else ml_dtypes.finfo)(dtype).max)
        pair = np.clip(pair, -largest, largest)
    return np.ascontiguousarray(pair.astype(dtype))


@executes("nvvm.convert.float.to.tf32")
def round_to_tf32(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A number of f32 as the bits of one of tf32, rounded to nearest; of two, to the one farther from 0 (`rna`)."""
    rounding = keyword(op.attributes.get("rnd", "rna"))
    if rounding not in ("rna", "rn", "none") or keyword(op.attributes.get("sat", "none")) != "none":
        raise Unsupported(op, f"with the rounding {rounding}, or with saturation: expected rna or rn, and none")
    number = _clamped(op, np.asarray(value, np.float32))
    bits = number.view(np.int32)
    half = (1 << _TF32_DROPPED - 1) - (rounding == "rn") * (1 - (bits >> _TF32_DROPPED & 1))
    return plain(np.where(np.isfinite(number), bits + half >> _TF32_DROPPED << _TF32_DROPPED, bits).astype(np.int32))


@executes("nvvm.prmt")
def prmt(fiber: Fiber, op: Instruction, low: Value, selector: Value, *high: Value) -> Value:
    """Bytes of two words, each chosen by four bits; the highest of the four repeats the byte's sign."""
    if keyword(op.attributes.get("mode", "default")) != "default":
        raise Unsupported(op, f"of {op.attributes['mode']}")
    words = [lanes(np.asarray(part), fiber.count).astype(np.int64) & 0xFFFFFFFF for part in (low, *(high or (0,)))]
    selectors = lanes(np.asarray(selector), fiber.count).astype(np.int64)
    word = words[0] | words[1] << 32
    result = np.zeros(fiber.count, np.int64)
    for number in range(4):
        nibble = selectors >> (4 * number) & 15
        byte = word >> (8 * (nibble & 7)) & 0xFF
        byte = np.where(nibble & 8, np.where(byte & 0x80, 0xFF, 0), byte)
        result |= byte << (8 * number)
    return result.astype(np.uint32).view(np.int32)
