"""Command-line options that several commands share."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from stepladder.runtime.errors import BAD_INPUT, StepladderError, suggest
from stepladder.runtime.files import STANDARD
from stepladder.runtime.problem import LARGEST_SIZE

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# Arguments of parsed command lines that name something -> how a message calls them.
_NAMES = {
    "input": "the input file",
    "bundle": "BUNDLE",
    "bundles": "BUNDLE",
    "words": "PAYLOAD.mlir",
    "start": "--from",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("inputs", "output", "folder", "dump_dir", "json", "sarif", "trace", "database"),
            *("pipeline", "through", "step", "function", "target", "gpu"),
            *("kernel", "arguments", "expect", "reference"),
        )
    },
}
# How argparse reports a value that is none of the choices.
_CHOICE = re.compile(r"invalid choice: '([^']*)'(?= \(choose from (.*)\))")


def setting(text: str) -> tuple[str, str]:
    """Parses KNOB=VALUE.

    Args:
        text: of one option.

    Returns:
        The knob's name and its value, as text.

    Raises:
        ArgumentTypeError: the text has another form.
    """
    name, separator, value = text.partition("=")
    if not separator or not name or not value:
        raise argparse.ArgumentTypeError(f"'{text}' is not KNOB=VALUE, for example block_m=128")
    return name, value


def binding(text: str) -> tuple[str, int]:
    """Parses NAME=SIZE.

    Args:
        text: of one option.

    Returns:
        The name and the size.

    Raises:
        ArgumentTypeError: the text has another form, or the size is none.
    """
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=SIZE, for example M=4096 or arg0.1=512")
    return name, 0 if value.strip() == "0" else positive(value)


def names(text: str) -> list[str]:
    """Parses NAME[,NAME...].

    Args:
        text: of one option; spaces around names are left out.

    Returns:
        The names, one at least.

    Raises:
        ArgumentTypeError: there is no name.
    """
    items = [name.strip() for name in text.split(",") if name.strip()]
    if not items:
        raise argparse.ArgumentTypeError(f"'{text}' has no names; expected STEP[,STEP]")
    return items


def positive(text: str) -> int:
    """Parses a size.

    Args:
        text: of one option.

    Returns:
        The integer.

    Raises:
        ArgumentTypeError: it is not a positive integer, or too large for an extent in MLIR.
    """
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got '{text}'")
    if value > LARGEST_SIZE:
        raise argparse.ArgumentTypeError(f"must be at most {LARGEST_SIZE}, got '{text}'")
    return value


def seed(text: str) -> int:
    """Parses a random seed.

    Args:
        text: of one option.

    Returns:
        The number.

    Raises:
        ArgumentTypeError: it is not a non-negative integer.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a non-negative integer, got '{text}'")
    return int(text)


class _Named(argparse.Action):
    """Appends a name and its value to those given before; two values of one name are refused."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(values, tuple)  # by their types, `setting` and `binding`
        settings = getattr(namespace, self.dest)
        name, value = values
        first = dict(settings).get(name, value)
        if first != value:
            raise argparse.ArgumentError(self, f"{name} is given twice, as {first} and as {value}")
        setattr(namespace, self.dest, [*settings, values])


_AUTO = "the first of wgmma, mma_sync and wmma that accepts it, or xetile for pvc and bmg"


def add_pipeline_options(parser: argparse.ArgumentParser, *, required: bool, default: str | None = None) -> None:
    """Adds --pipeline, --set and --without.

    Args:
        parser: of the command.
        required: whether --pipeline must be given.
        default: the pipeline where it is not; `auto` is explained in the help.
    """
    parser.add_argument(
        "--pipeline",
        metavar="NAME|FILE",
        required=required,
        default=default,
        help="a pipeline by name (stepladder list pipelines) or the path of a pipeline file"
        + ("" if default is None else f" (default: {default}, {_AUTO})"),
    )
    parser.add_argument(
        "--set",
        metavar="KNOB=VALUE",
        dest="settings",
        action=_Named,
        type=setting,
        default=[],
        help="set a knob (stepladder list knobs); may be repeated, once for each knob",
    )
    parser.add_argument(
        "--without",
        metavar="STEP[,STEP]",
        action="append",
        type=names,
        default=[],
        help="leave out optimization steps (stepladder list steps); may be repeated",
    )
    parser.add_argument(
        "--function",
        metavar="NAME",
        help="the function to compile, if several functions of the payload have a contraction",
    )
    parser.add_argument(
        "--bind",
        metavar="NAME=SIZE",
        dest="sizes",
        action=_Named,
        type=binding,
        default=[],
        help="set the size of a dynamic dimension of the payload: M, N, K or BATCH of its matmul, or argN.D, dimension "
        "D of argument N; may be repeated",
    )


def add_plugin_options(parser: argparse.ArgumentParser) -> None:
    """Adds --plugin and --verbose-errors.

    Args:
        parser: of a command.
    """
    parser.add_argument(
        "--plugin",
        metavar="FILE.py",
        dest="plugins",
        action="append",
        default=[],
        help="load further transform ops from a Python file (docs/extending.md); may be repeated",
    )
    parser.add_argument(
        "--verbose-errors",
        action="store_true",
        help="print the traceback of an exception in the Python code of an op or a plug-in",
    )


def add_output_option(parser: argparse.ArgumentParser, metavar: str, help_: str, *, required: bool = False) -> None:
    """Adds -o and --output, where the command's result goes.

    Args:
        parser: of a command.
        metavar: name of the argument in the help.
        help_: what goes there.
        required: whether the argument is required.
    """
    parser.add_argument("-o", "--output", metavar=metavar, required=required, help=help_)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Adds --json, which means the same to every command that has it.

    Args:
        parser: of a command.
    """
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="also write the result to FILE, as JSON; - is standard output, and the readable text then goes to "
        "standard error",
    )


