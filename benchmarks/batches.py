"""Times batches of matmuls beside cuBLAS' strided-batched product: squares, and the two products of BERT's attention.

Each problem is compiled with the settings that the cost model puts first, and with each of them without clusters, also
in launches by themselves; all of them are timed, after an exact check. `defaults.py` takes default knobs of batches
from the result.
Needs the GPU, and MLIR in `build` and `run`.

    python benchmarks/batches.py run FOLDER RESULT.json          both halves on one machine
    python benchmarks/batches.py build FOLDER                    kernels, on any machine
    python benchmarks/batches.py measure FOLDER RESULT.json      on the GPU
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import command_line, median, new_parser, origin, run, table, write_result
from stepladder.measure.tuning.plan import Problem, read_plan

CASES_FILE = "cases.json"
HEAD = 64  # columns of a head in BERT


@dataclass(frozen=True)
class Case:
    """A batch: its name in tables, its matmuls, their m, n and k, and B's layout."""

    name: str
    batch: int
    m: int
    n: int
    k: int
    b_layout: str = "row"


def _attention(sequences: int, heads: int, length: int) -> list[Case]:
    """Returns the scores, queries times transposed keys, and the context, weights times values, of all heads."""
    shape = f"{sequences} x {heads} heads, {length} tokens"
    count = sequences * heads
    return [
        Case(f"scores, {shape}", count, length, length, HEAD, "column"),
        Case(f"context, {shape}", count, length, HEAD, length),
    ]


CASES = [
    Case("16 x 1024^3", 16, 1024, 1024, 1024),
    Case("64 x 512^3", 64, 512, 512, 512),
    *_attention(32, 12, 128),
    *_attention(32, 16, 128),
    *_attention(8, 16, 384),
    *_attention(8, 12, 512),
    *_attention(16, 16, 512),
]


def chosen(only: list[str]) -> list[Case]:
    """Returns the cases whose names begin with one of some prefixes.

    Args:
        only: the prefixes; an empty list selects all cases.
    """
    return [case for case in CASES if not only or case.name.startswith(tuple(only))]


def _without_clusters(problem: Problem) -> Problem:
    """Returns a problem with two further settings for each: the same without clusters, and in launches by themselves
    too, where blocks return to their multiprocessors, and each part of the L2 cache keeps their tiles."""
    knobs = {json.dumps(setting.knobs, sort_keys=True): setting for setting in problem.settings}
    for setting in problem.settings:
        alone = {**setting.knobs, "cluster_m": 1, "cluster_n": 1}
        for variant in (alone, {**alone, "dependent_launch": False}):
            bundle = f"{Path(setting.bundle).parent}/{len(knobs):02d}"
            knobs.setdefault(json.dumps(variant, sort_keys=True), replace(setting, knobs=variant, bundle=bundle))
    return replace(problem, settings=tuple(knobs.values()))


def build(folder: Path, only: list[str], c_type: str, top: int) -> None:
    """Builds the first settings of every case, on all cores.

    Args:
        folder: of the bundles and the plan.
        only: prefixes of the names of cases; empty for all.
        c_type: the element type of C.
        top: settings of each case.
    """
    from stepladder.payload.writing import matmul_text
    from stepladder.pipeline import tuning_build
    from stepladder.pipeline.functions.matmul_parts import Part
    from stepladder.pipeline.request import Request

    cases = chosen(only)
    request = Request("wgmma", {"target": "sm_90a"})
    parts = [
        Part(
            matmul_text(
                case.m, case.n, case.k, batch=case.batch, b_layout=case.b_layout, c_type=c_type, accumulate=False
            ),
            case.name,
            request,
        )
        for case in cases
    ]
    plan = tuning_build.make_plan(parts, top)
    plan = replace(plan, problems=tuple(map(_without_clusters, plan.problems)))
    folder.mkdir(parents=True, exist_ok=True)
    tuning_build.build_plan(folder, plan, parts, os.cpu_count() or 1, lambda line: print(line, flush=True))
    (folder / CASES_FILE).write_text(json.dumps([case.name for case in cases]) + "\n")


