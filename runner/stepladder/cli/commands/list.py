"""`stepladder list`: lists pipelines, steps and knobs."""

from __future__ import annotations

import argparse

from stepladder.cli.options import Formatter, add_json_option, add_plugin_options, text_for_people
from stepladder.runtime.errors import OK

# The columns of the tables; the JSON has further fields.
_COLUMNS = {
    "pipelines": ("pipeline", "steps", "description"),
    "steps": ("pipeline", "step", "kind", "ops", "when", "description"),
    "knobs": ("pipeline", "knob", "default", "options", "description"),
}

_EPILOG = """\
exit status: 0 listed; 2 there is no such pipeline, or its scripts do not parse.

examples:
  stepladder list
  stepladder list steps --pipeline wmma
  stepladder list knobs --pipeline wmma
  stepladder list knobs --json -
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "list",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="list pipelines, steps and knobs",
        description="Lists pipelines, or the steps or knobs of one or all of them.",
    )
    parser.add_argument(
        "what",
        nargs="?",
        metavar="{pipelines,steps,knobs}",
        choices=["pipelines", "steps", "knobs"],
        default="pipelines",
        help="list to print (default: pipelines)",
    )
    parser.add_argument("--pipeline", metavar="NAME|FILE", help="only this pipeline")
    add_plugin_options(parser)
    add_json_option(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.

    Raises:
        StepladderError: an unknown pipeline, or a file that cannot be read or written.
    """
    from stepladder.cli.tables import print_table
    from stepladder.pipeline import catalog
    from stepladder.runtime.files import check_writable, write_json

    if args.json:
        check_writable(args.json)
    if args.plugins:
        from stepladder.extension import plugins

        plugins.load_files(args.plugins)
    rows = catalog.rows(args.what, args.pipeline)
    table: list[dict[str, object]] = [
        {name: str(row[name]).lower() if isinstance(row[name], bool) else row[name] for name in _COLUMNS[args.what]}
        for row in rows
    ]
    with text_for_people(args.json):
        print_table(table)
    if args.json:
        write_json(args.json, rows)
    return OK
