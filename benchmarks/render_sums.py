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


REGIONS: dict[str, Callable[[], str]] = {
    "partial sums": sums_table,
}
