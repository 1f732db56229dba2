"""Predicted time of products of few rows whose kernels load weights before they wait (step `load_weights_early`).

HBM bounds such a kernel, and it starts while the one before ends: its time is that of its weights at HBM's rate, of the
slowest multiprocessor in the last wave, and what the overlap does not hide of start, reduction and end. Constants are
measured on an H200 (docs/results/early_weights*.json, decode_row*.json and decode_column*.json).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.terms import Size, blocks_that_fit, ceil_divide, cut, uncached
from stepladder.pipeline.request import EARLY_WEIGHTS

KNOB, _PERSISTENT, _BLOCKS = EARLY_WEIGHTS, "persistent_blocks", "min_blocks_per_sm"
# Rows of A, or columns of B; bytes of an element of A and B. Other products were not measured.
_FEW, _ELEMENT_BYTES = 64, 2
# Rows of an instruction, most rows of a consumer warpgroup, and the least k of a split: no shorter ones were measured,
# but of 512, which took longer than predicted (24 x 18432 x 1024 in default_eighth_*.json).
_ROWS, _WARPGROUP_ROWS, _LEAST_K = 64, 192, 640
_STAGES, _STEP_BYTES, _EPILOGUE_STAGES, _KIB = 6, 256, 2, 1024


@dataclass(frozen=True)
class Constants:
    """What `benchmarks/fit_early_weights.py` fits to measured times. Times are in us, rates in bytes a clock.

    Args:
        hbm: part of HBM's rate at which weights are read.
        port, paired_port: rate at which a multiprocessor loads while the other one of its pair has no block, and while
            it has.
        activations: part of the time of its bytes that a tile of the other operand, which L2 holds, adds to that.
        ahead: part of the first stages that a block has loaded while the kernel before ended.
        norm: that joins the times of all weights and of a multiprocessor's, since fewer multiprocessors keep HBM less
            busy.
        slow: how much longer than that a block takes.
        tall, tallest: how much longer with tiles of more than 64 rows, and of two warpgroups.
        shallow: the same for each stage below six of a multiprocessor.
        short: the same with k steps of less than 256 bytes.
        held: KiB in stages of a multiprocessor that keep HBM busy.
        low: how much longer a block takes for what the stages lack to them.
        launch: from launch to launch.
        column: the same for each column of the other operand.
        cluster_column: of a reduction of splits of k in a cluster, for each column.
        loop: of persistent blocks.
        wave, split_wave: of each further wave of other blocks, without splits, and for each split but one.
        last_wave: part of the last one of several waves that is a wave of its own, since not all blocks end at once.
    """

    hbm: float
    port: float
    paired_port: float
    activations: float
    ahead: float
    norm: float
    slow: float
    tall: float
    tallest: float
    shallow: float
    short: float
    held: float
    low: float
    launch: float
    column: float
    cluster_column: float
    loop: float
    wave: float
    split_wave: float
    last_wave: float


class Sets(NamedTuple):
    """The constants of kernels with one block on a multiprocessor, and with two."""

    alone: Constants
    two: Constants


# Of products of up to 32 rows, and of more.
FEW = Sets(
    alone=Constants(
        hbm=0.9741,
        port=35.72,
        paired_port=25.32,
        activations=0.009017,
        ahead=0.3014,
        norm=6.315,
        slow=0,
        tall=-0.04173,
        tallest=0.0159,
        shallow=0.04376,
        short=0.03863,
        held=109,
        low=0.2752,
        launch=0.5169,
        column=0.02795,
        cluster_column=0.01587,
        loop=4.844,
        wave=0.8178,
        split_wave=0.7838,
        last_wave=0.4554,
    ),
    two=Constants(
        hbm=0.9902,
        port=27.49,
        paired_port=27.49,
        activations=0.04421,
        ahead=1.2,
        norm=3.785,
        slow=-0.02927,
        tall=0.01342,
        tallest=-0.09605,
        shallow=0.07037,
        short=0.007293,
        held=94.52,
        low=0.5934,
        launch=1.444,
        column=0.02553,
        cluster_column=0.0542,
        loop=4.852,
        wave=0,
        split_wave=0.5876,
        last_wave=0,
    ),
)
MORE = Sets(
    alone=Constants(
        hbm=0.9186,
        port=35.07,
        paired_port=28.37,
        activations=0.3092,
        ahead=0.3,
        norm=7.87,
        slow=-0.08487,
        tall=-0.0271,
        tallest=-0.04169,
        shallow=0.04477,
        short=0.06295,
        held=132.6,
        low=0.2022,
        launch=0.2027,
        column=0.01518,
        cluster_column=0.03723,
        loop=5.626,
        wave=2.669,
        split_wave=1.187,
        last_wave=0.5666,
    ),
    two=Constants(
        hbm=0.9177,
        port=23.77,
        paired_port=28.15,
        activations=0.09014,
        ahead=0.528,
        norm=5.336,
        slow=0.01171,
        tall=-0.09808,
        tallest=0.02791,
        shallow=0.0427,
        short=0.07841,
        held=64.15,
        low=0.4766,
        launch=2.015,
        column=0.04103,
        cluster_column=0.01342,
        loop=2.693,
        wave=2.872,
        split_wave=0.9095,
        last_wave=0.6947,
    ),
)
# Of pairs of products, whose stages have two tiles of weights: set by hand (docs/results/pairs_early.json and
# functions_tiles.json).
_PAIR = Constants(
    hbm=1.026,
    port=30.8,
    paired_port=30.8,
    activations=1,
    ahead=0.9,
    norm=3.03,
    slow=0,
    tall=0,
    tallest=0,
    shallow=0.008,
    short=0.056,
    held=112,
    low=0.25,
    launch=0.921,
    column=0.0205,
    cluster_column=0.027,
    loop=0,
    wave=0.3,
    split_wave=1.2,
    last_wave=1,
)
PAIRS = Sets(_PAIR, _PAIR)
# Microseconds that HBM is idle between kernels that wait before they load, and a fraction of their predicted times:
# these lack both for products of few rows, and of more rows than FEW_ROWS.
_GAPS, _LATE, FEW_ROWS = (2.5, 1.5), (0.18, 0.08), 32
# How much longer tiles of a pair take that have fewer columns of each B than these, which were the fastest of those
# measured: docs/results/pairs_early.json and functions_tiles.json.
_NARROW, _LEAST_COLUMNS = 0.07, 48
# Microseconds by which a launch takes longer that waits, and the least rows of such tiles: measured with 1 to 32 rows,
# docs/results/functions_tiles.json.
_WAIT, _LEAST_ROWS = 1.2, 40


def constants_of(size: Size) -> Sets:
    """Returns the constants of a product that is no pair.

    Args:
        size: of the product, in any orientation.
    """
    return FEW if np.minimum(size.m, size.n) <= FEW_ROWS else MORE


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
    return KNOB not in fixed and _reads_weights(size, gpu)


def may_not(size: Size, gpu: Gpu, fixed: Mapping[str, int | str]) -> bool:
    """Tells whether kernels for a product would load weights early if the launch before them could not write those.

    Args:
        size, gpu, fixed: as for `applies`.
    """
    return not fixed.get(KNOB, True) and _reads_weights(size, gpu)


def _reads_weights(size: Size, gpu: Gpu) -> bool:
    """Tells whether a product has one short side, and weights that L2 does not hold."""
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
        few = (size.m <= FEW_ROWS) & (size.n > size.m) & knobs.equals("epilogue", "registers", "registers")
    else:
        few = (size.n <= _FEW) & (size.n <= knobs.floats("block_n")) & (size.m > size.n)
    split = knobs.floats("split_k", 1)
    return (
        few
        & ((split == 1) | (size.k >= _LEAST_K * split))
        & knobs.equals("schedule", "cooperative", "cooperative")
        & knobs.equals("tile_scheduler", "data_parallel", "data_parallel")
        & (knobs.floats("cluster_m", 1) * knobs.floats("cluster_n", 1) == 1)
        & (knobs.floats("epilogue_stages", _EPILOGUE_STAGES) == _EPILOGUE_STAGES)
        & ~knobs.equals("epilogue", "rows", "tma")
        & (knobs.floats(_BLOCKS, 1) <= 2)
        & ((persistent == 0) | (persistent == gpu.multiprocessors))
        & knobs.equals("split_k_workspace", "cluster", "cluster")
        & (knobs.floats("block_m") <= _WARPGROUP_ROWS * knobs.floats("consumer_warpgroups", 1))
        & ((split > 1) | (knobs.floats("block_m") <= _ROWS) | (partial > 0) | (knobs.floats(_BLOCKS, 1) > 1))
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
    has_more = int(np.minimum(size.m, size.n)) > FEW_ROWS
    late = times["total"] * (1 + _LATE[has_more]) + _GAPS[has_more]
    total = np.where(early, predict(chosen, size, gpu), late)
    return chosen, {**times, "total": total}


def wait(knobs: Columns, times: dict[str, Array], size: Size, gpu: Gpu) -> dict[str, Array]:
    """Returns predicted times of kernels that wait before they load, where some have a form of those that do not: one
    wave of tiles whose rows are no multiple of an instruction's, and pairs.

    They are longer by what a launch is that waits; the scale is that of the other times, which lack the time between
    launches (`choose`).

    Args:
        knobs: columns of the pipeline's knobs.
        times: predicted times by the terms of all kernels.
        size, gpu: as for `accepted`.
    """
    rows = knobs.floats("block_m")
    partial = (rows % _ROWS > 0) & (size.products == 1)
    is_wave = cut(size, knobs).count * knobs.floats("split_k", 1) <= gpu.multiprocessors
    is_tile = is_wave & (rows >= _LEAST_ROWS) & (knobs.floats("block_k") * size.in_bytes >= _STEP_BYTES)
    is_tile = is_tile & (np.minimum(size.m, size.n) <= FEW_ROWS)
    is_measured = accepted(knobs, size, gpu) & (is_tile & partial | (size.products > 1))
    waiting = (predict(knobs, size, gpu) + _WAIT - _GAPS[0]) / (1 + _LATE[0])
    shared = knobs.floats(_BLOCKS, 1) > 1
    total = np.where(is_measured, waiting, np.where(partial | shared, np.inf, times["total"]))
    return {**times, "total": total}


def predict(knobs: Columns, size: Size, gpu: Gpu, constants: Sets | None = None) -> Array:
    """Returns the predicted time of a launch that follows another one, in us.

    Args:
        knobs: columns of settings that load weights early.
        size: of the product.
        gpu: what runs it.
        constants: of the model; none for those that were measured.
    """
    sets = constants or (PAIRS if size.products > 1 else constants_of(size))
    is_shared = knobs.floats(_BLOCKS, 1) > 1
    alone = _predict(knobs, size, gpu, sets.alone)
    return np.where(is_shared, _predict(knobs, size, gpu, sets.two), alone) if np.any(is_shared) else alone


def _predict(knobs: Columns, size: Size, gpu: Gpu, c: Constants) -> Array:
    """Returns the predicted times by one set of constants."""
    is_pair = size.products > 1
    # Of a pair, columns of both operands B are weights.
    block_m = knobs.floats("block_n") * size.products if is_pair else knobs.floats("block_m")
    block_n = size.m if is_pair else knobs.floats("block_n")
    block_k = knobs.floats("block_k")
    split, stages = knobs.floats("split_k", 1), knobs.floats("stages", 1)
    persistent, shared = knobs.floats(_PERSISTENT, 0), knobs.floats(_BLOCKS, 1)
    blocks = cut(size, knobs).count * split
    room = blocks_that_fit(split, gpu)
    # With two blocks on each multiprocessor, clusters of any size fill nearly all.
    at_once = np.where(shared > 1, np.floor(gpu.multiprocessors * shared / split) * split, room)
    at_once = np.where(persistent > 0, np.minimum(persistent, room), at_once)
    steps = ceil_divide(ceil_divide(size.k, block_k), split)
    weights = block_k * block_m * size.in_bytes
    stage = weights + c.activations * block_k * block_n * size.in_bytes
    loaded_late = np.maximum(0.0, steps - c.ahead * np.minimum(stages, steps))
    rate = gpu.hbm_bytes_per_us * c.hbm
    whole = np.floor(blocks / at_once)
    rest = blocks - whole * at_once

    def wave(count: Array) -> Array:
        # Blocks begin on multiprocessors of different pairs, as long as there are any.
        port = np.where(count > gpu.multiprocessors / 2, c.paired_port, c.port)
        own = ceil_divide(count, room) * loaded_late * stage / (port * gpu.clock_mhz)
        return np.where(count > 0, ((count * steps * weights / rate) ** c.norm + own**c.norm) ** (1 / c.norm), 0.0)

    slower = c.slow + c.tall * (block_m > _ROWS) + c.tallest * (block_m > _WARPGROUP_ROWS)
    slower = slower + c.shallow * np.maximum(0.0, _STAGES - stages * shared)
    slower = slower + c.short * (block_k * size.in_bytes < _STEP_BYTES)
    if is_pair:
        slower = slower + _NARROW * (knobs.floats("block_n") < _LEAST_COLUMNS)
    slower = slower + c.low * np.maximum(0.0, 1 - stages * shared * weights / (c.held * _KIB))
    further = ceil_divide(blocks, at_once) - 1
    reduction = np.where(split > 1, c.cluster_column * block_n, 0.0)
    between = np.where(split > 1, c.split_wave * (split - 1), c.wave)
    waiting = np.where(persistent > 0, c.loop, further * between)
    full = wave(at_once)
    last = np.where(whole > 0, c.last_wave, 1.0)
    loading = whole * full + last * wave(rest) + (1 - last) * rest / at_once * full
    return loading * (1 + slower) + c.launch + c.column * block_n + reduction + waiting
