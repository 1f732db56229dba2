"""Predicted time of products of few rows whose kernels load weights before they wait (step `load_weights_early`).

HBM bounds such a kernel, and it starts while the one before ends: its time is that of its weights at HBM's rate, of the
slowest multiprocessor in the last wave, and what the overlap does not hide of start, reduction and end. Constants are
measured on an H200 (docs/results/early_weights.json and early_weights_column.json).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.terms import Size, blocks_that_fit, ceil_divide, cut, uncached
from stepladder.pipeline.request import EARLY_WEIGHTS

KNOB, _PERSISTENT = EARLY_WEIGHTS, "persistent_blocks"
# Rows of A, or columns of B; bytes of an element of A and B. Other products were not measured.
_FEW, _ELEMENT_BYTES = 32, 2
# Part of HBM's rate at which weights are read; bytes a clock that a multiprocessor loads by TMA from HBM, with tiles of
# up to 128 rows and taller ones; part of the first stages that it has loaded while the kernel before ended; the norm
# that joins the times of all weights and of a multiprocessor's, since fewer multiprocessors keep HBM less busy.
_HBM, _PORT, _TALL_PORT, _AHEAD, _NORM = 1.0, 30.0, 36.0, 0.9, 3.03
# How much longer a block takes than with tiles of 64 rows, and beyond 192, which are also the most of a consumer
# warpgroup; for each stage below six; with k steps of less than 256 bytes; and for what all stages lack to the bytes
# that keep HBM busy.
_TALLER, _TALLEST, _SHALLOW, _SHORT, _LOW, _AHEAD_BYTES = -0.026, 0.008, 0.032, 0.056, 0.25, 112 * 1024
_ROWS, _TALL_ROWS, _WARPGROUP_ROWS, _STAGES, _STEP_BYTES, _EPILOGUE_STAGES = 64, 128, 192, 6, 256, 2
# Microseconds that are not hidden: from launch to launch, and for each column of the other operand; a reduction of
# splits of k in a cluster, for each column; of persistent blocks; and of each further wave of others, without splits,
# and for each split but one.
_LAUNCH, _COLUMN, _CLUSTER_COLUMN, _LOOP, _WAVE, _SPLIT_WAVE = 0.921, 0.0205, 0.027, 4.0, 0.3, 1.2
# Microseconds that HBM is idle between kernels that wait before they load, and a fraction of their predicted times:
# these lack both for products of few rows.
_GAP, _LATE = 2.5, 0.18


def is_short(m: int, n: int) -> bool:
    """Tells whether a side of C is so short that kernels may load weights early.

    Args:
        m, n: rows and columns of C.
    """
    return min(m, n) <= _FEW


def applies(size: Size, gpu: Gpu, fixed: Mapping[str, int | str]) -> bool:
    """Tells whether kernels for a product may load weights early: one short side, and weights that L2 does not hold.

    Args:
        size: of the product, in any orientation.
        gpu: what runs it.
        fixed: knobs whose value is given.
    """
    if KNOB in fixed:
        return False
    cached = gpu.constants[WARPGROUP]["cached"]
    is_plain = size.batch == 1 and size.products <= 2 and size.in_bytes == _ELEMENT_BYTES and not size.accumulate
    return bool(is_plain and np.minimum(size.m, size.n) <= _FEW and np.all(uncached(size, gpu, cached) > 0))


def accepted(knobs: Columns, size: Size, gpu: Gpu) -> Array:
    """Returns which settings load weights early: forms of kernels that were measured, with weights as the operand A; of
    a pair of products, as both operands B.

    Args:
        knobs: columns of the pipeline's knobs.
        size: of the product.
        gpu: what runs it.
    """
    persistent, partial = knobs.floats(_PERSISTENT, 0), knobs.floats("block_m") % _ROWS
    if size.products > 1:
        few = (size.m <= _FEW) & (size.n > size.m)
    else:
        few = (size.n <= _FEW) & (size.n <= knobs.floats("block_n")) & (size.m > size.n)
    return (
        few
        & knobs.equals("schedule", "cooperative", "cooperative")
        & knobs.equals("tile_scheduler", "data_parallel", "data_parallel")
        & (knobs.floats("cluster_m", 1) * knobs.floats("cluster_n", 1) == 1)
        & (knobs.floats("epilogue_stages", _EPILOGUE_STAGES) == _EPILOGUE_STAGES)
        & ~knobs.equals("epilogue", "rows", "tma")
        & (knobs.floats("min_blocks_per_sm", 1) < 2)
        & ((persistent == 0) | (persistent == gpu.multiprocessors))
        & knobs.equals("split_k_workspace", "cluster", "cluster")
        & (knobs.floats("block_m") <= _WARPGROUP_ROWS * knobs.floats("consumer_warpgroups", 1))
        & ((knobs.floats("split_k", 1) > 1) | (knobs.floats("block_m") <= _ROWS) | (partial > 0))
    )


def _persistent_blocks(knobs: Columns, size: Size, gpu: Gpu) -> Array:
    """Returns the persistent blocks of settings that load weights early: none where each block has one tile."""
    has_one = cut(size, knobs).count <= gpu.multiprocessors
    return np.where(has_one, 0, knobs.floats(_PERSISTENT, 0)).astype(np.int64)


def choose(knobs: Columns, times: dict[str, Array], size: Size, gpu: Gpu) -> tuple[Columns, dict[str, Array]]:
    """Returns settings with the knob set where they can load weights early, and with the times of such kernels.

    Args:
        knobs: columns of the pipeline's knobs.
        times: predicted times of kernels that wait before they load, by name.
        size, gpu: as for `accepted`.
    """
    early = accepted(knobs, size, gpu)
    persistent = np.where(early, _persistent_blocks(knobs, size, gpu), np.asarray(knobs.column(_PERSISTENT, 0)))
    chosen = Columns({**knobs.values, KNOB: early, _PERSISTENT: persistent}, knobs.derived, knobs.count)
    # The terms of kernels that wait are those of pairs, measured in functions that follow each other.
    short = 1 + _SHORT * (knobs.floats("block_k") * size.in_bytes < _STEP_BYTES)
    started = times["total"] * short if size.products > 1 else predict(chosen, size, gpu)
    total = np.where(early, started, times["total"] * (1 + _LATE) + _GAP)
    return chosen, {**times, "total": total}


def predict(knobs: Columns, size: Size, gpu: Gpu) -> Array:
    """Returns the predicted time of a launch that follows another one, in us.

    Args:
        knobs: columns of settings that load weights early.
        size: of the product.
        gpu: what runs it.
    """
    block_m, block_k = knobs.floats("block_m"), knobs.floats("block_k")
    split = knobs.floats("split_k", 1)
    persistent = knobs.floats(_PERSISTENT, 0)
    blocks = cut(size, knobs).count * split
    room = blocks_that_fit(split, gpu)
    at_once = np.where(persistent > 0, np.minimum(persistent, room), room)
    steps = ceil_divide(ceil_divide(size.k, block_k), split)
    stage = block_k * block_m * size.in_bytes
    ahead = _AHEAD * np.minimum(knobs.floats("stages", 1), steps)
    rate = gpu.hbm_bytes_per_us * _HBM
    port = np.where(block_m > _TALL_ROWS, _TALL_PORT, _PORT) * gpu.clock_mhz
    whole = np.floor(blocks / at_once)
    rest = blocks - whole * at_once

    def wave(count: Array) -> Array:
        weights = count * steps * block_k * block_m * size.in_bytes
        own = np.maximum(0.0, steps - ahead) * stage / port
        return np.where(count > 0, ((weights / rate) ** _NORM + own**_NORM) ** (1 / _NORM), 0.0)

    slower = _TALLER * (block_m > _ROWS) + _TALLEST * (block_m > _WARPGROUP_ROWS)
    slower = slower + _SHALLOW * np.maximum(0.0, _STAGES - knobs.floats("stages", 1))
    slower = slower + _SHORT * (block_k * size.in_bytes < _STEP_BYTES)
    held = knobs.floats("stages", 1) * block_k * block_m * size.in_bytes
    slower = slower + _LOW * np.maximum(0.0, 1 - held / _AHEAD_BYTES)
    further = ceil_divide(blocks, at_once) - 1
    block_n = knobs.floats("block_n")
    reduction = np.where(split > 1, _CLUSTER_COLUMN * block_n, 0.0)
    waiting = np.where(persistent > 0, _LOOP, further * np.where(split > 1, _SPLIT_WAVE * (split - 1), _WAVE))
    return (whole * wave(at_once) + wave(rest)) * (1 + slower) + _LAUNCH + _COLUMN * block_n + reduction + waiting
