"""Chooses the knobs of an attention's kernel by an estimate of its time: the rows of a block, and the blocks of a
cluster that have a part of the keys each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stepladder.extension.lib.multi_kernel.attention import Attention, heads_of_keys, tile_of
from stepladder.extension.lib.multi_kernel.attention_logits import has_causal_mask
from stepladder.extension.lib.tile_grid import PORTABLE_CLUSTER_SIZE
from stepladder.mlir.bindings import ir
from stepladder.mlir.types import byte_width, element_of
from stepladder.pipeline.cost_model.gpu import Gpu

# Of a block, and of a cluster, as the pipeline has them.
_ROWS, _SPLITS = (64, 128), (1, 2, 3, 4, 5, 6, 7, 8, 16)
# Keys of a tile, at most, where the one block of a tile of queries has 128 rows, and in other blocks.
_TILE, _HALF_TILE = 128, 64
_OPERANDS = 2  # keys and values


@dataclass(frozen=True)
class Choice:
    """The knobs of a kernel, and its estimated microseconds; of these, those without the reading of keys and values."""

    rows: int
    splits: int
    us: float
    us_in_cache: float = 0.0


def choose(attention: Attention, on: Gpu, *, skips: bool) -> Choice:
    """Returns the knobs with the least estimated time.

    Args:
        attention: the attention.
        on: the GPU, with constants of attentions.
        skips: whether blocks do not read keys that a causal mask hides from all of their queries.
    """
    *_, queries, keys = attention.shape
    tiles = -(-keys // tile_of(attention, _HALF_TILE))
    choices = [
        _estimated(attention, on, rows, splits, skips=skips)
        for rows in _ROWS
        for splits in _SPLITS
        # Blocks of 64 rows would read the keys of more queries twice as often.
        if splits <= tiles and (queries <= rows or rows == _ROWS[-1])
        # Not every GPU runs larger clusters.
        if splits <= PORTABLE_CLUSTER_SIZE or splits in on.clusters
    ]
    return min(choices, key=lambda choice: (choice.us, choice.us_in_cache))


def _estimated(attention: Attention, on: Gpu, rows: int, splits: int, *, skips: bool) -> Choice:
    """Returns the estimated time of a kernel: of the tiles that the busiest multiprocessor multiplies, one after the
    other, or of reading keys and values."""
    constants = on.attention
    *outer, queries, keys = attention.shape
    shared = heads_of_keys(attention)
    heads = shared if shared * queries <= rows else 1
    blocks = -(-heads * queries // rows)
    clusters = math.prod(outer) // heads * blocks
    depth = ir.RankedTensorType(attention.queries.value.type).shape[-1]
    few = rows == _ROWS[0]
    is_whole = not few and splits == 1
    tiles = -(-keys // (_TILE if is_whole else _HALF_TILE))
    resident = max(1, min(on.blocks_at_once(splits), on.multiprocessors) // splits) * (2 if few else 1)
    waves = math.ceil(clusters / resident)
    most = waves * -(-tiles // splits)
    if is_whole and skips and heads == 1 and has_causal_mask(attention):
        tiles_of_block = [min(tiles, number + 1) for number in range(blocks)]
        most = max(tiles_of_block[-1], clusters // blocks * sum(tiles_of_block) / on.multiprocessors)
    tile = constants[f"few_rows_{depth}" if few else f"tile_{depth}"] * (1 if few or is_whole else constants["half"])
    if attention.terms > 1:
        tile *= constants["wide_tile"]
    if few and min(clusters, resident) * splits > on.multiprocessors:
        tile *= constants["resident"]
    exchange = constants["split"] * splits if splits > 1 else 0.0
    size = byte_width(element_of(attention.keys.value.type)) * _OPERANDS * depth * keys * math.prod(outer) // shared
    memory = constants["memory"] + size / (constants["of_hbm"] * on.hbm_bytes_per_us)
    in_cache = constants["launch"] + waves * constants["block"] + most * tile + exchange
    return Choice(rows, splits, max(in_cache, constants["launch"] + memory), in_cache)
