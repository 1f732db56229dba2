"""`stepladder tune`: measures the best settings by the cost model, and stores the fastest."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli.options import (
    Formatter,
    add_json_option,
    add_model_options,
    add_pipeline_options,
    add_plugin_options,
    database_of,
    flat,
    knob_settings,
    positive,
    text_for_people,
)
from stepladder.runtime.errors import OK, StepladderError

if TYPE_CHECKING:
    from stepladder.measure.tuning.database import Entry
    from stepladder.pipeline.functions.matmul_parts import Part

_EPILOG = """\
`tune PAYLOAD...` builds and measures on one machine. On two machines, `tune build` needs no GPU, and `tune measure`
needs no MLIR: copy the folder between them. If the command is interrupted, built kernels and measured problems are
kept, and the same command continues from there.

--json lists every setting that was tried (`candidates`): knobs, predicted and measured time, and the check of results.

exit status: 0 measured, or built; 1 no kernel gives right results; 2 a payload, an option or a folder is not
acceptable; 3 nothing was executed (no GPU or driver, or a GPU that the kernels are not for).

examples:
  stepladder tune matmul.mlir --top 4 --json tuned.json
  stepladder tune build matmul.mlir --pipeline wgmma --top 4 --folder plan
  stepladder tune measure --folder plan --database tuning.json
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "tune",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="measure the best knob settings of payloads, and store the fastest",
        description="Builds the kernels of the best predicted knob settings of payloads, measures them beside cuBLAS "
        "on the GPU, and stores the fastest settings in a tuning database, which `stepladder compile` reads.",
    )
    parser.add_argument(
        "words",
        nargs="+",
        metavar="[build|measure] PAYLOAD.mlir",
        help="`build` or `measure` for one half only (default: both), then the payloads; each matmul of a function is "
        "tuned separately",
    )
    add_pipeline_options(parser, required=False, default="auto")
    parser.add_argument("--target", metavar="SM", help="GPU architecture, such as sm_80 or sm_90a (the knob 'target')")
    add_model_options(parser)
    parser.add_argument(
        "--top", type=positive, default=8, metavar="N", help="settings to build and measure per matmul (default: 8)"
    )
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        help="folder of the built kernels (default: one in the cache; required by build and measure)",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="kernels to build at once (default: one per core)",
    )
    add_json_option(parser)
    parser.add_argument("--again", action="store_true", help="also measure problems that the database has")
    add_plugin_options(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.
    """
    phase = args.words[0] if args.words[0] in ("build", "measure") else ""
    payloads = args.words[1:] if phase else args.words
    _check(args, phase, payloads)
    folder = Path(args.folder) if args.folder else None
    if phase != "build":
        _check_outputs(args)
    if phase != "measure":
        folder = _build(args, payloads, folder, measured=not phase)
    if phase == "build":
        print(f"{folder}: kernels built; on a machine with a GPU: stepladder tune measure --folder {folder}")
    if phase != "build" and folder is not None:
        _measure(args, folder)
    return OK


def _check(args: argparse.Namespace, phase: str, payloads: list[str]) -> None:
    """Raises StepladderError for options that do not go together."""
    if phase == "build" and args.json:
        raise StepladderError("tune build has no measurements for --json; give it to `tune measure`")
    if phase and not args.folder:
        raise StepladderError(
            f"tune {phase} requires --folder, where `tune build` writes kernels and `tune measure` reads them"
        )
    if phase == "measure" and payloads:
        raise StepladderError(f"tune measure takes no payloads, got {', '.join(payloads)}: the kernels are in --folder")
    if phase != "measure" and not payloads:
        raise StepladderError("tune build requires a payload")


def _check_outputs(args: argparse.Namespace) -> None:
    """Raises StepladderError where the database or the file of --json cannot be written."""
    from stepladder.measure.tuning.database import Database
    from stepladder.runtime.files import check_writable

    if args.json:
        check_writable(args.json)
    Database(database_of(args)).check_writable()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _check_gpu(target: str) -> None:
    """Raises StepladderError where there is no GPU that kernels for a target run on."""
    from stepladder.runtime.device import Device
    from stepladder.runtime.images import image_for

    with Device() as device:
        image_for(target, device.capability, device.name)


def _build(args: argparse.Namespace, payloads: list[str], folder: Path | None, *, measured: bool) -> Path:
    from stepladder.extension import plugins
    from stepladder.payload import stablehlo
    from stepladder.pipeline import tuning_build
    from stepladder.pipeline.codegen.toolchain import find_tool
    from stepladder.pipeline.context import bound_text, mlir_context
    from stepladder.pipeline.explanation import common_pipeline
    from stepladder.pipeline.functions.matmul_parts import matmul_parts
    from stepladder.pipeline.request import Request
    from stepladder.runtime.files import read_text
    from stepladder.runtime.resources import cache_dir

    plugins.load_files(args.plugins)
    find_tool("ptxas")
    request = Request(
        args.pipeline,
        knob_settings(args),
        without=flat(args.without),
        gpu=args.gpu,
        function=args.function,
        constant_weights=True,
    )
    modules: list[tuple[str, str]] = []
    for text, name in map(read_text, payloads):
        with mlir_context():
            modules.append((bound_text(stablehlo.lowered(text, name), name, dict(args.sizes), args.function), name))
    with mlir_context():
        request = replace(request, pipeline=common_pipeline(modules, request))
    parts: list[Part] = []
    for text, name in modules:
        with mlir_context():
            parts += matmul_parts(text, name, request)
    plan = tuning_build.make_plan(parts, args.top, _say)
    if measured:
        _check_gpu(plan.target)
    folder = folder or cache_dir() / "tuning" / tuning_build.plan_digest(plan)
    tuning_build.build_plan(folder, plan, parts, args.jobs, _say)
    return folder


def _measure(args: argparse.Namespace, folder: Path) -> None:
    from stepladder.measure.tuning.database import Database
    from stepladder.measure.tuning.measuring import measure_plan
    from stepladder.measure.tuning.plan import read_plan
    from stepladder.runtime.files import write_json

    path = database_of(args)
    entries = measure_plan(folder, Database(path), again=args.again, progress=_say)
    names = [problem.name for problem in read_plan(folder).problems]
    with text_for_people(args.json):
        _print(names, entries)
        print(f"{path}: {len(entries)} problems tuned")
    if args.json:
        write_json(args.json, [{"payload": name, **asdict(entry)} for name, entry in zip(names, entries)])


def _print(names: list[str], entries: list[Entry]) -> None:
    """Prints a row for each payload, and the mean of the ratios to cuBLAS."""
    from stepladder.cli.candidates import knobs_text
    from stepladder.cli.tables import print_table

    rows = [
        {
            "payload": name,
            "us": f"{entry.microseconds:.1f}",
            "of cuBLAS": "" if entry.of_cublas is None else f"{entry.of_cublas:.3f}",
            "settings": entry.measured,
            "knobs": knobs_text(entry.knobs),
        }
        for name, entry in zip(names, entries)
    ]
    print_table(rows, title=f"The fastest settings on {', '.join(dict.fromkeys(entry.gpu for entry in entries))}")
    ratios = [entry.of_cublas for entry in entries if entry.of_cublas]
    if len(ratios) > 1:
        print(f"of cuBLAS: geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