def text_for_people(json_path: str | None) -> contextlib.AbstractContextManager[object]:
    """Returns a context in which prints leave standard output to the JSON that is written there, if any.

    Args:
        json_path: of --json; None where it is not given.
    """
    return contextlib.redirect_stdout(sys.stderr) if json_path == STANDARD else contextlib.nullcontext()


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds --gpu and --database.

    Args:
        parser: of a command.
    """
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        help="GPU to choose knobs for by the cost model, such as h200 or a100 (default: STEPLADDER_GPU; else the GPU "
        "of this machine if the model was fitted to it; else the model's GPU for the target)",
    )
    parser.add_argument(
        "--database", metavar="FILE", help="the tuning database (default: the user's, or STEPLADDER_TUNING_DATABASE)"
    )


def database_of(args: argparse.Namespace) -> Path:
    """Returns the tuning database that the options name, or the user's.

    Args:
        args: of a command with `add_model_options`.
    """
    from stepladder.measure.tuning.database import default_path

    return Path(args.database) if args.database is not None else default_path()


def database_to_read(args: argparse.Namespace) -> Path:
    """Returns the tuning database as `database_of`; that of the user need not exist.

    Args:
        args: of a command with `add_model_options`.

    Raises:
        StepladderError: there is no file that --database names.
    """
    if args.database is not None and not Path(args.database).exists():
        raise StepladderError(f"cannot read the tuning database '{args.database}': {os.strerror(errno.ENOENT)}")
    return database_of(args)


def knob_settings(args: argparse.Namespace) -> dict[str, str]:
    """Returns the knobs that the options set, --target among them.

    Args:
        args: of a command with --set and --target.

    Raises:
        StepladderError: an unknown target, or --target and --set that disagree.
    """
    from stepladder.runtime import targets

    settings = dict(args.settings)
    if args.target is not None:
        target = targets.find_limits(args.target).name
        if settings.get("target", target) != target:
            raise StepladderError(f"--target {target} and --set target={settings['target']} disagree; give one of them")
        settings["target"] = target
    return settings


def refuse_empty(args: argparse.Namespace) -> None:
    """Refuses an empty argument, such as that of a shell variable that is not set.

    Args:
        args: of any command.

    Raises:
        StepladderError: there is one.
    """
    for name, value in vars(args).items():
        if name in _NAMES and (value == "" or (isinstance(value, list) and "" in value)):
            raise StepladderError(f"{_NAMES[name]} is an empty name")


def flat(groups: list[list[str]]) -> tuple[str, ...]:
    """Returns the names of a repeated option, each once, in order.

    Args:
        groups: names of each use of the option.
    """
    return tuple(dict.fromkeys(name for group in groups for name in group))


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the examples in epilogs as they are written."""


class Parser(argparse.ArgumentParser):
    """Reports a wrong option in one message, without the usage, which may be longer than a screen."""

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Prints a help, version or error text. argparse's own method ignores OSError: such a text would be lost."""
        (sys.stderr if file is None else file).write(message)

    def error(self, message: str) -> NoReturn:
        """Prints the message and ends the process.

        Args:
            message: what is wrong.
        """
        if match := _CHOICE.search(message):
            message = message.replace(match[0], match[0] + suggest(match[1], re.findall(r"[\w-]+", match[2])), 1)
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}\nnote: {self.prog} --help lists the options\n")
