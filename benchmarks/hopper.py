"""Measures the Hopper pipelines: their numbers, their knobs, what each step gains, and their speed beside cuBLAS.

Two halves, since the machine with the GPU need not have MLIR (it needs PyTorch):

    python benchmarks/hopper.py build FOLDER [--only PART ...] [--types f16-f32 ...]          bundles of all kernels
    python benchmarks/hopper.py numbers FOLDER RESULT.json                                    on the GPU
    python benchmarks/hopper.py tune FOLDER RESULT.json [--types f16-f32 ...] [--only PROBLEM ...]    on the GPU
    python benchmarks/hopper.py ablation FOLDER RESULT.json                                   on the GPU
    python benchmarks/hopper.py stages FOLDER RESULT.json                                     on the GPU
    python benchmarks/hopper.py sizes FOLDER RESULT.json --types f16-f32 [--only PROBLEM ...] on the GPU
    python benchmarks/hopper.py beside FOLDER RESULT.json                                     on the GPU
    python benchmarks/hopper.py few_rows FOLDER RESULT.json                                   on the GPU
    python benchmarks/hopper.py clusters RESULT.json                                          on the GPU

A PROBLEM is `squares`, `shapes`, a size or MxNxK. `tune` and `sizes` write after every problem and start none after
`--limit` seconds. `defaults.py` makes the pipeline's defaults from what `tune` finds; `build --only sizes beside` then
builds kernels as `stepladder compile` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import new_parser, run
from hopper_cases import TYPES

# Seconds of a sustained run, and rounds of `sizes`.
SUSTAINED, ROUNDS = 0.5, 7

# Part -> what it does.
PARTS = {
    "numbers": "check the numbers of all kernels",
    "tune": "time the candidates for every problem",
    "ablation": "time the variants of the ablation",
    "stages": "time kernels by their number of stages",
    "sizes": "time the default kernels over sizes and shapes",
    "beside": "time the kernels of other compilers too",
    "few_rows": "time kernels for an A of few rows",
}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    subparsers = parser.add_subparsers(dest="part", required=True, metavar="PART")
    parts = {"build": subparsers.add_parser("build", help="build the bundles of all kernels, or of some parts")}
    for part, text in PARTS.items():
        parts[part] = subparsers.add_parser(part, help=f"{text}, on the GPU")
    for part, parser_of_part in parts.items():
        parser_of_part.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the bundles")
        if part != "build":
            parser_of_part.add_argument("result", type=Path, metavar="RESULT.json", help="file to write")
    parts["build"].add_argument(
        "--only",
        nargs="+",
        default=list(PARTS),
        choices=list(PARTS),
        metavar="PART",
        help=f"kernels of these parts only: {', '.join(PARTS)}",
    )
    parts["build"].add_argument(
        "--problems", nargs="+", default=[], metavar="PROBLEM", help="tune, sizes: these problems only"
    )
    parts["build"].add_argument("--workers", type=int, default=2, help="processes that build (default: 2)")
    for part in ("tune", "sizes"):
        parts[part].add_argument("--only", nargs="+", default=[], metavar="PROBLEM", help="these problems only")
        parts[part].add_argument(
            "--limit", type=float, default=540.0, metavar="SECONDS", help="start no problem after these (default: 540)"
        )
        parts[part].add_argument(
            "--seconds", type=float, default=SUSTAINED, help=f"length of a sustained run (default: {SUSTAINED})"
        )
    parts["sizes"].add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds (default: {ROUNDS})")
    for part in ("build", "tune", "sizes"):
        parts[part].add_argument(
            "--types", nargs="+", default=list(TYPES), choices=list(TYPES), help="element types (default: all)"
        )
    clusters = subparsers.add_parser("clusters", help="ask the GPU how many clusters it holds at once")
    clusters.add_argument("result", type=Path, metavar="RESULT.json", help="file to write")
    check = subparsers.add_parser("check", help="check kernels, a line of JSON each: a child process of `numbers`")
    check.add_argument("bundles", type=Path, nargs="+", metavar="BUNDLE")
    repeat = subparsers.add_parser("repeat", help="launch a kernel many times: a child process of `numbers`")
    repeat.add_argument("bundle", type=Path, metavar="BUNDLE")
    return parser


def _check_numbers(args: argparse.Namespace) -> None:
    import hopper_numbers

    if args.part == "check":
        hopper_numbers.check(args.bundles)
    elif args.part == "repeat":
        hopper_numbers.repeat(args.bundle)
    else:
        hopper_numbers.measure_numbers(args.folder, args.result)


def _time(args: argparse.Namespace) -> None:
    import hopper_timing

    if args.part == "tune":
        hopper_timing.measure_tuning(args.folder, args.result, args.types, args.only, args.limit, args.seconds)
    elif args.part == "sizes":
        hopper_timing.measure_sizes(
            args.folder, args.result, args.types, args.only, args.limit, args.rounds, args.seconds
        )
    elif args.part == "clusters":
        hopper_timing.measure_clusters(args.result)
    else:
        parts = {
            "ablation": hopper_timing.measure_ablation,
            "stages": hopper_timing.measure_stages,
            "beside": hopper_timing.measure_beside,
            "few_rows": hopper_timing.measure_few_rows,
        }
        parts[args.part](args.folder, args.result)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one part of one half.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    if args.part == "build":
        import hopper_jobs

        hopper_jobs.build_all(args.folder, args.only, args.types, args.problems, args.workers)
    elif args.part in ("numbers", "check", "repeat"):
        _check_numbers(args)
    else:
        _time(args)


if __name__ == "__main__":
    run(main)
