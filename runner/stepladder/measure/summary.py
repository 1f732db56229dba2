"""Summaries of many bundles beside a baseline: geometric mean, quantiles, the worst, and which are slower."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from stepladder.runtime.bundle.problem_fields import problem_of

SCHEMA_VERSION = 1
# Fractions of the bundles whose ratio is at most the quantile.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def quantile(values: Sequence[float], fraction: float) -> float:
    """Returns a quantile of one value or more, linearly interpolated between the two nearest.

    Args:
        values: in any order.
        fraction: 0 for the least value to 1 for the largest.
    """
    ordered = sorted(values)
    place = fraction * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def summarize_bundles(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Summarizes results of `bench_bundles` by mode.

    Args:
        results: each of one problem, with one or more bundles, and with a baseline.

    Returns:
        JSON data, by mode: `count`, `geometric_mean`, `quantiles` (fraction as text -> ratio), `worst`, and `losers`:
        the bundles slower than the baseline, the slowest first, each with its `bundle`, `problem` and `ratio`.
    """
    summary: dict[str, Any] = {}
    modes = dict.fromkeys(mode for result in results for mode in result["modes"])
    for mode in modes:
        entries = [
            {
                "bundle": name,
                "problem": problem_of(result["problem"]).describe(),
                "ratio": ratios[result["baseline"]["name"]]["spread"]["median"],
            }
            for result in results
            for name, ratios in result["modes"][mode]["ratios"].items()
            if name in result["bundles"]
        ]
        ratios = [entry["ratio"] for entry in entries]
        entries.sort(key=lambda entry: entry["ratio"])
        summary[mode] = {
            "count": len(entries),
            "geometric_mean": statistics.geometric_mean(ratios),
            "quantiles": {str(fraction): quantile(ratios, fraction) for fraction in QUANTILES},
            "worst": entries[0],
            "losers": [entry for entry in entries if entry["ratio"] < 1],
        }
    return summary


def several(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns results of several problems as JSON data: `results`, each as of one problem, and where they have a
    baseline `summary`.

    Args:
        results: of `bench_bundles`, one a problem.
    """
    data: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "results": list(results)}
    if all("baseline" in result for result in results):
        data["summary"] = summarize_bundles(results)
    return data


def summary_rows(summary: dict[str, Any]) -> list[dict[str, object]]:
    """Returns a summary as rows of a table, one per mode; keys are column titles.

    Args:
        summary: of `several`.
    """
    return [
        {
            "mode": mode,
            "bundles": part["count"],
            "geometric mean": f"{part['geometric_mean']:.3f}",
            **{f"{float(name):.0%}": f"{value:.3f}" for name, value in part["quantiles"].items()},
            "worst": f"{part['worst']['ratio']:.3f}",
            "below 1": len(part["losers"]),
        }
        for mode, part in summary.items()
    ]


def loser_rows(summary: dict[str, Any]) -> list[dict[str, object]]:
    """Returns the bundles slower than the baseline as rows of a table, the slowest first.

    Args:
        summary: of `several`.
    """
    return [
        {"mode": mode, "ratio": f"{entry['ratio']:.3f}", "bundle": entry["bundle"], "problem": entry["problem"]}
        for mode, part in summary.items()
        for entry in part["losers"]
    ]
