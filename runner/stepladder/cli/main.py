"""The command line `stepladder`.

Only the command that is asked for is imported, and it imports what it needs when it runs: what runs on the GPU machine
works where there is no MLIR.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from stepladder import __version__
from stepladder.cli.guard import guarded
from stepladder.cli.options import Parser, refuse_empty

# In the order of a user's work; each is a module of `commands`.
COMMANDS = ("list", "payload", "explain", "tune", "compile", "emulate", "run", "bench", "report", "demo")

EPILOG = """\
`stepladder COMMAND --help` explains a command. `stepladder-opt` shows and applies steps, like `mlir-opt`.

exit status of every command: 0 success; 1 failure: a step failed, or results are wrong; 2 nothing was done: the input,
an option or a file is not acceptable; 3 nothing was executed: no GPU or driver, or a GPU that the bundle is not for;
130 interrupted.

examples:
  stepladder payload matmul --m 256 --n 128 --k 128 -o matmul.mlir
  stepladder compile matmul.mlir --pipeline wmma --target sm_80 -o matmul.bundle
  stepladder run matmul.bundle
  stepladder bench matmul.bundle
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line; returns its exit status. The exits of argparse pass through.

    Args:
        argv: the arguments; None for those of the process.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(argv)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.prog += f" {args.command}"  # the parser of the command leaves them to this one
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")

    def command() -> int:
        refuse_empty(args)
        return _command(args.command).main(args)

    return guarded(command, verbose=getattr(args, "verbose_errors", False))


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Returns a parser of the one command named first in `argv`, or of all for help and errors."""
    parser = Parser(
        prog="stepladder",
        epilog=EPILOG,
        description="Compiles a matmul in linalg IR to machine code for GPU matrix units, "
        "one small optimization at a time.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"stepladder {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in argv[:1] if argv and argv[0] in COMMANDS else COMMANDS:
        _command(name).add_parser(subparsers)
    return parser


def _command(name: str) -> ModuleType:
    """Returns the module of a command, with `add_parser` and `main`."""
    return importlib.import_module(f".commands.{name}", __package__)
