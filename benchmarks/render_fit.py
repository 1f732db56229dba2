"""The tables of how well fitted constants of the cost model choose among measured settings."""

from __future__ import annotations

import json
from collections.abc import Callable

from common import table
from stepladder.pipeline.cost_model import gpu


def fit_table(key: str = "h200") -> str:
    """Returns how well fitted constants choose among measured settings.

    Args:
        key: name of the GPU's file.
    """
    fitted = json.loads(gpu.path_of(key).read_text())["fitted"]
    rows = []
    families = {"warpgroup": "`wgmma`", "warp": "`mma_sync` and `wmma`"}
    for family, name in ((family, name) for family, name in families.items() if family in fitted):
        for part, title in (("held_out", "held out"), ("all", "fitted to all")):
            judged = fitted[family][part]
            rows.append(
                {
                    "family": f"{name}, {title}",
                    "problems": str(judged["problems"]),
                    "first / fastest": f"{judged['first_of_best']:.3f}",
                    "best of four / fastest": f"{judged['best_of_four_of_best']:.3f}",
                    "first / cuBLAS": f"{judged['first_of_cublas']:.3f}",
                    "best of four / cuBLAS": f"{judged['best_of_four_of_cublas']:.3f}",
                    "mean error of a time": f"{judged['mean_error_of_a_time']:.0%}",
                }
            )
    return table(rows)


REGIONS: dict[str, Callable[[], str]] = {"fit": fit_table}
