"""Producers of short k steps: a thread that is elected beside one that is chosen by its number, and addresses in shared
memory as they are beside those that are cast."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from statistics import geometric_mean

from common import cells_of, result, table, where


def elected_table() -> str:
    """Returns the times of default kernels without and with `elect_producer`, by the bytes of a k step."""
    data = result("elected_producers")
    by_size: dict[tuple[int, int, int], list[dict]] = {}
    for cell in cells_of(data):
        by_size.setdefault((cell["m"], cell["n"], cell["k"]), []).append(cell)
    lines, ratios = [], []
    for size, cells in by_size.items():
        knobs = cells[0]
        times = [
            statistics.median(cell["microseconds"] for cell in cells if cell["elect_producer"] is elected)
            for elected in (False, True)
        ]
        ratios.append(times[1] / times[0])
        turned = "^T" if knobs["swap_operands"] else ""
        line = {
            "m x n x k": " x ".join(map(str, size)),
            "tile": f"{knobs['block_m']} x {knobs['block_n']} x {knobs['block_k']}{turned}",
            "cluster": f"{knobs['cluster_m']} x {knobs['cluster_n']}",
            "k steps": str(math.ceil(size[2] / knobs["block_k"])),
            "by index": f"{times[0]:.2f}",
            "elected": f"{times[1]:.2f}",
            "ratio": f"{ratios[-1]:.3f}",
        }
        lines.append((ratios[-1], line))
    lines.sort(key=lambda entry: entry[0])
    best = geometric_mean([min(1.0, ratio) for ratio in ratios])
    return (
        table([line for _, line in lines])
        + "\nMicroseconds; ^T: swapped operands. The geometric mean of the ratios is "
        + f"{geometric_mean(ratios):.3f}, and {best:.3f} with the faster kernel of each problem. {where(data)}.\n"
    )


def addresses_text() -> str:
    """Returns by how much `keep_shared_addresses` changes the times of default kernels with short k steps."""
    data = result("shared_addresses")
    by_size: dict[tuple[int, int, int], dict[bool, list[float]]] = {}
    for cell in cells_of(data):
        if not cell["elect_producer"]:
            times = by_size.setdefault((cell["m"], cell["n"], cell["k"]), {False: [], True: []})
            times[cell["keep_shared_addresses"]].append(cell["microseconds"])
    ratios = [statistics.median(times[True]) / statistics.median(times[False]) for times in by_size.values()]
    faster = sum(ratio < 1 for ratio in ratios)
    return (
        f"Of {len(ratios)} default kernels with short k steps, {faster} take less time: {min(ratios):.3f} to "
        f"{max(ratios):.3f} of the time with casts, {geometric_mean(ratios):.3f} in the geometric mean "
        f"(`shared_addresses.json`). {data['card']['name']}, {data['date'][:10]}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {"elected producers": elected_table, "shared addresses": addresses_text}
