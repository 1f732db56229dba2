"""xetile: tiles, and the operations that access memory, at work-group and at subgroup level.

A tile with a `wg` map belongs to a work-group: in a kernel each subgroup accesses the elements that the map gives it,
so that a missing barrier between subgroups is a race; the vector is one value for all of them. Without a map each
subgroup accesses its own tile. One thread, of the host or of a launch that no step has given its subgroups yet,
accesses the whole tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.emulator.core import types, values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import lowers
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.dialects.vector_memory import offset_by
from stepladder.emulator.hardware.reductions import atomic_kind, combined
from stepladder.emulator.hardware.warps import is_of_block, once_a_warp, varying
from stepladder.emulator.memory import memory, pointers
from stepladder.mlir.bindings import ir
from stepladder.mlir.xetile.tile_type import TileType, is_tile, read_tile, segments
from stepladder.mlir.xetile.wg_map import WgMap
from stepladder.runtime.errors import FAILED, StepladderError


@dataclass
class Tile:
    """A tile: a matrix and where in it the tile begins, or a memref and the offset of each element.

    Attributes:
        view: the matrix, a view of two dimensions; of one for a scatter tile.
        offsets: row and column, each uniform or (T,); the vector of offsets of a scatter tile.
    """

    view: MemRef
    offsets: tuple

    @staticmethod
    def merged(parts: list[Tile], masks: list, count: int) -> Tile:
        """Returns the tile whose fields are, in the lanes of each mask, those of the part.

        Args:
            parts: tiles of the same memory.
            masks: a bool array (T,) for each part.
            count: T, the number of lanes.
        """
        view = MemRef.merged([part.view for part in parts], masks, count)
        offsets = zip(*(part.offsets for part in parts))
        return Tile(view, tuple(values.merge(list(numbers), masks, count) for numbers in offsets))


def _execute(*names: str) -> Callable[[Callable], Callable]:
    """Registers what executes ops of tiles; the instruction has the decoded `tile` among its attributes."""

    def decorator(function: Callable) -> Callable:
        @lowers(*(f"xetile.{name}" for name in names))
        def lower(builder: Builder, op: ir.Operation) -> None:
            attributes = decode_attributes(op)
            tile = next(value.type for value in (*op.operands, *op.results) if is_tile(value.type))
            attributes["tile"] = read_tile(tile)
            vector = types.decode(attributes["tile"].vector)
            if isinstance(vector, types.Opaque):
                raise ValueError(f"elements of {attributes['tile'].element}")
            attributes["element"] = vector.element
            if op.name == "xetile.init_tile":
                attributes["segments"] = [len(part) for part in segments(op)]
            builder.emit(op.name, function, builder.used(op.operands), builder.defined(op.results), attributes)

        return function

    return decorator


@_execute("init_tile")
def init_tile(fiber: Fiber, op: Instruction, *operands: Value) -> Tile:
    """A tile of a memref or of an address."""
    remaining, parts = list(operands), []
    for size in op.attributes["segments"]:
        parts.append(remaining[:size])
        remaining = remaining[size:]
    (base,), offsets, shape, strides = parts
    if op.attributes["tile"].scatter:
        return Tile(base, (offsets[0],))
    if not isinstance(base, MemRef):
        view = pointers.view_at(fiber, op, base, op.attributes["element"], 0, shape, strides)
    else:
        view = base.view(base.offset, shape, strides) if shape else base
    start = view.offset
    for offset, size, stride in zip(offsets[:-2], view.sizes, view.strides):
        _check_outer(fiber, op, offset, size)
        start = start + offset * stride
    return Tile(view.view(start, view.sizes[-2:], view.strides[-2:]), tuple(offsets[-2:]))


def _check_outer(fiber: Fiber, op: Instruction, offset: Value, size: Value) -> None:
    """Reports an offset along an outer dimension that no matrix is at: the hardware's bounds are of two dimensions."""
    out = np.broadcast_to((np.asarray(offset) < 0) | (np.asarray(offset) >= np.asarray(size)), (fiber.count,))
    if out[fiber.lanes].any():
        fiber.group.sanitizer.report("out-of-bounds", "an offset of an outer dimension is beyond the base", op)


