"""Command-line options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path


def setting(text: str) -> tuple[str, str]:
    """Parses KNOB=VALUE."""
    name, separator, value = text.partition("=")
    if not separator or not name or not value:
        raise argparse.ArgumentTypeError(f"'{text}' is not KNOB=VALUE, for example block_m=128")
    return name, value


def names(text: str) -> list[str]:
    """Parses NAME[,NAME...]."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' names nothing")
    return found


def positive(text: str) -> int:
    """Parses a size."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size: sizes are whole numbers from 1")
    return value


def add_pipeline_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Adds --pipeline, --set and --without."""
    parser.add_argument(
        "--pipeline",
        metavar="NAME|FILE",
        required=required,
        help="a pipeline by name (stepladder list pipelines) or the path of a pipeline file",
    )
    parser.add_argument(
        "--set",
        metavar="KNOB=VALUE",
        dest="settings",
        action="append",
        type=setting,
        default=[],
        help="give a knob a value (stepladder list knobs); may be repeated",
    )
    parser.add_argument(
        "--without",
        metavar="STEP[,STEP]",
        action="append",
        type=names,
        default=[],
        help="leave optimizations out; may be repeated",
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds --gpu and --database."""
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        help="the GPU of the cost model to choose knobs for, such as h200 or "
        "a100 (default: the one that it has for the target)",
    )
    parser.add_argument(
        "--database", metavar="FILE", help="the tuning database (default: the user's, or STEPLADDER_TUNING_DATABASE)"
    )


def database_of(args: argparse.Namespace) -> Path:
    """Returns the tuning database that the options name, or the user's."""
    from stepladder.measure.tuning.database import default_path

    return Path(args.database) if args.database else default_path()


def flat(groups: list[list[str]]) -> tuple[str, ...]:
    """Returns the names of a repeated option, each once, in order."""
    return tuple(dict.fromkeys(name for group in groups for name in group))


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the examples in epilogs as they are written."""
