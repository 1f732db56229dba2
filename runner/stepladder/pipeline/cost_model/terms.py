"""Terms that both families of kernels share: tiles and waves, memory traffic, and the combination of limits.

Quantities are columns, one value a setting; times are in microseconds, sizes in bytes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.gpu import Gpu

# Concurrent work takes a little longer than its longest part: the norm that combines limits.
_NORM_DOUBLINGS = 3
# How far operands exceed the L2 cache that are read from memory entirely, as a fraction of it.
_EVICTED = 0.5

# Rows that one wgmma instruction multiplies, and bytes of a row of the boxes that TMA writes to swizzled shared memory.
INSTRUCTION_ROWS, BOX_BYTES = 64, 128
LINE_BYTES = 128  # of the L2 cache

Number = Array | float


@dataclass(frozen=True)
class Size:
    """A product's sizes, element types and layouts; sizes may be columns too, for a fit over many problems.

    Args:
        m, n, k: extents of C[m, n] = A[m, k] B[k, n].
        in_bytes: of an element of A or B.
        out_bytes: of an element of C.
        acc_type: type of the accumulator.
        accumulate: whether C is read too.
        a_layout, b_layout: "row" or "column".
        batch: matmuls of a batch, 1 where there is none.
        a_matrices, b_matrices: of A and B that the matmuls read: 1 of an operand that is broadcast, else `batch`.
        c_layout: "row", or "column" where the transpose of C is computed.
        products: of one A that elementwise ops combine to C: 1, or 2 of a pair, each with a B of its own.
        a_source_bytes, b_source_bytes: of what elementwise ops make an element of A or B from; 0 where none do.
        a_cost: what the ops that make an element of A cost, in instructions of arithmetic.
        in_registers: whether blocks load what A is made from, and make it in registers; else a preceding kernel does.
        has_elementwise: whether elementwise ops on the product do more than to round it.
        read_matrices: matrices with the rows of C that they read.
    """

    m: Number
    n: Number
    k: Number
    in_bytes: Number
    out_bytes: Number
    acc_type: str
    accumulate: bool
    a_layout: str
    b_layout: str
    batch: Number = 1.0
    a_matrices: Number = 1.0
    b_matrices: Number = 1.0
    c_layout: str = "row"
    products: Number = 1.0
    a_source_bytes: float = 0.0
    b_source_bytes: float = 0.0
    a_cost: float = 0.0
    in_registers: bool = False
    has_elementwise: bool = False
    read_matrices: Number = 0.0

    @property
    def a_bytes(self) -> Number:
        """Bytes that are loaded of an element of A."""
        return self.a_source_bytes if self.in_registers else self.in_bytes

    @property
    def operand_bytes(self) -> Number:
        """Bytes of A and B."""
        rows, columns = self.a_matrices * self.m, self.products * self.b_matrices * self.n
        return (rows * self.a_bytes + columns * self.in_bytes) * self.k

    @property
    def matmul_bytes(self) -> Number:
        """Bytes of A and B that one matmul reads."""
        return (self.m * self.a_bytes + self.products * self.n * self.in_bytes) * self.k

    @property
    def stored_bytes(self) -> Number:
        """Bytes of C."""
        return self.batch * self.m * self.n * self.out_bytes

    @property
    def result_bytes(self) -> Number:
        """Bytes of C that are written, and read where it accumulates."""
        return self.stored_bytes * (2 if self.accumulate else 1)


def ceil_divide(dividend: Array | float, divisor: Array | float) -> Array:
    """Returns the quotient, rounded up to an integer.

    Args:
        dividend: at least 0.
        divisor: above 0.
    """
    return np.ceil(np.asarray(dividend, float) / divisor)


def widest_box(row_bytes: Array) -> Array:
    """Returns the bytes of the widest rows of boxes that divide the rows of a tile.

    Args:
        row_bytes: of a row of the tile.
    """
    bits = np.asarray(row_bytes).astype(int)
    return np.clip(bits & -bits, BOX_BYTES // 4, BOX_BYTES)


def join(*limits: Array | float) -> Array:
    """Returns the time of what runs at the same time: an 8-norm, which is the longest, and up to 9% more where two are
    alike and get in each other's way.

    Args:
        limits: microseconds of each, at least 0.
    """
    largest = np.asarray(functools.reduce(np.maximum, limits))
    scale = np.where(largest > 0, largest, 1.0)
    total, power = np.zeros_like(scale), np.empty_like(scale)
    for limit in limits:
        np.divide(limit, scale, out=power)
        for _ in range(_NORM_DOUBLINGS):
            np.multiply(power, power, out=power)
        total += power
    for _ in range(_NORM_DOUBLINGS):
        np.sqrt(total, out=total)
    return largest * total


@dataclass(frozen=True)
class Tiles:
    """The tiling of C.

    Args:
        rows, columns: numbers of tiles along m and n, those that fill up clusters included.
        last_rows, last_columns: rows and columns of C in the last tile along m and n; 0 in one that only fills up.
        mean_rows, mean_columns: rows and columns of C in a tile on the average.
        empty: part of the tiles that only fill up clusters.
        batch: how many matrices C consists of, cut alike.
    """

    rows: Array
    columns: Array
    last_rows: Array
    last_columns: Array
    mean_rows: Array
    mean_columns: Array
    empty: Array
    batch: Number = 1.0

    @property
    def count(self) -> Array:
        """Number of tiles."""
        return self.rows * self.columns * self.batch


def cut(size: Size, knobs: Columns) -> Tiles:
    """Returns how C is cut into tiles, with a whole number of clusters along both sides.

    Args:
        size: of the problem.
        knobs: the settings, a row each.
    """
    block_m, block_n = knobs.floats("block_m"), knobs.floats("block_n")
    rows, columns = ceil_divide(size.m, block_m), ceil_divide(size.n, block_n)
    all_rows = ceil_divide(rows, knobs.floats("cluster_m", 1)) * knobs.floats("cluster_m", 1)
    all_columns = ceil_divide(columns, knobs.floats("cluster_n", 1)) * knobs.floats("cluster_n", 1)
    return Tiles(
        all_rows,
        all_columns,
        np.where(all_rows > rows, 0.0, size.m - (rows - 1) * block_m),
        np.where(all_columns > columns, 0.0, size.n - (columns - 1) * block_n),
        size.m / all_rows,
        size.n / all_columns,
        1 - rows * columns / (all_rows * all_columns),
        size.batch,
    )


def blocks_that_fit(cluster: Array, gpu: Gpu) -> Array:
    """Returns how many blocks run at once in clusters of a size; see `Gpu.blocks_at_once`.

    Args:
        cluster: blocks of a cluster, integers.
        gpu: whose groups of multiprocessors clusters are in.
    """
    blocks = np.asarray(cluster).astype(int)
    sizes = np.flatnonzero(np.bincount(blocks.ravel()))
    room = np.zeros(int(sizes[-1]) + 1 if len(sizes) else 0)
    room[sizes] = [gpu.blocks_at_once(int(size)) for size in sizes]
    return room[blocks]


def readers_of(tiles: Tiles, knobs: Columns) -> tuple[Array, Array]:
    """Returns how many clusters read a tile of A and of B.

    Args:
        tiles: that blocks compute.
        knobs: with the cluster.
    """
    return tiles.columns / knobs.floats("cluster_n", 1), tiles.rows / knobs.floats("cluster_m", 1)


def readers_at_once(tiles: Tiles, knobs: Columns, at_once: Array) -> tuple[Array, Array]:
    """Returns how many clusters that run at once read a tile of A and of B.

    Args:
        tiles: that blocks compute.
        knobs: with the cluster and the order of blocks.
        at_once: blocks that run at once.
    """
    cluster_m, cluster_n = knobs.floats("cluster_m", 1), knobs.floats("cluster_n", 1)
    rows = np.minimum(knobs.floats("raster_group", 1) * cluster_m, tiles.rows)
    columns = np.minimum(ceil_divide(at_once, rows), tiles.columns)
    rows = np.minimum(np.maximum(rows, at_once / columns), tiles.rows)
    return np.maximum(columns / cluster_n, 1.0), np.maximum(rows / cluster_m, 1.0)


def stored_rows(tiles: Tiles, knobs: Columns, at_once: Array, size: Size) -> Array:
    """Returns how many rows of C, as they lie in memory, the blocks that run at once store to.

    Args:
        tiles: that blocks compute.
        knobs: with the tile, the cluster and the order of blocks.
        at_once: blocks that run at once.
        size: of the product, with the layout of C.
    """
    of_a, of_b = readers_at_once(tiles, knobs, at_once)
    if size.c_layout == "column":
        return np.minimum(of_a * knobs.floats("cluster_n", 1) * tiles.mean_columns, size.n)
    return np.minimum(of_b * knobs.floats("cluster_m", 1) * tiles.mean_rows, size.m)


def in_both_halves(readers: Number) -> Number:
    """Returns which part of a tile is in both halves of the L2 cache on average, each of which serves half of the
    multiprocessors, if the clusters that read it are on random multiprocessors.

    Args:
        readers: clusters that read the tile.
    """
    return 1 - np.exp2(1 - np.maximum(readers, 1.0))


def held_bytes(size: Size, readers: tuple[Number, Number], both_halves: float) -> Number:
    """Returns the bytes of L2 that the operands and C take, of which what blocks before both halves read is in each.

    Args:
        size: of the product.
        readers: clusters that read a tile of A and of B.
        both_halves: what a copy in the second half takes, as a part of the first.
    """
    of_a, of_b = (1 + both_halves * in_both_halves(count) for count in readers)
    a = size.a_matrices * size.m * size.a_bytes * of_a
    b = size.products * size.b_matrices * size.n * size.in_bytes * of_b
    return (a + b) * size.k + size.stored_bytes


def uncached(
    size: Size, gpu: Gpu, cached_fraction: Number, evicted: float = _EVICTED, held: Number | None = None
) -> Number:
    """Returns which part of the operands and C a kernel that runs again and again reads from memory, 0 to 1.

    The L2 cache keeps what fits from launch to launch. Beyond that, it evicts the least recently used lines first, so
    that a problem of one and a half times the cache, or another multiple, is read from memory entirely.

    Args:
        size: of the product.
        gpu: whose L2 cache holds operands.
        cached_fraction: of the L2 cache that holds them.
        evicted: how much more than that a problem has, as a fraction of it, that is read from memory entirely.
        held: bytes of L2 that it takes (`held_bytes`); None for those of the operands and C.
    """
    room = gpu.l2_bytes * cached_fraction
    total = size.operand_bytes + size.stored_bytes if held is None else held
    return np.clip((total - room) / (evicted * room), 0.0, 1.0)


def memory_bytes(
    size: Size,
    tiles: Tiles,
    knobs: Columns,
    gpu: Gpu,
    at_once: Array,
    cached_fraction: Number,
    evicted: float = _EVICTED,
    both_halves: float = 0.0,
    held: Number | None = None,
) -> Array:
    """Returns the bytes that a kernel moves between HBM and the L2 cache.

    These are every operand once and, where the operands of a matmul do not fit in L2, the operands of every wave. A
    wave covers `raster_group` rows of blocks or clusters, and as many columns as the other blocks fill: it reads the
    fewest bytes where it is about square.

    The L2 cache has two halves, each before half of the multiprocessors. A tile that L2 does not hold and that several
    clusters read comes into both halves, unless all of them are before one half: into 2 - 2^(1 - n) of them on the
    average, where n clusters are anywhere. Source: measured, docs/results/model_streamed_bf16-bf16.json.

    Args:
        size: of the product.
        tiles: that blocks compute.
        knobs: with the order of blocks and the cluster.
        gpu: whose L2 cache holds operands.
        at_once: blocks that run at once.
        cached_fraction: of the L2 cache that holds operands.
        evicted: as in `uncached`.
        both_halves: what the second half of L2 costs, as a fraction of the first.
        held: as in `uncached`.
    """
    rows = np.minimum(knobs.floats("raster_group", 1) * knobs.floats("cluster_m", 1), tiles.rows)
    columns = np.minimum(ceil_divide(at_once, rows), tiles.columns)
    waves = ceil_divide(tiles.count, rows * columns)
    wave = (rows * tiles.mean_rows * size.a_bytes + columns * tiles.mean_columns * size.in_bytes) * size.k
    # Between two reads of a tile of B, the blocks of a group of rows read all of B, and write their rows of a large C.
    between = size.n * size.k * size.in_bytes + rows * tiles.mean_rows * (
        size.k * size.a_bytes + size.n * size.out_bytes
    )
    reach = np.maximum(size.matmul_bytes, between * (size.stored_bytes > gpu.l2_bytes))
    too_large = np.clip(reach / (gpu.l2_bytes * cached_fraction) - 1.0, 0.0, 1.0)
    of_a, of_b = (1 + both_halves * in_both_halves(count) for count in readers_of(tiles, knobs))
    a = size.a_matrices * size.m * size.a_bytes * of_a
    b = size.products * size.b_matrices * size.n * size.in_bytes * of_b
    least = ((a + b) * size.k + size.result_bytes) * uncached(size, gpu, cached_fraction, evicted, held)
    return least + np.maximum(0.0, waves * wave - size.operand_bytes) * too_large
