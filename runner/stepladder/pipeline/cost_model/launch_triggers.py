"""The choice of `launch_trigger`: kernels whose next launch begins when their blocks have exited.

With an early trigger, blocks of the next launch take the idle multiprocessors first, and then those that become free.
With a trigger at the exit of all blocks, they can be on the same multiprocessors at each launch. In
docs/results/launch_triggers.json, kernels gain, with the same operands at each launch and with others, if they have
more blocks than half of the multiprocessors, so that two launches do not fit side by side, and clearly fewer than all.
Kernels with clusters or split-K do not gain, and all others lose the overlap. The likely reason, which no counter has
confirmed: blocks that move to other multiprocessors lose the half of the L2 cache that holds their tiles, and share the
port of a pair of multiprocessors while other pairs are free.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stepladder.pipeline.cost_model import batches
from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.terms import INSTRUCTION_ROWS, Size, cut, uncached
from stepladder.pipeline.request import EARLY_WEIGHTS
from stepladder.pipeline.request import LAUNCH_TRIGGER as KNOB

EARLY, EXIT = "early", "exit"
# Blocks of launches that gain, as parts of the multiprocessors: more than the first, at most the second.
_MIN_BLOCKS, _MAX_BLOCKS = 0.5, 0.85
# Rows or columns up to which kernels were measured: with more of both, they are bounded less by their loads.
_MAX_ROWS = 192
# The part of the operands that a kernel by itself may read from HBM, to be chosen before a dependent one.
_MAX_EVICTED = 0.5


def choose(knobs: Columns, size: Size, gpu: Gpu, fixed: Mapping[str, int | str], *, whole: bool) -> Columns:
    """Returns settings with the knob.

    Args:
        knobs: columns of the pipeline's knobs.
        size: of the problem.
        gpu: what runs it.
        fixed: knobs whose value is given.
        whole: whether only tiles of whole instructions may gain: of few rows, others were not measured.
    """
    is_free = bool(fixed.get("dependent_launch", True)) and not (
        fixed.get("prefetch_steps") or fixed.get(EARLY_WEIGHTS)
    )
    gains = _gains(knobs, size, gpu) & is_free
    if whole:
        gains = gains & (knobs.floats("block_m") % INSTRUCTION_ROWS == 0)
    return with_trigger(knobs, gains)


def with_trigger(knobs: Columns, at_exit: Array) -> Columns:
    """Returns settings with the knob.

    Args:
        knobs: columns of the pipeline's knobs.
        at_exit: which settings let the next launch begin when their blocks have exited; one value counts for all.
    """
    # Knobs that are given are one value for all settings.
    trigger = np.broadcast_to(np.where(at_exit, EXIT, EARLY), (knobs.count,))
    return Columns({**knobs.values, KNOB: trigger}, knobs.derived, knobs.count)


def is_at_exit(knobs: Columns) -> Array:
    """Returns which settings let the next launch begin when their blocks have exited.

    Args:
        knobs: columns of the pipeline's knobs.
    """
    return knobs.equals(KNOB, EXIT, EARLY) & np.asarray(knobs.column("dependent_launch", True), bool)


def launches_differ(size: Size, gpu: Gpu) -> bool:
    """Returns whether the L2 cache keeps more of a problem's operands where launches are not dependent: blocks then
    return to their multiprocessors, and each part of the cache keeps their tiles. Source: measured,
    docs/results/model_edge_bf16-bf16.json.

    Args:
        size: of the problem.
        gpu: whose L2 cache holds operands.
    """
    constants = gpu.constants[WARPGROUP]
    parts = [uncached(size, gpu, constants[name], constants["evicted"]) for name in ("cached", "cached_in_place")]
    return bool(np.any((parts[0] > parts[1]) | batches.depends_on_placement(size, gpu)))


def is_kept_in_place(size: Size, gpu: Gpu) -> bool:
    """Returns whether the L2 cache keeps half of a problem's operands at least where launches are not dependent. Where
    it keeps less, a dependent launch is faster. Source: measured, docs/results/decode_limits.json and
    decode_settings.json; batches of own matrices, where neighbours share it: forms_triggers.json.

    Args:
        size: of the problem.
        gpu: whose L2 cache holds operands.
    """
    constants = gpu.constants[WARPGROUP]
    uncached_share = uncached(size, gpu, constants["cached_in_place"], constants["evicted"])
    return bool(np.all((uncached_share <= _MAX_EVICTED) | batches.depends_on_placement(size, gpu)))


def _gains(knobs: Columns, size: Size, gpu: Gpu) -> Array:
    """Returns which settings have one wave of so many blocks, each alone on its multiprocessor and with a tile.

    Args:
        knobs, size, gpu: as for `choose`.
    """
    blocks = cut(size, knobs).count
    persistent = knobs.floats("persistent_blocks", 0)
    one_each = (knobs.floats("cluster_m", 1) * knobs.floats("cluster_n", 1) * knobs.floats("split_k", 1)) == 1
    one_each = one_each & (knobs.floats("min_blocks_per_sm", 1) == 1) & ((persistent == 0) | (persistent >= blocks))
    of_all = blocks / gpu.multiprocessors
    one_each = one_each & (np.minimum(size.m, size.n) <= _MAX_ROWS)
    return one_each & (of_all > _MIN_BLOCKS) & (of_all <= _MAX_BLOCKS)
