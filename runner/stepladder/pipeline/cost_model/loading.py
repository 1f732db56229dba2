"""Loads of a k step of a kernel on wgmma, and their time in TMA and the L2 cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepladder.pipeline.cost_model.columns import Array
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.terms import BOX_BYTES, LINE_BYTES, Number, Size, ceil_divide, join, widest_box

PITCH_BYTES = 16  # that TMA takes multiples of
_SECTOR_BYTES = 32  # of a line of the L2 cache, which are read at once
_PAIR_BYTES = 64  # of two sectors


@dataclass(frozen=True)
class Loads:
    """The loads of one operand in a k step of a block.

    Args:
        rows: rows of boxes with elements of the matrix.
        row_bytes: of each.
        zero_rows: rows of boxes of the last tile that are outside of the matrix.
        is_odd: whether rows of the matrix begin within sectors of the L2 cache.
        is_between: whether they begin at sectors, of which two are a pair, but within pairs.
        in_two_lines: part of the rows that reach into two lines of the L2 cache, by the width of the tile.
    """

    rows: Array
    row_bytes: Array
    zero_rows: Array
    is_odd: Array
    is_between: Array
    in_two_lines: Array


def _whole_boxes(row_bytes: Array) -> Array:
    """Returns the bytes of the boxes that rows of a tile along n are loaded in; see `tc.load_by_tma`."""
    half = BOX_BYTES // 2
    return np.where(row_bytes <= half // 2, half // 2, ceil_divide(row_bytes, half) * half)


def loads(
    along_k: bool,
    extent: Number,
    tile: Array,
    mean: Array,
    last: Array,
    shared: Array,
    block_k: Array,
    size: Size,
) -> Loads:
    """Returns what a k step loads of one operand.

    A matrix that is contiguous along k has a row of a box for each row of the tile, the other a row for each step of k
    and for each box that the tile is wide. Rows of a box outside of the matrix are filled with zeros, which takes TMA
    longer than loading does; step `shrink_tma_boxes` saves them where the matrix is shorter than a tile that no cluster
    shares.

    Args:
        along_k: whether the operand is contiguous along k.
        extent: m or n.
        tile: block_m or block_n.
        mean, last: elements of the matrix in a tile, on the average and in the last.
        shared: blocks of a cluster that share the tile.
        block_k: depth of a step.
        size: of the problem.
    """
    in_bytes = size.in_bytes
    pitch = size.k if along_k else extent
    is_odd, is_between = has_odd_rows(pitch, in_bytes), np.asarray(pitch * in_bytes) % _PAIR_BYTES == _SECTOR_BYTES
    if along_k:
        boxes = np.maximum(1.0, block_k * in_bytes / BOX_BYTES)
        is_short = (extent < tile) & (shared == 1)
        zero_rows = np.where(is_short, 0.0, np.minimum(tile - last, tile / shared))
        return Loads(mean * boxes, block_k * in_bytes / boxes, zero_rows * boxes, is_odd, is_between, np.zeros(1))
    box_rows = _whole_boxes(tile * in_bytes) / in_bytes
    width = widest_box(box_rows * in_bytes) / in_bytes
    part = box_rows / tile  # boxes reach beyond the tile
    outside = ceil_divide(box_rows - last, width) - np.floor((box_rows - tile) / width)
    is_odd = is_odd | ((tile * in_bytes % _SECTOR_BYTES > 0) & (extent > tile))
    row_bytes = width * in_bytes
    bits = LINE_BYTES | row_bytes.astype(int) | np.where(extent > tile, tile * in_bytes, 0).astype(int)
    in_two_lines = np.maximum(0.0, row_bytes - (bits & -bits)) / LINE_BYTES
    return Loads(mean * part / width * block_k, row_bytes, outside * block_k / shared, is_odd, is_between, in_two_lines)


def has_odd_rows(row: Number, in_bytes: Number) -> Array:
    """Returns whether rows of an operand begin within sectors of the L2 cache.

    Args:
        row: elements of a row.
        in_bytes: of an element.
    """
    pitch = np.asarray(row * in_bytes)
    # Rows that TMA does not take are copied to aligned ones.
    return (pitch % _SECTOR_BYTES > 0) & (pitch % PITCH_BYTES == 0)


def fill_step(parts: list[Loads], shared: list[Array], gpu: Gpu, constants: dict[str, float]) -> Array:
    """Returns the time in which TMA fills a stage, without rows of zeros: rows of a box, at their bytes or at the
    least time of a row. Each block of a cluster loads a slice of a shared tile, but the memory of every block is
    written: only a fraction of the time (`fill_shared`) is shared. Rows that begin within a sector of L2 reach into one
    more, and take longer to read; those that reach into two lines do, where blocks share no tiles. Source: fitted.

    Args:
        parts: what a block loads of each operand.
        shared: blocks of a cluster that share each.
        gpu: whose L2 cache delivers.
        constants: fitted, of kernels on wgmma.
    """
    rate = gpu.l2_bytes_per_clock * constants["fill"] * gpu.clock_mhz * 1e-3  # bytes a ns
    in_two_lines = constants["line_rows"] * (shared[0] * shared[1] == 1)
    total: Array | float = 0.0
    for part, blocks in zip(parts, shared):
        share = 1 - constants["fill_shared"] * (1 - 1 / blocks)
        odd = (
            1
            + misalignment(part, constants["between_sectors"]) * constants["odd_rows"] / blocks
            + part.in_two_lines * in_two_lines
        )
        total = total + part.rows * share * odd * np.maximum(constants["row"], part.row_bytes / rate)
    return np.asarray(total) * 1e-3


def misalignment(part: Loads, between: float) -> Array:
    """Returns how misaligned rows are: 1 where they begin within sectors, and `between` where within pairs of them.

    Args:
        part: what a step loads.
        between: of rows that begin at sectors.
    """
    return part.is_odd + between * part.is_between


def are_neighbours(cluster_m: Array, cluster_n: Array, size: Size) -> Array:
    """Returns which clusters have two blocks whose tiles of the operand that they do not share are side by side in its
    rows in memory: such clusters load longer than those along the other dimension. Source: measured,
    docs/results/model_wide_bf16-bf16.json.

    Args:
        cluster_m, cluster_n: blocks of a cluster along m and n.
        size: of the problem.
    """
    along_m = (cluster_m == 2) & (cluster_n == 1) & (size.a_layout == "column")
    return along_m | (cluster_n == 2) & (cluster_m == 1) & (size.b_layout == "row")


def l2_step(
    parts: list[Loads],
    shared: list[Array],
    alone: list[Array],
    at_once: Array,
    missing: Number,
    gpu: Gpu,
    constants: dict[str, float],
) -> Array:
    """Returns the time in which L2 delivers a k step: a multiprocessor by its port, or all together.

    Clusters read shared tiles once. L2 delivers lines of 128 bytes, so that a row of 64 that no other block asks for
    counts as one. Source: fitted to docs/results/model_everything.json.

    Args:
        parts: what a block loads of each operand.
        shared: blocks of a cluster that share each.
        alone: whether no other cluster reads the tile.
        at_once: blocks that run at once.
        missing: fraction of the operands that L2 does not hold.
        gpu: whose L2 cache delivers.
        constants: fitted, of kernels on wgmma.
    """
    part_of_gpu = at_once / gpu.multiprocessors
    gpu_share = np.maximum(1.0, part_of_gpu)
    together = missing / constants["l2_misses"]
    port: Number = 0.0
    total: Number = 0.0
    for part, blocks, is_alone in zip(parts, shared, alone):
        bytes_ = (
            part.rows
            * part.row_bytes
            / blocks
            * (1 + misalignment(part, constants["between_sectors"]) * constants["odd_sectors"])
        )
        lines = part.rows * np.maximum(part.row_bytes, LINE_BYTES) / blocks
        port = port + bytes_ * gpu_share / constants["l2"]
        total = total + part_of_gpu * np.where(is_alone, lines / constants["l2_alone"], bytes_ * together)
    return gpu.microseconds(join(port, total) / gpu.l2_bytes_per_clock)


def crowded_step(parts: list[Loads], shared: list[Array], readers: tuple[Array, Array], rate: float) -> Array:
    """Returns the least time of a k step whose tiles many clusters load at once from the same lines of the L2 cache,
    where rows begin within sectors. Source: measured, docs/results/forms_tall.json.

    Args:
        parts: what a block loads of each operand.
        shared: blocks of a cluster that share each.
        readers: clusters that load a tile of each at once.
        rate: ns for a row of a box and a reader.
    """
    rows = sum(part.rows / blocks * count * part.is_odd for part, blocks, count in zip(parts, shared, readers))
    return np.asarray(rate * 1e-3 * rows)
