"""xetile: the operations on vectors, which belong to a work-group or to a subgroup as a whole."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.elements import wrapped
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware.reductions import combined
from stepladder.emulator.hardware.warps import once_a_warp, varying
from stepladder.mlir.printed import keyword


def _once(fiber: Fiber, function: Callable, *vectors: Value) -> Value:
    """Returns a function of vectors, computed once for each subgroup that has vectors of its own.

    Args:
        function: of arrays with any leading dimensions, to such an array.
        vectors: of two dimensions, uniform or with lanes.
    """
    if all(values.is_uniform(vector, 2) for vector in vectors):
        return function(*vectors)
    narrow, leader = once_a_warp(fiber, varying(fiber, [], vectors))
    lanes = narrow.lanes
    results = function(*(vector if values.is_uniform(vector, 2) else vector[lanes] for vector in vectors))
    if leader is None:
        leader = np.arange(fiber.count)
    place = np.zeros(fiber.count, np.int64)
    place[lanes] = np.arange(len(lanes))
    return results[place[leader]]


def product(left: np.ndarray, right: np.ndarray, *sums: np.ndarray, element: Scalar) -> np.ndarray:
    """Returns a product, added to C if that is given.

    Products and sums of floating-point numbers are of f32 (f64 for 8-byte types), rounded once to the type of C.

    Args:
        left, right: arrays of matrices with any leading dimensions.
        sums: C, or nothing.
        element: the type of the result.
    """
    if element.is_integer:
        total = left.astype(np.int64) @ right.astype(np.int64) + (sums[0] if sums else 0)
        return wrapped(total, element)
    wide = np.float64 if element.dtype.itemsize == 8 else np.float32
    total = left.astype(wide) @ right.astype(wide)
    return (total + sums[0].astype(wide) if sums else total).astype(element.dtype)


@executes("xetile.tile_mma")
def tile_mma(fiber: Fiber, op: Instruction, a: Value, b: Value, *c: Value) -> Value:
    """A product, added to C."""
    return _once(fiber, functools.partial(product, element=op.result_types[0].element), a, b, *c)


@executes("xetile.transpose")
def transpose(fiber: Fiber, op: Instruction, source: Value) -> Value:
    """The vector with its dimensions exchanged."""
    return _once(fiber, lambda array: np.swapaxes(array, -1, -2), source)


def _size(op: Instruction, name: str) -> int | None:
    size = op.attributes.get(name)
    return size[0] if isinstance(size, list) else size


@executes("xetile.reduction")
def reduction(fiber: Fiber, op: Instruction, source: Value) -> Value:
    """The elements along a dimension, or those of each group of `reduction_size`, combined in order."""
    (axis,) = op.attributes["dims"]
    element = op.operand_types[0].element
    kind = keyword(op.attributes["kind"])
    size = _size(op, "reduction_size") or op.operand_types[0].static_shape[axis]

    def reduced(array: np.ndarray) -> np.ndarray:
        array = np.moveaxis(array, axis - 2, -1)
        groups = array.reshape(*array.shape[:-1], -1, size)
        total = groups[..., 0]
        for number in range(1, size):
            total = combined(kind, element, total, groups[..., number]).astype(element.dtype)
        return np.moveaxis(total, -1, axis - 2)

    return _once(fiber, reduced, source)


@executes("xetile.broadcast")
def broadcast(fiber: Fiber, op: Instruction, source: Value) -> Value:
    """Each element along a dimension, as often as it fills the result."""
    (axis,) = op.attributes["dims"]
    before, after = op.operand_types[0].static_shape[axis], op.result_types[0].static_shape[axis]
    return _once(fiber, lambda array: np.repeat(array, after // before, axis - 2), source)


@executes("xetile.convert_layout")
def convert_layout(fiber: Fiber, op: Instruction, source: Value) -> Value:
    """The same vector: which subgroup holds which element is not part of the value."""
    return source
