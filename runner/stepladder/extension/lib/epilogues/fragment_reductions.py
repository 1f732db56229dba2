"""Reductions of the accumulators of tensor cores, in the registers of a warp.

A fragment of `mma.sync` and of `wgmma` has its elements in pairs: lane l has two adjacent ones of row l / 4, in columns
2 (l mod 4) and 2 (l mod 4) + 1, of each matrix of 8 x 8 elements.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import apply, equal, index, less_than
from stepladder.extension.lib.epilogues.elementwise import Elementwise, Position
from stepladder.extension.lib.epilogues.partial_results import PartialResults, lane_id, of_other_lane, over_lanes
from stepladder.extension.lib.epilogues.reduced_elements import Extents, elements_of
from stepladder.extension.lib.epilogues.reduced_results import COLUMN, ReducedResult
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import attributes_of, producer

_AT_ONCE = 8  # partial results of a lane that are stored together
_COMPUTED = ("affine.apply", "arith.constant", "gpu.lane_id", "gpu.thread_id")
_OF_A_ROW, _OF_A_COLUMN = (1, 2), (4, 8, 16)  # bits of the indices of lanes with elements of one row, or column


@dataclass(frozen=True)
class Pair:
    """Two adjacent elements of the product that a lane holds.

    Attributes:
        sums: the elements, a vector; of a pair of products, one of each.
        row, column: of the first in the tile that elementwise ops are computed on.
        row_key, column_key: equal for pairs of one row, and of one column.
    """

    sums: Sequence[ir.Value]
    row: ir.Value
    column: ir.Value
    row_key: Hashable
    column_key: Hashable


def key_of(value: ir.Value) -> Hashable:
    """Returns a key that is equal for two index values that are computed alike from the same values.

    Args:
        value: an index.
    """
    op = producer(value)
    if op is None or op.name not in _COMPUTED:
        return value
    attributes = tuple(sorted((name, str(attribute)) for name, attribute in attributes_of(op).items()))
    return op.name, attributes, tuple(map(key_of, op.operands))


def reduce_pairs(
    pairs: Sequence[Pair],
    elementwise: Elementwise,
    reduced: ReducedResult,
    extents: Extents,
    first: ir.Value,
    partials: PartialResults,
    tile: tuple[ir.Value, ir.Value],
) -> None:
    """Folds the pairs of a warp's tile along rows or columns, and the tiles of all warps, at the insertion point.

    Args:
        pairs: those of a lane.
        elementwise: what is folded is computed by.
        reduced: the reduction.
        extents: what is inside of C; elements outside count as the neutral element.
        first: the row, or the column, at which the tile begins.
        partials: of all warps.
        tile: number of the tile, along the axis that is kept and along that which is folded.
    """
    along_rows = reduced.axis == COLUMN
    lines: dict[Hashable, list[Pair]] = {}
    for pair in pairs:
        lines.setdefault(pair.row_key if along_rows else pair.column_key, []).append(pair)
    lane = lane_id()
    writes = (
        equal(apply(lambda x: ir.AffineExpr.get_mod(x, 4), lane), index(0)) if along_rows else less_than(lane, index(4))
    )
    distances = _OF_A_ROW if along_rows else _OF_A_COLUMN
    results: list[tuple[ir.Value, ir.Value]] = []
    for line in lines.values():
        values_by_slot: dict[int, ir.Value] = {}
        for pair in line:
            for side, element in enumerate(
                elements_of(pair.sums, Position(pair.row, pair.column), elementwise, reduced, extents)
            ):
                slot = 0 if along_rows else side
                values_by_slot[slot] = (
                    reduced.folded(values_by_slot[slot], element) if slot in values_by_slot else element
                )
        begin = line[0].row if along_rows else line[0].column
        for slot, value in values_by_slot.items():
            results.append((apply(lambda p, f, s=slot: p - f + s, begin, first), value))
        # Few at a time: partial results that wait for others keep their registers.
        if len(results) >= _AT_ONCE:
            _store(results, reduced, distances, lane, writes, partials, tile)
            results = []
    if results:
        _store(results, reduced, distances, lane, writes, partials, tile)
    partials.arrive(*tile)


def _store(
    results: Sequence[tuple[ir.Value, ir.Value]],
    reduced: ReducedResult,
    distances: Sequence[int],
    lane: ir.Value,
    writes: ir.Value,
    partials: PartialResults,
    tile: tuple[ir.Value, ir.Value],
) -> None:
    """Folds results over the lanes that have parts of them, and stores them.

    Args:
        results: of a lane, with their places in the tile.
        reduced: the reduction.
        distances: between these lanes, powers of two.
        lane: the number of the thread in its warp.
        writes: whether the lane stores results that all of these lanes have.
        partials: of all warps.
        tile: number of the tile, along the axis that is kept and along that which is folded.
    """
    if len(results) == 2 ** len(distances):
        partials.store([_divided(results, reduced, distances, lane)], None, *tile)
        return
    totals = [(place, over_lanes(reduced, value, distances)) for place, value in results]
    partials.store(totals, writes, *tile)


def _divided(
    results: Sequence[tuple[ir.Value, ir.Value]], reduced: ReducedResult, distances: Sequence[int], lane: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Returns one result, and its place, for each of the lanes that have parts of as many results as there are lanes.

    At each distance, two lanes exchange halves of their results: each folds the half that it keeps. These are as many
    shuffles as there are results, less one, instead of one for each result and distance.
    """
    for distance in reversed(distances):
        is_upper = less_than(index(distance - 1), apply(lambda x, d=distance: ir.AffineExpr.get_mod(x, 2 * d), lane))
        half = len(results) // 2
        kept = []
        for (low_place, low), (high_place, high) in zip(results[:half], results[half:], strict=True):
            sent = arith.select(is_upper, low, high)
            own = arith.select(is_upper, high, low)
            place = arith.select(is_upper, high_place, low_place)
            kept.append((place, reduced.folded(own, of_other_lane(sent, distance))))
        results = kept
    return results[0]
