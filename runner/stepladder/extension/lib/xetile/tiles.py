"""Operations of `xetile`, created at the current insertion point, and the blocks that subgroups own of a tile."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import BOUNDS, body_of
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.xetile.tile_type import TileType
from stepladder.mlir.xetile.wg_map import WgMap

SHARED_SPACE = 3  # of shared local memory, as memrefs of XeGPU have it


def tile_type(tile: TileType) -> ir.Type:
    """Returns a tile type for its description.

    Args:
        tile: extents, element type, map of subgroups and memory space.
    """
    if tile.scatter:
        return ir.Type.parse(f"!xetile.tile<{tile.vector}, #xetile.scatter>")
    fields = []
    if tile.wg is not None:
        fields.append(f"wg = {tile.wg}")
    if tile.is_transposed:
        fields.append("order = [0, 1]")
    if tile.space == "shared":
        fields.append(f"memory_space = {SHARED_SPACE}")
    kind = f"#xetile.tile_attr<{{{', '.join(fields)}}}>" if fields else "unit"
    return ir.Type.parse(f"!xetile.tile<{tile.vector}, {kind}>")


def create(
    name: str,
    operands: Sequence[ir.Value],
    results: Sequence[ir.Type] = (),
    attributes: dict[str, ir.Attribute] | None = None,
) -> ir.Operation:
    """Returns a new operation of `xetile`.

    Args:
        name: of the op, without its dialect.
        operands: in the order of the op.
        results: types of its results.
        attributes: by name; None for none.
    """
    return ir.Operation.create(
        f"xetile.{name}", results=list(results), operands=list(operands), attributes=attributes or {}
    ).operation


def init_tile(
    tile: TileType,
    base: ir.Value,
    offsets: Sequence[ir.Value],
    shape: Sequence[ir.Value] = (),
    strides: Sequence[ir.Value] = (),
) -> ir.Value:
    """Returns a new tile.

    Args:
        tile: its description.
        base: the buffer or the address that it is a part of.
        offsets: of its first element in the base.
        shape: extents of a base whose type does not have them.
        strides: of a base whose type does not have them, in elements.
    """
    sizes = ir.DenseI32ArrayAttr.get([1, len(offsets), len(shape), len(strides)])
    operands = [base, *offsets, *shape, *strides]
    return create("init_tile", operands, [tile_type(tile)], {"operandSegmentSizes": sizes}).results[0]


def load_tile(tile: ir.Value, vector: ir.VectorType, attributes: dict[str, ir.Attribute] | None = None) -> ir.Value:
    """Returns the vector of a tile.

    Args:
        tile: of global or shared memory.
        vector: its type, of the tile's shape and elements.
        attributes: of the op, such as cache hints; None for none.
    """
    return create("load_tile", [tile], [vector], attributes).results[0]


def store_tile(value: ir.Value, tile: ir.Value) -> None:
    """Stores a vector to a tile.

    Args:
        value: a vector of the tile's shape and elements.
        tile: of global or shared memory.
    """
    create("store_tile", [value, tile])


def uses_of(tile: ir.Value) -> tuple[list[ir.Operation], list[ir.Operation]]:
    """Returns the ops that access memory through a tile, and those that move it; loops and branches are followed.

    Args:
        tile: the result of an `xetile.init_tile`.
    """
    accesses, moves, pending, visited = [], [], [tile], {tile}
    while pending:
        for use in pending.pop().uses:
            owner = use.owner.operation if hasattr(use.owner, "operation") else use.owner
            more = _carried(owner, use.operand_number)
            if owner.name == "xetile.update_tile_offset":
                moves.append(owner)
            elif not more:
                accesses.append(owner)
            pending += [value for value in more if value not in visited]
            visited.update(more)
    return accesses, moves


def _carried(op: ir.Operation, number: int) -> list[ir.Value]:
    """Returns the tiles that an operand of an op becomes; none for an access."""
    if op.name == "xetile.update_tile_offset":
        return list(op.results)
    if op.name == "scf.for":
        place = number - BOUNDS
        return [body_of(op).arguments[1 + place], op.results[place]]
    if op.name == "scf.yield":
        parent = op.parent.operation if op.parent is not None else None
        return [] if parent is None else [parent.results[number]]
    return []


class Owned:
    """The blocks that the executing subgroup owns of a tile, in rounds along both dimensions.

    Args:
        wg: the map.
        shape: of the tile.
        subgroup: the number of the subgroup, an index.
    """

    def __init__(self, wg: WgMap, shape: Sequence[int], subgroup: ir.Value) -> None:
        self.wg = wg
        self.shape = tuple(shape)
        self.rounds = tuple(
            max(1, size // (wg.sg_layout[axis] * wg.sg_data[axis])) for axis, size in enumerate(self.shape)
        )
        self._subgroup = subgroup

    @property
    def count(self) -> int:
        """Number of blocks."""
        return self.rounds[0] * self.rounds[1]

    @property
    def places(self) -> list[tuple[int, int]]:
        """The round of each block along both dimensions, in row-major order."""
        return [(row, column) for row in range(self.rounds[0]) for column in range(self.rounds[1])]

    def offsets(self) -> list[tuple[ir.Value, ir.Value]]:
        """Returns the first row and column of each block in the tile, in the order of `places`."""
        columns = index(self.wg.sg_layout[1])
        numbers = (arith.divui(self._subgroup, columns), arith.remui(self._subgroup, columns))
        along = [[self._offset(axis, numbers[axis], round_) for round_ in range(self.rounds[axis])] for axis in (0, 1)]
        return [(along[0][row], along[1][column]) for row, column in self.places]

    def _offset(self, axis: int, number: ir.Value, round_: int) -> ir.Value:
        subgroups, block, size = self.wg.sg_layout[axis], self.wg.sg_data[axis], self.shape[axis]
        blocks = size // block
        if blocks == 1:
            return index(0)
        if subgroups > blocks:  # the subgroups beyond begin at the first block again
            number = arith.remui(number, index(blocks))
        first = arith.muli(number, index(block))
        return arith.addi(first, index(round_ * subgroups * block)) if round_ else first
