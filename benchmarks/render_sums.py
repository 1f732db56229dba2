"""The tables of split-K kernels that send partial sums, and of the same ones that stored them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

from common import cells_of, result, table, where


def sums_table() -> str:
    """Returns how much faster kernels are that send partial sums by `st.async`, by the layout of weights and rows."""
    data = result("partial_sums")
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for cell in cells_of(data, "settings"):
        groups.setdefault((cell["b_layout"], cell["m"]), []).append(cell)
    rows = []
    for (layout, m), cells in sorted(groups.items(), key=lambda group: (group[0][0] != "row", group[0][1])):
        ratios = sorted(cell["stored"] / cell["sent"] for cell in cells)
        rows.append(
            {
                "weights": f"{layout}-major",
                "rows": str(m),
                "products": str(len(cells)),
                "stored / sent": f"{geometric_mean(ratios):.3f}",
                "minimum": f"{ratios[0]:.3f}",
                "maximum": f"{ratios[-1]:.3f}",
            }
        )
    return table(rows) + f"\nTimes of default choices that split k, bf16 -> bf16, in turn. {where(data)}.\n"


def _sums_of_thread(cell: dict[str, Any]) -> float:
    """Returns how many elements of a tile a thread accumulates."""
    return -(-cell["block_m"] // 64) * 64 * cell["block_n"] / (128 * cell["consumer_warpgroups"])


def tiles_table() -> str:
    """Returns how much faster larger tiles are whose blocks send partial sums, by the sums of a thread."""
    data = result("partial_sums_tiles")
    cells = cells_of(data, "settings")
    rows = []
    for title, least, most, fused in (
        ("at most 32", 0, 32, False),
        ("40 to 64", 33, 64, False),
        ("65 to 104", 65, 104, False),
        ("more", 105, 256, False),
        ("56 to 128, with a bias or a matrix to add", 0, 256, True),
    ):
        selected = [
            cell for cell in cells if least <= _sums_of_thread(cell) <= most and bool(cell["epilogue"]) == fused
        ]
        row = {"sums of a thread": title, "kernels": str(len(selected))}
        for name, suffix in (("operands in L2", ""), ("rotated", "_rotated")):
            ratios = sorted(cell[f"stored{suffix}"] / cell[f"sent{suffix}"] for cell in selected)
            row[name] = f"{geometric_mean(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        rows.append(row)
    return table(rows) + f"\nRatios stored / sent of times, in turn. {where(data)}.\n"


def fused_table() -> str:
    """Returns how much faster kernels of few rows are that send partial sums and add something to the product."""
    data = result("partial_sums_fused")
    ratios: dict[str, list[float]] = {}
    for cell in cells_of(data, "settings"):
        ratios.setdefault(cell["epilogue"], []).append(cell["stored"] / cell["sent"])
    rows = [
        {
            "added": added,
            "kernels": str(len(values)),
            "stored / sent": f"{geometric_mean(values):.3f} ({min(values):.3f} to {max(values):.3f})",
        }
        for added, values in ratios.items()
    ]
    return table(rows) + f"\nRatios of times, 1 to 32 rows, bf16 -> bf16, in turn. {where(data)}.\n"


REGIONS: dict[str, Callable[[], str]] = {
    "partial sums": sums_table,
    "partial sums fused": fused_table,
    "partial sums of tiles": tiles_table,
}
