"""xegpu: descriptors of matrices, 2D block operations and matrix products, of subgroups.

A vector is that of a subgroup, before its elements are distributed to lanes; layouts say how they will be and are not
part of the value. Elements beyond the matrix are zeros in a load, and are not stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core import types, values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.dialects.vector_memory import offset_by
from stepladder.emulator.dialects.xetile_vectors import tile_mma
from stepladder.emulator.hardware.warps import once_a_warp, varying
from stepladder.emulator.memory import memory, pointers

# What 2D block operations need of a matrix, in bytes: the alignment of its first element, the distance of its rows.
_BASE_ALIGNMENT = 64
_LEAST_PITCH, _PITCH_MULTIPLE = 64, 16
_DYNAMIC = -(2**63)
_SHAPE = re.compile(r"!xegpu\.tensor_desc<((?:\d+x)+)")


def _shape_of(op: Instruction, descriptor: types.Type) -> tuple[int, ...]:
    found = _SHAPE.match(types.text_of(descriptor))
    if found is None or "array_length" in types.text_of(descriptor):
        raise Unsupported(op, f"of {types.text_of(descriptor)}")
    return tuple(int(number) for number in found[1].split("x")[:-1])


@executes("xegpu.create_nd_tdesc")
def create_nd_tdesc(fiber: Fiber, op: Instruction, source: Value, *sizes: Value) -> MemRef:
    """The descriptor of a matrix: the matrix itself. One that 2D block operations cannot access is a finding."""
    if not isinstance(source, MemRef) or sizes or source.rank != 2 or source.memory.space != "global":
        raise Unsupported(op, "but of a memref of two dimensions in global memory")
    first = np.asarray(pointers.first_element(source))
    pitch = np.asarray(source.strides[0]) * source.element.bytes
    if (np.asarray(source.strides[1]) != 1).any():
        fiber.group.sanitizer.report("misaligned", "the elements of a row are not contiguous", op)
    if (first % _BASE_ALIGNMENT).any():
        fiber.group.sanitizer.misaligned(fiber, op, int(first.flat[0]), _BASE_ALIGNMENT)
    if (pitch % _PITCH_MULTIPLE).any() or (pitch < _LEAST_PITCH).any():
        fiber.group.sanitizer.report(
            "misaligned",
            f"the rows are {int(pitch.flat[0])} bytes apart: 2D block operations need at least {_LEAST_PITCH}, a "
            f"multiple of {_PITCH_MULTIPLE}",
            op,
        )
    return source


class _Block:
    """The block of a matrix that an op accesses, one lane a subgroup."""

    def __init__(self, fiber: Fiber, op: Instruction, view: MemRef, offsets: Sequence[Value], shape: tuple) -> None:
        rest = list(offsets)
        starts = [rest.pop(0) if number == _DYNAMIC else number for number in op.attributes["const_offsets"]]
        starts = [fiber.agreed(start) for start in starts]
        if "transpose" in op.attributes or "packed" in op.attributes:
            raise Unsupported(op, "with a transpose or VNNI packing")
        self.shape = shape
        self.fiber, self.leader = once_a_warp(fiber, varying(fiber, [view], starts))
        along = (np.arange(shape[0])[:, None], np.arange(shape[1])[None, :])
        self.coordinates = [offset_by(start, places, 2) for start, places in zip(starts, along)]
        self.valid = np.asarray(True)
        for coordinate, size in zip(self.coordinates, view.sizes):
            self.valid = self.valid & (coordinate >= 0) & (coordinate < offset_by(size, 0, 2))


@executes("xegpu.load_nd")
def load_nd(fiber: Fiber, op: Instruction, view: MemRef, *offsets: Value) -> Value:
    """A block of a matrix."""
    shape = _shape_of(op, op.operand_types[0])
    if op.result_types[0].shape != shape:
        raise Unsupported(op, "of lanes")
    block = _Block(fiber, op, view, offsets, shape)
    found = memory.read(block.fiber, op, view, block.coordinates, shape, None if block.valid.all() else block.valid, 0)
    return found if block.leader is None or values.is_uniform(found, 2) else found[block.leader]


@executes("xegpu.store_nd")
def store_nd(fiber: Fiber, op: Instruction, value: Value, view: MemRef, *offsets: Value) -> None:
    """Writes a block of a matrix."""
    shape = _shape_of(op, op.operand_types[1])
    if op.operand_types[0].shape != shape:
        raise Unsupported(op, "of lanes")
    block = _Block(fiber, op, view, offsets, shape)
    memory.write(block.fiber, op, view, block.coordinates, value, shape, None if block.valid.all() else block.valid)


@executes("xegpu.prefetch_nd")
def prefetch_nd(fiber: Fiber, op: Instruction, view: MemRef, *offsets: Value) -> None:
    """Nothing: caches are not modelled."""


@executes("xegpu.dpas")
def dpas(fiber: Fiber, op: Instruction, a: Value, b: Value, *c: Value) -> Value:
    """A product, added to C, of vectors of a subgroup; the types are those of `xetile.tile_mma`."""
    ranks = [type_.rank for type_ in op.operand_types]
    if ranks != [2] * len(ranks):
        raise Unsupported(op, "of lanes")
    return tile_mma(fiber, op, a, b, *c)


@executes("xegpu.convert_layout")
def convert_layout(fiber: Fiber, op: Instruction, source: Value) -> Value:
    """The same vector: layouts are not part of the value."""
    return source
