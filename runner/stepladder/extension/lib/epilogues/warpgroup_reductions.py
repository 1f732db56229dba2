"""Reductions of the accumulators of `wgmma`, in the registers of the warps of a warpgroup."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

from stepladder.extension.lib import launches, threads
from stepladder.extension.lib.arithmetic import apply, index, less_than
from stepladder.extension.lib.control_flow import create_if
from stepladder.extension.lib.dialect import Rewriter
from stepladder.extension.lib.epilogues.epilogue import MATRIX, Epilogue, extents_of, thread_column, thread_row
from stepladder.extension.lib.epilogues.fragment_reductions import Pair, reduce_pairs
from stepladder.extension.lib.epilogues.partial_results import of_tiles
from stepladder.extension.lib.epilogues.reduced_elements import Extents, offsets_in
from stepladder.extension.lib.epilogues.reduced_results import COLUMN, ReducedResult
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir.bindings import arith, ir

_WARPS = 4
# Rows of an instruction's 64 that a warp has.
_WARP_ROWS = MMA_ROWS // _WARPS


def reduce_accumulators(payload: ir.Operation, epilogue: Epilogue) -> None:
    """Creates the reductions of what an epilogue computes, at the insertion point.

    A warp has 16 rows of each instruction's 64. It folds the columns of each 16 by themselves, and all its rows of a
    column.

    Args:
        payload: with the one launch.
        epilogue: the epilogue.
    """
    if epilogue.elementwise is None or not epilogue.elementwise.reduced:
        return
    launch = launches.find_launch(payload)
    with _if_in_c(launch, epilogue):
        for reduced in epilogue.elementwise.reduced:
            _reduce(launch, epilogue, reduced)


def erase_reduced(epilogue: Epilogue, rewriter: Rewriter) -> None:
    """Erases the workspaces of reductions, after the epilogue has been erased.

    Args:
        epilogue: the epilogue; one without reductions changes nothing.
        rewriter: that erases ops.
    """
    for reduced in epilogue.elementwise.reduced if epilogue.elementwise is not None else ():
        reduced.erase(rewriter)


@contextlib.contextmanager
def _if_in_c(launch: ir.Operation, epilogue: Epilogue) -> Iterator[None]:
    """Sets the insertion point to where the block's tile has elements of C: those of other blocks of its cluster may
    all are beyond C, where a reduction has no partial results."""
    is_alone = math.prod(launches.launch_sizes(launch, launches.CLUSTER)) == 1
    extents = [] if is_alone else extents_of(epilogue.c_tile, _tile_of_block(epilogue))
    with contextlib.ExitStack() as conditions:
        for extent in extents:
            if extent is not None:
                conditions.enter_context(create_if(less_than(index(0), extent)))
        yield


def _tile_of_block(epilogue: Epilogue) -> list[int]:
    """Returns rows and columns of the block's tile of C."""
    rows, columns = ir.MemRefType(epilogue.accumulator_tile.results[0].type).shape[-2:]
    return [rows, columns // epilogue.products]


def _reduce(launch: ir.Operation, epilogue: Epilogue, reduced: ReducedResult) -> None:
    """Creates one reduction."""
    elementwise = epilogue.elementwise
    assert elementwise is not None  # it has the reduction
    rows, columns = epilogue.shape
    block = _tile_of_block(epilogue)
    inside_rows, inside_columns = extents_of(epilogue.c_tile, block)
    extents = Extents(inside_rows, inside_columns, reduced.extents[1] % 2 == 0, rounds_pairs=True)
    tile_row, tile_column = offsets_in(reduced.workspace, elementwise.outputs[reduced.output])
    fragment = epilogue.fragment()
    first_row = arith.addi(epilogue.first_row(), thread_row())
    first_column = thread_column()
    begin = arith.addi(epilogue.first_row(), _row_of_warp())
    blocks = rows // MMA_ROWS
    counts = [-(-extent // block_extent) * block_extent for extent, block_extent in zip(reduced.extents, block)]
    along_rows = reduced.axis == COLUMN
    height = _WARP_ROWS if along_rows else _WARP_ROWS * blocks
    partials = of_tiles(launch, reduced, (counts[0] // height, counts[1] // columns), (height, columns))
    column_number = apply(lambda c: ir.AffineExpr.get_floor_div(c, columns), tile_column)
    for group in [[number] for number in range(blocks)] if along_rows else [list(range(blocks))]:
        pairs: list[Pair] = []
        for matrix in range(columns // MATRIX):
            column = arith.addi(first_column, index(MATRIX * matrix))
            for number in group:
                for half in (0, 1):
                    row = arith.addi(first_row, index(MMA_ROWS * number + MATRIX * half))
                    pairs.append(Pair(fragment.pairs(number, matrix, half), row, column, (number, half), matrix))
        first = arith.addi(begin, index(MMA_ROWS * group[0])) if along_rows else index(0)
        # Where warps have several runs of rows, they are numbered by warpgroup and warp.
        row_number = (
            apply(lambda t, r: ir.AffineExpr.get_floor_div(t + r, _WARP_ROWS), tile_row, first)
            if along_rows
            else apply(
                lambda t, r, w: ir.AffineExpr.get_floor_div(t + r, rows) * _WARPS + w,
                tile_row,
                epilogue.first_row(),
                _warp(),
            )
        )
        tile = (row_number, column_number) if along_rows else (column_number, row_number)
        reduce_pairs(pairs, elementwise, reduced, extents, first, partials, tile)


def _warp() -> ir.Value:
    """Returns the number of a thread's warp in its warpgroup."""
    thread = threads.thread_in_warpgroup()
    return apply(lambda t: ir.AffineExpr.get_floor_div(t, threads.WARP), thread)


def _row_of_warp() -> ir.Value:
    """Returns the row, of an instruction's 64, at which those of a thread's warp begin."""
    return apply(lambda w: w * _WARP_ROWS, _warp())
