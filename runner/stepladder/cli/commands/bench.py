"""`stepladder bench`: measures bundles, cuBLAS and the ceiling of the GPU in one process."""

from __future__ import annotations

import argparse
import sys

from stepladder.cli.options import add_json_option, text_for_people
from stepladder.runtime.errors import OK

EPILOG = """\
All kernels run in turn, in one process, on the same random data. A burst is about 30 ms of launches after a pause;
sustained is 0.8 s and more without pauses, in which large problems reach the card's power limit. The table shows the
median TFLOP/s and the median of the per-round ratios, with their extremes; the JSON file has every round.

exit status: 0 measured; 1 a kernel's numbers are wrong; 2 a bundle or an option is not acceptable; 3 nothing was
executed (no GPU or driver, or a GPU that the bundle is not for). STEPLADDER_DEVICE chooses among several GPUs.

examples:
  stepladder bench matmul.bundle
  stepladder bench matmul.bundle unpadded.bundle --mode both --ceiling --json result.json
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser."""
    parser = subparsers.add_parser(
        "bench",
        help="measure the speed of bundles of one problem",
        description=__doc__,
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
        help="how long each kernel runs at a time (default: burst)",
    )
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds, at least 7 (default: 7)")
    parser.add_argument(
        "--ceiling", action="store_true", help="measure what mma.sync gives from registers, as a further kernel"
    )
    parser.add_argument("--no-check", action="store_true", help="time the kernels without checking their numbers first")
    add_json_option(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status. Raises StepladderError."""
    from stepladder.cli.tables import print_table
    from stepladder.measure.bench import bench_bundles
    from stepladder.measure.report import table_rows, table_title
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.files import check_writable, write_json

    bundles = [read_bundle(path) for path in args.bundles]
    if args.json:
        check_writable(args.json)
    modes = ("burst", "sustained") if args.mode == "both" else (args.mode,)
    with text_for_people(args.json):
        result = bench_bundles(
            bundles,
            baseline=args.baseline,
            ceiling=args.ceiling,
            modes=modes,
            rounds=args.rounds,
            check=not args.no_check,
            command=["stepladder", *sys.argv[1:]],
        )
    if args.json:
        write_json(args.json, result)  # before the table: what took long to measure is safe first
    with text_for_people(args.json):
        print_table(table_rows(result), title=table_title(result))
    return OK
