"""vector: outer products, scans, and compression and expansion by a mask."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.elements import plain
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value, in_lanes, lanes
from stepladder.emulator.dialects.vector import kind_of
from stepladder.emulator.dialects.vector_memory import contiguous_places
from stepladder.emulator.hardware.reductions import combined
from stepladder.emulator.memory import memory, pointers


@executes("vector.outerproduct")
def outerproduct(fiber: Fiber, op: Instruction, left: Value, right: Value, *initial: Value) -> Value:
    """Each element of a vector by each of another, or by a scalar; added to (or otherwise combined with) a third."""
    element = op.result_types[0].element
    ranks = [type_.rank for type_ in op.operand_types]
    left, right, *sums = in_lanes([left, right, *initial], ranks, fiber.count)
    if ranks[1]:
        product = combined("mul", element, left[..., :, None], right[..., None, :])
    else:
        product = combined("mul", element, left, np.reshape(right, (*np.shape(right), 1)))
    return plain(np.asarray(combined(kind_of(op), element, sums[0], product) if sums else product))


@executes("vector.scan")
def scan(fiber: Fiber, op: Instruction, source: Value, initial: Value) -> Value:
    """The reductions of all elements before each, and of all elements, along a dimension."""
    rank, element, kind = op.operand_types[0].rank, op.operand_types[0].element, kind_of(op)
    source, initial = in_lanes([source, initial], [rank, rank - 1], fiber.count)
    axis = source.ndim - rank + op.attributes["reduction_dim"]
    parts = list(np.moveaxis(source, axis, 0))
    total = parts[0] if op.attributes["inclusive"] else initial
    partial_results = [total]
    for part in parts[1:] if op.attributes["inclusive"] else parts[:-1]:
        total = combined(kind, element, total, part)
        partial_results.append(total)
    return plain(np.moveaxis(np.stack(partial_results), 0, axis)), plain(np.asarray(total))


def _ranks_of(mask: np.ndarray) -> np.ndarray:
    """Returns for each element of masks how many are set before it."""
    return np.cumsum(mask, axis=-1) - mask


@executes("vector.expandload")
def expandload(fiber: Fiber, op: Instruction, view: Value, *operands: Value) -> Value:
    """Consecutive elements, put where a mask is set."""
    *starts, mask, otherwise = operands
    shape = op.result_types[0].shape
    mask = np.asarray(mask)
    *outer, places = contiguous_places(shape, [*starts[:-1], 0])
    start = starts[-1].reshape(-1, 1) if isinstance(starts[-1], np.ndarray) else starts[-1]
    elements = memory.read(
        fiber, op, view, [*outer, start + _ranks_of(mask.astype(np.int64)) + places * 0], shape, mask
    )
    mask, elements, otherwise = in_lanes([mask, elements, otherwise], [1] * 3, fiber.count)
    return np.where(mask, elements, otherwise).astype(elements.dtype)


@executes("vector.compressstore")
def compressstore(fiber: Fiber, op: Instruction, view: Value, *operands: Value) -> None:
    """The elements where a mask is set, one after the other."""
    *starts, mask, value = operands
    shape = op.operand_types[-1].shape
    mask = np.asarray(mask)
    *outer, places = contiguous_places(shape, [*starts[:-1], 0])
    start = starts[-1].reshape(-1, 1) if isinstance(starts[-1], np.ndarray) else starts[-1]
    memory.write(fiber, op, view, [*outer, start + _ranks_of(mask.astype(np.int64)) + places * 0], value, shape, mask)


# LLVM's matrices, in vectors by columns.


def _matrix(fiber: Fiber, value: Value, rows: int, columns: int) -> np.ndarray:
    """Returns a vector as a matrix (..., rows, columns)."""
    value = np.asarray(value)
    return value.reshape(*value.shape[:-1], columns, rows).swapaxes(-1, -2)


def _vector(matrix: np.ndarray) -> np.ndarray:
    transpose = matrix.swapaxes(-1, -2)
    return np.ascontiguousarray(transpose).reshape(*transpose.shape[:-2], -1)


@executes("llvm.intr.matrix.multiply")
def matrix_multiply(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """A product of matrices."""
    rows, inner, columns = (op.attributes[name] for name in ("lhs_rows", "lhs_columns", "rhs_columns"))
    element = op.result_types[0].element
    left, right = _matrix(fiber, left, rows, inner), _matrix(fiber, right, inner, columns)
    total = combined("mul", element, left[..., :, :1], right[..., :1, :])
    for k in range(1, inner):
        total = combined(
            "add", element, total, combined("mul", element, left[..., :, k : k + 1], right[..., k : k + 1, :])
        )
    return _vector(total)


@executes("llvm.intr.matrix.transpose")
def matrix_transpose(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A transposed matrix."""
    return _vector(_matrix(fiber, value, op.attributes["rows"], op.attributes["columns"]).swapaxes(-1, -2))


@executes("llvm.intr.matrix.column.major.load")
def matrix_load(fiber: Fiber, op: Instruction, pointer: Value, stride: Value) -> Value:
    """A matrix from memory, column by column."""
    return _strided(fiber, op, pointer, stride, None)


@executes("llvm.intr.matrix.column.major.store")
def matrix_store(fiber: Fiber, op: Instruction, value: Value, pointer: Value, stride: Value) -> None:
    """A matrix to memory, column by column."""
    _strided(fiber, op, pointer, stride, value)


def _strided(fiber: Fiber, op: Instruction, pointer: Value, stride: Value, value: Value) -> Value:
    """Reads a matrix, or writes one where there is a value."""
    rows, columns = op.attributes["rows"], op.attributes["columns"]
    type_ = op.result_types[0] if value is None else op.operand_types[0]
    places = (np.arange(columns)[:, None] * int(fiber.first(stride)) + np.arange(rows)).reshape(-1)
    result = np.zeros((fiber.count, *type_.shape), type_.element.dtype)
    for part, allocation, start in pointers.parts(fiber, op, pointer):
        view, elements = pointers.elements(allocation, start, type_.element, places, 1)
        if value is not None:
            memory.write(part, op, view, [elements], value, type_.shape)
        else:
            elements_read = memory.read(part, op, view, [elements], type_.shape)
            result[part.lanes] = lanes(elements_read, fiber.count, 1)[part.lanes]
    return result
