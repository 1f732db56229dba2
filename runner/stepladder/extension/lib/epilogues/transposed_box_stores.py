"""Stores of accumulators to a transposed C through boxes in shared memory, by TMA."""

from collections.abc import Callable
from dataclasses import replace

from stepladder.extension.lib import threads, tma, transposes, vectors
from stepladder.extension.lib.arithmetic import apply, index, times
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.epilogues.box_stores import BoxStore, Part
from stepladder.extension.lib.epilogues.epilogue import MATRIX, PAIR, AccumulatorFragment
from stepladder.extension.lib.epilogues.operand_boxes import UNIT, Boxes
from stepladder.extension.lib.epilogues.tma_stores import load_matrices, store_matrices
from stepladder.extension.lib.threads import WARP, WARPGROUP
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir.bindings import arith, ir

# Rows of C in a box at most, as many as a warpgroup's boxes of a row-major C have: the higher the boxes, the fewer
# stages of the main loop fit beside them.
_BOX_ROWS = 64


class TransposedBoxStore(BoxStore):
    """The stores of one epilogue to a transposed C: rows of C are columns of the tile.

    A box has up to 64 rows of C, and 128 bytes of each. The columns of the tile are divided evenly, but for multiples
    of eight, which the last box has fewer of. The 64 rows of the tile that an instruction computes are a box of 16-bit
    elements, and two of 32-bit elements, of which each warp writes a part of one.
    """

    def _swizzle(self) -> int:
        """Returns the bytes of a row of a box."""
        if self.group != WARPGROUP:
            raise Refusal(
                self.epilogue.consumer, "a transposed C whose rows warps store: rows of several warps are a box"
            )
        if self.bytes not in (2, 4):
            raise Refusal(
                self.epilogue.consumer, f"a transposed C of {self.c_type}: elements of 16 or 32 bits are stored"
            )
        return max(tma.SWIZZLES)

    def _divide(self) -> tuple[int, int, int]:
        """Returns the rows of a box, the boxes of a warpgroup, and the parts of each."""
        height = -(-self.columns // MATRIX // self._pieces) * MATRIX
        return height, self.rows // MMA_ROWS * self._pieces, MMA_ROWS // self.width

    @property
    def _pieces(self) -> int:
        """How many boxes the columns of the tile are divided into."""
        return -(-self.columns // _BOX_ROWS)

    def _rows_of(self, number: int) -> int:
        """Returns the rows of box `number`."""
        return min(self.height, self.columns - self._first_column(number))

    def _first_column(self, number: int) -> int:
        """Returns the column of the tile at which box `number` begins."""
        return number % self._pieces * self.height

    def _first_row(self, number: int) -> int:
        """Returns the row of the warpgroup's part of the tile at which box `number` begins."""
        return number // self._pieces * MMA_ROWS

    def copy_operand(self) -> None:
        """Creates copies of a matrix as `BoxStore` does, of 16-bit elements; others are read in another order than
        threads write transposed boxes."""
        if self.bytes == 2 and not transposes.has_odd_rows(self.epilogue.c_tile):
            super().copy_operand()

    def _operand_boxes(self) -> Boxes:
        """Returns the boxes as the copies of an operand need them."""
        boxes = super()._operand_boxes()
        return replace(boxes, rows=self._rows_of, origin=lambda number: boxes.origin(number)[::-1], transposed=True)

    def _starts(self, number: int) -> tuple[Callable[[], ir.Value], Callable[[], ir.Value]]:
        """Returns what creates the row and the column of the tile at which box `number` begins."""
        row, column = self._first_row(number), self._first_column(number)
        return lambda: arith.addi(self.epilogue.first_row(), index(row)), lambda: index(column)

    def _tile(self) -> ir.Value:
        """Returns the view of C that the block writes."""
        tile = transposes.source_of_transpose(self.c_tile)
        assert tile is not None
        return tile

    def _begin(self) -> ir.Value:
        """Returns the column of C at which the warpgroup's rows of the tile begin."""
        return arith.addi(self.origin.column, self.epilogue.first_row())

    def _places(self, begin: ir.Value, number: int) -> list[tuple[Part, ir.Value, ir.Value]]:
        """Returns the parts of box `number` that a leader stores, with column and row of C at which each begins."""
        distances = [self._first_row(number) + self.width * part for part in range(self.parts)]
        columns = [arith.addi(begin, index(distance)) if distance else begin for distance in distances]
        first = self._first_column(number)
        row = arith.addi(self.origin.row, index(first)) if first else self.origin.row
        return [(part, column, row) for part, column in enumerate(columns)]

    def _coordinates(self) -> list[tuple[ir.Value, ir.Value]]:
        """Returns the row and the column of a buffer that a thread accesses, in the first matrices.

        The list has an entry for each element of a pair of 32 bits, of the upper and of the lower half, or one for the
        row of a matrix of 16-bit elements whose address the lane provides. Other matrices are 8 rows further each.
        """
        thread = threads.thread_id()
        lane = apply(lambda t: ir.AffineExpr.get_mod(t, WARP), thread)
        # 16 rows of the tile, which are 16 columns of a box, belong to a warp.
        first = apply(
            lambda t: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(t, WARPGROUP), WARP) * 2 * MATRIX, thread
        )
        part = apply(lambda x: ir.AffineExpr.get_floor_div(x, self.width) * self.height, first)
        first_unit = apply(
            lambda x: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(x, self.width) * self.bytes, UNIT), first
        )
        if self.bytes == 2:
            # Lane l provides the address of row l mod 8 of matrix l / 8: the upper and lower left, then the right ones.
            in_matrix = apply(lambda x: ir.AffineExpr.get_mod(x, MATRIX), lane)
            side = apply(lambda x: ir.AffineExpr.get_floor_div(x, 2 * MATRIX) * MATRIX, lane)
            half = apply(lambda x: ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(x, MATRIX), 2), lane)
            unit = arith.xori(arith.addi(first_unit, half), in_matrix)
            row = arith.addi(part, arith.addi(side, in_matrix))
            return [(row, times(unit, UNIT // self.bytes))]
        coordinates: list[tuple[ir.Value, ir.Value]] = []
        column = apply(lambda x: ir.AffineExpr.get_floor_div(x, 4), lane)  # of C, a row of the matrix
        within = apply(lambda x: ir.AffineExpr.get_mod(x, UNIT // 4), column)
        own_unit = apply(lambda x: ir.AffineExpr.get_floor_div(x, UNIT // 4), column)
        for half in (0, 1):
            for side in range(PAIR):
                in_matrix = apply(lambda x, e=side: ir.AffineExpr.get_mod(x, 4) * PAIR + e, lane)
                unit = arith.addi(first_unit, own_unit)
                unit = arith.xori(arith.addi(unit, index(2 * half)) if half else unit, in_matrix)
                coordinates.append((arith.addi(part, in_matrix), arith.addi(times(unit, UNIT // 4), within)))
        return coordinates

    def _read(
        self, box: ir.Value, number: int, block: int, coordinates: list[tuple[ir.Value, ir.Value]]
    ) -> dict[tuple[int, int, int], ir.Value]:
        """Returns the pairs that a thread writes of box `number`, as its buffer has them: see `BoxStore`."""
        ((row, column),) = coordinates
        before = self._first_column(number) // MATRIX
        pairs: dict[tuple[int, int, int], ir.Value] = {}
        for sides in self._matrices(number):
            places = [(block, before + matrix, half) for matrix in sides for half in (0, 1)]
            own = arith.addi(row, index(MATRIX * sides.start))
            pairs |= zip(places, load_matrices(box, own, column, len(places), transposed=True))
        return pairs

    def _matrices(self, number: int) -> list[range]:
        """Returns the numbers of the matrices of box `number`, side by side, that each instruction accesses."""
        count = self._rows_of(number) // MATRIX
        return [range(first, min(first + 2, count)) for first in range(0, count, 2)]

    def _write(
        self,
        fragment: AccumulatorFragment,
        box: ir.Value,
        number: int,
        coordinates: list[tuple[ir.Value, ir.Value]],
    ) -> None:
        """Writes the part of 64 rows of the tile that box `number` has to its buffer, transposed."""
        matrices, source = self._rows_of(number) // MATRIX, self.stored_fragment(fragment)
        rows, before = number // self._pieces, self._first_column(number) // MATRIX
        self.read_operand(box, number, rows, coordinates)
        if self.bytes == 2:
            ((row, column),) = coordinates
            for sides in self._matrices(number):
                pairs = [source.pair(rows, before + matrix, half) for matrix in sides for half in (0, 1)]
                store_matrices(box, arith.addi(row, index(MATRIX * sides.start)), column, pairs, transposed=True)
            return
        for matrix in range(matrices):
            for half in (0, 1):
                pair = source.pair(rows, before + matrix, half)
                for side in range(PAIR):
                    row, column = coordinates[PAIR * half + side]
                    element = vectors.extract(pair, [side], self.c_type)
                    own = arith.addi(row, index(MATRIX * matrix))
                    ir.Operation.create("memref.store", operands=[element, box, own, column])
