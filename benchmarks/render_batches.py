"""The table of choices for batches with and without the terms of the cost model for their requests to L2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest import mock

from common import result, table, where
from fit_data import Data
from forms import Form
from measured_kernels import Kernel
from stepladder.pipeline.cost_model import batches
from stepladder.pipeline.cost_model import gpu as gpus
from stepladder.pipeline.cost_model.constants import WARPGROUP

# Results with settings of batches, and the GPU that they were timed on.
_RESULTS = {
    "forms_batches": "h200",
    "forms_seen": "h200",
    "h100/forms_batches": "h100",
    "h100/forms_seen": "h100",
}
_LAYOUTS = {"bmk": "row", "bkm": "column", "bkn": "row", "bnk": "column"}


def _kernels(name: str) -> list[Kernel]:
    """Returns the timed kernels of batches whose matmuls have an A and a B of their own."""
    kernels = []
    for problem in result(name)["problems"]:
        form = Form(problem["kind"], problem["spec"], problem["sizes"], problem["epilogue"])
        layouts = [_LAYOUTS.get(operand) for operand in form.dimensions[:2]]
        if form.kind != "batched" or None in layouts:
            continue
        fields = {letter: form.sizes[letter] for letter in "mnk"} | {"batch": form.sizes["b"], "accumulate": False}
        fields |= {"a_type": "f16", "b_type": "f16", "c_type": "f16", "acc_type": "f32"}
        fields |= {"a_layout": layouts[0], "b_layout": layouts[1]}
        for setting in problem["settings"]:
            microseconds = setting["microseconds"]
            kernels.append(
                Kernel(name, fields, "wgmma", (), setting["knobs"], 0, microseconds, microseconds * setting["ratio"])
            )
    return kernels


def _judged(kernels: list[Kernel], gpu: gpus.Gpu) -> dict[str, float]:
    data = Data(kernels, gpu)
    return data.judge(data.predict(gpu))


def _without_terms(gpu: gpus.Gpu) -> gpus.Gpu:
    constants = {**gpu.constants[WARPGROUP], "between_sectors": 0.0}
    return replace(gpu, constants={**gpu.constants, WARPGROUP: constants})


def requests_table() -> str:
    """Returns how fast the model's first choices for batches are, of the fastest timed setting of each."""
    rows = []
    for name, key in _RESULTS.items():
        kernels, gpu = _kernels(name), gpus.load(key)
        with mock.patch.object(batches, "request_step", return_value=0.0):
            without = _judged(kernels, _without_terms(gpu))
        judged = _judged(kernels, gpu)
        rows.append(
            {
                "GPU": key.upper(),
                "settings": f"`{name.split('/')[-1].removeprefix('forms_')}`",
                "problems": f"{judged['problems']:.0f}",
                "kernels": str(len(kernels)),
                "first / fastest without": f"{without['first_of_best']:.3f}",
                "with": f"{judged['first_of_best']:.3f}",
                "minimum without": f"{without['first_of_best_least']:.3f}",
                "minimum with": f"{judged['first_of_best_least']:.3f}",
            }
        )
    dates = [where(result(name)) for name in ("forms_batches", "h100/forms_batches")]
    return table(rows) + f"\nGeometric means. {'; '.join(dates)}.\n"


REGIONS: dict[str, Callable[[], str]] = {"batch requests": requests_table}
