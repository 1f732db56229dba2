"""Quantities shared by the terms of a launch of a wgmma kernel: its blocks, how many run at once, and what L2 holds."""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.launch_triggers import is_at_exit
from stepladder.pipeline.cost_model.terms import (
    BOX_BYTES,
    Size,
    Tiles,
    blocks_that_fit,
    ceil_divide,
    cut,
    held_bytes,
    readers_of,
    uncached,
)


def waves_of(tiles: Tiles, knobs: Columns, gpu: Gpu) -> tuple[Array, Array, Array]:
    """Returns waves, blocks that run at once, and waves with the last one counted by what it has to do.

    Persistent blocks loop over tiles; other blocks have one tile each. More persistent clusters than fit wait for a
    second pass. With stream-K, each block gets a share of the tail, of half a tile at least. Source: counting;
    how many clusters fit is measured (`Gpu.clusters`).

    Args:
        tiles: that blocks compute.
        knobs: with the cluster, the splits and the scheduler.
        gpu: whose multiprocessors run blocks.
    """
    split = knobs.floats("split_k", 1)
    in_cluster = np.where(knobs.equals("split_k_workspace", "cluster", "cluster"), split, 1.0)
    cluster = knobs.floats("cluster_m", 1) * knobs.floats("cluster_n", 1) * in_cluster
    # A step that is left out sets 0: ptxas chooses, and one block is sure to fit.
    room = blocks_that_fit(cluster, gpu) * np.maximum(knobs.floats("min_blocks_per_sm", 1), 1.0)
    blocks = tiles.count * split
    persistent_blocks = np.asarray(knobs.floats("persistent_blocks", 0))
    persistent = persistent_blocks > 0
    resident = np.floor(persistent_blocks / cluster) * cluster
    width = np.where(persistent, np.maximum(np.minimum(resident, blocks), 1.0), room)
    passes = np.where(persistent, ceil_divide(width, room), 1.0)
    waves = ceil_divide(blocks, width) * passes
    full_waves = np.floor(blocks / width)
    rest = blocks / width - full_waves
    stream_k = (full_waves + np.where(rest > 0, np.maximum(rest, 0.5), 0.0)) * passes
    shared = knobs.equals("tile_scheduler", "stream_k", "data_parallel")
    return waves, np.minimum(np.minimum(blocks, width), room), np.where(shared, stream_k, waves)


class Launch:
    """Quantities that the terms of a launch share, a value for each setting; arguments as for `warpgroup.predict`.

    Attributes:
        tiles: that blocks compute.
        waves, at_once, rounds: as of `waves_of`.
        splits: of k; `steps`: of each.
        split, a_split: parts of B and of A; see `products_of`. `b_loaded`: of B that a preceding kernel writes, and
            TMA loads.
        promotes: whether sums of fp8 are added to the accumulator after each step (`promote_accumulators`).
        boxes: of TMA along k.
        idle: part of the multiprocessors that have no block; `sharing`: blocks on each of the others.
        by_itself: whether the launch begins after the end of the one before; `at_exit`: after the exit of its blocks.
        cached: part of the L2 cache that holds operands; `held`: bytes that they take; `absent`: which part of them is
            read from HBM.
    """

    def __init__(self, knobs: Columns, size: Size, gpu: Gpu) -> None:
        self.knobs, self.size, self.gpu = knobs, size, gpu
        self.constants = constants = gpu.constants[WARPGROUP]
        self.block_m, self.block_n, self.block_k = (knobs.floats(name) for name in ("block_m", "block_n", "block_k"))
        self.cluster_m, self.cluster_n = knobs.floats("cluster_m", 1), knobs.floats("cluster_n", 1)
        self.cluster = self.cluster_m * self.cluster_n
        self.tiles = cut(size, knobs)
        self.waves, self.at_once, self.rounds = waves_of(self.tiles, knobs, gpu)
        self.splits = knobs.floats("split_k", 1)
        self.steps = ceil_divide(ceil_divide(size.k, self.block_k), self.splits)
        self.split, self.a_split = knobs.floats("parts", 1), knobs.floats("a_parts", 1)
        self.b_loaded = np.where(knobs.equals("split_f32", "shared", "kernels"), 1.0, self.split)
        self.promotes = np.asarray(knobs.column("promotes", 0), bool) & (self.steps > 1)
        self.boxes = np.maximum(1.0, self.block_k * size.in_bytes / BOX_BYTES)
        self.idle = np.maximum(0.0, 1 - self.at_once / gpu.multiprocessors)
        self.sharing = np.maximum(1.0, self.at_once / gpu.multiprocessors)
        self.warpgroups = knobs.floats("consumer_warpgroups", 1)
        self.pingpong = knobs.equals("schedule", "pingpong", "cooperative")
        self.by_itself = ~np.asarray(knobs.column("dependent_launch", True), bool)
        self.at_exit = is_at_exit(knobs)
        # Blocks of a dependent launch begin where multiprocessors are idle, and those of the next one on others.
        cached = constants["cached"] * (1 - constants["cached_idle"] * self.idle)
        self.cached = np.where(self.by_itself | self.at_exit, constants["cached_in_place"], cached)
        self.held = held_bytes(size, readers_of(self.tiles, knobs), constants["cached_halves"])
        self.absent = uncached(size, gpu, self.cached, constants["evicted"], self.held)
