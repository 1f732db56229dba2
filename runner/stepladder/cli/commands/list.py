"""`stepladder list`: what pipelines, steps and knobs there are."""

from __future__ import annotations

import argparse

from stepladder.cli.options import Formatter, add_plugin_options
from stepladder.runtime.errors import OK

_EPILOG = """\
examples:
  stepladder list
  stepladder list steps --pipeline wmma
  stepladder list knobs --pipeline wmma
"""


def add_parser(subparsers) -> None:
    """Adds the command's parser."""
    parser = subparsers.add_parser(
        "list",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="list pipelines, steps and knobs",
        description="Lists pipelines, or the steps or knobs of one or all of them.",
    )
    parser.add_argument("what", nargs="?", choices=["pipelines", "steps", "knobs"], default="pipelines")
    parser.add_argument("--pipeline", metavar="NAME|FILE", help="only this pipeline")
    add_plugin_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _rows(what: str, pipeline) -> list[dict[str, object]]:
    if what == "pipelines":
        return [{"pipeline": pipeline.name, "steps": len(pipeline.steps), "what it does": pipeline.summary()}]
    if what == "steps":
        return [
            {
                "pipeline": pipeline.name,
                "step": step.name,
                "kind": "optimization" if step.optimization else "lowering",
                "ops": ", ".join(step.dialects) or "upstream",
                "when": step.condition.describe() if step.condition else "always",
                "what it does": step.summary(),
            }
            for step in pipeline.steps
        ]
    return [
        {"pipeline": pipeline.name, "knob": knob.name, "default": knob.default, "options": knob.options_text()}
        for knob in pipeline.knobs.values()
    ]


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from stepladder.extension import plugins
    from stepladder.pipeline import engine, library

    plugins.load_files(args.plugins)
    rows = []
    for name in [args.pipeline] if args.pipeline else library.pipeline_names():
        with engine.mlir_context():
            rows += _rows(args.what, library.load(name))
    if args.json:
        import json

        print(json.dumps(rows, indent=2))
        return OK
    from stepladder.cli.tables import print_table

    print_table(rows)
    return OK
