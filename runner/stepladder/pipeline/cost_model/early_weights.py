"""Predicted time of products of few rows whose kernels load weights before they wait (step `load_weights_early`).

HBM bounds such a kernel, which starts before the preceding one ends. Two limits make up the time of a wave: its weights
at the rate of HBM, and the stages that a multiprocessor loads after the first ones. The launch, the epilogue, the
reduction of splits and the time between waves are added, as far as the overlap does not hide them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import (
    EARLY_FEW,
    EARLY_FEW_TWO,
    EARLY_MORE,
    EARLY_MORE_TWO,
    EARLY_PAIRS,
    WAITING,
)
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.launch_triggers import KNOB as TRIGGER
from stepladder.pipeline.cost_model.launch_triggers import is_at_exit, with_trigger
from stepladder.pipeline.cost_model.loading import has_odd_rows
from stepladder.pipeline.cost_model.short_blocks import SHORT_BLOCKS, have_short_blocks, time_of_short_blocks
from stepladder.pipeline.cost_model.terms import (
    BOX_BYTES,
    Number,
    Size,
    blocks_that_fit,
    ceil_divide,
    cut,
    uncached,
)
from stepladder.pipeline.request import EARLY_WEIGHTS

KNOB, PREFETCH, _PERSISTENT, _BLOCKS = EARLY_WEIGHTS, "prefetch_steps", "persistent_blocks", "min_blocks_per_sm"
# Rows of A, or columns of B; bytes of an element of A and B. Other products were not measured.
_FEW, _ELEMENT_BYTES = 64, 2
# Rows of an instruction, most rows of a consumer warpgroup, and the least k of a split: no shorter ones were measured,
# but of 512, which took longer than predicted (24 x 18432 x 1024 in default_choices_bf16-bf16.json).
_ROWS, _WARPGROUP_ROWS, _MIN_K = 64, 192, 640
_STAGES, _STEP_BYTES, _EPILOGUE_STAGES, _KIB = 6, 256, 2, 1024

# What part of its predicted time a kernel takes that loads weights early, where L2 would keep them for others: 0.79 to
# 0.90 for 16 x 15816 x 928, 24 x 6096 x 2608 and 32 x 21504 x 768. With 0.72 to 0.79, choices for the problems of
# docs/results/launch_triggers.json are the same.
_PARTLY_CACHED_TIME = 0.78
# By what part loads take longer of weights that are not K-major, whose rows begin within sectors of the L2 cache, for
# tiles of _ROWS rows. Fitted to docs/results/odd_pitch_weights.json.
_UNALIGNED_ROW_SLOWDOWN = 0.2
# Of the time of a full row of a box, what a row of activations takes that is shorter: if they are not K-major, a k step
# has a row for each element of it. Fitted to docs/results/short_rows.json.
_SHORT_ROW_TIME = 0.85
# If a kernel takes more than _PAIRED_FROM of the multiprocessors, some blocks of clusters of _PAIRED_CLUSTER or more
# are on two multiprocessors with one port. Source: 32 x 1024 x 22016 in 64 blocks, docs/results/decode_long.json.
_PAIRED_FROM, _PAIRED_CLUSTER = 0.375, 3
# Rows up to which a product has the constants of few rows, the least rows of a block whose kernel waits, and the least
# columns of each B of a pair: the fastest tiles of those measured (pairs_early.json and functions_tiles.json).
FEW_ROWS, _MIN_ROWS, _MIN_COLUMNS = 32, 40, 48


def sets_of(size: Size) -> tuple[str, str]:
    """Returns which constants (`Gpu.early_weights`) a product has with one block on a multiprocessor, and with two.

    Args:
        size: of the product, in any orientation.
    """
    if size.products > 1:
        return EARLY_PAIRS, EARLY_PAIRS
    is_few = bool(np.all(np.minimum(size.m, size.n) <= FEW_ROWS))
    return (EARLY_FEW, EARLY_FEW_TWO) if is_few else (EARLY_MORE, EARLY_MORE_TWO)


def is_short(m: int, n: int) -> bool:
    """Returns whether a side of C is so short that kernels may load weights early.

    Args:
        m, n: rows and columns of C.
    """
    return min(m, n) <= _FEW


def applies(size: Size, gpu: Gpu, fixed: Mapping[str, int | str]) -> bool:
    """Returns whether kernels for a product may load weights early: one short side, and weights that L2 does not hold.

    Args:
        size: of the product, in any orientation.
        gpu: what runs it.
        fixed: knobs whose value is given.
    """
    return KNOB not in fixed and _reads_weights(size, gpu)


def may_not(size: Size, gpu: Gpu, fixed: Mapping[str, int | str]) -> bool:
    """Returns whether kernels for a product would load weights early if the launch before them could not write those.

    Args:
        size, gpu, fixed: as for `applies`.
    """
    return not fixed.get(KNOB, True) and _reads_weights(size, gpu)


def _reads_weights(size: Size, gpu: Gpu) -> bool:
    """Returns whether a product has one short side, and weights that L2 does not hold."""
    cached = gpu.early_weights[WAITING]["cached"]
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
        & ((split == 1) | (size.k >= _MIN_K * split))
        & knobs.equals("schedule", "cooperative", "cooperative")
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
        is_few = (size.m <= FEW_ROWS) & (size.n > size.m) & knobs.equals("epilogue", "registers", "registers")
    else:
        is_few = (size.n <= _FEW) & (size.n <= knobs.floats("block_n")) & (size.m > size.n)
    return is_few & knobs.equals("tile_scheduler", "data_parallel", "data_parallel")


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
    accepts, at_exit = accepted(knobs, size, gpu), is_at_exit(knobs)
    longer, gap = _of_waiting(size, gpu)
    # HBM is not idle before kernels whose weights L2 keeps, but it keeps a part of those of the others too.
    late = times["total"] * longer / np.where(at_exit, _PARTLY_CACHED_TIME, 1.0) + np.where(at_exit, 0.0, gap)
    given = np.asarray(knobs.column(_PERSISTENT, 0))
    persistent = np.where(accepts, _persistent_blocks(knobs, size, gpu), given)
    own = predict(Columns({**knobs.values, _PERSISTENT: persistent}, knobs.derived, knobs.count), size, gpu)
    early = accepts & ~(at_exit & (late < own))
    values = {**knobs.values, KNOB: early, _PERSISTENT: np.where(early, persistent, given)}
    chosen = Columns(values, knobs.derived, knobs.count)
    if TRIGGER in knobs.values:
        chosen = with_trigger(chosen, at_exit & ~early)
    return chosen, {**times, "total": np.where(early, own, late)}


def from_launch_to_launch(microseconds: float, size: Size, gpu: Gpu) -> float:
    """Returns the time from launch to launch of a kernel of few rows that waits before it loads weights, which other
    kernels have displaced from L2 since its last launch.

    Args:
        microseconds: predicted time by the terms of all kernels, which lack the time between launches.
        size, gpu: as for `accepted`.
    """
    longer, gap = _of_waiting(size, gpu)
    return microseconds * longer + gap


def _of_waiting(size: Size, gpu: Gpu) -> tuple[float, float]:
    """Returns how many times as long kernels that wait take as by the terms of all kernels, and the us between two."""
    c = gpu.early_weights[WAITING]
    more = "_more" if np.minimum(size.m, size.n) > FEW_ROWS else ""
    return 1 + c["late" + more], c["gap" + more]


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
    is_wave = cut(size, knobs).count * knobs.floats("split_k", 1) <= gpu.multiprocessors
    is_even = is_wave | (knobs.floats(_PERSISTENT, 0) > 0)
    is_tile = is_even & (rows >= _MIN_ROWS) & (knobs.floats("block_k") * size.in_bytes >= _STEP_BYTES)
    is_tile = is_tile & (np.minimum(size.m, size.n) <= FEW_ROWS)
    is_measured = accepted(knobs, size, gpu) & (is_tile & partial | (size.products > 1))
    c = gpu.early_weights[WAITING]
    constants = {name: gpu.early_weights[name] for name in sets_of(size)}
    if size.products == 1:
        constants = {name: {**values, "loop": c["loop"]} for name, values in constants.items()}
    waiting = (predict(knobs, size, gpu, constants) + c["wait"] - c["gap"]) / (1 + c["late"])
    shared = knobs.floats(_BLOCKS, 1) > 1
    total = np.where(is_measured, waiting, np.where(partial | shared, np.inf, times["total"]))
    return {**times, "total": total}


def prefetch(knobs: Columns, size: Size, gpu: Gpu, options: Sequence[int | str]) -> Columns:
    """Returns settings of kernels that wait before they load, with the k steps of weights that they prefetch before.

    Args:
        knobs: columns of the pipeline's knobs.
        size, gpu: as for `accepted`.
        options: for the steps, with 0.
    """
    rows = knobs.floats("block_n") * size.products if size.products > 1 else knobs.floats("block_m")
    most = gpu.early_weights[WAITING]["prefetched"] * _KIB / (rows * knobs.floats("block_k") * size.in_bytes)
    may = _is_of_few_rows(knobs, size) & (knobs.floats(_BLOCKS, 1) == 1)
    # The next kernel's blocks that begin when these have exited wait for nothing to prefetch ahead of.
    may = may & np.asarray(knobs.column("dependent_launch", True), bool) & ~is_at_exit(knobs)
    ascending = np.sort(np.array([int(option) for option in options], np.int64))
    steps = ascending[np.searchsorted(ascending, np.maximum(most, 0), side="right") - 1]
    # A knob that is given is one value for all settings.
    prefetch_steps = np.broadcast_to(np.where(may, steps, 0), (knobs.count,))
    return Columns({**knobs.values, PREFETCH: prefetch_steps}, knobs.derived, knobs.count)


def streams(knobs: Columns) -> Array:
    """Returns which settings read weights ahead of their wait, and give their loads the hint `evict_first`.

    Args:
        knobs: columns of the pipeline's knobs.
    """
    return np.asarray(knobs.column(KNOB, False), bool) | (knobs.floats(PREFETCH, 0) > 0)


def predict(knobs: Columns, size: Size, gpu: Gpu, constants: Mapping[str, Mapping[str, float]] | None = None) -> Array:
    """Returns the predicted time of a launch that follows another one, in us.

    On a GPU that the constants are not fitted to, the time is that on the GPU that they are fitted to.

    Args:
        knobs: columns of settings that load weights early.
        size: of the product.
        gpu: what runs it.
        constants: of the model, by set; none for those of the GPU.
    """
    sets = constants or gpu.early_weights
    alone, paired = (sets[name] for name in sets_of(size))
    is_shared = knobs.floats(_BLOCKS, 1) > 1
    times = _predict(knobs, size, gpu, alone)
    times = np.where(is_shared, _predict(knobs, size, gpu, paired), times) if np.any(is_shared) else times
    for name in [name for name in SHORT_BLOCKS if name in sets]:
        has_short = have_short_blocks(knobs, size, gpu, name)
        if np.any(has_short):
            times = np.where(has_short, time_of_short_blocks(knobs, size, gpu, sets[name]), times)
    return times


def _odd_rows(knobs: Columns, size: Size) -> Array | float:
    """Returns by what part loads take longer because rows of the weights begin within sectors of the L2 cache; such
    K-major weights are loaded as fast as others."""
    is_odd = (size.a_layout != "row") & has_odd_rows(size.m, size.in_bytes)
    if size.products > 1 or not np.any(is_odd):  # pairs were not measured
        return 0.0
    return is_odd * _UNALIGNED_ROW_SLOWDOWN * _ROWS / knobs.floats("block_m")


def _short_rows(block_k: Array, block_n: Array | Number, size: Size) -> Array | float:
    """Returns the bytes of weights that TMA loads in the time of a k step's rows of activations, where these run across
    k: TMA takes about as long for a row of a few elements as for one of a whole box."""
    if size.products > 1 or size.b_layout != "row":
        return 0.0
    return _SHORT_ROW_TIME * block_k * np.maximum(1.0, block_n * size.in_bytes / BOX_BYTES) * BOX_BYTES


def _predict(knobs: Columns, size: Size, gpu: Gpu, c: Mapping[str, float]) -> Array:
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
    stage = weights + c["activations"] * block_k * block_n * size.in_bytes + _short_rows(block_k, block_n, size)
    loaded_late = np.maximum(0.0, steps - c["ahead"] * np.minimum(stages, steps))
    rate = gpu.early_hbm_bytes_per_us * c["hbm"]
    full_waves = np.floor(blocks / at_once)
    rest = blocks - full_waves * at_once

    def wave(count: Array) -> Array:
        # Blocks begin on multiprocessors of different pairs, as long as there are any; some of larger clusters do not.
        is_paired = (split >= _PAIRED_CLUSTER) & (count > _PAIRED_FROM * gpu.multiprocessors)
        alone = np.where(is_paired, np.sqrt(c["port"] * c["paired_port"]), c["port"])
        port = np.where(count > gpu.multiprocessors / 2, c["paired_port"], alone)
        own_limit = ceil_divide(count, room) * loaded_late * stage / (port * gpu.clock_mhz)
        return np.where(
            count > 0, ((count * steps * weights / rate) ** c["norm"] + own_limit ** c["norm"]) ** (1 / c["norm"]), 0.0
        )

    slower = c["slow"] + c["tall"] * (block_m > _ROWS) + c["tallest"] * (block_m > _WARPGROUP_ROWS)
    slower = slower + c["shallow"] * np.maximum(0.0, _STAGES - stages * shared)
    slower = slower + c["short"] * (block_k * size.in_bytes < _STEP_BYTES)
    slower = slower + _odd_rows(knobs, size)
    if is_pair:
        slower = slower + c["narrow"] * (knobs.floats("block_n") < _MIN_COLUMNS)
    slower = slower + c["low"] * np.maximum(0.0, 1 - stages * shared * weights / (c["held"] * _KIB))
    further = ceil_divide(blocks, at_once) - 1
    reduction = np.where(split > 1, c["cluster_column"] * block_n, 0.0)
    between_waves = np.where(split > 1, c["split_wave"] * (split - 1), c["wave"])
    wait_time = np.where(persistent > 0, c["loop"], further * between_waves)
    full = wave(at_once)
    last = np.where(full_waves > 0, c["last_wave"], 1.0)
    load_time = full_waves * full + last * wave(rest) + (1 - last) * rest / at_once * full
    return load_time * (1 + slower) + c["launch"] + c["column"] * block_n + reduction + wait_time
