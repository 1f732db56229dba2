"""The choice of `raster_group`: the order in which blocks take tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepladder.pipeline.cost_model.columns import Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.encoded_columns import Array, Coded
from stepladder.pipeline.cost_model.epilogues import store_excess
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.terms import Size, Tiles, blocks_that_fit, cut, memory_bytes

KNOB = "raster_group"
# The knobs that the bytes from memory and from L2 depend on beside it.
_TRAFFIC = ("block_m", "block_n", "cluster_m", "cluster_n", "split_k")
# By how much fewer bytes an order has to move that leaves the last group fewer rows: with it, kernels of 256 x 1536 x
# 3072 and 704 x 928 x 2208 in clusters took longer, by as much for each k step (docs/results/orders_of_tiles.json).
_UNEVEN_GROUP_MARGIN = 0.02
# Blocks that begin one after another, and the least fraction of the bytes of different tiles that an order further from
# the script's has to save. Measured, docs/results/orders_of_tiles.json.
_NEIGHBOURS, _FEWER_TILES = 16, 0.1
# Of the L2 cache, for operands and C: blocks that all run at once read these from memory once, whatever the order.
HELD = 0.75


def different_loads(tiles: Tiles, knobs: Columns, size: Size) -> Array:
    """Returns what part of the bytes that neighbours load is of different tiles: L2 reads these once for all of them.

    Neighbours are `_NEIGHBOURS` blocks that begin one after another. The splits of a tile are adjacent, so that each
    cluster, or all splits of one, loads tiles of A and B, and the clusters next to it are those of the same column in
    a group of rows, and then of the next columns.

    Args:
        tiles: that blocks compute.
        knobs: with the order of blocks, the cluster and the splits.
        size: of the product.
    """
    cluster_m, cluster_n = knobs.floats("cluster_m", 1), knobs.floats("cluster_n", 1)
    all_rows, all_columns = tiles.rows / cluster_m, tiles.columns / cluster_n
    clusters = np.maximum(1.0, _NEIGHBOURS / (cluster_m * cluster_n * knobs.floats("split_k", 1)))
    rows = np.minimum(np.minimum(knobs.floats(KNOB), all_rows), clusters)
    rows = np.maximum(rows, np.minimum(clusters / all_columns, all_rows))
    columns = np.maximum(1.0, np.minimum(clusters / rows, all_columns))
    of_a = knobs.floats("block_m") * size.a_bytes / cluster_n
    of_b = knobs.floats("block_n") * size.in_bytes * size.products / cluster_m
    return (of_a / columns + of_b / rows) / (of_a + of_b)


def choose(columns: Columns, options: Sequence[int], default: int, size: Size, gpu: Gpu, family: str) -> Columns:
    """Returns every setting with the order of its tiles that moves the fewest bytes from and to memory.

    The bytes of a C that L2 does not hold are weighted by the time that their stores take. Among orders that move
    equally few bytes, those whose groups have equal numbers of rows come first: if the last group has fewer, blocks
    divide by a value that is not constant, and the coordinates of loads are no longer in uniform registers. Of these
    orders, the one nearest to the script's default is taken, or, on wgmma, one in which neighbours load clearly fewer
    different tiles (`_FEWER_TILES`).

    Args:
        columns: settings that lack the knob.
        options: its values.
        default: the script's.
        size: of the product.
        gpu: that runs it.
        family: of the kernels.
    """
    groups, combination = columns.grouped(_TRAFFIC)
    tiles = cut(size, groups)
    at_once = np.minimum(tiles.count, gpu.multiprocessors)
    cluster = np.broadcast_to(groups.floats("cluster_m", 1) * groups.floats("cluster_n", 1), (groups.count,))
    is_one_wave = tiles.count * groups.floats("split_k", 1) <= blocks_that_fit(cluster, gpu)
    is_held = size.operand_bytes + size.stored_bytes <= HELD * gpu.l2_bytes
    by_distance = sorted(options, key=lambda rows: (max(rows / default, default / rows), -rows))
    # A row for each option.
    groups = groups.bound(KNOB, np.array(by_distance)[:, np.newaxis])
    shape = len(by_distance), groups.count
    bytes_moved = memory_bytes(size, tiles, groups, gpu, at_once, gpu.constants[family]["cached"])
    if family == WARPGROUP and size.stored_bytes > gpu.l2_bytes:
        excess = store_excess(groups, size, tiles, at_once, gpu.constants[family])
        bytes_moved = bytes_moved + size.stored_bytes * excess
    bytes_moved = np.where(is_one_wave & is_held & (family == WARPGROUP), 0.0, bytes_moved)
    rows, in_row = tiles.rows / groups.floats("cluster_m", 1), tiles.columns / groups.floats("cluster_n", 1)
    is_uneven = (rows % np.minimum(groups.floats(KNOB), rows) > 0) & (in_row > 1)
    by_traffic = np.broadcast_to(bytes_moved * (1 + _UNEVEN_GROUP_MARGIN * is_uneven) + is_uneven, shape)
    choice = np.argmin(by_traffic, axis=0)
    if family == WARPGROUP:
        group_indices = np.arange(groups.count)
        as_few = np.isclose(by_traffic, by_traffic[choice, group_indices], rtol=1e-9, atol=0.5)
        loads = np.where(as_few, different_loads(tiles, groups, size).round(6), np.inf)
        nearest = np.argmin(loads, axis=0)
        is_less = loads[nearest, group_indices] < (1 - _FEWER_TILES) * loads[choice, group_indices]
        choice = np.where(is_less, nearest, choice)
    return columns.bound(KNOB, Coded(np.asarray(by_distance), choice[combination]))
