"""Reports how well knobs are chosen, from the results of `model_choice.py`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from common import cells_of

# Choices are numbered: the settings of the model from 0 on, and before them the one that `stepladder compile` takes.
DEFAULT = -1
# Settings of the model that every problem is measured with, and that a problem is measured with at most.
FIRST, MAX = 4, 48


def _line(name: str, values: Sequence[float]) -> str:
    ordered = sorted(values)
    return (
        f"{name:38} {len(values):4} problems: geometric mean {geometric_mean(values):.3f}, least {ordered[0]:.3f}, "
        f"10th percentile {ordered[len(ordered) // 10]:.3f}, at least 1: {sum(value >= 1 for value in values)}"
    )


def report(args: argparse.Namespace) -> None:
    """Prints how good the choices of results are.

    Args:
        args: of the command line.
    """
    for path in args.results:
        data = json.loads(Path(path).read_text())
        cells = cells_of(data)
        problems: dict[tuple[int, int, int], list[dict[str, Any]]] = {}
        for cell in cells:
            problems.setdefault((cell["m"], cell["n"], cell["k"]), []).append(cell)
        print(
            f"{path}: {data['problem']['a_type']} -> {data['problem']['c_type']}, {data['card']['name']}, "
            f"{data['date'][:10]}"
        )
        for part in (lambda cell: True, *(_of_kind(kind) for kind in ("large", "eights", "layers"))):
            of_part = [cells_of_size for cells_of_size in problems.values() if part(cells_of_size[0])]
            if of_part:
                _report(of_part, "all" if len(of_part) == len(problems) else of_part[0][0]["kind"])
        losers = sorted(
            (best[1], size) for size, cells_of_size in problems.items() if (best := _best(cells_of_size, (DEFAULT,)))
        )
        print("  losers: " + ", ".join(f"{m}x{n}x{k} {ratio:.2f}" for ratio, (m, n, k) in losers[:12]))


def _of_kind(kind: str) -> Callable[[dict[str, Any]], bool]:
    return lambda cell: cell["kind"] == kind


def _best(cells: list[dict[str, Any]], places: Sequence[int]) -> tuple[float, float] | None:
    """Returns the shortest time of some choices, and the ratio of cuBLAS's time to it; None if none was measured."""
    times = [
        (cell["microseconds"], cell["cublas_microseconds"] / cell["microseconds"])
        for cell in cells
        if cell["place"] in places
    ]
    return min(times) if times else None


def _report(problems: list[list[dict[str, Any]]], name: str) -> None:
    places = {
        "default": (DEFAULT,),
        "first of the model": (0,),
        "best of its first four": range(FIRST),
        "best that was measured": range(DEFAULT, MAX),
    }
    for title, of_title in places.items():
        if ratios := [best[1] for cells in problems if (best := _best(cells, tuple(of_title)))]:
            print("  " + _line(f"{name}, {title}, of cuBLAS", ratios))
    with_several = [cells for cells in problems if len(cells) > FIRST + 2]
    for title in ("first of the model", "best of its first four") if with_several else ():
        fractions = [
            best[0] / first[0]
            for cells in with_several
            if (first := _best(cells, tuple(places[title]))) and (best := _best(cells, range(DEFAULT, MAX)))
        ]
        print("  " + _line(f"{name}, {title}, of the best", fractions))
