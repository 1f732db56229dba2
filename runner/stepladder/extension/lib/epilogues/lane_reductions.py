"""Reductions of a warp's product that is in shared memory, of which lanes have vectors of adjacent elements."""

from __future__ import annotations

from stepladder.extension.lib import threads
from stepladder.extension.lib.arithmetic import apply, equal, index, less_than
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.epilogues.elementwise import Outlined
from stepladder.extension.lib.epilogues.partial_results import PartialResults, lane_id, over_lanes
from stepladder.extension.lib.epilogues.reduced_elements import elements_of
from stepladder.extension.lib.epilogues.reduced_results import COLUMN, ReducedResult
from stepladder.extension.lib.epilogues.warp_part import WarpPart
from stepladder.mlir.bindings import affine, arith, ir


def reduce_vectors(launch: ir.Operation, outlined: Outlined, reduced: ReducedResult, width: int) -> None:
    """Creates the reduction of a warp's product, at the insertion point.

    Adjacent lanes have adjacent vectors of a row, so that the vectors of a lane are all in the same columns. Lanes fold
    each row by themselves, and all rows of their columns.

    Args:
        launch: the `gpu.launch`.
        outlined: the elementwise op; the warp's product is in its tile.
        reduced: the reduction.
        width: elements of a vector.

    Raises:
        Refusal: the vectors of a row are no power of two, or more than a warp has lanes.
    """
    _LaneReduction(launch, outlined, reduced, width).create()


class _LaneReduction:
    """Arguments as for `reduce_vectors`."""

    def __init__(self, launch: ir.Operation, outlined: Outlined, reduced: ReducedResult, width: int) -> None:
        self.outlined, self.reduced, self.width = outlined, reduced, width
        self.per_row = outlined.columns // width
        if threads.WARP % self.per_row or outlined.rows % (threads.WARP // self.per_row):
            raise Refusal(
                outlined.call,
                f"rows of {outlined.columns} elements cannot be divided evenly among lanes in vectors of {width}",
            )
        self.part = WarpPart(outlined, reduced, width)
        self.partials: PartialResults = self.part.partials(launch)
        self.lane = lane_id()
        self.column = apply(lambda x: ir.AffineExpr.get_mod(x, self.per_row) * width, self.lane)
        self.at_once = threads.WARP // self.per_row  # rows

    def create(self) -> None:
        """Creates the reduction."""
        if self.reduced.axis == COLUMN:
            self._fold_rows()
        else:
            self._fold_columns()
        self.partials.arrive(*self.part.tile)

    def _row(self, number: ir.Value) -> ir.Value:
        """Returns the row of a lane's vector with an index."""
        return apply(lambda n, x: n * self.at_once + ir.AffineExpr.get_floor_div(x, self.per_row), number, self.lane)

    def _elements(self, row: ir.Value) -> list[ir.Value]:
        """Returns what is folded of the lane's vector of a row."""
        place = arith.addi(self.outlined.row, row), arith.addi(self.outlined.column, self.column)
        sums = self.outlined.load(self.width, *place)
        return elements_of(
            sums, self.outlined.position(*place), self.outlined.elementwise, self.reduced, self.part.extents
        )

    def _fold_rows(self) -> None:
        """Folds each row by the lanes that have its vectors."""
        # Not an scf.for: later steps search for the loop over k.
        loop = affine.AffineForOp(0, self.outlined.rows // self.at_once)
        with ir.InsertionPoint(loop.body):
            row = self._row(loop.induction_variable)
            value, *others = self._elements(row)
            for other in others:
                value = self.reduced.folded(value, other)
            value = over_lanes(self.reduced, value, _powers(1, self.per_row))
            writes = equal(self.column, index(0))
            self.partials.store([(row, value)], writes, *self.part.tile)
            affine.yield_([])

    def _fold_columns(self) -> None:
        """Folds the rows of each lane's columns, and then the lanes that have the same columns."""
        start = [self.reduced.neutral() for _ in range(self.width)]
        loop = affine.AffineForOp(0, self.outlined.rows // self.at_once, iter_args=start)
        with ir.InsertionPoint(loop.body):
            elements = self._elements(self._row(loop.induction_variable))
            sums = [
                self.reduced.folded(sum_so_far, element) for sum_so_far, element in zip(loop.inner_iter_args, elements)
            ]
            affine.yield_(sums)
        values: list[tuple[ir.Value, ir.Value]] = []
        for side, value in enumerate(loop.results):
            place = apply(lambda c, s=side: c + s, self.column) if side else self.column
            values.append((place, over_lanes(self.reduced, value, _powers(self.per_row, threads.WARP))))
        self.partials.store(values, less_than(self.lane, index(self.per_row)), *self.part.tile)


def _powers(first: int, end: int) -> list[int]:
    """Returns the powers of two from `first`, one itself, to below `end`."""
    powers: list[int] = []
    while first < end:
        powers.append(first)
        first *= 2
    return powers
