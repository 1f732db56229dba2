"""The tables of products of fp8 and i8: errors of their sums, and speed beside cuBLASLt."""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

from common import cells_of, result, table, where

# Name of a result: what the table calls it.
DRAWS = {
    "fp8/fresh_promoted": "fp8 -> bf16, sums of f32",
    "fp8/fresh_fast": "fp8 -> bf16, `fast_accum`",
    "fp8/fresh_promoted_f32": "fp8 -> f32, sums of f32",
    "fp8/fresh_i8": "i8 -> i32",
}
H100_DRAWS = {f"h100/{name}": title for name, title in DRAWS.items() if name != "fp8/fresh_promoted_f32"}
# Pipeline and sums: what the table calls them.
SUMS = {
    ("wgmma", "promoted"): "`wgmma`, sums of f32",
    ("wgmma", "fast"): "`wgmma`, `fast_accum`",
    ("mma_sync", "fast"): "`mma_sync`, `fast_accum`",
}


def sums_table() -> str:
    """Returns the errors of sums of fp8 by k."""
    data = result("fp8/sums")
    rows = []
    for mean in sorted({row["mean"] for row in data["rows"]}):
        for k in sorted({row["k"] for row in data["rows"]}):
            rows_of_k = [row for row in data["rows"] if (row["mean"], row["k"]) == (mean, k)]
            by_sums = {(row["pipeline"], row["sums"]): row for row in rows_of_k}
            cells = {"mean of A and B": str(mean), "k": str(k)}
            cells |= {title: f"{by_sums[sums]['error']:.1e}" for sums, title in SUMS.items()}
            for sums in ("promoted", "fast"):
                title = "cuBLASLt" if sums == "promoted" else "cuBLASLt, fast accumulation"
                cells[title] = f"{by_sums['wgmma', sums]['cublaslt_error']:.1e}"
            rows.append(cells)
    return table(rows) + f"\nNorm of the error over that of the product, f8E4M3FN -> f32, m = n = 512. {where(data)}.\n"


def choices_table(draws: dict[str, str]) -> str:
    """Returns how the default choices on random problems compare with cuBLASLt.

    Args:
        draws: name of a result -> what the table calls it.
    """
    rows = []
    data: dict[str, Any] = {}
    for name, title in draws.items():
        data = result(name)
        cells = cells_of(data)
        ratios = sorted(cell["cublas_microseconds"] / cell["microseconds"] for cell in cells)
        rows.append(
            {
                "problems": title,
                "": str(len(ratios)),
                "geometric mean": f"{geometric_mean(ratios):.3f}",
                "10th percentile": f"{ratios[len(ratios) // 10]:.3f}",
                "minimum": f"{ratios[0]:.3f}",
                "at least 1": str(sum(ratio >= 1 for ratio in ratios)),
            }
        )
    return table(rows) + f"\nRatios to cuBLASLt with the same sums, in turn; bursts. {where(data)}.\n"


REGIONS: dict[str, Callable[[], str]] = {
    "fp8 sums": sums_table,
    "fp8 choices": lambda: choices_table(DRAWS),
    "h100 fp8 choices": lambda: choices_table(H100_DRAWS),
}
