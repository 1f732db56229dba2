"""Updates of a matrix by lanes, element by element, where no 2D block operation has the form.

The block of a subgroup is written to shared local memory, from which each lane takes what it has written itself: its
column. No lane reads what another one wrote, so that no barrier is needed, and a compiler may keep the values in
registers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant, index, integer, less_than, zero_of
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.launches import BLOCK, launch_sizes
from stepladder.extension.lib.xetile.xegpu_layouts import COLUMNS, ROWS, instruction, reaches, turns
from stepladder.mlir.bindings import arith, gpu, ir, memref, scf, vector
from stepladder.mlir.xetile.tile_type import is_tile, read_tile

Action = Callable[[ir.Value, list[ir.Value]], ir.Value | None]
_SHARED = 3
_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class Scratch:
    """Shared local memory of a launch: a block of 8 x 16 elements for each subgroup.

    Attributes:
        buffer: the memory.
        descriptor: of it, in XeGPU.
    """

    buffer: ir.Value
    descriptor: ir.Value


def make_scratch(launch: ir.Operation, element: ir.Type) -> Scratch:
    """Allocates the memory at the begin of a launch.

    Args:
        launch: a `gpu.launch`; the memory has a block for each of its subgroups.
        element: type of the elements.

    Returns:
        The memory and its descriptor.
    """
    subgroups = max(math.prod(launch_sizes(launch, BLOCK)) // COLUMNS, 1)
    space = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SHARED)
    type_ = ir.MemRefType.get([ROWS * subgroups, COLUMNS], element, memory_space=space)
    descriptor_type = ir.Type.parse(f"!xegpu.mem_desc<{ROWS * subgroups}x{COLUMNS}x{element}>")
    with ir.InsertionPoint.at_block_begin(body_of(launch)), launch.location:
        buffer = memref.alloc(type_, [], [])
        matrix = ir.Operation.create("xegpu.create_mem_desc", results=[descriptor_type], operands=[buffer])
    return Scratch(buffer, matrix.results[0])


def update_elements(
    op: ir.Operation,
    scratch: Scratch,
    values: Sequence[ir.Value],
    places: Sequence[ir.Value],
    sizes: Sequence[int],
    action: Action,
) -> list[ir.Value]:
    """Lets lanes update the elements of a matrix that a block covers, where they are within it.

    Args:
        op: the update; what it returns is loaded where it has uses.
        scratch: of the launch, of elements of the block's type.
        values: the block, of 16 columns or a multiple, or its columns.
        places: row and column of its first element in the matrix.
        sizes: rows and columns of the matrix.
        action: creates the update of an element, of its value, row and column; its result is the old value.

    Returns:
        The replacement of the old values, with zeros beyond the matrix; nothing where they have no uses.

    Raises:
        Refusal: another number of columns.
    """
    keeps = any(list(result.uses) for result in op.results)
    columns = ir.VectorType(values[0].type).shape[1]
    old_values = []
    for value, at in zip(values, columns_at(places, len(values))):
        update = _Update(op, scratch, at, sizes, action, keeps)
        old_values.append(update.column(value) if columns == 1 else update.block(value))
    return [value for value in old_values if value is not None]


@dataclass(frozen=True)
class _Update:
    """An update of a block or of a column; the arguments are those of `update_elements`."""

    op: ir.Operation
    scratch: Scratch
    places: Sequence[ir.Value]
    sizes: Sequence[int]
    action: Action
    keeps: bool

    def block(self, value: ir.Value) -> ir.Value | None:
        """Updates a block; returns the old values."""
        type_ = ir.VectorType(value.type)
        lane, first = _gpu_index("lane_id"), self._first()
        height = math.gcd(type_.shape[0], ROWS)
        layout = instruction(self.op, [height, type_.shape[1]])
        old = arith.constant(type_, zero_of(type_)) if self.keeps else None
        for row, column in itertools.product(range(0, type_.shape[0], height), range(0, type_.shape[1], COLUMNS)):
            self._share(value, row, column, height)
            across = arith.addi(self.places[1], arith.addi(lane, index(column)))
            for inner in range(height):
                at = [arith.addi(self.places[0], index(row + inner)), across]
                self._one(within(at, self.sizes), [arith.addi(first, index(inner)), lane], at)
            if old is not None:
                piece = self._access("load_matrix", [], [_block_type(value, height)], layout).results[0]
                old = vector.insert_strided_slice(piece, old, [row, column], [1, 1])
        return old

    def column(self, value: ir.Value) -> ir.Value | None:
        """Updates a column, of which each lane has all elements: lanes update a row each; returns the old values."""
        type_ = ir.VectorType(value.type)
        rows, lane, first = type_.shape[0], _gpu_index("lane_id"), self._first()
        block = vector.broadcast(ir.VectorType.get([rows, COLUMNS], type_.element_type), value)
        height = math.gcd(rows, ROWS)
        old = []
        for row in range(0, rows, height):
            self._share(block, row, 0, height)
            own = arith.addi(first, arith.remui(lane, index(height)))
            at = [arith.addi(self.places[0], arith.addi(lane, index(row))), self.places[1]]
            inside = arith.andi(less_than(lane, index(height)), within(at, self.sizes))
            self._one(inside, [own, lane], at)
            if self.keeps:
                row_of_lane = memref.load(self.scratch.buffer, [own, lane])
                old += [_of_lane(row_of_lane, number) for number in range(height)]
        return column_of(old) if self.keeps else None

    def _first(self) -> ir.Value:
        return arith.muli(_gpu_index("subgroup_id"), index(ROWS))

    def _share(self, value: ir.Value, row: int, column: int, height: int) -> None:
        """Stores a part of a block to the subgroup's scratch memory."""
        type_ = _block_type(value, height)
        piece = vector.extract_strided_slice(type_, value, [row, column], [height, COLUMNS], [1, 1])
        self._access("store_matrix", [piece], [], instruction(self.op, [height, COLUMNS]))

    def _access(
        self, name: str, operands: list[ir.Value], results: list[ir.Type], layout: ir.Attribute
    ) -> ir.Operation:
        dynamic = ir.DenseI64ArrayAttr.get([_DYNAMIC] * 2)
        return ir.Operation.create(
            f"xegpu.{name}",
            results=results,
            operands=[*operands, self.scratch.descriptor, self._first(), index(0)],
            attributes={"const_offsets": dynamic, "layout": layout},
        ).operation

    def _one(self, condition: ir.Value, own: list[ir.Value], at: list[ir.Value]) -> None:
        """Updates an element where a condition holds; its old value is stored in its position of scratch memory."""
        element = ir.MemRefType(self.scratch.buffer.type).element_type
        branch = scf.IfOp(condition, [element] if self.keeps else [], has_else=self.keeps)
        with ir.InsertionPoint(branch.then_block):
            old = self.action(memref.load(self.scratch.buffer, own), at)
            scf.yield_([old] if self.keeps else [])
        if self.keeps:
            with ir.InsertionPoint(branch.else_block):
                scf.yield_([constant(element, 0)])
            memref.store(branch.results[0], self.scratch.buffer, own)


