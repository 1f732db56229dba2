"""Command lines of scripts in two halves: `build` needs MLIR and ptxas, `measure` a GPU and what `build` wrote."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from common import new_parser


def halves_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser of a script that builds kernels on one machine and measures them on another one.

    Args:
        description: as for `new_parser`.
    """
    parser = new_parser(description)
    parser.add_argument("what", choices=["build", "measure"], help="which half to run")
    parser.add_argument("folder", type=Path, help="of the kernels")
    parser.add_argument("out", type=Path, nargs="?", help="file of the result, for measure")
    return parser


def add_halves(
    parts: argparse._SubParsersAction,
    build: Callable[[argparse.Namespace], None],
    measure: Callable[[argparse.Namespace], None],
    rounds: int,
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Adds the parts `build` and `measure` to a script that has such parts (`common.main_of_parts`).

    Args:
        parts: `add_subparsers` of its parser.
        build, measure: run a part.
        rounds: of timings, unless `--rounds` gives another number.

    Returns:
        The parsers of the options of both.
    """
    building = parts.add_parser("build", help="compile the kernels, where MLIR is")
    building.add_argument("folder", type=Path, metavar="FOLDER", help="folder of bundles; those that are there stay")
    building.set_defaults(run=build)
    measuring = parts.add_parser("measure", help="check and time them beside cuBLAS, where a GPU is")
    measuring.add_argument("folder", type=Path, metavar="FOLDER", help="what `build` wrote")
    measuring.add_argument("result", type=Path, metavar="RESULT.json", help="file to write")
    measuring.add_argument("--rounds", type=int, default=rounds, metavar="N", help=f"of timings (default: {rounds})")
    measuring.set_defaults(run=measure)
    return building, measuring


def parser_of_parts(
    description: str | None,
    build: Callable[[argparse.Namespace], None],
    measure: Callable[[argparse.Namespace], None],
    rounds: int = 3,
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser, argparse.ArgumentParser]:
    """Returns a parser of a script with the parts `build` and `measure` alone, and those of their options.

    Args:
        description: as for `new_parser`.
        build, measure, rounds: as for `add_halves`.
    """
    parser = new_parser(description)
    return parser, *add_halves(parser.add_subparsers(required=True), build, measure, rounds)


def parse_halves(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Returns the arguments of such a script; ends it where the file of the result is missing.

    Args:
        parser: of `halves_parser`, with further options.
        arguments: of the command line; those of the process if None.
    """
    args = parser.parse_args(arguments)
    if args.what == "measure" and args.out is None:
        parser.error("measure needs the file of the result")
    return args


def main_of_halves(
    make_parser: Callable[[], argparse.ArgumentParser],
    build: Callable[[Path], None],
    measure: Callable[[Path, Path], None],
) -> Callable[..., None]:
    """Returns the main function of a script whose halves have no options of their own.

    Args:
        make_parser: returns the parser of the command line (`halves_parser`).
        build: writes the kernels to a folder.
        measure: reads them from there, and writes the result to a file.
    """

    def main(arguments: Sequence[str] | None = None) -> None:
        args = parse_halves(make_parser(), arguments)
        if args.what == "build":
            build(args.folder)
        else:
            measure(args.folder, args.out)

    return main