@_execute("update_tile_offset")
def update_tile_offset(fiber: Fiber, op: Instruction, tile: Tile, rows: Value, columns: Value) -> Tile:
    """The tile further on."""
    return Tile(tile.view, (tile.offsets[0] + rows, tile.offsets[1] + columns))


@_execute("prefetch_tile")
def prefetch_tile(fiber: Fiber, op: Instruction, tile: Tile) -> None:
    """Nothing: caches are not modelled. Elements beyond the matrix are not prefetched."""


class _Part:
    """The elements of a tile that the active lanes access, a block for each.

    Attributes:
        fiber: one lane a subgroup.
        coordinates: of the elements in the matrix.
        shape: of a lane's block.
        valid: which elements are in the matrix.
        leader: as `once_a_warp` returns it, at subgroup level.
        owned: rows and columns in the tile by subgroup, at work-group level.
    """

    def __init__(self, fiber: Fiber, op: Instruction, tile: Tile) -> None:
        type_: TileType = op.attributes["tile"]
        self.leader, self.owned = None, None
        starts = [fiber.agreed(offset) for offset in tile.offsets]
        differing = varying(fiber, [tile.view], starts)
        if type_.wg is not None and fiber.group.threads > 1:
            _check_work_group(fiber, op, type_.wg, differing)
            starts = [int(fiber.first(start)) for start in starts]
            self.owned = tuple(type_.wg.indices(axis, type_.shape[axis]) for axis in (0, 1))
            self.fiber = fiber.representatives()
            subgroup = fiber.group.warp_of_lane
            along = (self.owned[0][subgroup][:, :, None], self.owned[1][subgroup][:, None, :])
            self.shape = (along[0].shape[1], along[1].shape[2])
            self.coordinates = [start + places for start, places in zip(starts, along)]
        else:
            self.shape = type_.shape
            self.fiber, self.leader = once_a_warp(fiber, differing)
            along = (np.arange(self.shape[0])[:, None], np.arange(self.shape[1])[None, :])
            self.coordinates = [offset_by(start, places, 2) for start, places in zip(starts, along)]
        self.valid = np.asarray(True)
        for coordinate, size in zip(self.coordinates, tile.view.sizes):
            self.valid = self.valid & (coordinate >= 0) & (coordinate < offset_by(size, 0, 2))

    def split(self, value: Value) -> Value:
        """Returns a tile's vector as the block of each lane."""
        if self.owned is None or not values.is_uniform(value, 2):
            return value
        rows, columns = self.owned
        blocks = np.zeros((self.fiber.count, *self.shape), value.dtype)
        for lane in self.fiber.lanes:
            subgroup = self.fiber.group.warp_of_lane[lane]
            blocks[lane] = value[np.ix_(rows[subgroup], columns[subgroup])]
        return blocks

    def join(self, op: Instruction, blocks: Value) -> Value:
        """Returns the blocks of the lanes as the vector of the tile."""
        if self.owned is None:
            return blocks if self.leader is None or values.is_uniform(blocks, 2) else blocks[self.leader]
        rows, columns = self.owned
        vector = np.zeros(op.attributes["tile"].shape, blocks.dtype)
        for lane in self.fiber.lanes:
            subgroup = self.fiber.group.warp_of_lane[lane]
            vector[np.ix_(rows[subgroup], columns[subgroup])] = blocks[lane]
        return vector


def _check_work_group(fiber: Fiber, op: Instruction, wg: WgMap, differing: Sequence[np.ndarray]) -> None:
    group = fiber.group
    if group.blocks > 1:
        raise Unsupported(op, "in a cluster")
    if wg.subgroups != group.warps:
        raise StepladderError(
            f"{op.name} is of {wg.subgroups} subgroups (sg_layout = {list(wg.sg_layout)}), and the work-group has "
            f"{group.warps} of {group.warp} threads: launch {wg.subgroups * group.warp} threads",
            location=op.location,
            status=FAILED,
        )
    if len(fiber.warps) != group.warps:
        raise StepladderError(
            f"{len(fiber.warps)} of {group.warps} subgroups come to {op.name}, which is of the work-group",
            location=op.location,
            status=FAILED,
        )
    if not is_of_block(fiber, differing):
        raise StepladderError(
            f"the offsets of {op.name}, which is of the work-group, differ between its threads",
            location=op.location,
            status=FAILED,
        )


def _padding(op: Instruction) -> Value:
    return op.attributes["element"].dtype.type(op.attributes.get("padding", 0))


