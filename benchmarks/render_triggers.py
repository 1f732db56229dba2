"""Kernels that let the next one begin at their exit, beside the same ones that do so early."""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

from choice_plan import KNOBS
from common import cells_of, result, table, where
from launch_triggers import HOT, PREFETCH, ROTATED, TRIGGER, TRIGGERS, WITH

_NAME = "launch_triggers"
_KEY = ("m", "n", "k", "runs", PREFETCH, *(name for name in KNOBS if name != TRIGGER))
_RUNS = {HOT: "the same", ROTATED: "others at each launch"}
_SEQUENCES = {
    "early": "waiting kernels, early trigger",
    "exit": "waiting kernels, trigger at the exit",
    "end": "without dependent launch",
    WITH: "what `compile` takes for each alone",
}


def _cells() -> list[dict[str, Any]]:
    data = result(_NAME)
    return cells_of(data)


def _pairs() -> dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Returns the chosen kernels with both triggers, early first, by the chosen trigger and by what it runs between."""
    cells = {(*(cell[name] for name in _KEY), cell[TRIGGER]): cell for cell in _cells()}
    pairs: dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for trigger in reversed(TRIGGERS):
        for runs in _RUNS:
            for cell in cells.values():
                if cell["runs"] == runs and cell[TRIGGER] == trigger and WITH in cell["chosen"].split():
                    cells_of_pair = [cells[(*(cell[name] for name in _KEY), form)] for form in TRIGGERS]
                    pairs.setdefault((trigger, runs), []).append((cells_of_pair[0], cells_of_pair[1]))
    return pairs


def trigger_table() -> str:
    """Returns the times of chosen kernels with both triggers, by the chosen one."""
    lines = []
    for (trigger, runs), pairs in _pairs().items():
        ratios = [late["microseconds"] / early["microseconds"] for early, late in pairs]
        lines.append(
            {
                "chosen": trigger,
                "problems": str(len(pairs)),
                "operands": _RUNS[runs],
                "exit / early": f"{geometric_mean(ratios):.3f}",
                "minimum": f"{min(ratios):.3f}",
                "maximum": f"{max(ratios):.3f}",
            }
        )
    data = result(_NAME)
    return table(lines) + f"\nGeometric means of times, bf16 -> bf16. {where(data)}.\n"


def sequence_table() -> str:
    """Returns the times of sequences of kernels of different problems, as parts of those with early triggers."""
    sequences = result(_NAME)["sequences"]
    lines = []
    for name, text in _SEQUENCES.items():
        ratios = [sequence["microseconds"][name] / sequence["microseconds"]["early"] for sequence in sequences]
        to_cublas = [sequence["cublas_microseconds"] / sequence["microseconds"][name] for sequence in sequences]
        lines.append(
            {
                f"{len(sequences)} sequences of four products": text,
                "time": f"{geometric_mean(ratios):.3f}",
                "minimum": f"{min(ratios):.3f}",
                "maximum": f"{max(ratios):.3f}",
                "of cuBLAS": f"{geometric_mean(to_cublas):.3f}",
            }
        )
    return table(lines) + f"\nTimes relative to those in the first line. {where(result(_NAME))}.\n"


REGIONS: dict[str, Callable[[], str]] = {
    "launch triggers": trigger_table,
    "launch trigger sequences": sequence_table,
}
