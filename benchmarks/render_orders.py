"""The table of orders of tiles: how long measured kernels take, by the tiles that neighbouring blocks load."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from common import table
from fit_cost_model import usable
from fit_data import Data, Group
from measured_kernels import RESULTS, kernels_of
from stepladder.pipeline.cost_model import gpu as gpus
from stepladder.pipeline.cost_model import orders, warpgroup_launch
from stepladder.pipeline.cost_model.columns import Array
from stepladder.pipeline.cost_model.terms import cut

# Rows of clusters in a group of tiles that are compared.
_GROUPS = (1, 2, 4, 8, 16, 32)
# Of measured kernels, those that are predicted to take at most so many times as long as the first of a problem count.
_NEAR = 1.12
# Of what the fewest different tiles are that neighbours could load: up to 1.02 times, and so on.
_FEWEST, _MORE = 1.02, 1.5


def _different_loads(group: Group) -> tuple[Array, Array]:
    """Returns how many times as many different tiles neighbours load as in the best even order, and of which kernels
    that tells something: those with one wave, even groups and operands that mostly stay in L2."""
    gpu, knobs, size = gpus.load("h200"), group.knobs, group.size
    tiles = cut(size, knobs)
    rows = tiles.rows / knobs.floats("cluster_m", 1)
    loads, best, group_rows = orders.different_loads(tiles, knobs, size), np.inf, knobs.values[orders.KNOB]
    is_even = rows % np.minimum(np.asarray(group_rows, float), rows) == 0
    for option in _GROUPS:
        knobs.values[orders.KNOB] = np.full(knobs.count, option)
        even = rows % np.minimum(option, rows) == 0
        best = np.minimum(best, np.where(even, orders.different_loads(tiles, knobs, size), np.inf))
    knobs.values[orders.KNOB] = group_rows
    fits_l2 = size.operand_bytes + size.stored_bytes <= orders.HELD * gpu.l2_bytes
    return loads / best, fits_l2 & is_even & (warpgroup_launch.waves_of(tiles, knobs, gpu)[0] <= 1)


def neighbours_table() -> str:
    """Returns how much longer than predicted measured kernels took, in comparison with others of their problem, by how
    many different tiles their neighbours load."""
    paths = sorted(RESULTS.glob("model_*_bf16-bf16.json"))
    kernels = [kernel for path in paths for kernel in usable(kernels_of(path)) if kernel.pipeline == "wgmma"]
    data = Data(kernels, gpus.load("h200"))
    predicted = data.predict(gpus.load("h200"))
    parts = [_different_loads(group) for group in data.groups]
    loads, counts = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    least = np.full(data.problems, np.inf)
    np.minimum.at(least, data.problem, predicted)
    near = predicted <= _NEAR * least[data.problem]
    longer = np.log(data.measured / predicted)
    mean = np.bincount(data.problem[near], longer[near], data.problems) / np.bincount(
        data.problem[near], minlength=data.problems
    )
    longer -= mean[data.problem]
    knobs = [kernel.knobs for kernel in data.kernels]
    clusters = np.array([int(own["cluster_m"]) * int(own["cluster_n"]) for own in knobs])
    splits = np.array([int(own.get("split_k", 1)) for own in knobs])
    in_cluster = (splits > 1) & np.array([own.get("split_k_workspace") == "cluster" for own in knobs])
    lines = []
    for name, kind in (
        ("no cluster", (clusters == 1) & (splits == 1)),
        ("clusters of 2", (clusters == 2) & (splits == 1)),
        ("clusters of 4 and 8", (clusters > 2) & (splits == 1)),
        ("splits of k in clusters", in_cluster),
    ):
        chosen = kind & near & counts
        line = {"kernels": name}
        for title, neighbours in (
            ("the fewest", loads < _FEWEST),
            (f"up to {_MORE} times as many", (loads >= _FEWEST) & (loads < _MORE)),
            ("more", loads >= _MORE),
        ):
            own = longer[chosen & neighbours]
            line[title] = f"{100 * math.expm1(own.mean()):+.1f}% ({len(own)})" if len(own) else ""
        lines.append(line)
    return table(lines)


REGIONS: dict[str, Callable[[], str]] = {"neighbours": neighbours_table}
