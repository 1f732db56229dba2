"""Measures how well knobs are chosen for random problems (`draw.py`), beside cuBLAS.

Where both MLIR and a GPU are, with PyTorch:

    python benchmarks/model_choice.py measure RESULT.json --types bf16-bf16 --part seen [--limit 540]
    python benchmarks/model_choice.py measure RESULT.json --types bf16-bf16 --part held-out
    python benchmarks/model_choice.py measure RESULT.json --types bf16-bf16 --part seen --everything 40
    python benchmarks/model_choice.py measure RESULT.json --part tail --variety 20
    python benchmarks/model_choice.py report RESULT.json ...

For every problem it measures the knobs that `stepladder compile` takes and the model's first four settings; with
`--everything N`, for the first N problems only, up to 48 settings that the model predicts within a factor of 1.5 of its
first; with `--variety N`, the N best of the first settings of each orientation and cluster. Kernels are built on all
cores, a group of problems at a time, compared with the result of cuBLAS, and timed in turn with it. The result is
written after every problem; the same command continues it, and starts no group after `--limit` seconds.
`fit_cost_model.py` reads these results too.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from choice_plan import COLUMNS, KNOBS, PIPELINE, TARGET, TYPES, Job, Types, for_library, payload, plan
from choice_timing import Gpu
from common import main_of_parts, new_parser, origin, run
from draw import COUNT, DRAWS, Drawn, draw, named
from measured_kernels import write_table
from model_report import DEFAULT, FIRST, MAX, report
from stepladder.runtime.processes import end_with_pool

GROUP = 30
_KEPT = "kernels.pickle"  # of a group, in its folder
WHAT = "knobs that are chosen for drawn problems, hot L2, in turn with cuBLAS, median of 3 rounds"


@dataclass(frozen=True)
class Built:
    """A kernel that was built, with its knobs and their source, or the reason why it was refused."""

    job: Job
    knobs: dict[str, int | str]
    source: str
    refused: str = ""

    @property
    def path(self) -> Path:
        """Returns the folder of the bundle."""
        return self.job.path

    @property
    def title(self) -> str:
        """Returns the problem and the knobs, for messages."""
        return f"{self.job.problem.name} {self.knobs}"


def build_one(job: Job) -> Built:
    """Builds a kernel.

    Args:
        job: the problem and its knobs.

    Returns:
        The kernel, or the reason why it is refused.
    """
    from stepladder.pipeline import build
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request
    from stepladder.runtime import bundle
    from stepladder.runtime.errors import StepladderError

    try:
        with mlir_context():
            request = Request(
                PIPELINE,
                {**job.given, **(job.knobs or {}), "target": TARGET},
                tuned=job.knobs is None,
                constant_weights=True,
            )
            built = build.build(payload(job.problem, job.types), job.problem.name, request, use_cache=False)
            bundle.write_bundle(job.path, built.manifest, built.code.cubin, built.code.ptx, {})
    except StepladderError as error:
        return Built(job, job.knobs or {}, "", error.message)
    return Built(job, dict(built.manifest.knobs), built.run.knob_source.kind)


def row_of(built: Built, microseconds: float, cublas: float) -> list[Any]:
    """Returns a row of a result.

    Args:
        built: the kernel.
        microseconds, cublas: its time and that of cuBLAS, in us.
    """
    problem, job = built.job.problem, built.job
    return [
        *problem.size,
        problem.kind,
        problem.held_out,
        job.place,
        built.source,
        *(built.knobs.get(name, "") for name in KNOBS),
        round(job.predicted, 3),
        round(microseconds, 3),
        round(cublas, 3),
    ]


def head_of(
    types: Types, card: dict[str, Any], what: str = WHAT, given: Mapping[str, int | str] | None = None
) -> dict[str, Any]:
    """Returns the head of a result.

    Args:
        types: of elements, accumulator and C, and the layouts of A and B.
        card: description of the GPU.
        what: description of the measurement.
        given: knobs of all kernels.
    """
    element, accumulator, c_type, a_layout, b_layout = types
    return {
        "schema_version": 1,
        **origin(),
        "card": card,
        "what": what,
        "problem": {
            "a_type": element,
            "b_type": element,
            "acc_type": accumulator,
            "c_type": c_type,
            "accumulate": False,
            "a_layout": a_layout,
            "b_layout": b_layout,
        },
        "pipeline": PIPELINE,
        "knobs": {"target": TARGET, **(given or {})},
    }


@dataclass(frozen=True)
class Series:
    """What to measure.

    Attributes:
        path: of the result, which is continued.
        problems: all of the series.
        types: element types and layout of all problems.
        everything: whether up to MAX settings of a problem are measured, or the first four.
        what: description of the measurement, for the result.
        rotated_bytes: as in `choice_timing.Gpu`.
        swapped: whether settings of exchanged operands are measured too.
        forms: whether the first settings of either orientation are measured.
        variety: how many of the first settings of each orientation and cluster are measured, in place of all these.
        launches: whether each of these is measured without dependent launch too.
        only_default: whether only what `compile` takes is measured; with `variety`, whether that is measured too.
        early: how many settings that load weights early are measured beside what `compile` takes; see `plan`.
        keeps_early: whether kernels that load weights early start while the launch before ends.
        given: knobs of all kernels.
    """

    path: Path
    problems: list[Drawn]
    types: Types
    everything: bool = False
    what: str = WHAT
    rotated_bytes: float = 0.0
    swapped: bool = False
    forms: bool = False
    variety: int = 0
    launches: bool = False
    only_default: bool = False
    keeps_early: bool = True
    early: int = 0
    given: Mapping[str, int | str] = field(default_factory=dict)


def groups_of(problems: Sequence[Drawn], size: int = GROUP) -> list[Sequence[Drawn]]:
    """Returns problems in groups that are built together.

    Args:
        problems: all of them.
        size: of a group.
    """
    return [problems[start : start + size] for start in range(0, len(problems), size)]


def measure_series(series: Series, args: argparse.Namespace) -> None:
    """Measures the problems that the result does not have yet, a group after the other.

    Args:
        series: what to measure.
        args: `jobs`, processes that build; `limit`, seconds after which no group starts; `build_only`, to build the
            kernels and measure nothing; `folder`, where kernels are kept, and taken from if they are there.
    """
    began = time.monotonic()
    rows = _measured(series.path)
    sizes = {tuple(row[:3]) for row in rows}
    remaining = [problem for problem in series.problems if problem.size not in sizes]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    size = max(1, GROUP * FIRST // MAX) if series.everything else GROUP
    gpu: Gpu | None = None
    head: dict[str, Any] = {}
    with ProcessPoolExecutor(args.jobs, initializer=end_with_pool) as pool, tempfile.TemporaryDirectory() as temporary:
        # The pool's processes start before the GPU is opened in this one.
        groups = groups_of(remaining, size)
        for number, group in enumerate(groups):
            if time.monotonic() - began > args.limit:
                print(f"out of time, {len(groups) - number} groups are left: the same command goes on", flush=True)
                return
            folder = Path(args.folder or temporary, str(number))
            built = kept(folder) or build_group(pool, series, group, folder)
            print(f"{len(built)} kernels built, {time.monotonic() - began:.0f} s", flush=True)
            if args.build_only:
                if not args.folder:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            if gpu is None:
                gpu = Gpu(series.rotated_bytes, keeps_early=series.keeps_early)
                head = head_of(series.types, gpu.device.describe(), series.what, series.given)
                head["card"] |= {"copied_gb_per_second": gpu.copied_gb_per_second()} if series.rotated_bytes else {}
            for problem in group:
                kernels = [kernel for kernel in built if kernel.job.problem == problem and not kernel.refused]
                rows += (
                    [
                        row_of(*measured)
                        for measured in gpu.measure(kernels, fast_accum=bool(series.given.get("fast_accum")))
                    ]
                    if kernels
                    else []
                )
                write_table(series.path, head, list(COLUMNS), rows)
            if not args.folder:
                shutil.rmtree(folder, ignore_errors=True)
            print(f"{number + 1} of {len(groups)} groups measured, {time.monotonic() - began:.0f} s", flush=True)


def _measured(path: Path) -> list[list[Any]]:
    """Returns the rows of a result that is continued, if it exists."""
    if not path.exists():
        return []
    data = json.loads(path.read_text())
    if data["columns"] != list(COLUMNS):
        raise SystemExit(f"{path}: of other columns: write another file")
    return data["rows"]


def build_group(pool: ProcessPoolExecutor, series: Series, group: Sequence[Drawn], folder: Path) -> list[Built]:
    """Builds the kernels of a group of problems, prints those that are refused, and keeps all in a folder.

    Args:
        pool: of processes.
        series: what to measure.
        group: its problems.
        folder: of the kernels.

    Returns:
        The kernels, with those that are refused.
    """
    options = (series.types, series.everything, folder, series.swapped, series.forms, series.variety, series.launches)
    options += (series.only_default, series.early, series.given)
    plans = list(pool.map(plan, group, *([option] * len(group) for option in options)))
    is_default_only = series.only_default and not series.variety
    jobs = [job for of_problem in plans for job in of_problem if job.place == DEFAULT or not is_default_only]
    built = list(pool.map(build_one, jobs, chunksize=2))
    for kernel in built:
        if kernel.refused:
            print(f"{kernel.title}: REFUSED: {kernel.refused}", flush=True)
    (folder / _KEPT).write_bytes(pickle.dumps(built))
    return built


def kept(folder: Path) -> list[Built]:
    """Returns the kernels of a group that an earlier command built in a folder.

    Args:
        folder: of the group.
    """
    path = folder / _KEPT
    return pickle.loads(path.read_bytes()) if path.exists() else []


def measure(args: argparse.Namespace) -> None:
    """Measures what the result lacks.

    Args:
        args: of the command line.
    """
    if args.sizes:
        problems = named(args.sizes)
    elif args.part in DRAWS:
        problems = DRAWS[args.part](args.count, *([] if args.seed is None else [args.seed]))
    else:
        problems = [p for p in draw(args.count) if args.part == "all" or p.held_out == (args.part == "held-out")]
    problems = problems[: args.everything] if args.everything else problems
    types = TYPES[args.types]
    problems = for_library(problems, types)
    given: dict[str, int | str] = {name: json.loads(value) for name, value in (text.split("=") for text in args.set)}
    forms = {"forms": args.forms, "variety": args.variety, "launches": args.launches, "only_default": args.default}
    series = Series(Path(args.result), problems, types, bool(args.everything), given=given, **forms)
    measure_series(series, args)


def add_series_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `measure_series`.

    Args:
        parser: that gets them.
    """
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes that build")
    parser.add_argument(
        "--limit",
        type=float,
        default=540,
        metavar="SECONDS",
        help="start no group of problems after these (default: 540)",
    )
    parser.add_argument("--build-only", action="store_true", help="build the kernels and measure nothing")
    parser.add_argument(
        "--folder", metavar="DIR", help="keep kernels here: on a machine without MLIR, those that another one has built"
    )


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="PART")
    measuring = commands.add_parser("measure", help="build and time the chosen kernels, on the GPU")
    measuring.add_argument("result", metavar="RESULT.json", help="file to write, or to continue")
    measuring.add_argument("--types", choices=TYPES, default="bf16-bf16", help="element types (default: bf16-bf16)")
    measuring.add_argument(
        "--part",
        choices=("seen", "held-out", "all", *DRAWS),
        default="seen",
        help="half of the problems or all, those with short sides, those that choices lose most often, those that the "
        "L2 cache holds in part, or a draw of its own (default: seen)",
    )
    measuring.add_argument("--sizes", nargs="+", metavar="MxNxK", help="these problems, in place of a part")
    measuring.add_argument("--seed", type=int, metavar="N", help="of a draw beside that of the two halves")
    measuring.add_argument(
        "--set", nargs="+", default=[], metavar="KNOB=VALUE", help="knobs of all kernels, values as in JSON"
    )
    measuring.add_argument("--default", action="store_true", help="only what `compile` takes; with --variety, that too")
    measuring.add_argument("--forms", action="store_true", help="the first settings of either orientation")
    measuring.add_argument(
        "--variety", type=int, default=0, metavar="N", help="the N best of each orientation's and cluster's settings"
    )
    measuring.add_argument("--launches", action="store_true", help="each of these without dependent launch too")
    measuring.add_argument(
        "--everything", type=int, default=0, metavar="N", help="many settings of the first N problems"
    )
    measuring.add_argument(
        "--count", type=int, default=COUNT, metavar="N", help=f"problems that are drawn (default: {COUNT})"
    )
    add_series_options(measuring)
    measuring.set_defaults(run=measure)
    reporting = commands.add_parser("report", help="print how good the choices of results are")
    reporting.add_argument("results", nargs="+", metavar="RESULT.json", help="files that `measure` wrote")
    reporting.set_defaults(run=report)
    return parser


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
