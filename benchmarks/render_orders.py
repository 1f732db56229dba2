"""The tables of orders of tiles: kernels that were measured with several, and all measured kernels by theirs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from common import result, table, where
from fit_cost_model import usable
from fit_data import Data, Group
from measured_kernels import RESULTS, Kernel, kernels_of
from stepladder.pipeline.cost_model import gpu as gpus
from stepladder.pipeline.cost_model import orders, warpgroup_launch
from stepladder.pipeline.cost_model.columns import Array
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.terms import cut

# Rows of clusters in a group that orders of tiles are measured with, and those of the script.
_GROUPS, _OF_SCRIPT = (1, 2, 4, 8, 16, 32), 8
# Of measured kernels, those that are predicted to take at most so many times as long as the first of a problem count.
_NEAR = 1.12
# Of what the fewest different tiles are that neighbours could load: up to 1.02 times, and so on.
_FEWEST, _MORE = 1.02, 1.5


def _rows_and_columns(kernel: Kernel) -> tuple[int, int]:
    """Returns how many rows and columns of clusters a kernel has, or of tiles, where it has no clusters."""
    m, n, _ = kernel.size
    rows, columns = (n, m) if kernel.knobs["swap_operands"] is True else (m, n)
    knobs = {name: int(kernel.knobs[name]) for name in ("block_m", "block_n", "cluster_m", "cluster_n")}
    return (
        math.ceil(math.ceil(rows / knobs["block_m"]) / knobs["cluster_m"]),
        math.ceil(math.ceil(columns / knobs["block_n"]) / knobs["cluster_n"]),
    )


def _chosen_order(kernel: Kernel) -> int:
    """Returns how many rows of clusters a group has in the order that the cost model chooses for a kernel."""
    group = Group.of([kernel])
    chosen = orders.choose(group.knobs, _GROUPS, _OF_SCRIPT, group.size, gpus.load("h200"), WARPGROUP)
    return int(chosen.floats(orders.KNOB)[0])


def orders_table() -> str:
    """Returns the times of kernels with several orders of tiles, those in parentheses with a last group of fewer rows
    than the others, and those of the orders that the cost model chooses in bold type."""
    path = RESULTS / "orders_of_tiles.json"
    by_form: dict[tuple[object, ...], dict[str, str]] = {}
    for kernel in kernels_of(path):
        knobs, (rows, columns) = kernel.knobs, _rows_and_columns(kernel)
        line = {
            "m x n x k": " x ".join(map(str, kernel.size)),
            "tile": f"{knobs['block_m']} x {knobs['block_n']}" + ("^T" if knobs["swap_operands"] is True else ""),
            "cluster": f"{knobs['cluster_m']} x {knobs['cluster_n']}",
            "rows x columns": f"{rows} x {columns}",
        }
        # A few were measured with fewer persistent blocks, too.
        cells = by_form.setdefault(
            (*line.values(), knobs["persistent_blocks"]), line | dict.fromkeys(map(str, _GROUPS), "")
        )
        group = int(knobs["raster_group"])
        is_uneven = columns > 1 and rows % min(group, rows) > 0
        time = f"({kernel.microseconds:.1f})" if is_uneven else f"{kernel.microseconds:.1f}"
        cells[str(group)] = f"**{time}**" if group == _chosen_order(kernel) else time
    lines = [line for line in by_form.values() if all(line[str(group)] for group in (1, 8))]
    units = "Microseconds; ^T: swapped operands; in bold type the order that the cost model chooses"
    return table(lines) + f"\n{units}. {where(result(path.stem))}.\n"


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


REGIONS: dict[str, Callable[[], str]] = {"orders of tiles": orders_table, "neighbours": neighbours_table}
