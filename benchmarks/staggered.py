"""Times kernels of cooperative consumers that end a tile together, and one after the other (knob `stagger`).

Drawn problems (`drawn_forms.py`) and those of `figures.py` whose kernel has two or three cooperative consumers by the
default knobs, each without `stagger`, with one step, and with one step less than the stages of the pipeline, beside the
first library call.

Where MLIR and ptxas are, and then on the machine with the GPU, with PyTorch:

    python benchmarks/staggered.py build FOLDER
    python benchmarks/staggered.py measure FOLDER RESULT.json
"""

from __future__ import annotations

import argparse
import functools
import json
from pathlib import Path
from typing import Any

import drawn_forms
import duel
import stepladder
from common import run, write_result
from drawn_forms import BURST, LARGEST_DIFFERENCE, payload
from figures import FIGURES
from form_libraries import libraries
from forms import Form, draw
from fused_epilogues import PIPELINE, TARGET
from halves import halves_parser, main_of_halves
from stepladder.measure.timing import Contestant
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError

SEED, COUNT = 20261201, 60
# The problems that had such kernels when their default knobs were those without `stagger`.
_FORMS = (
    "mk,nk->mn relu, k = 2128, m = 232, n = 6600",
    "km,kn->mn, k = 560, m = 1904, n = 856",
    "mk,kn->mn bias_relu, k = 2800, m = 1680, n = 3760",
    "kmp,kn->mpn, k = 1040, m = 1104, n = 216, p = 8",
    "bmk,kn->bmn, b = 17, k = 2032, m = 232, n = 1600",
    "km,kn->mn, k = 1192, m = 1520, n = 2664",
    "mk,kn->mn add_relu, k = 512, m = 1144, n = 568",
    "mk,nk->mn, m = 3072, n = 1024, k = 1024",
    "mk,nk->mn, m = 3072, n = 1024, k = 4096",
    "mkl,lkn->mn, m = 2048, n = 2048, k = 32, l = 64",
    "mkl,lkn->mn, m = 2048, n = 2048, k = 64, l = 32",
    "mkl,lkn->mn, m = 3072, n = 1024, k = 64, l = 64",
    "mkl,lkn->mn, m = 4096, n = 2048, k = 128, l = 64",
    "mkl,lkn->mn, m = 4096, n = 4096, k = 64, l = 64",
)
_PLAN = "staggered.json"
_MAX = 7


def forms() -> list[Form]:
    """Returns the problems."""
    by_name = {form.name: form for form in (*draw(COUNT, SEED), *(form for part in FIGURES.values() for form in part))}
    return [by_name[name] for name in _FORMS]


def build(folder: Path) -> None:
    """Builds the kernels of all problems.

    Args:
        folder: of the bundles and of what each holds.
    """
    from stepladder.pipeline.any_payload import build_any
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    plan: dict[str, dict[str, int]] = {}
    for number, form in enumerate(forms()):
        with mlir_context():
            build_any(payload(form), "form.mlir", Request(PIPELINE, {"target": TARGET}, tuned=True)).write(folder / "0")
        knobs = next(
            result["knobs"]
            for path in (folder / "0").rglob("manifest.json")
            if "knobs" in (result := json.loads(path.read_text()))
        )
        for steps in sorted({0, 1, min(knobs["stages"] - 1, _MAX)}):
            name = f"{number}_{steps}"
            with mlir_context():
                request = Request(PIPELINE, {**knobs, "stagger": steps})
                build_any(payload(form), "form.mlir", request).write(folder / name)
            plan.setdefault(str(number), {})[name] = steps
    (folder / _PLAN).write_text(json.dumps(plan) + "\n")


def measure_form(device: Device, folder: Path, form: Form, planned: dict[str, int]) -> dict[str, Any]:
    """Checks and times the kernels of a problem.

    Args:
        device: the GPU.
        folder: of the bundles.
        form: the problem.
        planned: name of a bundle -> steps that wait.

    Returns:
        The entry of the result: ratios to the library call by these steps.

    Raises:
        StepladderError: the numbers are wrong.
    """
    import torch  # pyright: ignore[reportMissingImports]

    operands = drawn_forms.operands_of(form)
    a, b, c, *rest = operands
    stream = torch.cuda.ExternalStream(device.stream, device=c.device)
    kernels = []
    for name, steps in planned.items():
        enqueue = functools.partial(stepladder.load(folder / name), a, b, *rest, out=c, stream=stream)
        torch.cuda.synchronize()
        with duel.watched(form.name):
            enqueue()
            device.synchronize()
        if drawn_forms.difference_of(form, operands) > LARGEST_DIFFERENCE:
            raise StepladderError(f"{form.name}: wrong with stagger = {steps}")
        kernels.append(Contestant(str(steps), form.flops, enqueue))
    for operand in (a, b, *rest):
        operand.normal_()
    torch.cuda.synchronize()
    baseline, call = next(iter(libraries(form, operands, stream).items()))
    contest = duel.Duel(device, Contestant(baseline, form.flops, call), kernels)
    try:
        measured = contest.run(BURST, 5)
    finally:
        contest.free()
    ratios = {steps: entry["ratio_spread"]["median"] for steps, entry in measured["kernels"].items()}
    return {"form": form.name, "baseline": baseline, "ratios": ratios}


def measure(folder: Path, out: Path) -> None:
    """Measures all problems, and writes the result after each.

    Args:
        folder: of the bundles.
        out: file of the result.
    """
    plan = json.loads((folder / _PLAN).read_text())
    with Device() as device:
        result = {**duel.header(device), "seed": SEED, "settings": []}
        for number, form in enumerate(forms()):
            result["settings"].append(measure_form(device, folder, form, plan[str(number)]))
            print(result["settings"][-1], flush=True)
            write_result(out, result)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return halves_parser(__doc__)


main = main_of_halves(make_parser, build, measure)


if __name__ == "__main__":
    run(main)
