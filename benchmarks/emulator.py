"""Runs each variant of the ablations on the emulator, and writes its counters and times: docs/results/emulator.json.

Needs no GPU; the seconds are those of the machine that runs it:

    python benchmarks/emulator.py
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import origin, result_parser, run, write_result
from stepladder.emulator import matmul
from stepladder.emulator.hardware.counters import Counters
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import ablation
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request

SIZE = (256, 256, 128)
ABLATIONS = ("wmma", "mma_sync")
# Two tiles each way and a few along k, of the tiles that a profiler counted at 8192^3.
PROFILED = {"wmma": ("128x256x64", (256, 256, 256)), "mma_sync": ("256x128x64", (512, 256, 256))}
PROFILED_SIZE = 8192
LOADS = ("ldmatrix", "load_matrix", "wmma.load")


def checked_steps(request: Request, text: str) -> list[matmul.StepReport]:
    """Returns the reports of all steps of a pipeline, the input's first.

    Args:
        request: of the pipeline and its knobs.
        text: the payload.
    """
    reports: list[matmul.StepReport] = []
    with mlir_context():
        matmul.check_steps(text, "payload.mlir", request, reports.append)
    return reports


def last_that_ran(reports: list[matmul.StepReport]) -> matmul.StepReport:
    """Returns the report of the last step that the emulator executes; its numbers are right.

    Args:
        reports: of all steps, in order.
    """
    last = next(report for report in reversed(reports) if report.passed is not None)
    assert last.passed, f"{last.step}: {last.check and last.check.describe()}"
    return last


def counters_of(reports: list[matmul.StepReport]) -> Counters:
    """Returns what the last step that the emulator executes cost.

    Args:
        reports: of all steps, in order.
    """
    counters = last_that_ran(reports).counters
    assert counters is not None
    return counters


def conflicts_of_loads(name: str) -> dict[str, int]:
    """Returns the bank conflicts of fragment loads for each variant of an ablation, scaled to the profiled size.

    Args:
        name: of the ablation.
    """
    tile, size = PROFILED[name]
    knobs: dict[str, int | str] = dict(zip(("block_m", "block_n", "block_k"), map(int, tile.split("x"))))
    variants = ablation.ABLATIONS[name]
    scale = PROFILED_SIZE**3 // math.prod(size)
    conflicts = {}
    for title, without in variants.variants.items():
        request = Request(variants.pipeline, variants.settings_of(without, knobs), without=without)
        traffic = counters_of(checked_steps(request, matmul_text(*size))).traffic.values()
        conflicts[title] = scale * sum(
            row.conflicts
            for row in traffic
            if row.space == "shared" and row.kind == "load" and any(load in row.op for load in LOADS)
        )
    return conflicts


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return result_parser(__doc__, "emulator")


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the ablations and writes the result.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    text = matmul_text(*SIZE)
    ablations: dict[str, list] = {}
    seconds: dict[str, dict[str, float]] = {}
    for name in ABLATIONS:
        variants = ablation.ABLATIONS[name]
        ablations[name] = []
        for title, without in variants.variants.items():
            reports = checked_steps(Request(variants.pipeline, variants.settings, without=without), text)
            last = last_that_ran(reports)
            counted = counters_of(reports).as_dict()
            ablations[name].append(
                {
                    "title": title,
                    "step": last.step,
                    **{key: counted[key] for key in ("global", "shared", "instructions", "multiply_adds", "barriers")},
                }
            )
            # The last variant is the whole pipeline.
            seconds[name] = {report.step: round(report.seconds, 3) for report in reports if report.passed is not None}
    result = {
        **origin(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "size": SIZE,
        "ablations": ablations,
        "seconds": seconds,
        "profiled_size": PROFILED_SIZE,
        "profiled": {
            name: {"tile": PROFILED[name][0], "size": PROFILED[name][1], "conflicts_of_loads": conflicts_of_loads(name)}
            for name in ABLATIONS
        },
    }
    write_result(args.result, result)


if __name__ == "__main__":
    run(main)
