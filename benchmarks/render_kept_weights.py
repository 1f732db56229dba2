"""Kernels that keep a part of the larger operand in the L2 cache, beside the same ones without the knob."""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

from common import cells_of, result, table, where

_FEW = "few rows"


def _kinds() -> dict[tuple[str, bool], list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Returns pairs of kernels without the knob and with the part that the cost model says, by kind and by whether the
    operands change from launch to launch; those that differ in `dependent_launch` only are of the first launch."""
    data = result("kept_weights")
    by_kind: dict[tuple[str, bool], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    first: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in cells_of(data):
        key = (cell["m"], cell["n"], cell["k"], cell["rotated"])
        if key not in first:
            first[key] = cell
        elif cell["kept_weights"] and "pair" not in first[key]:
            first[key]["pair"] = True
            kind = _FEW if cell["kind"] == _FEW else "more rows"
            by_kind.setdefault((kind, cell["rotated"]), []).append((first[key], cell))
    return by_kind


def kept_table() -> str:
    """Returns the times of default kernels without and with `kept_weights`, and their ratios to cuBLAS."""
    data = result("kept_weights")
    lines = []
    for (kind, rotated), pairs in _kinds().items():
        ratios = [after["microseconds"] / before["microseconds"] for before, after in pairs]
        to_cublas = [
            geometric_mean([pair[place]["cublas_microseconds"] / pair[place]["microseconds"] for pair in pairs])
            for place in (0, 1)
        ]
        lines.append(
            {
                "problems": kind,
                "": str(len(pairs)),
                "operands": "others at each launch" if rotated else "the same",
                "ratio of times": f"{geometric_mean(ratios):.3f}",
                "minimum": f"{min(ratios):.3f}",
                "maximum": f"{max(ratios):.3f}",
                "of cuBLAS without": f"{to_cublas[0]:.3f}",
                "with": f"{to_cublas[1]:.3f}",
            }
        )
    return table(lines) + f"\nGeometric means; times relative to those without the knob. {where(data)}.\n"


REGIONS: dict[str, Callable[[], str]] = {"kept weights": kept_table}