@_execute("load_tile")
def load_tile(fiber: Fiber, op: Instruction, tile: Tile) -> Value:
    """The elements of a tile; those beyond the matrix are the padding."""
    part = _Part(fiber, op, tile)
    valid = None if part.valid.all() else part.valid
    blocks = memory.read(part.fiber, op, tile.view, part.coordinates, part.shape, valid, _padding(op))
    return part.join(op, blocks)


@_execute("store_tile")
def store_tile(fiber: Fiber, op: Instruction, value: Value, tile: Tile) -> None:
    """Writes the elements of a tile that are in the matrix."""
    part = _Part(_same(fiber, value), op, tile)
    valid = None if part.valid.all() else part.valid
    memory.write(part.fiber, op, tile.view, part.coordinates, part.split(value), part.shape, valid)


def _same(fiber: Fiber, value: Value) -> Fiber:
    """Checks that the threads of a subgroup have the same vector, which is the subgroup's."""
    if not values.is_uniform(value, 2) and once_a_warp(fiber, [value])[0].lanes.size != len(fiber.warps):
        op = fiber.code[fiber.place - 1]
        raise StepladderError(
            f"the threads of a subgroup have different vectors at {op.name}", location=op.location, status=FAILED
        )
    return fiber


@_execute("atomic_rmw")
def atomic_rmw(fiber: Fiber, op: Instruction, value: Value, tile: Tile) -> Value:
    """Updates the elements of a tile that are in the matrix; returns what they were, and zero for the others."""
    part = _Part(_same(fiber, value), op, tile)
    access = memory.locate(part.fiber, op, tile.view, part.coordinates, part.shape, part.valid)
    if not access.per_lane:
        access = memory.with_lanes(access, len(part.fiber.lanes))
    group = fiber.group
    group.sanitizer.update(part.fiber, op, access)
    if group.counters is not None:
        group.counters.access(part.fiber, op, access, "atomic")
    operand = values.lanes(part.split(value), fiber.count, 2)[part.fiber.lanes]
    elements = access.memory.typed(access.element.dtype)
    kind = op.attributes["kind"]
    kind = kind if isinstance(kind, str) else atomic_kind(kind)
    valid = np.ones(access.positions.shape, bool) if access.valid is None else access.valid
    before = np.zeros(access.positions.shape, access.element.dtype)
    for number, (places, is_valid) in enumerate(zip(access.positions, valid)):
        before[number][is_valid] = elements[places[is_valid]]
        new = operand[number] if kind == "assign" else combined(kind, access.element, before[number], operand[number])
        elements[places[is_valid]] = new[is_valid]
    return part.join(op, memory.spread(part.fiber, before))


# Scattered elements.


def _scattered(fiber: Fiber, op: Instruction, tile: Tile, mask: Value, *more: Value) -> tuple:
    """Returns the fiber of one lane a subgroup, its leaders, the offsets, and which elements are accessed."""
    rank = len(op.attributes["tile"].shape)
    (offsets,) = tile.offsets
    lanes = [value for value in (offsets, mask, *more) if not values.is_uniform(value, rank)]
    narrow, leader = once_a_warp(fiber, varying(fiber, [tile.view], lanes))
    size = offset_by(tile.view.sizes[0], 0, rank)
    return narrow, leader, offsets, np.asarray(mask) & (offsets >= 0) & (offsets < size)


@_execute("load_gather")
def load_gather(fiber: Fiber, op: Instruction, tile: Tile, mask: Value) -> Value:
    """Elements with offsets of their own; masked ones and those beyond the memref are the padding."""
    shape = op.attributes["tile"].shape
    narrow, leader, offsets, valid = _scattered(fiber, op, tile, mask)
    elements = memory.read(narrow, op, tile.view, [offsets], shape, valid, _padding(op))
    return elements if leader is None or values.is_uniform(elements, len(shape)) else elements[leader]


@_execute("store_scatter")
def store_scatter(fiber: Fiber, op: Instruction, value: Value, mask: Value, tile: Tile) -> None:
    """Writes elements with offsets of their own, those that the mask selects and that are in the memref."""
    narrow, _, offsets, valid = _scattered(fiber, op, tile, mask, value)
    memory.write(narrow, op, tile.view, [offsets], value, op.attributes["tile"].shape, valid)
