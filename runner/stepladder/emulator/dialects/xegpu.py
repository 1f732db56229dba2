"""xegpu: descriptors of matrices, 2D block operations and matrix products, of subgroups.

A vector of two dimensions is that of a subgroup, before its elements are distributed to lanes; layouts define how they
will be and are not part of the value. One of one dimension is that of a lane, which holds adjacent columns of a block.
Elements beyond the matrix are zeros in a load, and are not stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from stepladder.emulator.core import types, values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.dialects.vector_memory import offset_by
from stepladder.emulator.dialects.xetile_vectors import product, tile_mma
from stepladder.emulator.hardware.warps import once_a_warp, varying
from stepladder.emulator.memory import memory, pointers
from stepladder.mlir.bindings import ir

# Requirements of 2D block operations on a matrix, in bytes: the alignment of its first element, the distance of its
# rows.
_BASE_ALIGNMENT = 64
_MIN_PITCH, _PITCH_MULTIPLE = 64, 16
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_LANES = 16
_TRANSPOSED_BYTES = (2, 4)
_ELEMENTS = {
    name: types.Scalar(name, np.dtype(kind), 8 * np.dtype(kind).itemsize)
    for name, kind in {
        "i8": np.int8,
        "i16": np.int16,
        "i32": np.int32,
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "f32": np.float32,
    }.items()
}
_SHAPE = re.compile(r"!xegpu\.tensor_desc<((?:\d+x)+)")


def _shape_of(op: Instruction, descriptor: types.Type) -> tuple[int, ...]:
    match = _SHAPE.match(types.text_of(descriptor))
    if match is None or "array_length" in types.text_of(descriptor):
        raise Unsupported(op, f"of {types.text_of(descriptor)}")
    return tuple(int(number) for number in match[1].split("x")[:-1])


def _matrix(fiber: Fiber, op: Instruction, source: Value, sizes: Sequence[Value]) -> MemRef:
    """Returns the matrix of a descriptor: a memref, or an address with a shape and strides."""
    if isinstance(source, MemRef):
        if sizes:
            raise Unsupported(op, "of a memref with a shape and strides")
        return source
    element = types.text_of(op.result_types[0]).partition("<")[2].partition(">")[0].partition(",")[0].rpartition("x")[2]
    if element not in _ELEMENTS:
        raise Unsupported(op, f"of an address, with elements of {element}")
    remaining = list(sizes)
    shape, strides = (
        [remaining.pop(0) if number == _DYNAMIC else number for number in op.attributes[name]]
        for name in ("const_shape", "const_strides")
    )
    return pointers.view_at(fiber, op, source, _ELEMENTS[element], 0, shape, strides)


@executes("xegpu.create_nd_tdesc")
def create_nd_tdesc(fiber: Fiber, op: Instruction, source: Value, *sizes: Value) -> MemRef:
    """The descriptor of a matrix: the matrix itself. One that 2D block operations cannot access is a finding."""
    source = _matrix(fiber, op, source, sizes)
    if source.rank != 2 or source.memory.space != "global":
        raise Unsupported(op, "but of a matrix in global memory")
    first = np.asarray(pointers.first_element(source))
    pitch = np.asarray(source.strides[0]) * source.element.bytes
    if (np.asarray(source.strides[1]) != 1).any():
        fiber.group.sanitizer.report("misaligned", "the elements of a row are not contiguous", op)
    if (first % _BASE_ALIGNMENT).any():
        fiber.group.sanitizer.misaligned(fiber, op, int(first.flat[0]), _BASE_ALIGNMENT)
    if (pitch % _PITCH_MULTIPLE).any() or (pitch < _MIN_PITCH).any():
        fiber.group.sanitizer.report(
            "misaligned",
            f"the rows are {int(pitch.flat[0])} bytes apart: 2D block operations need at least {_MIN_PITCH}, a "
            f"multiple of {_PITCH_MULTIPLE}",
            op,
        )
    return source


def _starts(fiber: Fiber, op: Instruction, offsets: Sequence[Value]) -> list[Value]:
    remaining = list(offsets)
    starts = [remaining.pop(0) if number == _DYNAMIC else number for number in op.attributes["const_offsets"]]
    return [fiber.agreed(start) for start in starts]


def _in_lanes(fiber: Fiber, op: Instruction, shape: tuple[int, ...], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the row and the column in a block of each element that a lane holds: arrays (T or 1, count).

    A lane holds as many adjacent columns as there are for each, row by row. With `packed`, several rows of a column are
    in one register of 32 bits, which is the same order. With `transpose` it holds a row: of elements of 32 bits, as the
    hardware transposes no others.
    """
    rows, columns = shape
    lane = (fiber.group.thread_of_lane % fiber.group.warp)[:, None]
    element = np.arange(count)[None, :]
    if fiber.group.warp != _LANES or rows * columns != count * _LANES:
        raise Unsupported(op, f"of {count} elements per lane, of a block of {rows} x {columns} and {_LANES} lanes")
    if "transpose" in op.attributes:
        types_ = [type_ for type_ in (*op.operand_types, *op.result_types) if isinstance(type_, types.Vector)]
        if rows != _LANES or types_[0].element.bytes not in _TRANSPOSED_BYTES:
            raise Unsupported(op, f"with a transpose: it is of {_LANES} rows with elements of 16 or 32 bits")
        return lane, element
    columns_of_lane = columns // _LANES
    if not columns_of_lane:
        raise Unsupported(op, f"of a block of {columns} columns")
    return element // columns_of_lane, lane * columns_of_lane + element % columns_of_lane


