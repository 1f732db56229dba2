"""Predicted time of products of few rows in short blocks, two per multiprocessor, whose waves overlap.

A partial last wave then takes only as long as its share of the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import EARLY_FEW_SPLITS, EARLY_FEW_THIRDS
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.loading import has_odd_rows
from stepladder.pipeline.cost_model.terms import Size, cut


@dataclass(frozen=True)
class Short:
    """A form of such blocks, for some products. Others were not measured, or the terms of all predict them.

    Attributes:
        splits: of k.
        least, most: waves.
        rows: of a product, fewest and most.
        tiles: rows of a tile and bytes of a k step.
        least_k: the smallest k that was measured.
    """

    splits: int
    least: float
    most: float
    rows: tuple[int, int]
    tiles: tuple[tuple[int, int], ...]
    least_k: int


_BLOCKS_PER_SM = 2  # blocks on a multiprocessor
# By set of constants. With more than 16 rows, three splits are faster than other settings where they have a bit more
# than half of a second wave, and lose with less and with more; with fewer rows, five splits of tiles of 128 rows are as
# fast.
SHORT_BLOCKS: Mapping[str, tuple[Short, ...]] = {
    EARLY_FEW_SPLITS: (Short(5, 1.9, np.inf, (1, 16), ((128, 128),), 0),),
    EARLY_FEW_THIRDS: (
        Short(3, 1.55, 1.75, (17, 32), ((128, 128), (64, 256)), 5120),
        Short(3, 1.7, 1.85, (1, 16), ((64, 256),), 5120),
    ),
}


def has_short_blocks(knobs: Columns, size: Size, gpu: Gpu) -> Array:
    """Returns which settings have such blocks.

    Args:
        knobs: columns of settings that load weights early.
        size: of the product.
        gpu: what runs it.
    """
    return np.logical_or.reduce([have_short_blocks(knobs, size, gpu, name) for name in SHORT_BLOCKS])


def have_short_blocks(knobs: Columns, size: Size, gpu: Gpu, name: str) -> Array:
    """Returns which settings have such blocks with one set of constants.

    Args:
        knobs, size, gpu: as for `has_short_blocks`.
        name: of the set.
    """
    waves, short_side = _waves(knobs, size, gpu), np.minimum(size.m, size.n)
    height, step = knobs.floats("block_m"), knobs.floats("block_k") * size.in_bytes
    is_short = np.zeros(knobs.count, bool)
    for form in SHORT_BLOCKS[name]:
        fits = (knobs.floats("split_k", 1) == form.splits) & (form.least <= waves) & (waves <= form.most)
        fits = fits & (form.rows[0] <= short_side) & (short_side <= form.rows[1]) & (form.least_k <= size.k)
        for rows, step_bytes in form.tiles:
            is_short = is_short | (fits & (height == rows) & (step == step_bytes))
    return (
        is_short
        & (knobs.floats("min_blocks_per_sm", 1) == _BLOCKS_PER_SM)
        # Loads of K-major weights are as long as a k step; rows that begin within sectors were not measured.
        & (size.a_layout == "column")
        & ~has_odd_rows(size.m, size.in_bytes)
        & (size.products == 1)
    )


def time_of_short_blocks(knobs: Columns, size: Size, gpu: Gpu, constants: Mapping[str, float]) -> Array:
    """Returns the predicted times of kernels with such blocks, in us.

    Args:
        knobs, size, gpu: as for `has_short_blocks`.
        constants: a set.
    """
    waves, c = _waves(knobs, size, gpu), constants
    loading = size.m * size.k * size.in_bytes / gpu.early_hbm_bytes_per_us
    return loading / c["hbm"] + c["end"] * loading / waves + c["wave_column"] * knobs.floats("block_n") * waves


def _waves(knobs: Columns, size: Size, gpu: Gpu) -> Array:
    """Returns how many waves the blocks have, the last one counted by what it has to do."""
    return cut(size, knobs).count * knobs.floats("split_k", 1) / (gpu.multiprocessors * _BLOCKS_PER_SM)
