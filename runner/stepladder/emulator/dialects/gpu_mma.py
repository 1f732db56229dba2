"""gpu: WMMA matrices. The order of their elements is opaque on hardware: here a warp holds one whole matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.elements import multiplied
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Opaque
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.hardware.warps import together
from stepladder.emulator.memory import alignment, memory
from stepladder.mlir.printed import keyword
from stepladder.mlir.types import mma_matrix

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group


# Of what a warp loads and stores, in bytes. Source: CUDA programming guide, "Warp Matrix Functions".
MATRIX_ALIGNMENT = 32
ROW_ALIGNMENT = 16
_WARP = 32


def matrix_alignment(rows: int, columns: int, item: int) -> int:
    """Returns the bytes that a matrix is aligned to.

    Source: PTX ISA, "Matrix Storage for WMMA": the size of a thread's fragment, which for operands of 8 bits, of which
    the programming guide says nothing, is less than for others.

    Args:
        rows, columns: of the matrix.
        item: bytes of an element.
    """
    return rows * columns // _WARP if item == 1 else MATRIX_ALIGNMENT


class WarpMatrix:
    """A matrix in each warp: `array` (warps, rows, columns).

    Args:
        array: the matrices.
        group: of the warps.
        by_columns: whether memory held columns, which decides on the order of the elements on hardware: a product
            takes matrices in the order that it says.
    """

    __slots__ = ("array", "by_columns", "group")

    def __init__(self, array: np.ndarray, group: Group, *, by_columns: bool = False) -> None:
        self.array = array
        self.group = group
        self.by_columns = by_columns

    @staticmethod
    def merged(parts: list, masks: list, count: int) -> WarpMatrix:
        """Returns the matrices that are, for the warps of each mask, those of the part.

        Args:
            parts: matrices of the same shape and type.
            masks: a bool array (T,) for each part.
            count: T, the number of lanes.
        """
        group = parts[0].group
        array = parts[0].array.copy()
        for part, mask in zip(parts[1:], masks[1:]):
            warps = np.unique(group.warp_of_lane[mask])
            array[warps] = part.array[warps]
        return WarpMatrix(array, group, by_columns=parts[0].by_columns)


def _matrix(op: Instruction, type_: Opaque) -> tuple[int, int, str, str]:
    """Returns rows, columns, element type and operand of a `!gpu.mma_matrix` type."""
    try:
        return mma_matrix(type_.text)
    except ValueError:
        raise Unsupported(op, f"of {type_.text}") from None


def _elements(fiber: Fiber, op: Instruction, view: MemRef, indices: Sequence[Value], type_: Opaque) -> tuple:
    """Returns a fiber of one thread a warp, and the elements of its matrix in memory."""
    if "matrix" not in op.cache:
        op.cache["matrix"] = _matrix(op, type_)
    rows, columns, *_ = op.cache["matrix"]
    representatives = fiber.representatives()
    shape = (rows, columns)
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    if op.attributes.get("transpose"):
        row, column = column, row  # column-major: the leading dimension is between columns

    def wide(index: Value) -> Value:
        return index.reshape(-1, 1, 1) if isinstance(index, np.ndarray) else index

    *outer, first, last = (wide(index) for index in indices)
    lead = op.attributes["leadDimension"]
    if not all(isinstance(stride, int) for stride in view.strides):
        raise Unsupported(op, "of a memref whose strides differ by thread")
    if lead * view.element.bytes % ROW_ALIGNMENT:
        fiber.group.sanitizer.report(
            "misaligned",
            f"rows are {lead * view.element.bytes} bytes apart (leadDimension {lead}), not a multiple of "
            f"{ROW_ALIGNMENT}",
            op,
        )
    if view.strides[-2] == lead:
        access = memory.locate(representatives, op, view, [*outer, first + row, last + column], shape)
    else:
        if not all(isinstance(size, int) for size in view.sizes) or view.strides[-1] != 1:
            raise Unsupported(op, f"whose leading dimension ({lead}) is not that of the memref ({view.strides[-2]})")
        # The op states the distance of rows, whatever the strides of the memref are.
        extent = 1 + sum((size - 1) * stride for size, stride in zip(view.sizes, view.strides))
        place = sum(index * stride for index, stride in zip([*outer, first, last], view.strides)) + row * lead + column
        access = memory.locate(representatives, op, view.view(view.offset, (extent,), (1,)), [place], shape)
    alignment.check_access(representatives, op, access, matrix_alignment(rows, columns, view.element.bytes))
    return representatives, access


@executes("gpu.subgroup_mma_load_matrix")
def load_matrix(fiber: Fiber, op: Instruction, view: MemRef, *indices: Value) -> Value:
    """A matrix from memory."""
    group = fiber.group
    representatives, access = _elements(fiber, op, view, indices, op.result_types[0])
    elements = memory.take(representatives, op, access, is_matrix=True)
    array = np.zeros((group.warps, *elements.shape[-2:]), elements.dtype)
    array[fiber.warps] = elements
    return WarpMatrix(array, group, by_columns=bool(op.attributes.get("transpose")))


@executes("gpu.subgroup_mma_store_matrix")
def store_matrix(fiber: Fiber, op: Instruction, matrix: Value, view: MemRef, *indices: Value) -> None:
    """A matrix to memory."""
    representatives, access = _elements(fiber, op, view, indices, op.operand_types[0])
    mine = matrix.array[fiber.warps].astype(view.element.dtype)
    if not access.per_lane:
        access = memory.with_lanes(access, len(representatives.lanes))
    memory.put(together(representatives), op, access, mine, is_matrix=True)


@executes("gpu.subgroup_mma_compute")
def compute(fiber: Fiber, op: Instruction, a: Value, b: Value, c: Value) -> Value:
    """A product added to a matrix: the products of an element are added in the accumulator type."""
    group = fiber.group
    for matrix, name in ((a, "a_transpose"), (b, "b_transpose")):
        if matrix.by_columns != bool(op.attributes.get(name)):
            # The instruction would take the elements of a fragment for elements of the other layout.
            preposition = "with" if matrix.by_columns else "without"
            group.sanitizer.report(
                "layout", f"its matrix was loaded {preposition} transpose, and {name} says otherwise", op
            )
    left, right = (multiplied(matrix.array, op.attributes) for matrix in (a, b))
    # The order within one instruction is not specified; products are exact in float32, and are summed in it.
    exact = np.int32 if left.dtype == np.int8 else np.float64 if left.dtype == np.float64 else np.float32
    product = np.matmul(left.astype(exact), right.astype(exact))
    if group.counters is not None:
        group.counters.products(fiber, op, left.shape[1] * left.shape[2] * right.shape[2])
    return WarpMatrix((product + c.array.astype(product.dtype)).astype(c.array.dtype), group)


@executes("gpu.subgroup_mma_constant_matrix")
def constant_matrix(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A matrix whose elements are one value."""
    rows, columns, *_ = _matrix(op, op.result_types[0])
    group = fiber.group
    array = np.empty((group.warps, rows, columns), op.operand_types[0].dtype)
    array[:] = (
        value
        if values.is_uniform(value)
        else value[np.searchsorted(group.warp_of_lane, np.arange(group.warps))].reshape(-1, 1, 1)
    )
    return WarpMatrix(array, group)


_ELEMENTWISE = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "maxf": np.maximum,
    "minf": np.minimum,
    "negatef": np.negative,
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
}


@executes("gpu.subgroup_mma_elementwise")
def elementwise(fiber: Fiber, op: Instruction, *matrices: Value) -> Value:
    """The same operation on all elements."""
    name = keyword(op.attributes["opType"]).lower()
    arrays = [matrix.array for matrix in matrices]
    if name in ("extf", "truncf"):
        element = _matrix(op, op.result_types[0])[2]
        return WarpMatrix(arrays[0].astype({"f16": np.float16, "f32": np.float32}[element]), fiber.group)
    if name not in _ELEMENTWISE:
        raise Unsupported(op, name)
    return WarpMatrix(_ELEMENTWISE[name](*arrays).astype(arrays[0].dtype), fiber.group)
