"""Evaluates a reference program as a correct kernel may: every value is rounded to its type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepladder.runtime.element_types import element_type
from stepladder.runtime.reference import Generic, Operation, Program
from stepladder.runtime.reference_operations import is_float
from stepladder.verify.arrays import Array, NumPyArrays
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.structured_evaluation import Labelled, Region, StructuredOp

# Significant bits, the leading one included.
_BITS = {"f64": 53, "f32": 24, "tf32": 11, "f16": 11, "bf16": 8, "f8E4M3FN": 4, "f8E5M2": 3}
# The largest value of types whose larger values are rounded to infinity.
_LARGEST_NUMBERS = {name: float(np.finfo(element_type(name).dtype).max) for name in ("f32", "f16")} | {
    "bf16": float.fromhex("0x1.fep127")
}


class RoundedEvaluation(Evaluation):
    """A program on given inputs that rounds every value to its type, to nearest, and sums of products once.

    Args:
        program, inputs, arrays: as for `Evaluation`.
        is_tf32: whether matmuls of f32 multiply in TF32.

    Attributes:
        has_floats: whether a body computes floating-point numbers.
    """

    def __init__(self, program: Program, inputs: dict[int, np.ndarray], backend: NumPyArrays, is_tf32: bool) -> None:
        super().__init__(program, inputs, backend)
        self.is_tf32 = is_tf32
        types = {op.type for item in program.instructions if isinstance(item, Generic) for op in item.body}
        self.has_floats = any(map(is_float, types))

    def _computed(self, value: int, region: Region) -> Array:
        maker = self.makers.get(value)
        if maker is not None and isinstance(maker[0], Generic):
            return _RoundedOp(self, maker[0], maker[1], region).computed()
        return super()._computed(value, region)


class _RoundedOp(StructuredOp):
    """One output of a structured op, with rounded values; arguments as for `StructuredOp`."""

    def _typed(self, op: Operation, array: Array) -> Array:
        array = super()._typed(op, array)
        return _rounded(self.arrays.xp, array, op.type) if is_float(op.type) else array

    def _contracted(self, number: int, reductions: list[int]) -> Labelled | None:
        """Returns no matrix product of terms that are rounded before they are extended: `_folded` rounds them."""
        term = self.definitions.get(number)
        is_narrow = term is not None and term.name == "arith.extf"
        return None if is_narrow else super()._contracted(number, reductions)

    def _operand(self, number: int) -> Labelled:
        value = super()._operand(number)
        assert isinstance(self.program, RoundedEvaluation)
        is_factor = number in self.op.arguments[: len(self.op.inputs)] and len(self.op.inputs) == 2
        reduces = len(self.order) < len(self.op.sizes)
        if self.program.is_tf32 and is_factor and reduces and "int" not in str(value.array.dtype):
            return Labelled(_rounded(self.arrays.xp, value.array, "tf32"), value.loops)
        return value


def _rounded(xp: Any, array: Array, type_: str) -> Array:  # noqa: ANN401
    """Returns values rounded to the significant bits of a type, by Veltkamp's splitting, and to its range."""
    bits = _BITS[type_]
    if bits == 53:
        return array
    shift = array * (2.0 ** (53 - bits) + 1.0)
    # Values that overflow stay as they are: 0 - (0 - x).
    shift = xp.where(abs(shift) < math.inf, shift, 0.0)
    result = shift - (shift - array)
    too_large = abs(result) > _LARGEST_NUMBERS.get(type_, math.inf)
    # Zeros take no part in the product, which would be NaN and warn.
    return xp.where(too_large, xp.where(too_large, result, 1.0) * math.inf, result)