def is_by_element(op: ir.Operation) -> bool:
    """Returns whether lanes access a tile by element: it has fewer columns than a block, or is updated atomically, or a
    vector that is in lanes as it is becomes column-major.

    A prefetch has no vector, so that its block has as many columns as the tile has contiguous elements.

    Args:
        op: that accesses the tile.
    """
    if op.name == "xetile.atomic_rmw":
        return True
    tile = read_tile(next(operand.type for operand in op.operands if is_tile(operand.type)))
    axis = 0 if op.name == "xetile.prefetch_tile" and tile.is_transposed else 1
    if op.name == "xetile.store_tile" and tile.is_transposed and tile.space == "global":
        return not turns(op.operands[0])
    if tile.space != "global" or tile.shape[axis] >= COLUMNS:
        return False
    is_block = op.name == "xetile.load_tile" and reaches(op.results[0], "xetile.transpose", "xetile.tile_mma")
    return not is_block or tile.shape[1] == 1


def columns_at(places: Sequence[ir.Value], columns: int) -> list[list[ir.Value]]:
    """Returns row and column of the first element of each column of a tile.

    Args:
        places: row and column of the first element of the tile.
        columns: of the tile.
    """
    return [[places[0], arith.addi(places[1], index(column)) if column else places[1]] for column in range(columns)]


def load_column(
    base: ir.Value, places: Sequence[ir.Value], sizes: Sequence[int], rows: int, padding: ir.Attribute | None
) -> ir.Value:
    """Returns elements of a column of a matrix, a vector of which each lane has all elements.

    Args:
        base: the matrix.
        places: row and column of the first element.
        sizes: rows and columns of the matrix.
        rows: elements that are loaded.
        padding: a scalar for elements beyond the matrix; None for zero.
    """
    element = ir.MemRefType(base.type).element_type
    elements = []
    for row in range(rows):
        at = [arith.addi(places[0], index(row)) if row else places[0], places[1]]
        branch = scf.IfOp(within(at, sizes), [element], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_([memref.load(base, at)])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([constant(element, 0) if padding is None else arith.constant(element, padding)])
        elements.append(branch.results[0])
    return column_of(elements)


def column_of(numbers: Sequence[ir.Value]) -> ir.Value:
    """Returns a vector of one column, in the form that MLIR distributes to lanes which all have it.

    Args:
        numbers: the elements of its rows, which all lanes of a subgroup have.
    """
    flat = ir.VectorType.get([len(numbers)], numbers[0].type)
    single = ir.VectorType.get([1], numbers[0].type)
    result = arith.constant(flat, zero_of(flat))
    for row, number in enumerate(numbers):
        result = vector.insert_strided_slice(vector.broadcast(single, number), result, [row], [1])
    return vector.shape_cast(ir.VectorType.get([len(numbers), 1], numbers[0].type), result)


def _block_type(value: ir.Value, height: int) -> ir.VectorType:
    return ir.VectorType.get([height, COLUMNS], ir.VectorType(value.type).element_type)


def _of_lane(number: ir.Value, lane: int) -> ir.Value:
    """Returns the value that a lane of the subgroup has, for all of its lanes."""
    result, _ = gpu.shuffle(number, integer(lane, 32), integer(COLUMNS, 32), gpu.ShuffleMode.IDX)
    return result


def _gpu_index(name: str) -> ir.Value:
    """Returns the result of an op of the dialect `gpu`, such as "lane_id"."""
    return ir.Operation.create(f"gpu.{name}", results=[ir.IndexType.get()]).results[0]


def within(at: Sequence[ir.Value], sizes: Sequence[int]) -> ir.Value:
    """Returns whether an element is within a matrix; a negative index is a large unsigned one.

    Args:
        at: row and column.
        sizes: rows and columns of the matrix.
    """
    row, column = (less_than(place, index(size)) for place, size in zip(at, sizes))
    return arith.andi(row, column)
