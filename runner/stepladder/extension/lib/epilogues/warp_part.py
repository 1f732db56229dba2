"""The position of the part of the product that a warp reduces, in the pipelines that outline the elementwise op."""

from __future__ import annotations

from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.epilogues import epilogue
from stepladder.extension.lib.epilogues.elementwise import Outlined
from stepladder.extension.lib.epilogues.partial_results import PartialResults, of_tiles
from stepladder.extension.lib.epilogues.reduced_elements import Extents, offsets_in
from stepladder.extension.lib.epilogues.reduced_results import COLUMN, ReducedResult
from stepladder.mlir.bindings import arith, ir


class WarpPart:
    """The part of the product that a warp reduces; creates ops at the insertion point.

    Args:
        outlined: the elementwise op.
        reduced: the reduction.
        width: of the vectors that a lane has.

    Attributes:
        extents: what is inside of C of the tile that the op is computed on.
        first: the row, or the column, of that tile at which the part begins.
        tile: number of the part, along the axis that is kept and along that which is folded.
    """

    def __init__(self, outlined: Outlined, reduced: ReducedResult, width: int) -> None:
        self._outlined, self._reduced = outlined, reduced
        self._block = ir.MemRefType(outlined.tile.results[0].type).shape
        self.extents, self.first = Extents(None, None, True), index(0)
        row, column = offsets_in(reduced.workspace, outlined.outputs[reduced.output])
        if outlined.is_of_block:
            inside_rows, inside_columns = epilogue.extents_of(outlined.outputs[0], self._block)
            self.extents = Extents(inside_rows, inside_columns, reduced.extents[1] % width == 0)
            row, column = arith.addi(row, outlined.row), arith.addi(column, outlined.column)
            self.first = outlined.row if reduced.axis == COLUMN else outlined.column
        rows, columns = (
            apply(lambda x, own=own: ir.AffineExpr.get_floor_div(x, own), place)
            for place, own in ((row, outlined.rows), (column, outlined.columns))
        )
        self.tile = (rows, columns) if reduced.axis == COLUMN else (columns, rows)

    def partials(self, launch: ir.Operation) -> PartialResults:
        """Creates the partial results of all warps of a launch.

        Args:
            launch: the `gpu.launch`.

        Returns:
            The workspace and the counters, which the warps share.
        """
        outlined = self._outlined
        rows, columns = (
            -(-extent // block_extent) * (block_extent // own)
            for extent, block_extent, own in zip(self._reduced.extents, self._block, (outlined.rows, outlined.columns))
        )
        return of_tiles(launch, self._reduced, (rows, columns), (outlined.rows, outlined.columns))