def _fragment(
    fiber: Fiber, op: Instruction, view: MemRef, offsets: Sequence[Value], shape: tuple[int, ...], count: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns the coordinates of the elements that lanes access, and which of them are in the matrix."""
    places = _in_lanes(fiber, op, shape, count)
    coordinates = [offset_by(start, place, 1) for start, place in zip(_starts(fiber, op, offsets), places)]
    valid = np.asarray(True)
    for coordinate, size in zip(coordinates, view.sizes):
        valid = valid & (coordinate >= 0) & (coordinate < offset_by(size, 0, 1))
    return coordinates, valid


class _Block:
    """The block of a matrix that an op accesses, one lane a subgroup."""

    def __init__(self, fiber: Fiber, op: Instruction, view: MemRef, offsets: Sequence[Value], shape: tuple) -> None:
        starts = _starts(fiber, op, offsets)
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
    if op.result_types[0].rank == 1:
        count = op.result_types[0].static_shape[0]
        places, valid = _fragment(fiber, op, view, offsets, shape, count)
        return memory.read(fiber, op, view, places, (count,), None if valid.all() else valid, 0)
    if op.result_types[0].shape != shape or "transpose" in op.attributes or "packed" in op.attributes:
        raise Unsupported(op, f"of {types.text_of(op.result_types[0])}")
    block = _Block(fiber, op, view, offsets, shape)
    elements = memory.read(
        block.fiber, op, view, block.coordinates, shape, None if block.valid.all() else block.valid, 0
    )
    return elements if block.leader is None or values.is_uniform(elements, 2) else elements[block.leader]


@executes("xegpu.store_nd")
def store_nd(fiber: Fiber, op: Instruction, value: Value, view: MemRef, *offsets: Value) -> None:
    """Writes a block of a matrix."""
    shape = _shape_of(op, op.operand_types[1])
    if op.operand_types[0].rank == 1:
        count = op.operand_types[0].static_shape[0]
        places, valid = _fragment(fiber, op, view, offsets, shape, count)
        memory.write(fiber, op, view, places, value, (count,), None if valid.all() else valid)
        return
    if op.operand_types[0].shape != shape:
        raise Unsupported(op, f"of {types.text_of(op.operand_types[0])}")
    block = _Block(fiber, op, view, offsets, shape)
    memory.write(block.fiber, op, view, block.coordinates, value, shape, None if block.valid.all() else block.valid)


@executes("xegpu.prefetch_nd")
def prefetch_nd(fiber: Fiber, op: Instruction, view: MemRef, *offsets: Value) -> None:
    """Nothing: caches are not modelled."""


@executes("xegpu.create_mem_desc")
def create_mem_desc(fiber: Fiber, op: Instruction, source: Value) -> MemRef:
    """The descriptor of a matrix in shared local memory, or of its transpose: a view of it."""
    text = types.text_of(op.result_types[0])
    if not isinstance(source, MemRef) or source.rank != 2 or "block" in text:
        raise Unsupported(op, f"as {text}")
    if "stride = [1," not in text:
        return source
    return source.view(source.offset, source.sizes[::-1], source.strides[::-1])


@executes("xegpu.load_matrix")
def load_matrix(fiber: Fiber, op: Instruction, view: MemRef, *offsets: Value) -> Value:
    """A block of a matrix in shared local memory, or what a lane has of it: rows of one column."""
    shape = _matrix_shape(op, op.result_types[0])
    if shape[1] == 1:
        return memory.read(fiber, op, view, _column(fiber, op, offsets, shape), shape, None, 0)
    block = _Block(fiber, op, view, offsets, shape)
    elements = memory.read(block.fiber, op, view, block.coordinates, shape, None, 0)
    return elements if block.leader is None or values.is_uniform(elements, 2) else elements[block.leader]


@executes("xegpu.store_matrix")
def store_matrix(fiber: Fiber, op: Instruction, value: Value, view: MemRef, *offsets: Value) -> None:
    """Writes a block of a matrix in shared local memory, or what a lane has of it."""
    shape = _matrix_shape(op, op.operand_types[0])
    if shape[1] == 1:
        memory.write(fiber, op, view, _column(fiber, op, offsets, shape), value, shape)
        return
    block = _Block(fiber, op, view, offsets, shape)
    memory.write(block.fiber, op, view, block.coordinates, value, shape)


def _matrix_shape(op: Instruction, type_: types.Type) -> tuple[int, int]:
    if not isinstance(type_, types.Vector) or type_.rank != 2 or "subgroup_block_io" in op.attributes:
        raise Unsupported(op, f"of {types.text_of(type_)}")
    rows, columns = type_.static_shape
    return rows, columns


def _column(fiber: Fiber, op: Instruction, offsets: Sequence[Value], shape: tuple[int, int]) -> list[np.ndarray]:
    """Returns the coordinates of what each lane has: adjacent rows of a column."""
    remaining = list(offsets)
    row, column = (remaining.pop(0) if number == _DYNAMIC else number for number in op.attributes["const_offsets"])
    places = (np.arange(shape[0])[:, None], np.zeros((1, 1), np.int64))
    return [offset_by(start, place, 2) for start, place in zip((row, column), places)]


@executes("xegpu.dpas")
def dpas(fiber: Fiber, op: Instruction, a: Value, b: Value, *c: Value) -> Value:
    """A product, added to C. Of vectors of a subgroup the types are those of `xetile.tile_mma`.

    Of lanes it is one instruction, of 8 x 16 products: a lane holds columns of A, of B and of C.
    """
    ranks = {type_.rank for type_ in op.operand_types}
    if ranks == {2}:
        return tile_mma(fiber, op, a, b, *c)
    if ranks != {1} or fiber.group.warp != _LANES or len(fiber.lanes) != len(fiber.warps) * _LANES:
        raise Unsupported(op, f"of a part of a subgroup: expected all {_LANES} lanes")
    depth = op.operand_types[1].static_shape[0]  # of k; a lane holds depth / 16 columns of A
    lanes = fiber.lanes.reshape(-1, _LANES)
    depth_of_lane = depth // _LANES
    left = values.lanes(a, fiber.count, 1)[lanes].reshape(len(lanes), _LANES, -1, depth_of_lane)
    left = left.transpose(0, 2, 1, 3).reshape(len(lanes), -1, depth)
    right = values.lanes(b, fiber.count, 1)[lanes].swapaxes(1, 2)
    sums = [values.lanes(value, fiber.count, 1)[lanes].swapaxes(1, 2) for value in c]
    total = product(left, right, *sums, element=op.result_types[0].element)
    result = np.zeros((fiber.count, total.shape[1]), total.dtype)
    result[lanes] = total.swapaxes(1, 2)
    return result


@executes("xegpu.convert_layout")
def convert_layout(fiber: Fiber, op: Instruction, source: Value) -> Value:
    """The same vector: layouts are not part of the value."""
    return source


@executes("xegpu.load")
def load(fiber: Fiber, op: Instruction, view: MemRef, offsets: Value, mask: Value) -> Value:
    """Elements with offsets of their own, of a subgroup or of lanes; those that the mask leaves out are zeros."""
    shape = op.result_types[0].static_shape
    narrow, leader = _scattered(fiber, op, view, [offsets, mask], len(shape))
    elements = memory.read(narrow, op, view, [offsets], shape, np.asarray(mask), 0)
    return elements if leader is None or values.is_uniform(elements, len(shape)) else elements[leader]


@executes("xegpu.store")
def store(fiber: Fiber, op: Instruction, value: Value, view: MemRef, offsets: Value, mask: Value) -> None:
    """Writes the elements that the mask has, at offsets of their own."""
    shape = op.operand_types[0].static_shape
    narrow, _ = _scattered(fiber, op, view, [value, offsets, mask], len(shape))
    memory.write(narrow, op, view, [offsets], value, shape, np.asarray(mask))


def _scattered(
    fiber: Fiber, op: Instruction, view: MemRef, operands: list[Value], rank: int
) -> tuple[Fiber, np.ndarray | None]:
    """Returns the lanes that access scattered elements: all for vectors of lanes, one a subgroup for its vectors."""
    if not isinstance(view, MemRef) or view.rank != 1 or op.attributes.get("chunk_size", 1) != 1:
        raise Unsupported(op, "but of single elements of a memref")
    if rank == 1:
        return fiber, None
    return once_a_warp(
        fiber, varying(fiber, [view], [value for value in operands if not values.is_uniform(value, rank)])
    )
