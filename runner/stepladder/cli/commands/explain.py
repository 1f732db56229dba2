"""`stepladder explain`: explains the knobs that the cost model chooses."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from stepladder.cli.options import (
    Formatter,
    add_json_option,
    add_model_options,
    add_pipeline_options,
    add_plugin_options,
    flat,
    knob_settings,
    positive,
    text_for_people,
)
from stepladder.runtime.errors import OK

if TYPE_CHECKING:
    from stepladder.pipeline.cost_model.gpu import Found
    from stepladder.pipeline.explanation import Explanation

_EPILOG = """\
Times are in microseconds. main loop, prologue, epilogue, reduction and launch make up the total; HBM and writes run
beside them. matrix unit, shared memory, TMA, L2 and latency are the times of the main loop if that were its only limit;
bound names the longest. Knobs that all settings of the table share are printed above it, and knobs at neutral values
are left out. docs/cost_model.md describes each term.

exit status: 0 explained; 2 the payload or an option is not acceptable, or no setting of the knobs suits the payload.

examples:
  stepladder explain matmul.mlir
  stepladder explain matmul.mlir --pipeline wgmma --target sm_90a
  stepladder explain matmul.mlir --pipeline wgmma --target sm_90a --set block_n=256 --top 20
  stepladder explain matmul.mlir --pipeline mma_sync --target sm_80 --json -
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "explain",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="predicted time of the best knob settings, term by term",
        description="Ranks all knob settings that a pipeline accepts for each matmul of a payload by their predicted "
        "time, and shows the first with the time of each term. Needs no GPU.",
    )
    parser.add_argument("input", metavar="INPUT.mlir", help="the payload; - is standard input")
    add_pipeline_options(parser, required=False, default="auto")
    parser.add_argument("--target", metavar="SM", help="GPU architecture, such as sm_80 or sm_90a (the knob 'target')")
    add_model_options(parser)
    parser.add_argument("--top", type=positive, default=8, metavar="N", help="settings to show (default: 8)")
    add_json_option(parser)
    add_plugin_options(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.
    """
    from stepladder.cli.options import database_to_read
    from stepladder.extension import plugins
    from stepladder.payload import stablehlo
    from stepladder.pipeline import explanation
    from stepladder.pipeline.context import bound_text, mlir_context
    from stepladder.pipeline.request import Request
    from stepladder.runtime.files import check_writable, read_text, write_json

    if args.json:
        check_writable(args.json)
    settings = knob_settings(args)
    text, name = read_text(args.input)
    plugins.load_files(args.plugins)
    request = Request(
        args.pipeline,
        settings,
        without=flat(args.without),
        tuned=True,
        database=database_to_read(args),
        gpu=args.gpu,
        function=args.function,
        constant_weights=True,
    )
    with mlir_context():
        text = bound_text(stablehlo.lowered(text, name), name, dict(args.sizes), args.function)
        explanations = explanation.explain(text, name, request, args.top)
    with text_for_people(args.json):
        for item in explanations:
            _print(item, f"{item.name}: " if len(explanations) > 1 else "")
    if args.json:
        matmuls = [item.as_json() for item in explanations]
        write_json(args.json, matmuls[0] if len(matmuls) == 1 else explanation.of_several(matmuls))
    return OK


def _print(explanation: Explanation, prefix: str) -> None:
    """Prints a table of the candidates, below a title with a prefix, and then which knobs `compile` takes."""
    from stepladder.cli.candidates import candidate_rows, is_neutral
    from stepladder.cli.tables import print_table
    from stepladder.pipeline.definition import value_text

    for line in (explanation.found.note, _data_sheet(explanation.found)):
        if line:
            print(f"note: {line}", file=sys.stderr)
    problem = explanation.problem
    title = (
        f"{prefix}{problem.sizes}, {problem.a_type} -> {problem.c_type}, {explanation.pipeline} on "
        f"{explanation.found.gpu.name}: {explanation.settings} settings ranked in "
        f"{explanation.seconds * 1e3:.0f} ms, times in us"
    )
    shared, rows = candidate_rows(explanation.candidates)
    print(title)
    if shared:
        print(f"all have {shared}")
    print_table(rows)
    values = explanation.chosen.knobs.items()
    knobs = ", ".join(f"{name} = {value_text(value)}" for name, value in values if not is_neutral(name, value))
    print(f"compile takes the knobs from {explanation.chosen.source.text}:\n{knobs}")


def _data_sheet(found: Found) -> str:
    if found.gpu.source == "measured":
        return ""
    return f"nothing was measured on {found.gpu.name}: peaks are from data sheets, fitted constants from another GPU"
