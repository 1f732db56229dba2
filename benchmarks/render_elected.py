"""Producers of short k steps: a thread that is elected beside one that is chosen by its number, and addresses in shared
memory as they are beside those that are cast."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from statistics import geometric_mean

from common import cells_of, result, where


def elected_text() -> str:
    """Returns by how much `elect_producer` changes the times of default kernels with short k steps."""
    data = result("elected_producers")
    by_size: dict[tuple[int, int, int], dict[bool, list[float]]] = {}
    for cell in cells_of(data):
        times = by_size.setdefault((cell["m"], cell["n"], cell["k"]), {False: [], True: []})
        times[cell["elect_producer"]].append(cell["microseconds"])
    ratios = [statistics.median(times[True]) / statistics.median(times[False]) for times in by_size.values()]
    best = geometric_mean([min(1.0, ratio) for ratio in ratios])
    return (
        f"Of {len(ratios)} default kernels with short k steps, {sum(ratio < 1 for ratio in ratios)} take less time: "
        f"{min(ratios):.3f} to {max(ratios):.3f} of the time without, {geometric_mean(ratios):.3f} in the geometric "
        f"mean, and {best:.3f} with the faster kernel of each problem. {where(data)}.\n"
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


REGIONS: dict[str, Callable[[], str]] = {"elected producers": elected_text, "shared addresses": addresses_text}
