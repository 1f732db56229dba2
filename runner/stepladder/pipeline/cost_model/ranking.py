"""Ranks the knob settings that a pipeline accepts for a problem by their predicted time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.pipeline.cost_model import (
    early_weights,
    kept_weights,
    launch_triggers,
    orders,
    stagger,
    warp,
    warpgroup,
)
from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARP, WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.searches import search_of
from stepladder.pipeline.cost_model.short_blocks import has_short_blocks
from stepladder.pipeline.cost_model.space import Space, feasible
from stepladder.pipeline.cost_model.terms import Size, ceil_divide
from stepladder.pipeline.expressions import Value

# The knob of whether blocks start before the preceding kernel has ended; what it has to be predicted to gain to be off,
# since kernels that other work separates gain nothing.
_LAUNCH, LAUNCH_MARGIN = "dependent_launch", 0.03
# The knob of where elementwise ops that make A are computed, and its value for registers.
PRODUCERS, IN_REGISTERS = "producers", "registers"
# Knobs that are chosen after the others.
_LATE_KNOBS = (
    _LAUNCH,
    launch_triggers.KNOB,
    early_weights.KNOB,
    early_weights.PREFETCH,
    stagger.KNOB,
    kept_weights.KNOB,
)
# Knobs that make a small difference between settings that agree in the others.
_MINOR_KNOBS = (
    *("block_k", "stages", "epilogue_stages", "persistent_blocks", "consumer_warpgroups"),
    orders.KNOB,
    _LAUNCH,
    launch_triggers.KNOB,
    stagger.KNOB,
    kept_weights.KNOB,
)
# Of each _FEW candidates, at most _OF_A_TILE have the same tile: if the model errs about a tile, it errs about all
# settings with it.
_TILE, _OF_A_TILE, _FEW = ("block_m", "block_n", "split_k"), 2, 4
# How much faster than a setting of a measured tile width one of another width has to be predicted, to be chosen before
# it: predictions have no measurement to lean on there.
_WIDTH_MARGIN = 0.04
# The margin for a setting whose tiles extend beyond the problem before one whose tiles divide it.
_EDGE_MARGIN = 0.1
# The margin for tiles of _UNEVEN_ROWS rows whose splits of k global memory reduces, of products with _FEW_ROWS rows or
# columns at most. With this, first choices are nearer to the fastest measured setting of
# docs/results/decode_settings.json, and of random problems with few rows.
_FEW_ROWS, _UNEVEN_ROWS, _UNEVEN_MARGIN = 64, 192, 0.08
# The margin for splits in global memory that take more than one wave: blocks wait for splits that have not begun. No
# problem of docs/results/model_*.json has such a setting as the fastest one.
_MULTI_WAVE_SPLIT_MARGIN = 0.3
# The margin for each split but two of kernels that load weights early: in docs/results/functions_prefetch.json, four
# splits of tiles of 128 rows took longer than two of 56.
_EARLY_SPLIT_MARGIN = 0.02
# The margin for two blocks on a multiprocessor of a product that is no batch, or of a batch whose operands are larger
# than the L2 cache: both blocks wait for HBM. Source of the latter: docs/results/forms_few_rows.json.
_TWO_BLOCK_MARGIN = 0.12
# The margin for tiles of at least _WIDE_TILE elements with at most _FEW_STEPS k steps, whose epilogue no other tile
# hides: they took longer than predicted in docs/results/forms_seen.json.
_WIDE_TILE_MARGIN, _WIDE_TILE, _FEW_STEPS = 0.1, 128 * 160, 2
# The margin for splits that a cluster reduces, of products with at least _SPLIT_SIDE rows and columns: such first
# choices took longer, compared with the prediction, than others did.
_CLUSTER_SPLIT_MARGIN, _SPLIT_SIDE = 0.04, 256
# The limits of a main loop, by the names of the predicted times.
LIMITS = ("matrix unit", "shared memory", "TMA", "L2", "latency", "HBM", "writes")
# The parts of a predicted time.
PARTS = ("main loop", "prologue", "epilogue", "reduction", "launch", "repacking", "preparing")


@dataclass(frozen=True)
class Candidate:
    """A knob setting with its predicted time.

    Args:
        knobs: knob -> value, of the knobs that the model searches.
        microseconds: predicted time of a launch.
        times: by name, what it is made up of (PARTS) and what bounds its main loop (LIMITS), in us.
        waves: waves of blocks, the last one counted by what it has to do.
        bound: the largest of LIMITS, or of PARTS where one of these is larger.
        with_margin: what candidates are ordered by: the predicted time, longer where it is less certain.
    """

    knobs: dict[str, int | str]
    microseconds: float
    times: dict[str, float]
    waves: float
    bound: str
    with_margin: float = 0.0


@dataclass(frozen=True)
class Ranking:
    """All accepted settings in order of their predicted time.

    Args:
        family: of the kernels, WARPGROUP or WARP.
        knobs: names of the knobs that were searched.
        columns: the settings.
        times: predicted times by name, a column each.
        order: indices of the settings, in the order of `with_margin`.
        with_margin: predicted times, multiplied by `margin_factor`.
    """

    family: str
    knobs: tuple[str, ...]
    columns: Columns
    times: dict[str, Array]
    order: Array
    with_margin: Array

    def __len__(self) -> int:
        return len(self.order)

    def first(self, count: int) -> list[Candidate]:
        """Returns the first `count` candidates that differ in more than _MINOR_KNOBS, the fastest of each kind:
        a measurement learns more from another tile than from another number of buffers.

        Args:
            count: at least 0; fewer candidates are returned where there are no more.
        """
        indices: dict[tuple[int | str, ...], int] = {}
        tiles: dict[tuple[int | str, ...], int] = {}
        kind = [name for name in self.knobs if name not in _MINOR_KNOBS]
        for index in self.order:
            if len(indices) == count:
                break
            key, tile = self._values(kind, index), self._values(_TILE, index)
            if key not in indices and tiles.get(tile, 0) < _OF_A_TILE * max(1, count // _FEW):
                indices[key] = int(index)
                tiles[tile] = tiles.get(tile, 0) + 1
        return [self._candidate(index) for index in indices.values()]

    def _values(self, names: Sequence[str], index: int) -> tuple[int | str, ...]:
        return tuple(_knob(self.columns.value(name, index)) for name in names if name in self.columns.values)

    def within(self, factor: float) -> int:
        """Returns how many candidates are predicted to take at most `factor` times as long as the first.

        Args:
            factor: on the predicted time of the first candidate.
        """
        total = self.times["total"]
        return int(np.count_nonzero(total <= factor * total[self.order[0]])) if len(self) else 0

    def _candidate(self, index: int) -> Candidate:
        knobs = dict(zip(self.knobs, self._values(self.knobs, index)))
        times = {name: float(self.times[name][index]) for name in (*PARTS, *LIMITS) if name in self.times}
        parts = {name: times[name] for name in PARTS[1:] if name in times}
        limits = {name: times[name] for name in LIMITS if name in times}
        bound = max(limits | parts, key=lambda name: (limits | parts)[name])
        total, waves = float(self.times["total"][index]), float(self.times["waves"][index])
        return Candidate(knobs, total, times, waves, bound, float(self.with_margin[index]))


def family_of(space: Space) -> str | None:
    """Returns which family of kernels a pipeline makes: one that the model knows, or None.

    Args:
        space: of the pipeline, with the names of its steps.

    Returns:
        `WARPGROUP`, `WARP` or None.
    """
    steps = set(space.steps)
    if {"convert_to_wgmma", "specialize_warps"} <= steps:
        return WARPGROUP
    return WARP if steps & {"convert_to_mma_sync", "convert_to_wmma"} and "stage_in_shared_memory" in steps else None


def _knob(value: Value) -> int | str:
    if isinstance(value, list):
        raise TypeError(f"a knob is {value}")
    return value


def _number(facts: Mapping[str, Value], name: str) -> int:
    value = facts[name]
    if not isinstance(value, int):
        raise TypeError(f"fact '{name}' is {value}")
    return value


def size_of(facts: Mapping[str, Value], accumulate: bool, *, in_registers: bool = False) -> Size:
    """Returns a problem's size from the facts that expressions use.

    Args:
        facts: with `m`, `n`, `k`, `a_bits`, `c_bits`, `acc_type`, `a_layout` and `b_layout`.
        accumulate: whether C is added to.
        in_registers: whether elementwise ops that make A are computed in registers.
    """
    a_source, b_source = (
        _number(facts, name) / 8 if name in facts else 0.0 for name in ("a_source_bits", "b_source_bits")
    )
    m, n, k, a_bits, c_bits = (_number(facts, name) for name in ("m", "n", "k", "a_bits", "c_bits"))
    return Size(
        m,
        n,
        k,
        a_bits / 8,
        c_bits / 8,
        str(facts["acc_type"]),
        accumulate,
        str(facts["a_layout"]),
        str(facts["b_layout"]),
        *(float(_number(facts, name)) for name in ("batch", "a_matrices", "b_matrices") if name in facts),
        c_layout=str(facts.get("c_layout", "row")),
        products=float(_number(facts, "products")) if "products" in facts else 1.0,
        a_source_bytes=a_source,
        b_source_bytes=b_source,
        a_cost=float(_number(facts, "producer_cost")) if "producer_cost" in facts else 0.0,
        in_registers=in_registers and a_source > 0,
        has_elementwise=bool(facts.get("has_elementwise", False)),
        read_matrices=float(_number(facts, "read_matrices")) if "read_matrices" in facts else 0.0,
    )


def predict(family: str, space: Space, columns: Columns, size: Size, gpu: Gpu) -> dict[str, Array]:
    """Returns the predicted times of settings, by name; see `warpgroup.predict`.

    Args:
        family: WARP or WARPGROUP.
        space: the pipeline's knobs and steps.
        columns: the settings, a row each.
        size: of the problem.
        gpu: that the times are for.

    Returns:
        By name of a part, the microseconds of each setting; `waves` is a count.
    """
    if family == WARPGROUP:
        return warpgroup.predict(columns, size, gpu)
    return warp.predict(columns, size, gpu, "mma_sync" if "convert_to_mma_sync" in space.steps else "wmma")


def _ordered(
    space: Space, columns: Columns, size: Size, gpu: Gpu, family: str, fixed: Mapping[str, int | str]
) -> Columns:
    """Returns every setting with an order of its tiles (`orders.choose`), where the pipeline has one to choose."""
    if orders.KNOB not in space.options or orders.KNOB in fixed or not columns.count:
        return columns
    options, default = [int(option) for option in space.options[orders.KNOB]], int(space.defaults[orders.KNOB])
    return orders.choose(columns, options, default, size, gpu, family)


def _launched(columns: Columns, size: Size, gpu: Gpu, *, triggers: bool) -> tuple[Columns, dict[str, Array]]:
    """Returns every setting with the launch that is predicted to be faster: dependent, or by itself, where the L2 cache
    keeps more of the operands from launch to launch. Where it keeps little of them even so, launches stay dependent,
    and only the order of the settings, which was measured, is that of the faster launch.

    If `triggers` are free to choose, launches by themselves are dependent ones, with the trigger at the exit of all
    blocks: they run on the same multiprocessors at each launch too, and they begin sooner. Of the kernels that were
        measured both
    ways, one took 0.3% longer so, and the others less (docs/results/launch_triggers.json, h100/launches.json).
    """
    both = Columns({**columns.values, _LAUNCH: np.array([[True], [False]])}, columns.derived, columns.count)
    times = warpgroup.predict(both, size, gpu)  # a row for each launch: what does not depend on it is predicted once
    faster = times["total"][1] < times["total"][0] * (1 - LAUNCH_MARGIN)
    stays = faster & launch_triggers.is_kept_in_place(size, gpu)
    if triggers:
        result = launch_triggers.with_trigger(columns, launch_triggers.is_at_exit(columns) | stays)
    else:
        result = Columns({**columns.values, _LAUNCH: ~stays}, columns.derived, columns.count)
    return result, {name: np.where(faster, by_itself, by_launch) for name, (by_launch, by_itself) in times.items()}


def margin_factor(family: str, columns: Columns, waves: Array, size: Size, gpu: Gpu) -> Array:
    """Returns what predicted times are multiplied by for their order: more for tile widths that were not measured, for
    kernels of warps whose tiles do not divide the problem, for some splits of few rows, for splits in global memory of
    more than one wave, in clusters of more than few rows and of kernels that load weights early, for two blocks on a
    multiprocessor, and for wide tiles with few k steps.

    Args:
        family: WARP or WARPGROUP.
        columns: the settings, a row each.
        waves: of their blocks.
        size: of the problem.
        gpu: whose tile widths were measured.
    """
    measured_widths = gpu.measured_widths.get(family, ())
    widths = _WIDTH_MARGIN * ~columns.is_in("block_n", measured_widths) if measured_widths else np.zeros(columns.count)
    # HBM bounds these, whatever the width.
    is_early = np.asarray(columns.column(early_weights.KNOB, False), bool)
    widths = widths * ~is_early
    edges = _EDGE_MARGIN * columns.floats("has_edges", 0.0) if family == WARP else 0.0
    is_warpgroup = family == WARPGROUP
    in_memory = columns.equals("split_k_workspace", "memory", "cluster")
    is_uneven = in_memory & (columns.floats("block_m") == _UNEVEN_ROWS) & (np.minimum(size.m, size.n) <= _FEW_ROWS)
    gains = (np.asarray(size.batch) > 1) & (size.operand_bytes <= gpu.l2_bytes)
    twice = (columns.floats("min_blocks_per_sm", 1) > 1) & is_warpgroup & ~is_early & ~gains
    split = columns.floats("split_k", 1)
    steps = ceil_divide(ceil_divide(size.k, columns.floats("block_k")), split)
    is_wide = (
        (columns.floats("block_m") * columns.floats("block_n") >= _WIDE_TILE) & (steps <= _FEW_STEPS) & is_warpgroup
    )
    is_wide = is_wide & ~columns.equals("schedule", "pingpong", "cooperative")
    later = in_memory & (split > 1) & (waves > 1)
    in_cluster = (split > 1) & ~in_memory & (np.minimum(size.m, size.n) >= _SPLIT_SIDE) & is_warpgroup
    # Kernels with constants of their own for the number of splits are as certain as others.
    early_splits = np.maximum(0.0, split - 2) * (is_early & ~has_short_blocks(columns, size, gpu))
    splits = _MULTI_WAVE_SPLIT_MARGIN * later + _CLUSTER_SPLIT_MARGIN * in_cluster + _EARLY_SPLIT_MARGIN * early_splits
    return (
        1.0
        + widths
        + edges
        + _UNEVEN_MARGIN * is_uneven
        + splits
        + _TWO_BLOCK_MARGIN * twice
        + _WIDE_TILE_MARGIN * is_wide
    )


def rank(
    space: Space, facts: Mapping[str, Value], accumulate: bool, gpu: Gpu, fixed: Mapping[str, int | str]
) -> Ranking | None:
    """Ranks all settings that a pipeline accepts for a problem.

    Args:
        space: the pipeline.
        facts: of the problem and the target, by the names that expressions use.
        accumulate: whether the problem is C = AB + C.
        gpu: what runs it.
        fixed: knobs whose value is given.

    Returns:
        The ranking, empty where the pipeline accepts no setting; None where the model does not know such kernels.

    Raises:
        StepladderError: the GPU lacks the matrix instructions of the kernels.
    """
    family = family_of(space)
    if family is None:
        return None
    gpu.check_family(family)
    size = size_of(facts, accumulate, in_registers=fixed.get(PRODUCERS) == IN_REGISTERS)
    is_early = family == WARPGROUP and early_weights.KNOB in space.options and early_weights.applies(size, gpu, fixed)
    waits = family == WARPGROUP and early_weights.KNOB in space.options and early_weights.may_not(size, gpu, fixed)
    search = search_of(family, size, gpu, is_early, waits)
    columns = _ordered(space, feasible(space, facts, fixed, search), size, gpu, family, fixed)
    triggers = family == WARPGROUP and launch_triggers.KNOB in space.options and launch_triggers.KNOB not in fixed
    # Of kernels for few rows, only those were measured whose weights L2 holds.
    if triggers and (not (is_early or waits) or launch_triggers.is_kept_in_place(size, gpu)):
        columns = launch_triggers.choose(columns, size, gpu, fixed, whole=is_early or waits)
    launches = family == WARPGROUP and _LAUNCH in space.options and _LAUNCH not in fixed
    if launches and not is_early and not fixed.get(early_weights.KNOB) and launch_triggers.launches_differ(size, gpu):
        columns, times = _launched(columns, size, gpu, triggers=triggers)
    else:
        times = predict(family, space, columns, size, gpu)
    if launches and is_early:
        columns, times = early_weights.choose(columns, times, size, gpu)
    if waits:
        times = early_weights.wait(columns, times, size, gpu)
        if early_weights.PREFETCH in space.options and early_weights.PREFETCH not in fixed:
            columns = early_weights.prefetch(columns, size, gpu, space.options[early_weights.PREFETCH])
    if family == WARPGROUP and stagger.KNOB in space.options and stagger.KNOB not in fixed and columns.count:
        columns = stagger.choose(columns, size)
    if family == WARPGROUP and kept_weights.KNOB in space.options and kept_weights.KNOB not in fixed and columns.count:
        at_exit = launch_triggers.is_at_exit(columns)
        columns = kept_weights.choose(columns, size, gpu, is_early & ~early_weights.streams(columns) & ~at_exit)
    # Of settings that take equally long, the first in the order of the knobs' options.
    with_margin = times["total"] * margin_factor(family, columns, times["waves"], size, gpu)
    order = np.argsort(with_margin, kind="stable")
    knob_names = tuple(
        name
        for name in (*search.order, search.most, orders.KNOB, *_LATE_KNOBS)
        if name in space.options
        and name not in fixed
        and (name not in _LATE_KNOBS or isinstance(columns.values[name], Array))
    )
    return Ranking(family, knob_names, columns, times, order, with_margin)