def measure(folder: Path, out: Path, modes: list[str], rounds: int, limit: float) -> None:
    """Times the kernels of a folder case by case, and writes the result after each.

    Args:
        folder: that `build` wrote.
        out: the file of the result.
        modes: "burst" or "sustained".
        rounds: of each mode.
        limit: no case begins after so many seconds.
    """
    from stepladder.measure.bench import bench_bundles
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.errors import NOT_EXECUTED, StepladderError

    start = time.monotonic()
    names = json.loads((folder / CASES_FILE).read_text())
    result: dict[str, Any] = {
        **origin(),
        "problems": [],
        "failed": {},
    }
    for name, problem in zip(names, read_plan(folder).problems):
        if time.monotonic() - start > limit:
            print(f"no time left for {name} and the problems after it", flush=True)
            break
        settings = [setting for setting in problem.settings if (folder / setting.bundle).is_dir()]
        bundles = [read_bundle(folder / setting.bundle) for setting in settings]
        try:
            measured = bench_bundles(bundles, baseline="cublas", modes=modes, rounds=rounds, command=command_line())
        except StepladderError as error:  # wrong numbers, or no baseline: the other cases are measured
            if error.status == NOT_EXECUTED:
                raise
            result["failed"][name] = error.message
            print(f"{name}: {error.message}", flush=True)
            continue
        knobs = {Path(setting.bundle).name: setting.knobs for setting in settings}
        result["card"] = measured["card"]
        result["problems"].append({"name": name, "knobs": knobs, "measured": measured})
        write_result(out, result)
        print(f"{time.monotonic() - start:.0f} s: {row(result['problems'][-1])}", flush=True)
    write_result(out, result)
    if result["problems"]:
        print(table([row(problem) for problem in result["problems"]]))


def row(problem: dict[str, Any]) -> dict[str, str]:
    """Returns a case's row of the table: TFLOP/s of cuBLAS, of the model's first setting and of the fastest.

    Args:
        problem: an entry of the result.

    Returns:
        Cells by column; those of settings include the median ratio to cuBLAS.
    """
    measured = problem["measured"]
    first = next(iter(problem["knobs"]))
    best = max(problem["knobs"], key=lambda name: median(measured, name))

    def beside(name: str) -> str:
        ratio = measured["modes"]["burst"]["ratios"][name]["cublas"]["spread"]["median"]
        return f"{median(measured, name):.0f} ({ratio:.2f})"

    return {
        "batch": problem["name"],
        "cuBLAS": f"{median(measured, 'cublas'):.0f}",
        "by default": beside(first),
        "fastest": beside(best),
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("what", choices=["run", "build", "measure"], help="which half to run, or both")
    parser.add_argument("folder", type=Path, help="of the kernels")
    parser.add_argument("out", type=Path, nargs="?", help="file of the result, for run and measure")
    parser.add_argument("--only", nargs="*", default=[], help="names of cases, or their beginnings")
    parser.add_argument("--c-type", default="f16", choices=["f16", "f32"], help="element type of C (f16)")
    parser.add_argument("--top", type=int, default=6, help="settings of a case (6)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of a measurement (7)")
    parser.add_argument("--sustained", action="store_true", help="measure sustained speed as well")
    parser.add_argument("--limit", type=float, default=480.0, help="seconds after which no case is started (480)")
    return parser


def main() -> int:
    """Runs the script."""
    options = make_parser().parse_args()
    if options.what != "build" and options.out is None:
        print("run and measure need the file of the result", file=sys.stderr)
        return 2
    if options.what != "measure":
        build(options.folder, options.only, options.c_type, options.top)
    if options.what != "build":
        modes = ["burst", "sustained"] if options.sustained else ["burst"]
        measure(options.folder, options.out, modes, options.rounds, options.limit)
    return 0


if __name__ == "__main__":
    run(main)
