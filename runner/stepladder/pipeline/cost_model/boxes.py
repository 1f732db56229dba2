"""What a k step loads by TMA, for the cost model of `wgmma`: rows of boxes in swizzled shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepladder.pipeline.cost_model.columns import Array
from stepladder.pipeline.cost_model.terms import Number, Size, ceil_divide

# Bytes of a row of the boxes that TMA writes to swizzled shared memory, of a sector of the L2 cache, and those that TMA
# takes multiples of as the pitch of rows.
BOX_BYTES, SECTOR_BYTES, PITCH_BYTES = 128, 32, 16


@dataclass(frozen=True)
class Loads:
    """What a k step loads of one operand to a block.

    Args:
        rows: rows of boxes with elements of the matrix.
        row_bytes: of each.
        zero_rows: rows of boxes of the last tile that lie outside of the matrix.
        is_odd: whether rows of the matrix begin within sectors of the L2 cache.
    """

    rows: Array
    row_bytes: Array
    zero_rows: Array
    is_odd: Array


def widest_box(row_bytes: Array) -> Array:
    """Returns the bytes of the widest rows of boxes that divide the rows of a tile."""
    half = BOX_BYTES // 2
    return np.where(row_bytes % BOX_BYTES == 0, BOX_BYTES, np.where(row_bytes % half == 0, half, half // 2))


def whole_boxes(row_bytes: Array) -> Array:
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
    # Rows that TMA does not take are copied to aligned ones.
    pitch = np.asarray((size.k if along_k else extent) * in_bytes)
    is_odd = (pitch % SECTOR_BYTES > 0) & (pitch % PITCH_BYTES == 0)
    if along_k:
        boxes = np.maximum(1.0, block_k * in_bytes / BOX_BYTES)
        fitted = (extent < tile) & (shared == 1)
        return Loads(mean * boxes, block_k * in_bytes / boxes, np.where(fitted, 0.0, tile - last) * boxes, is_odd)
    loaded = whole_boxes(tile * in_bytes) / in_bytes
    width = widest_box(loaded * in_bytes) / in_bytes
    part = loaded / tile  # boxes reach beyond the tile
    zero_rows = np.floor((loaded - last) / width) * block_k
    return Loads(mean * part / width * block_k, width * in_bytes, zero_rows, is_odd)
