"""The tables of docs/python.md: what a call costs, and functions beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from common import result, table, where


def calls_table() -> str:
    """Returns the host time of calls, beside PyTorch's."""
    measured = result("python_calls")
    rows = [{"call": name, "us": f"{value:.1f}"} for name, value in measured["microseconds"].items()]
    what = measured["what"]
    return table(rows) + f"\n{what[0].upper()}{what[1:]}; `out` is given or allocated. {where(measured)}.\n"


def functions_table() -> str:
    """Returns the speed of whole functions beside PyTorch's."""
    measured = result("functions")
    rows = []
    for case in measured["cases"]:
        name, kind = case["model"]["name"], case["kind"].replace("_", " ")
        row = {"model": name, "function": kind, "tokens": str(case["tokens"])}
        row["us, in a graph"] = f"{median(case['us']['graph']['stepladder']):.1f}"
        # Calls of max-autotune are left out: its own graphs copy the weights, which are arguments here.
        for title, way, other in (
            ("in a graph, to eager", "graph", "eager"),
            ("in a graph, to max-autotune", "graph", "max-autotune"),
            ("calls, to eager", "calls", "eager"),
        ):
            row[title] = f"{case['ratios'][way][other]:.2f}"
        rows.append(row)
    return (
        table(rows)
        + "\nSpeed as a ratio to PyTorch in eager mode and to `torch.compile` with max-autotune, bf16, medians of 7 "
        "rounds; `calls` includes the host's work, `in a graph` is a CUDA graph of the same work. "
        f"{where(measured)}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {"calls": calls_table, "functions": functions_table}
