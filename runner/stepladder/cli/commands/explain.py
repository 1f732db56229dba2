"""`stepladder explain`: why the cost model chooses the knobs that it does."""

from __future__ import annotations

import argparse

from stepladder.cli.options import (
    Formatter,
    add_model_options,
    add_pipeline_options,
    flat,
    positive,
)
from stepladder.runtime.errors import OK

_EPILOG = """\
Times are in microseconds. main loop, prologue, epilogue, reduction and launch make up the total; HBM runs beside them.
matrix unit, shared memory, TMA, L2 and latency say how long the main loop would take if that were its only limit: the
longest of them is what it is bound by. docs/cost_model.md describes each.

examples:
  stepladder explain matmul.mlir --pipeline wgmma --target sm_90a
  stepladder explain matmul.mlir --pipeline wgmma --target sm_90a --set block_n=256 --top 20
  stepladder explain matmul.mlir --pipeline mma_sync --target sm_80 --json
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser."""
    parser = subparsers.add_parser(
        "explain",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="predicted time of the best knob settings, term by term",
        description="Ranks all knob settings that a pipeline accepts for a payload by their "
        "predicted time, and shows the first with the time of each term. Needs "
        "no GPU.",
    )
    parser.add_argument("input", metavar="INPUT.mlir", help="the payload; - is standard input")
    add_pipeline_options(parser, required=True)
    parser.add_argument("--target", metavar="SM", help="GPU architecture, such as sm_80 or sm_90a (the knob 'target')")
    add_model_options(parser)
    parser.add_argument("--top", type=positive, default=8, metavar="N", help="settings to show (default: 8)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from stepladder.cli.options import database_of
    from stepladder.pipeline import engine, explanation
    from stepladder.runtime import targets
    from stepladder.runtime.files import read_text

    settings = dict(args.settings)
    if args.target is not None:
        settings["target"] = targets.find(args.target).name
    text, name = read_text(args.input)
    request = engine.Request(
        args.pipeline, settings, without=flat(args.without), tuned=True, database=database_of(args), gpu=args.gpu
    )
    with engine.mlir_context():
        explained = explanation.explain(text, name, request, args.top)
    if args.json:
        import json

        print(json.dumps(explained.as_json(), indent=2))
    else:
        explained.print()
    return OK
