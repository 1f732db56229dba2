"""Predicted time of a k step of a kernel on wgmma and TMA.

A step takes as long as the slowest of the matrix unit, shared memory, TMA, the L2 cache, and the latency of the
pipeline.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepladder.pipeline.cost_model import batches
from stepladder.pipeline.cost_model.columns import Array
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.loading import Loads, are_neighbours, crowded_step, fill_step, l2_step, loads
from stepladder.pipeline.cost_model.preparation import register_step, split_step
from stepladder.pipeline.cost_model.terms import (
    INSTRUCTION_ROWS,
    Size,
    join,
    readers_at_once,
)
from stepladder.pipeline.cost_model.warpgroup_launch import Launch

# Lanes of a multiprocessor that add in f32, and the microseconds from the last product of a step to its sum. Measured.
_ADDING_LANES, _DRAIN_US = 128, 0.06
# What it takes longer to multiply a step of fp8 if its sums are added in f32, of a warpgroup that multiplies alone and
# of one beside others: a multiple of the time of the additions, and microseconds. Source:
# docs/results/fp8/seen.json.
_PROMOTING_ALONE, _PROMOTING_BESIDE = (1.5, 0.07), (0.35, 0.03)
# Splits of k up to which loads take no longer than without; beyond, they read as many distant columns of A at a time.
_SPLITS_WITHOUT_SLOWDOWN = 4
# Of the peak rate of shared memory that products of split operands reach. Source: docs/results/f32_tiles.json.
_SPLIT_SHARED_RATE = 1.0


def matrix_step(block_m: Array, block_n: Array, block_k: Array, size: Size, gpu: Gpu, factor: float) -> Array:
    """Returns the time of the matrix unit for a k step. Source: peak rate of the data sheet, times a fitted factor for
    the clock that power allows.

    Args:
        block_m, block_n, block_k: of the tile and the step.
        size: of the problem.
        gpu: with its peak rate.
        factor: fitted.
    """
    rate = gpu.multiply_adds(WARPGROUP, size.acc_type) * 2.0 / size.in_bytes
    return gpu.microseconds(block_m * block_n * block_k / rate) * factor


def products_of(split: Array | float) -> Array | float:
    """Returns how many products of tiles are one product: three of operands of f32 in two parts (`split_into_tf32`).

    Args:
        split: parts of an operand.
    """
    return 2 * split - 1


def shared_step(
    block_m: Array,
    block_n: Array,
    block_k: Array,
    size: Size,
    gpu: Gpu,
    fraction: float,
    split: Array | float = 1.0,
    a_split: Array | float = 1.0,
) -> Array:
    """Returns the time of shared memory for a k step: every 64 rows of A are read with all of B's tile, and TMA writes
    both. Source: PTX ISA, wgmma.mma_async: both operands from shared memory.

    What A is made from in registers is read once; so is A of f32 that threads split (`split_a_into_tf32`).

    Args:
        block_m, block_n, block_k: of the tile and the step.
        size: of the problem.
        gpu: with the peak rate of shared memory.
        fraction: of that rate, fitted.
        split: parts of B, 2 of one that is split; see `products_of`.
        a_split: parts of A in shared memory.
    """
    rows = block_m / INSTRUCTION_ROWS
    read_a = INSTRUCTION_ROWS * size.a_bytes * products_of(a_split)
    bytes_read = rows * (read_a + block_n * size.in_bytes * products_of(split))
    bytes_written = 0.5 * (block_m * size.a_bytes * a_split + block_n * size.in_bytes * split)
    of_peak = np.where(np.asarray(split) > 1, _SPLIT_SHARED_RATE, fraction)
    return gpu.microseconds((bytes_read + bytes_written) * block_k / (gpu.shared_bytes_per_clock * of_peak))


class Step:
    """The limits of a k step of a block, in us, each as if it were the only one.

    Args:
        launch: of the block.

    Attributes:
        matrix: the matrix unit.
        shared: shared memory.
        fill: TMA; `zeros`: what rows of zeros in tiles at edges add to it.
        l2: the L2 cache.
        latency: of the pipeline, with as many stages as there are.
        edges: part of the blocks whose tiles have rows of zeros.
    """

    def __init__(self, launch: Launch) -> None:
        knobs, size, gpu, constants = launch.knobs, launch.size, launch.gpu, launch.constants
        self._launch = launch
        # A pair of products multiplies tiles of A by tiles of both B side by side.
        columns = launch.block_n * size.products
        # Source: measured, where B is N-major: those of a tile begin within a sector of the L2 cache.
        odd = np.where((np.asarray(launch.block_n) % 16 == 8) & (size.b_layout == "row"), constants["odd_eights"], 1.0)
        # Blocks on one multiprocessor share what a step takes of it, but not its latency.
        tile = (launch.block_m, columns, launch.block_k)
        matrix = matrix_step(*tile, size, gpu, constants["matrix"])
        self.matrix = matrix * odd * products_of(launch.split) * launch.sharing
        shared = shared_step(*tile, size, gpu, constants["shared"], launch.split, launch.a_split)
        self.shared = shared * odd * launch.sharing
        parts = _loads_of(launch)
        # Source: measured, docs/results/model_long_bf16-bf16.json. Blocks of a cluster read tiles that they share once.
        doublings = np.log2(np.maximum(launch.splits / _SPLITS_WITHOUT_SLOWDOWN, 1.0))
        scatter = 1 + constants["split_loads"] * doublings / launch.cluster ** constants["split_shared"]
        # After the exit of all blocks, those of the next launch are spread over pairs of multiprocessors.
        spread = np.where(launch.at_exit, 1 - constants["loads_at_exit"] * launch.idle, 1.0)
        self.fill = _fill_of(launch, parts, scatter, spread)
        clusters = [launch.cluster_n, launch.cluster_m]
        only = [size.n <= launch.block_n * launch.cluster_n, size.m <= launch.block_m * launch.cluster_m]
        l2 = l2_step(parts, clusters, only, launch.at_once, launch.absent, gpu, constants)
        requests = batches.request_step(parts, clusters, launch.absent, size, gpu) * launch.sharing
        readers = readers_at_once(launch.tiles, knobs, launch.at_once)
        crowded = crowded_step(parts, clusters, readers, constants["crowd"])
        self.l2 = np.maximum(np.maximum(l2 * scatter * spread, requests), crowded)
        # The loads of the first stages are issued at once: the prologue waits for them.
        stages = knobs.floats("stages", 1)
        all_steps = launch.rounds * launch.steps
        self._waiting = np.maximum(0.0, all_steps - stages) / np.maximum(all_steps, 1.0) / stages
        self._latency = _latency_of(launch)
        if size.in_registers:
            self._computed = register_step(knobs, size, self.matrix)
        else:
            split_time = split_step(knobs, self.matrix, gpu)
            self._computed = np.where(launch.split > launch.a_split, split_time, 0.0)
        # Sums of split operands are added to the accumulator after each step: a warpgroup that multiplies alone waits.
        alone = launch.pingpong | (launch.warpgroups < 2)
        add_time = gpu.microseconds(launch.block_m * columns / _ADDING_LANES)
        self._added = np.where((launch.split > 1) & alone, add_time + _DRAIN_US, np.zeros(1))
        # So are those of fp8, where other warpgroups hide a part of it.
        factor, drain = (np.where(alone, *pair) for pair in zip(_PROMOTING_ALONE, _PROMOTING_BESIDE))
        self._promoting = np.where(launch.promotes, factor * add_time + drain, np.zeros(1))
        self.latency = self._pipeline_latency(self.fill)
        # Tiles with rows of zeros: those of the last row, of A, and of the last column, of B. One tile has both.
        counts = (launch.tiles.rows, launch.tiles.columns)
        edges = [np.where(part.zero_rows > 0, 1 / count, 0.0) for part, count in zip(parts, counts)]
        self.edges = np.minimum(edges[0] + edges[1], 1.0)
        crowd = [(launch.at_once / gpu.multiprocessors * edge) ** constants["zero_sharing"] for edge in edges]
        zeros = parts[0].zero_rows * crowd[0] + parts[1].zero_rows * crowd[1]
        self.zeros = constants["zero_row"] * 1e-3 * zeros

    def time(self, fill: Array) -> Array:
        """Returns the time of a step.

        Args:
            fill: that TMA takes.
        """
        multiply_time, latency = self.matrix + self._promoting, self._pipeline_latency(fill)
        limits = (multiply_time, self.shared, fill, self.l2, latency, self._computed)
        return join(*limits) + self._launch.constants["step"] * self._launch.boxes + self._added

    def _pipeline_latency(self, fill: Array) -> Array:
        held_time = self._launch.constants["held"] * self.matrix
        return (self._latency + np.maximum(fill, self.l2) + held_time) * self._waiting


def _loads_of(launch: Launch) -> list[Loads]:
    """Returns what a k step loads of A and of B."""
    size, tiles = launch.size, launch.tiles
    rows = (launch.block_m, tiles.mean_rows, tiles.last_rows, launch.cluster_n)
    columns = (launch.block_n, tiles.mean_columns, tiles.last_columns, launch.cluster_m)
    parts = [
        loads(size.a_layout == "row", size.m, *rows, launch.block_k, replace(size, in_bytes=size.a_bytes)),
        loads(size.b_layout == "column", size.n, *columns, launch.block_k, size),
    ]
    return [
        replace(part, rows=part.rows * count, zero_rows=part.zero_rows * count)
        for part, count in zip(parts, (launch.a_split, launch.b_loaded * size.products))
    ]


def _fill_of(launch: Launch, parts: list[Loads], scatter: Array, spread: Array) -> Array:
    """Returns the time of TMA for a k step, without rows of zeros in tiles at edges.

    Args:
        launch: of the block.
        parts: what a step loads of A and of B.
        scatter: how much longer loads take as splits of k read at distant positions.
        spread: how much shorter as blocks are spread over multiprocessors.
    """
    constants, clusters = launch.constants, [launch.cluster_n, launch.cluster_m]
    # The multiprocessors share the memory system that TMA loads from: loads are faster where some of them are idle.
    idle = 1 - constants["fill_idle"] * launch.idle
    fill = fill_step(parts, clusters, launch.gpu, constants) * idle * launch.sharing
    fill = fill * scatter
    fill = fill * (1 + constants["neighbours"] * are_neighbours(launch.cluster_m, launch.cluster_n, launch.size))
    # Blocks of a cluster that are beyond C load their slices, and fill the others with zeros.
    fill = fill * (1 + constants["empty"] * launch.tiles.empty)
    return fill * spread


def _latency_of(launch: Launch) -> Array:
    """Returns the latency of a load."""
    size, constants, cluster = launch.size, launch.constants, launch.cluster
    # Operands that a block reads alone, and that L2 does not hold, arrive with the latency of HBM.
    alone = (size.m < 1.5 * launch.block_m) | (size.n < 1.5 * launch.block_n)
    missing = np.where(alone, launch.absent, 0.0)
    return (
        constants["latency"] * (1 - missing)
        + constants["memory_latency"] * missing
        + constants["cluster_latency"] * (cluster > 1)
        + constants["cluster_doubling"] * np.maximum(0.0, np.log2(cluster) - 1)
    )
