"""The choice of `kept_weights`: which part of the larger operand the L2 cache keeps from launch to launch.

If operands do not fit in the cache, it keeps what fits beside lines with the hint `evict_first`. A launch of few rows
that reads the same weights as the previous one then takes less time, if the kept part is about `_L2_FRACTION` of the
cache (docs/results/kept_weights.json; docs/cost_model.md has a table). Kernels that read weights before their wait do
not get the knob: they take longer with it if each launch reads other weights. Neither do kernels of more rows, some of
which lose.
"""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.terms import Size

KNOB = "kept_weights"
_PARTS = 16
# Of the L2 cache, for what is kept, the other operand and C.
_L2_FRACTION = 0.42


def part_of(size: Size, gpu: Gpu) -> int:
    """Returns how many sixteenths of the larger operand L2 holds beside the other operand and C; 0 where it holds all.

    Args:
        size: of the product.
        gpu: whose L2 cache holds operands.
    """
    room = gpu.l2_bytes * _L2_FRACTION
    a = size.a_matrices * size.m * size.a_bytes * size.k
    larger = float(np.max(np.maximum(a, size.operand_bytes - a)))
    other_bytes = float(np.max(size.operand_bytes + size.stored_bytes)) - larger
    if larger + other_bytes <= room:
        return 0
    return int(np.clip((room - other_bytes) / larger * _PARTS, 0, _PARTS - 1))


def choose(knobs: Columns, size: Size, gpu: Gpu, hinted: Array) -> Columns:
    """Returns settings with the knob.

    Args:
        knobs: columns of the pipeline's knobs.
        size: of the product.
        gpu: whose L2 cache holds operands.
        hinted: which settings give loads the hint.
    """
    parts = np.where(hinted, part_of(size, gpu), 0).astype(np.int64)
    return Columns({**knobs.values, KNOB: np.broadcast_to(parts, (knobs.count,))}, knobs.derived, knobs.count)
