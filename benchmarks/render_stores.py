"""The table of choices with and without the terms of the cost model for crowded tiles and for stores of a large C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from common import result, table, where
from fit_cost_model import usable
from fit_data import Data
from measured_kernels import kernels_of, results_on
from stepladder.pipeline.cost_model import gpu as gpus
from stepladder.pipeline.cost_model.constants import WARPGROUP

_RESULTS = ("forms_tall", "forms_outer")
_NEUTRAL = {
    "crowd": 0.0,
    "hbm_store": 1.0,
    "hbm_odd_store": 0.0,
    "hbm_store_rows": 0.0,
    "hbm_alternating_store": 0.0,
}


def stores_table() -> str:
    """Returns how fast first choices are, of the fastest timed setting of each problem, and mean errors of times."""
    gpu, rows = gpus.load("h200"), []
    neutral = replace(gpu, constants={**gpu.constants, WARPGROUP: gpu.constants[WARPGROUP] | _NEUTRAL})
    for name in _RESULTS:
        data = Data(usable(kernels_of(results_on("h200") / f"{name}.json")), gpu)
        without, judged = (data.judge(data.predict(one)) for one in (neutral, gpu))
        rows.append(
            {
                "settings": f"`{name.removeprefix('forms_')}`",
                "problems": f"{judged['problems']:.0f}",
                "kernels": str(len(data.kernels)),
                "first / fastest without": f"{without['first_of_best']:.3f}",
                "with": f"{judged['first_of_best']:.3f}",
                "minimum without": f"{without['first_of_best_least']:.3f}",
                "minimum with": f"{judged['first_of_best_least']:.3f}",
                "mean error of a time without": f"{without['mean_error_of_a_time']:.0%}",
                "error with": f"{judged['mean_error_of_a_time']:.0%}",
            }
        )
    return table(rows) + f"\nGeometric means, without and with the constants. {where(result(_RESULTS[0]))}.\n"


REGIONS: dict[str, Callable[[], str]] = {"stores": stores_table}
