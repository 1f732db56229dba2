"""`stepladder bench`: measures bundles, cuBLAS and the ceiling of the GPU in one process."""

from __future__ import annotations

import argparse
import sys

from stepladder.cli import function_bundle
from stepladder.cli.options import add_json_option, positive, text_for_people
from stepladder.runtime.errors import OK, StepladderError

EPILOG = """\
All kernels run in turn, in one process, on the same random data. A burst is about 30 ms of launches after a pause;
sustained is at least 0.8 s without pauses, in which large problems reach the card's power limit. The table shows the
median TFLOP/s and the median of the per-round ratios, with their extremes; the JSON file has every round. Sustained
rounds show the clock and the power that the card settled at, as NVML (nvidia-ml-py) or nvidia-smi reads them. Bundles
of several problems are measured problem by problem. For two or more bundles, a summary follows: geometric mean,
quantiles and minimum of the ratios to the baseline, and the bundles that are slower than the baseline.

A function with several kernels is measured without a baseline, with all its kernels in one CUDA graph.

exit status: 0 measured; 1 a kernel's results are wrong; 2 a bundle or an option is not acceptable; 3 nothing was
executed (no GPU or driver, or a GPU that the bundle is not for). STEPLADDER_DEVICE chooses among several GPUs.

examples:
  stepladder bench matmul.bundle
  stepladder bench matmul.bundle unpadded.bundle --mode both --ceiling --json result.json
  stepladder bench matmul.bundle --mode sustained --rotate   # no launch finds its operands in the L2 cache
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "bench",
        help="measure the speed of bundles",
        description="Measures bundles, cuBLAS and the ceiling of the GPU in one process.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bundles", nargs="+", metavar="BUNDLE", help="folder that `stepladder compile` made")
    parser.add_argument(
        "--baseline", choices=["cublas", "none"], default="cublas", help="library to compare with (default: cublas)"
    )
    parser.add_argument(
        "--mode",
        choices=["burst", "sustained", "both"],
        default="burst",
        help="duration of a measurement: bursts of about 30 ms, or sustained load (default: burst)",
    )
    parser.add_argument("--rounds", type=positive, default=7, metavar="N", help="rounds, at least 7 (default: 7)")
    parser.add_argument("--ceiling", action="store_true", help="also measure the throughput of mma.sync from registers")
    parser.add_argument(
        "--rotate",
        action="store_true",
        help="rotate through copies of the operands, which together exceed twice the L2 cache (cold L2)",
    )
    parser.add_argument(
        "--written-weights",
        action="store_true",
        help="launch kernels that load weights early after the end of the previous kernel, as if it might write them",
    )
    parser.add_argument("--no-check", action="store_true", help="time the kernels without checking their results first")
    add_json_option(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.

    Raises:
        StepladderError: a bundle or an option that is not acceptable, or no GPU.
    """
    from stepladder.cli.tables import print_table
    from stepladder.measure.bench import bench_bundles, by_problem
    from stepladder.measure.report import table_rows, table_title
    from stepladder.measure.summary import loser_rows, several, summarize_bundles, summary_rows
    from stepladder.runtime.bundle import Bundle, FunctionBundle, read_any
    from stepladder.runtime.files import check_writable, write_json

    inputs = [read_any(path) for path in args.bundles]
    functions = [bundle for bundle in inputs if isinstance(bundle, FunctionBundle)]
    bundles = [bundle for bundle in inputs if isinstance(bundle, Bundle)]
    if functions:
        if bundles:
            raise StepladderError(
                f"'{functions[0].path}' is a bundle of a function, and '{bundles[0].path}' of a single kernel; measure "
                "them separately"
            )
        return function_bundle.bench(args, functions)
    if args.json:
        check_writable(args.json)
    modes = ("burst", "sustained") if args.mode == "both" else (args.mode,)
    groups = by_problem(bundles)
    results = []
    with text_for_people(args.json):
        for group in groups:
            results.append(
                bench_bundles(
                    group,
                    baseline=args.baseline,
                    ceiling=args.ceiling,
                    modes=modes,
                    rounds=args.rounds,
                    check=not args.no_check,
                    rotate=args.rotate,
                    keeps_early=not args.written_weights,
                    command=["stepladder", *sys.argv[1:]],
                )
            )
            if args.json and len(groups) > 1:  # what took long to measure is safe first
                write_json(args.json, several(results))
    summary = summarize_bundles(results) if len(bundles) > 1 and args.baseline != "none" else None
    if args.json:
        write_json(args.json, several(results) if len(groups) > 1 else results[0])
    with text_for_people(args.json):
        for result in results:
            print_table(table_rows(result), title=table_title(result))
        if summary is not None:
            print_table(summary_rows(summary), title=f"Ratios to {args.baseline}")
            if losers := loser_rows(summary):
                print_table(losers, title=f"Slower than {args.baseline}")
    return OK
