"""Stores of accumulators to C whose rows begin at any element, through shared memory, by whole rows of a warp."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib import memory, threads, tma
from stepladder.extension.lib.arithmetic import add, apply, index, integer, less_than
from stepladder.extension.lib.control_flow import body_of, create_if, create_if_below
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.epilogues.elementwise import Position
from stepladder.extension.lib.epilogues.epilogue import (
    MATRIX,
    AccumulatorFragment,
    Epilogue,
    extents_of,
    thread_column,
    thread_row,
)
from stepladder.extension.lib.epilogues.tma_stores import store_matrices
from stepladder.extension.lib.index_ranges import divisor_of
from stepladder.extension.lib.threads import WARP, WARPGROUP
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, memref, nvvm, scf, vector
from stepladder.mlir.traverse import defining_op

_UNIT = 16  # bytes: the widest access of a thread
_LINE = 128  # bytes
_WARP_ROWS = MMA_ROWS // (WARPGROUP // WARP)  # rows of 64 whose sums a warp holds


@dataclass(frozen=True)
class _Pass:
    """Columns of the tile that are in the buffer together: `width` of them, from `begin` on."""

    begin: int
    width: int


class _Output:
    """A result that is stored, and where in its rows units of 16 bytes, or of 8 elements of a byte, begin.

    Attributes:
        tile: the view that the block writes.
        type: of an element.
        width: elements of a unit.
        period: rows after which units begin at the same column again.
    """

    def __init__(self, epilogue: Epilogue, tile: ir.Value) -> None:
        self.tile = tile
        self.type = ir.MemRefType(tile.type).element_type
        self.width = min(MATRIX, _UNIT // types.byte_width(self.type))
        with ir.InsertionPoint(epilogue.consumer), epilogue.consumer.location:
            origin = tma.global_tile(epilogue.consumer, tile)
        buffer = ir.MemRefType(origin.buffer.type)
        (*outer, self._pitch, step), self._offset = buffer.get_strides_and_offset()
        if step != 1 or any(divisor_of(place) % self.width for place in (origin.row, origin.column)):
            raise Refusal(epilogue.consumer, f"tiles of C must begin at multiples of {self.width} rows and columns")
        # The only matrix of a batch of 1 begins where the buffer does.
        if any(stride % self.width for stride, extent in zip(outer, buffer.shape) if extent != 1):
            raise Refusal(
                epilogue.consumer,
                f"matrices of a batch are {outer[-1]} elements apart; rows are stored in units of {self.width}",
            )
        self.period = self.width // math.gcd(self.width, self._pitch)

    def first(self, row: int) -> int:
        """Returns the first column of a row that a unit begins at.

        Args:
            row: of the tile, modulo `period` or more.
        """
        return -(self._offset + row * self._pitch) % self.width

    def first_of(self, row: ir.Value) -> ir.Value:
        """Returns the first column of a row that a unit begins at, at the insertion point.

        Args:
            row: of the tile, modulo `period` or more, an index.
        """
        pitch, offset = -self._pitch % self.width, -self._offset % self.width
        return apply(lambda x: ir.AffineExpr.get_mod(x * pitch + offset, self.width), row)


class RowStores:
    """The stores of one epilogue.

    A warp holds 16 rows of each 64 of the accumulator. It writes them to a buffer of its own, and then stores the rows:
    each thread a unit of 16 bytes that begins at a multiple of 16 bytes of C, from wherever it is in the buffer, and
    then the elements before the first unit of each row and after the last one.

    Args:
        epilogue: the epilogue.
        launch: the `gpu.launch`.
        lines: 128 bytes each, of a row that the buffer holds at a time.
        warpgroups: that store.

    Raises:
        Refusal: a tile that does not begin at a multiple of a unit's elements.
    """

    def __init__(self, epilogue: Epilogue, launch: ir.Operation, lines: int, warpgroups: int) -> None:
        self.epilogue = epilogue
        tiles = [epilogue.c_tile] if epilogue.elementwise is None else epilogue.elementwise.outputs
        # C last: the other results may be computed from what it held.
        result_numbers = [0] if epilogue.elementwise is None else list(reversed(epilogue.elementwise.stored))
        self.outputs = {number: _Output(epilogue, tiles[number]) for number in result_numbers}
        _, self.columns = epilogue.shape
        space = ir.MemRefType(epilogue.accumulator_tile.results[0].type).memory_space
        acc_type = ir.MemRefType(epilogue.accumulator_tile.results[0].type).element_type
        self.type = epilogue.c_type if epilogue.elementwise is None else acc_type
        self.bytes = types.byte_width(self.type)
        self.width = min(self.columns, lines * _LINE // (self.bytes * epilogue.products) // MATRIX * MATRIX)
        # Rows that a warp accesses at once are in different banks: 8 of 16 bytes each, or 4 of 32 bytes.
        row_length = self.width * epilogue.products
        pitch = row_length + MATRIX * (1 if row_length % (2 * MATRIX) == 0 else 2)
        with ir.InsertionPoint.at_block_begin(body_of(launch)), launch.location:
            shape = [warpgroups, MMA_ROWS, pitch]
            self.buffers: ir.Value = memref.alloc(ir.MemRefType.get(shape, self.type, memory_space=space), [], [])
            defining_op(self.buffers).attributes["operand_c"] = ir.UnitAttr.get()

    def create(self) -> None:
        """Creates the stores, at the current insertion point."""
        fragment = self.epilogue.fragment()
        rows, _ = self.epilogue.shape
        first_row = self.epilogue.first_row()
        self.extents = extents_of(self.epilogue.c_tile, self.epilogue.tile_shape)
        self.lane = apply(lambda t: ir.AffineExpr.get_mod(t, WARP), threads.thread_id())
        # Of the warp, in each 64.
        self.warp_row = apply(
            lambda t: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(t, WARPGROUP), WARP) * _WARP_ROWS,
            threads.thread_id(),
        )
        self.buffer = memory.subview(
            self.buffers, [threads.warpgroup_id(), 0, 0], [1, *ir.MemRefType(self.buffers.type).shape[1:]], drop=1
        )
        if divisor_of(first_row) % MMA_ROWS:
            raise Refusal(self.epilogue.consumer, f"rows of a warpgroup must begin at multiples of {MMA_ROWS}")
        first_row = arith.addi(first_row, self.warp_row)
        for block in range(rows // MMA_ROWS):
            row = arith.addi(first_row, index(MMA_ROWS * block)) if block else first_row
            for begin in range(0, self.columns, self.width):
                part = _Pass(begin, min(self.width, self.columns - begin))
                _sync_warp()  # the warp has read what the buffer held before
                self._fill(fragment, block, part)
                _sync_warp()
                for number, output in self.outputs.items():
                    if number == 0 and len(self.outputs) > 1:
                        _sync_warp()  # the others have read what C held
                    self._store(number, output, row, part)

    def _fill(self, fragment: AccumulatorFragment, block: int, part: _Pass) -> None:
        """Writes the warp's rows of 64 of the accumulator, `part` of their columns, to the buffer."""
        matrices = part.width // MATRIX
        for product in range(self.epilogue.products):
            own = [part.begin // MATRIX + product * fragment.matrices + number for number in range(matrices)]
            column = product * part.width
            if self.bytes == 2:
                self._fill_by_matrices(fragment, block, own, column)
            else:
                self._fill_by_pairs(fragment, block, own, column)

    def _fill_by_matrices(self, fragment: AccumulatorFragment, block: int, matrices: list[int], first: int) -> None:
        """Writes matrices of 16-bit elements side by side from column `first` of the buffer on."""
        # Lane l provides the address of row l mod 8 of matrix l / 8: the upper and lower left, then the right ones.
        row = apply(lambda r, x: r + ir.AffineExpr.get_mod(x, 2 * MATRIX), self.warp_row, self.lane)
        column = apply(lambda x: ir.AffineExpr.get_floor_div(x, 2 * MATRIX) * MATRIX + first, self.lane)
        for number in range(0, len(matrices), 2):
            pairs = [fragment.pair(block, matrix, half) for matrix in matrices[number : number + 2] for half in (0, 1)]
            place = arith.addi(column, index(MATRIX * number)) if number else column
            store_matrices(self.buffer, row, place, pairs)

    def _fill_by_pairs(self, fragment: AccumulatorFragment, block: int, matrices: list[int], first: int) -> None:
        """Writes matrices side by side from column `first` of the buffer on, pair by pair."""
        row, column = thread_row(), thread_column()
        for half in (0, 1):
            own = arith.addi(row, index(MATRIX * half)) if half else row
            for number, matrix in enumerate(matrices):
                place = arith.addi(column, index(first + MATRIX * number))
                memory.store_vector(fragment.pair(block, matrix, half), self.buffer, own, place)

    def _store(self, number: int, output: _Output, first_row: ir.Value, part: _Pass) -> None:
        """Stores the warp's rows, from `first_row` of the tile on: in units where all of them are inside of C."""
        ends = (arith.addi(first_row, index(_WARP_ROWS)), index(part.begin + part.width))
        inside = [
            arith.cmpi(arith.CmpIPredicate.ule, end, extent)
            for end, extent in zip(ends, self.extents)
            if extent is not None
        ]
        if not inside:
            self._store_units(number, output, first_row, part)
            self._store_edges(number, output, first_row, part)
            return
        branch = scf.IfOp(functools.reduce(arith.andi, inside), has_else=True)
        with ir.InsertionPoint(branch.then_block):
            self._store_units(number, output, first_row, part)
            self._store_edges(number, output, first_row, part)
            scf.yield_([])
        with ir.InsertionPoint(branch.else_block):
            self._store_singly(number, output, first_row, part)
            scf.yield_([])

    def _store_units(self, number: int, output: _Output, first_row: ir.Value, part: _Pass) -> None:
        """Stores the whole units of rows that are inside of C."""
        phases = range(output.period)
        for is_shifted in (False, True):  # a row whose units begin later has one less
            own = [phase for phase in phases if bool(output.first(phase)) == is_shifted]
            slots = part.width // output.width - is_shifted
            count = _WARP_ROWS // output.period * slots
            for begin in range(0, count if own else 0, WARP):
                item = _plus(self.lane, begin)
                with create_if_below(item, index(count) if begin + WARP > count else None):
                    row = apply(lambda x: ir.AffineExpr.get_floor_div(x, slots) * output.period, item)
                    column = apply(lambda x: ir.AffineExpr.get_mod(x, slots) * output.width, item)
                    self._store_phases(number, output, own, (first_row, row, column), part)

    def _store_phases(
        self, number: int, output: _Output, phases: Sequence[int], place: Sequence[ir.Value], part: _Pass
    ) -> None:
        """Stores a unit in each of adjacent rows, where some are left out.

        Args:
            number, output: the result.
            phases: the rows, after the first of them.
            place: the warp's first row in the tile, the first of these rows in it, and the column of the buffer that
                the units begin behind.
            part: columns that the buffer holds.
        """
        first_row, row, column = place
        shift = max(map(output.first, phases))
        # Views from the thread's own position on: what differs between rows is a constant of each access.
        width = (self.epilogue.products - 1) * part.width + output.width + (MATRIX if shift else 0)
        rows_view = memory.subview(self.buffer, [arith.addi(self.warp_row, row), column], [output.period, width])
        own_row, own_column = arith.addi(first_row, row), _plus(column, part.begin)
        tile = memory.subview(output.tile, [own_row, own_column], [output.period, shift + output.width])
        for phase in phases:
            first = output.first(phase)
            products = [
                self._read(rows_view, phase, first + product * part.width, output) for product in self._products
            ]
            position = Position(_plus(own_row, phase), _plus(own_column, first), (phase, first))
            self._write(number, products, position, tile, [index(phase), index(first)])

    def _store_edges(self, number: int, output: _Output, first_row: ir.Value, part: _Pass) -> None:
        """Stores the elements before the first unit of each row that is inside of C, and after its last one, one by
        one: together as many as a unit has, or none."""
        width = output.width
        if not any(map(output.first, range(output.period))):
            return
        slot = apply(lambda x: ir.AffineExpr.get_mod(x, width), self.lane)
        for begin in range(0, _WARP_ROWS * width, WARP):
            row = _plus(apply(lambda x: ir.AffineExpr.get_floor_div(x, width), self.lane), begin // width)
            first = output.first_of(row)
            column = arith.select(less_than(slot, first), slot, _plus(slot, part.width - width))
            with create_if(less_than(index(0), first)):
                self._store_element(number, output, (first_row, row, column), part)

    def _store_singly(self, number: int, output: _Output, first_row: ir.Value, part: _Pass) -> None:
        """Stores the elements of rows that may leave C, one by one."""
        rows, columns = self.extents
        loop = scf.ForOp(index(0), index(_WARP_ROWS), index(1))
        with ir.InsertionPoint(loop.body):
            row = loop.induction_variable
            with create_if_below(arith.addi(first_row, row), rows):
                for begin in range(0, part.width, WARP):
                    column = _plus(self.lane, begin)
                    is_whole = columns is None and begin + WARP <= part.width
                    end = index(part.width + part.begin) if columns is None else columns
                    end = arith.minui(end, index(part.width + part.begin))
                    with create_if_below(_plus(column, part.begin), None if is_whole else end):
                        self._store_element(number, output, (first_row, row, column), part)
            scf.yield_([])

    def _store_element(self, number: int, output: _Output, place: Sequence[ir.Value], part: _Pass) -> None:
        """Stores an element: its `place` is the warp's first row in the tile, the row in them, and the column of the
        pass."""
        first_row, row, column = place
        buffer_row = arith.addi(self.warp_row, row)
        elements = [
            memref.load(self.buffer, [buffer_row, _plus(column, product * part.width)]) for product in self._products
        ]
        position = Position(arith.addi(first_row, row), _plus(column, part.begin))
        self._write(number, elements, position, output.tile, [position.row, position.column])

    @property
    def _products(self) -> range:
        return range(self.epilogue.products)

    def _read(self, rows_view: ir.Value, row: int, column: int, output: _Output) -> ir.Value:
        """Returns a unit of a result from a row and a column of a view of the buffer that begins at a multiple of the
        elements of a unit."""
        width = min(_UNIT // self.bytes, output.width)
        type_ = ir.VectorType.get([width], self.type)
        lead = column % width
        places = range(column - lead, column + output.width, width)
        units = [memory.load_vector(type_, rows_view, index(row), index(place)) for place in places]
        return _joined(units, lead, output.width)

    def _write(
        self,
        number: int,
        products: Sequence[ir.Value],
        position: Position,
        tile: ir.Value,
        place: Sequence[ir.Value],
    ) -> None:
        """Writes what becomes of adjacent elements of the products, or of one, to a view of C, or adds it to C.

        Args:
            number: of the result.
            products: a vector of each, or an element.
            position: in the block's tile.
            tile: the view.
            place: row and column in the view.
        """
        epilogue, value = self.epilogue, products[0]
        if epilogue.elementwise is not None:
            (value,) = epilogue.elementwise.compute(products, position, [number])
        if isinstance(value.type, ir.VectorType):
            if epilogue.accumulates:
                value = add(memory.load_vector(ir.VectorType(value.type), tile, *place), value)
            memory.store_vector(value, tile, *place)
            return
        if epilogue.accumulates:
            value = add(memref.load(tile, place), value)
        memref.store(value, tile, place)


def _plus(value: ir.Value, number: int) -> ir.Value:
    """Returns an index plus a constant."""
    return arith.addi(value, index(number)) if number else value


def _joined(vectors: Sequence[ir.Value], first: int, width: int) -> ir.Value:
    """Returns `width` adjacent elements of vectors that are side by side, from element `first` of the first one on."""
    joined, *others = vectors
    if not others and width == _length(joined):
        return joined
    *inner, last = others or [joined]
    for other in inner:
        joined = vector.shuffle(joined, other, list(range(_length(joined) + _length(other))))
    return vector.shuffle(joined, last, list(range(first, first + width)))


def _length(value: ir.Value) -> int:
    return ir.VectorType(value.type).shape[0]


def _sync_warp() -> None:
    """Synchronizes the lanes of a warp, which orders their accesses to memory."""
    nvvm.bar_warp_sync(integer(-1, 32))
