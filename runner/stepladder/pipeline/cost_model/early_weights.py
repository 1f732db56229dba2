"""Predicted time of products of few rows whose kernels load weights before they wait (step `load_weights_early`).

HBM bounds such a kernel, and it starts while the one before ends: its time is that of its weights at HBM's rate, of the
slowest multiprocessor in the last wave, and what the overlap does not hide of start, reduction and end. Constants are
measured on an H200 (docs/results/early_weights*.json, decode_row*.json and decode_column*.json).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.terms import Size, blocks_that_fit, ceil_divide, cut, uncached
from stepladder.pipeline.request import EARLY_WEIGHTS

KNOB, PREFETCH, _PERSISTENT, _BLOCKS = EARLY_WEIGHTS, "prefetch_steps", "persistent_blocks", "min_blocks_per_sm"
# Rows of A, or columns of B; bytes of an element of A and B. Other products were not measured.
_FEW, _ELEMENT_BYTES = 64, 2
# Rows of an instruction, most rows of a consumer warpgroup, and the least k of a split: no shorter ones were measured,
# but of 512, which took longer than predicted (24 x 18432 x 1024 in default_eighth_*.json).
_ROWS, _WARPGROUP_ROWS, _LEAST_K = 64, 192, 640
_STAGES, _STEP_BYTES, _EPILOGUE_STAGES, _KIB = 6, 256, 2, 1024


@dataclasses.dataclass(frozen=True)
class Constants:
    """What `benchmarks/fit_early_weights.py` fits to measured times. Times are in us, rates in bytes a clock.

    Args:
        hbm: part of HBM's rate at which weights are read.
        port, paired_port, shared_port: rate at which a multiprocessor loads while the other one of its pair has no
            block, while it has one, and with two blocks on each.
        activations: part of the time of its bytes that a tile of the other operand, which L2 holds, adds to that.
        ahead: part of the first stages that a block has loaded while the kernel before ended.
        norm: that joins the times of all weights and of a multiprocessor's, since fewer multiprocessors keep HBM less
            busy.
        tall, tallest: how much longer a block takes with tiles of more than 64 rows, and of two warpgroups.
        shallow: the same for each stage below six of a multiprocessor.
        short: the same with k steps of less than 256 bytes.
        held: KiB in stages that keep HBM busy.
        low, shared_low: how much longer a block takes for what its stages lack to them, and those of two blocks.
        shared: how much longer it takes where two blocks are on a multiprocessor.
        launch: from launch to launch.
        column: the same for each column of the other operand.
        cluster_column: of a reduction of splits of k in a cluster, for each column.
        loop: of persistent blocks.
        wave, split_wave: of each further wave of other blocks, without splits, and for each split but one.
        shared_split_wave: the same as `split_wave`, with two blocks on a multiprocessor.
        last_wave: part of the last wave that is a wave of its own with two blocks on a multiprocessor, since not all
            blocks end at once.
    """

    hbm: float
    port: float
    paired_port: float
    shared_port: float
    activations: float
    ahead: float
    norm: float
    tall: float
    tallest: float
    shallow: float
    short: float
    held: float
    low: float
    shared_low: float
    shared: float
    launch: float
    column: float
    cluster_column: float
    loop: float
    wave: float
    split_wave: float
    shared_split_wave: float
    last_wave: float


# Of products of up to 32 rows, and of more.
FEW = Constants(
    hbm=1.0,
    port=43.4,
    paired_port=29.5,
    shared_port=21.1,
    activations=0.0,
    ahead=0.3,
    norm=3.75,
    tall=-0.0521,
    tallest=0.0261,
    shallow=0.0383,
    short=0.0451,
    held=108.0,
    low=0.267,
    shared_low=0.0905,
    shared=-0.0573,
    launch=0.426,
    column=0.0358,
    cluster_column=0.0154,
    loop=4.32,
    wave=0.64,
    split_wave=0.675,
    shared_split_wave=0.209,
    last_wave=0.52,
)
MORE = Constants(
    hbm=1.0,
    port=44.0,
    paired_port=33.0,
    shared_port=20.7,
    activations=0.416,
    ahead=0.3,
    norm=8.0,
    tall=-0.0355,
    tallest=-0.0392,
    shallow=0.0485,
    short=0.0791,
    held=133.0,
    low=0.0322,
    shared_low=0.0,
    shared=-0.14,
    launch=1.05,
    column=0.0101,
    cluster_column=0.0329,
    loop=4.04,
    wave=3.57,
    split_wave=1.12,
    shared_split_wave=1.72,
    last_wave=0.679,
)
# Of pairs of products, whose stages have two tiles of weights: set by hand (docs/results/pairs_early.json and
# functions_tiles.json).
PAIRS = Constants(
    hbm=1.026,
    port=30.8,
    paired_port=30.8,
    shared_port=30.8,
    activations=1.0,
    ahead=0.9,
    norm=3.03,
    tall=0.0,
    tallest=0.0,
    shallow=0.008,
    short=0.056,
    held=112.0,
    low=0.25,
    shared_low=0.0,
    shared=0.0,
    launch=0.921,
    column=0.0205,
    cluster_column=0.027,
    loop=0.0,
    wave=0.3,
    split_wave=1.2,
    shared_split_wave=0.0,
    last_wave=1.0,
)
# Microseconds that HBM is idle between kernels that wait before they load, and a fraction of their predicted times:
# these lack both for products of few rows, and of more rows than FEW_ROWS.
_GAPS, _LATE, FEW_ROWS = (2.5, 1.5), (0.18, 0.08), 32
# How much longer tiles of a pair take that have fewer columns of each B than these, which were the fastest of those
# measured: docs/results/pairs_early.json and functions_tiles.json.
_NARROW, _LEAST_COLUMNS = 0.07, 48
# Microseconds by which a launch takes longer that waits, and the least rows of such tiles: measured with 1 to 32 rows,
# docs/results/functions_tiles.json.
_WAIT, _LEAST_ROWS = 1.2, 40
# Bytes of weights that a block which waits prefetches to L2 at most: more delay the kernel before it. Measured with one
# and eight rows, docs/results/functions_prefetch.json.
_PREFETCHED = 72 * _KIB
# Microseconds of persistent blocks that wait, with tiles whose rows are no multiple of an instruction's: of one and two
# tiles each, docs/results/functions_prefetch.json.
_PERSISTENT_LOOP = 1.2


def constants_of(size: Size) -> Constants:
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
    split = knobs.floats("split_k", 1)
    return (
        _is_of_few_rows(knobs, size)
        & knobs.equals("schedule", "cooperative", "cooperative")
        & ((split == 1) | (size.k >= _LEAST_K * split))
        & (knobs.floats("cluster_m", 1) * knobs.floats("cluster_n", 1) == 1)
        & (knobs.floats("epilogue_stages", _EPILOGUE_STAGES) == _EPILOGUE_STAGES)
        & ~knobs.equals("epilogue", "rows", "tma")
        & (knobs.floats(_BLOCKS, 1) <= 2)
        & ((persistent == 0) | (persistent == gpu.multiprocessors))
        & knobs.equals("split_k_workspace", "cluster", "cluster")
        & (knobs.floats("block_m") <= _WARPGROUP_ROWS * knobs.floats("consumer_warpgroups", 1))
        & ((split > 1) | (knobs.floats("block_m") <= _ROWS) | (partial > 0) | (knobs.floats(_BLOCKS, 1) > 1))
    )


def _is_of_few_rows(knobs: Columns, size: Size) -> Array:
    """Returns which settings have one tile of the short side, and blocks that compute whole tiles."""
    if size.products > 1:
        few = (size.m <= FEW_ROWS) & (size.n > size.m) & knobs.equals("epilogue", "registers", "registers")
    else:
        few = (size.n <= _FEW) & (size.n <= knobs.floats("block_n")) & (size.m > size.n)
    return few & knobs.equals("tile_scheduler", "data_parallel", "data_parallel")


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
    """Returns predicted times of kernels that wait before they load, where some have a form of those that do not: tiles
    whose rows are no multiple of an instruction's, in one wave or of persistent blocks, and pairs.

    They are longer by what a launch is that waits; the scale is that of the other times, which lack the time between
    launches (`choose`).

    Args:
        knobs: columns of the pipeline's knobs.
        times: predicted times by the terms of all kernels.
        size, gpu: as for `accepted`.
    """
    rows = knobs.floats("block_m")
    partial = (rows % _ROWS > 0) & (size.products == 1)
    persistent = knobs.floats(_PERSISTENT, 0) > 0
    is_wave = cut(size, knobs).count * knobs.floats("split_k", 1) <= gpu.multiprocessors
    is_tile = (is_wave | persistent) & (rows >= _LEAST_ROWS) & (knobs.floats("block_k") * size.in_bytes >= _STEP_BYTES)
    is_tile = is_tile & (np.minimum(size.m, size.n) <= FEW_ROWS)
    is_measured = accepted(knobs, size, gpu) & (is_tile & partial | (size.products > 1))
    constants = dataclasses.replace(constants_of(size), loop=_PERSISTENT_LOOP) if size.products == 1 else None
    waiting = (predict(knobs, size, gpu, constants) + _WAIT - _GAPS[0]) / (1 + _LATE[0])
    shared = knobs.floats(_BLOCKS, 1) > 1
    total = np.where(is_measured, waiting, np.where(partial | shared, np.inf, times["total"]))
    return {**times, "total": total}


def prefetch(knobs: Columns, size: Size, options: Sequence[int | str]) -> Columns:
    """Returns settings of kernels that wait before they load, with the k steps of weights that they prefetch before.

    Args:
        knobs: columns of the pipeline's knobs.
        size: of the product.
        options: for the steps, with 0.
    """
    rows = knobs.floats("block_n") * size.products if size.products > 1 else knobs.floats("block_m")
    most = _PREFETCHED / (rows * knobs.floats("block_k") * size.in_bytes)
    may = _is_of_few_rows(knobs, size) & (knobs.floats(_BLOCKS, 1) == 1)
    may = may & np.asarray(knobs.column("dependent_launch", True), bool)
    ordered = np.sort(np.array([int(option) for option in options], np.int64))
    steps = ordered[np.searchsorted(ordered, np.maximum(most, 0), side="right") - 1]
    # A knob that is given is one number for all settings.
    chosen = np.broadcast_to(np.where(may, steps, 0), (knobs.count,))
    return Columns({**knobs.values, PREFETCH: chosen}, knobs.derived, knobs.count)


def predict(knobs: Columns, size: Size, gpu: Gpu, constants: Constants | None = None) -> Array:
    """Returns the predicted time of a launch that follows another one, in us.

    Args:
        knobs: columns of settings that load weights early.
        size: of the product.
        gpu: what runs it.
        constants: of the model; none for those that were measured.
    """
    is_pair = size.products > 1
    c = constants or (PAIRS if is_pair else constants_of(size))
    # Of a pair, columns of both operands B are weights.
    block_m = knobs.floats("block_n") * size.products if is_pair else knobs.floats("block_m")
    block_n = size.m if is_pair else knobs.floats("block_n")
    block_k = knobs.floats("block_k")
    split, stages = knobs.floats("split_k", 1), knobs.floats("stages", 1)
    persistent, shared = knobs.floats(_PERSISTENT, 0), knobs.floats(_BLOCKS, 1)
    is_shared = shared > 1
    blocks = cut(size, knobs).count * split
    room = blocks_that_fit(split, gpu)
    at_once = np.where(persistent > 0, np.minimum(persistent, room), room * shared)
    steps = ceil_divide(ceil_divide(size.k, block_k), split)
    weights = block_k * block_m * size.in_bytes
    stage = weights + c.activations * block_k * block_n * size.in_bytes
    loaded_late = np.maximum(0.0, steps - c.ahead * np.minimum(stages, steps))
    rate = gpu.hbm_bytes_per_us * c.hbm
    whole = np.floor(blocks / at_once)
    rest = blocks - whole * at_once

    def wave(count: Array) -> Array:
        # Blocks begin on multiprocessors of different pairs, as long as there are any.
        port = np.where(is_shared, c.shared_port, np.where(count > gpu.multiprocessors / 2, c.paired_port, c.port))
        own = ceil_divide(count, room) * loaded_late * stage / (port * gpu.clock_mhz)
        return np.where(count > 0, ((count * steps * weights / rate) ** c.norm + own**c.norm) ** (1 / c.norm), 0.0)

    slower = c.tall * (block_m > _ROWS) + c.tallest * (block_m > _WARPGROUP_ROWS)
    slower = slower + c.shallow * np.maximum(0.0, _STAGES - stages * shared)
    slower = slower + c.short * (block_k * size.in_bytes < _STEP_BYTES) + c.shared * is_shared
    if is_pair:
        slower = slower + _NARROW * (knobs.floats("block_n") < _LEAST_COLUMNS)
    held = stages * shared * weights / (c.held * _KIB)
    slower = slower + np.where(is_shared, c.shared_low, c.low) * np.maximum(0.0, 1 - held)
    further = ceil_divide(blocks, at_once) - 1
    reduction = np.where(split > 1, c.cluster_column * block_n, 0.0)
    between = np.where(split > 1, np.where(is_shared, c.shared_split_wave, c.split_wave) * (split - 1), c.wave)
    waiting = np.where(persistent > 0, c.loop, further * np.where(is_shared & (split == 1), 0.0, between))
    full = wave(at_once)
    last = np.where(is_shared, c.last_wave, 1.0)
    loading = whole * full + last * wave(rest) + (1 - last) * rest / at_once * full
    return loading * (1 + slower) + c.launch + c.column * block_n + reduction + waiting
