"""Shared by the scripts: their command lines, the files of their results, and tables in Markdown."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Columns of a line of prose in a document.
WIDTH = 120
# A line that begins with one of these words would begin a list, a heading or a quotation.
_NO_FIRST_WORD = re.compile(r" (?=(?:[-+*>]|#+|\d+[.)])(?: |$))")
_KEPT_SPACE = "\0"


def new_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser of a script's command line.

    Args:
        description: the docstring of the script, shown unchanged.
    """
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def measurement_parser(
    description: str | None, sizes: Sequence[int], name: str, rounds: int
) -> argparse.ArgumentParser:
    """Returns a parser of a script that measures square problems in rounds.

    Args:
        description: as for `new_parser`.
        sizes: extents, unless `--sizes` gives others.
        name: of the result, docs/results/NAME.json, unless `--out` gives another.
        rounds: unless `--rounds` gives another number.
    """
    from stepladder.measure.timing import MODES

    parser = new_parser(description)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(sizes), help="extents m = n = k")
    parser.add_argument("--mode", default="burst", choices=list(MODES), help="how long a kernel runs in a round")
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds, of which medians are taken")
    result = DOCS / "results" / f"{name}.json"
    parser.add_argument("--out", type=Path, default=result, help="where the result is written")
    return parser


def result_parser(description: str | None, name: str) -> argparse.ArgumentParser:
    """Returns the parser of a script whose one argument is the file that it writes.

    Args:
        description: the script's docstring.
        name: of the result, docs/results/NAME.json, where no file is given.
    """
    parser = new_parser(description)
    parser.add_argument(
        "result",
        type=Path,
        nargs="?",
        default=DOCS / "results" / f"{name}.json",
        metavar="RESULT.json",
        help=f"file to write (default: docs/results/{name}.json)",
    )
    return parser


def run(main: Callable[[], int | None]) -> NoReturn:
    """Runs a script and ends the process; an error or a missing file is printed as one message.

    Args:
        main: returns the exit status, None for 0.
    """
    from stepladder.cli.guard import guarded
    from stepladder.runtime.errors import StepladderError

    def command() -> int:
        try:
            return main() or 0
        except OSError as error:
            raise StepladderError(str(error)) from None

    sys.exit(guarded(command))


def main_of_parts(make_parser: Callable[[], argparse.ArgumentParser]) -> Callable[..., None]:
    """Returns the main function of a script with parts, such as `measure` and `report`: it calls the `run` of a part.

    Args:
        make_parser: returns the parser of the command line, whose parts set `run`.
    """

    def main(argv: Sequence[str] | None = None) -> None:
        args = make_parser().parse_args(argv)
        args.run(args)

    return main


def command_line() -> list[str]:
    """Returns the command line for a result: an absolute path is reduced to its last part."""
    return [Path(word).name if Path(word).is_absolute() else word for word in sys.argv]


def now() -> str:
    """Returns the time of a measurement, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def origin() -> dict[str, Any]:
    """Returns when and by which command a result is made."""
    return {"date": now(), "command": command_line()}


def result(name: str) -> dict:
    """Returns a measured result: docs/results/NAME.json.

    Args:
        name: of the file, without its suffix.
    """
    return json.loads((DOCS / "results" / f"{name}.json").read_text())


def cells_of(measured: dict, field: str = "rows") -> list[dict[str, Any]]:
    """Returns the rows of a table as cells by column.

    Args:
        measured: a result with `columns`, and lists of as many cells.
        field: that has the lists.
    """
    return [dict(zip(measured["columns"], row)) for row in measured[field]]


def write_result(path: Path, measured: dict) -> None:
    """Replaces a result as a whole: an interrupted call leaves the previous one.

    Args:
        path: of the file.
        measured: the result, which JSON can represent.
    """
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(measured) + "\n")
    part.replace(path)


def table(rows: list[dict[str, str]]) -> str:
    """Returns rows as a table in Markdown.

    Args:
        rows: cells by column; all rows have the same columns. There is at least one.
    """
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(row[column] for column in head) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def wrapped(text: str) -> str:
    """Returns Markdown with long lines of prose wrapped at WIDTH columns.

    Args:
        text: Markdown; tables, images and code are unchanged.
    """
    lines, code = [], False
    for line in text.split("\n"):
        code ^= line.startswith("```")
        if code or len(line) <= WIDTH or line.startswith(("|", "!", "```")):
            lines.append(line)
            continue
        marked = _NO_FIRST_WORD.sub(_KEPT_SPACE, line)
        lines += [
            part.replace(_KEPT_SPACE, " ")
            for part in textwrap.wrap(marked, WIDTH, break_long_words=False, break_on_hyphens=False)
        ]
    return "\n".join(lines)


def where(measured: dict) -> str:
    """Returns card, driver and day of a measurement.

    Args:
        measured: a result of `bench`.
    """
    card = measured["card"]
    return f"{card['name']}, driver for CUDA {card['driver_cuda_version']}, {measured['date'][:10]}"


def median(measured: dict, kernel: str, mode: str = "burst") -> float:
    """Returns the median TFLOP/s of a kernel.

    Args:
        measured: a result of `bench`.
        kernel: its name.
        mode: "burst" or "sustained".
    """
    return measured["modes"][mode]["kernels"][kernel]["tflops_spread"]["median"]


def ratio(measured: dict, kernel: str, other: str, mode: str = "burst") -> str:
    """Returns the median ratio of two kernels as text.

    Args:
        measured: a result of `bench`.
        kernel: its name.
        other: the name of the kernel that it is compared with.
        mode: "burst" or "sustained".
    """
    spread = measured["modes"][mode]["ratios"][kernel][other]["spread"]
    return f"{spread['median']:.3f}"
