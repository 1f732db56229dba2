"""Times kernels of drawn forms with settings that are given, beside the best library call of each.

Where MLIR is:

    python benchmarks/form_settings.py build FOLDER --part epilogues

Where a GPU is, with PyTorch (no MLIR):

    python benchmarks/form_settings.py measure FOLDER RESULT.json

The parts are `seen`, drawn forms with batches and a column-major A more often than others, with the first settings of
the cost model that differ in more than the tile; `epilogues`, fused elementwise ops in small tiles that TMA stores or
registers store; `blocks`, the first settings for small matmuls in batches, with one block on a multiprocessor and with
two; `suspects`, drawn forms of the kinds that were slow in `seen`, with their default kernels and the first settings
that differ; `batches`, drawn batches of any bytes whose matmuls have matrices of their own, with settings as of `seen`;
`triggers`, the first settings for these, each with both launch triggers; `any`, drawn forms of all kinds, with settings
as of `seen`; `added`, drawn products to which a matrix is added, with the first settings for each number of buffers of
the epilogue; `tall`, drawn products with many rows or columns, few of the others and a short k, with settings as of
`seen`; `outer`, drawn products with a short k whose C is larger than the L2 cache, with random ones of the first
settings, numbers of buffers and orders of tiles; `few_rows`, drawn batches of matmuls with few rows, with settings as
of `seen`; and `diverse`, drawn forms of all kinds, with the first settings and the first of every other kind and tile.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

from common import main_of_parts, run, write_result
from drawn_forms import BURST, build_form, measure, microseconds_of
from duel import header
from form_parts import PARTS
from forms import Form
from halves import parser_of_parts
from stepladder.runtime.device import Device
from stepladder.runtime.processes import end_with_pool

_PLAN = "plan.json"


def build(args: argparse.Namespace) -> None:
    """Builds the kernels of a part.

    Args:
        args: of the command line.
    """
    args.folder.mkdir(parents=True, exist_ok=True)
    plan: list[dict[str, Any]] = []
    settings = list(PARTS[args.part]())
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
        jobs = [(form, args.folder / str(number), knobs) for number, (form, knobs) in enumerate(settings)]
        refusals = list(executor.map(build_form, *zip(*jobs)))
    for number, ((form, knobs), refusal) in enumerate(zip(settings, refusals)):
        if refusal:
            print(f"{form.name}: {refusal}")
            continue
        if not plan or plan[-1]["form"] != vars(form):
            plan.append({"form": vars(form), "kernels": {}})
        plan[-1]["kernels"][str(number)] = knobs
    (args.folder / _PLAN).write_text(json.dumps({"part": args.part, "problems": plan}, indent=1) + "\n")


def time_all(args: argparse.Namespace) -> None:
    """Times the kernels of a part, and writes the result.

    Args:
        args: of the command line.
    """
    plan = json.loads((args.folder / _PLAN).read_text())
    with Device() as device:
        result = header(device) | {"part": plan["part"], "rounds": args.rounds, "problems": []}
        for planned in plan["problems"]:
            form = Form(**planned["form"])
            kernels = planned["kernels"]
            paths = {number: args.folder / number for number in kernels}
            entry, ratios = measure(device, form, paths, args.rounds, replace(BURST, pause_seconds=args.pause))
            settings = [
                {"knobs": kernels[number], "ratio": ratio, "microseconds": microseconds_of(form, entry, ratio)}
                for number, ratio in ratios.items()
            ]
            result["problems"].append(entry | {"settings": settings})
            write_result(args.result, result)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser, building, measuring = parser_of_parts(__doc__, build, time_all)
    building.add_argument("--part", choices=PARTS, required=True)
    measuring.add_argument(
        "--pause",
        type=float,
        default=BURST.pause_seconds,
        metavar="SECONDS",
        help=f"before a run (default: {BURST.pause_seconds})",
    )
    return parser


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
