"""linalg: ops that are not one loop nest: packing of tensors into tiles, unpacking, and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.tensor import mixed


@executes("linalg.pack")
def pack(fiber: Fiber, op: Instruction, source: Value, target: Value, *others: Value) -> Value:
    """A tensor with its tiles one after the other, each a row-major block; tiles that reach beyond it are padded."""
    has_padding = op.attributes["operandSegmentSizes"][2]
    axes = op.attributes["inner_dims_pos"]
    tiles = mixed(op.attributes["static_inner_tiles"], iter(others[has_padding:]))
    order = op.attributes.get("outer_dims_perm") or list(range(source.ndim))
    missing = [0] * source.ndim
    for axis, tile in zip(axes, tiles):
        missing[axis] = -source.shape[axis] % tile
    if any(missing):
        if not has_padding:
            raise Unsupported(op, "of tiles that reach beyond the tensor, without a padding value")
        source = np.pad(source, [(0, size) for size in missing], constant_values=others[0])
    return source.reshape(_cut(source.shape, axes, tiles)).transpose(_cut_order(source.ndim, axes, order))


@executes("linalg.unpack")
def unpack(fiber: Fiber, op: Instruction, source: Value, target: Value, *others: Value) -> Value:
    """A tensor from its tiles."""
    axes = op.attributes["inner_dims_pos"]
    order = op.attributes.get("outer_dims_perm") or list(range(target.ndim))
    back = np.argsort(_cut_order(target.ndim, axes, order))
    tiles_in_order = source.transpose(back)
    padded_shape, place = [], 0
    for axis in range(target.ndim):
        parts = tiles_in_order.shape[place : place + 1 + axes.count(axis)]
        padded_shape.append(math.prod(parts))
        place += len(parts)
    return tiles_in_order.reshape(padded_shape)[tuple(map(slice, target.shape))].copy()


def _cut(shape: Sequence[int], axes: Sequence[int], tiles: Sequence[int]) -> list[int]:
    """Returns a shape with each tiled dimension as two: the tiles, and what is in one."""
    tiled_shape = []
    for axis, size in enumerate(shape):
        tiled_shape += [size // tiles[axes.index(axis)], tiles[axes.index(axis)]] if axis in axes else [size]
    return tiled_shape


def _cut_order(rank: int, axes: Sequence[int], order: Sequence[int]) -> list[int]:
    """Returns the order of dimensions that makes a packed tensor of a cut one."""
    place = [axis + sum(other < axis for other in axes) for axis in range(rank)]
    return [place[axis] for axis in order] + [place[axis] + 1 for axis in axes]


@executes("linalg.softmax")
def softmax(fiber: Fiber, op: Instruction, source: Value, target: Value) -> Value:
    """The exponentials of a tensor by their sum along a dimension, computed in its element type."""
    if not isinstance(source, np.ndarray) or source.ndim != len(op.operand_types[0].shape):
        raise Unsupported(op, "of buffers")
    axis = op.attributes["dimension"]
    exponentials = np.exp(source - source.max(axis, keepdims=True))
    return exponentials / exponentials.sum(axis, keepdims=True, dtype=source.dtype)
