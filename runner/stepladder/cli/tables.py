"""Tables for people."""

from __future__ import annotations

import re
import sys
import textwrap
from typing import TextIO

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?%?")


def verdict(passed: bool) -> str:
    """Returns the word that results are given in, for people and for grep.

    Args:
        passed: whether all results are right.
    """
    return "PASS" if passed else "FAIL"


def print_table(rows: list[dict[str, object]], *, title: str | None = None, file: TextIO | None = None) -> None:
    """Prints rows of equal keys as a table; columns of numbers are right-aligned.

    On a terminal that is too narrow for the words of all columns, each row is a paragraph.

    Args:
        rows: column title -> cell, the same keys in every row.
        title: printed above.
        file: None for standard output.
    """
    out = file or sys.stdout
    numbers = [all(map(_is_number, (row[column] for row in rows))) for column in (rows[0] if rows else ())]
    # A file or a pipe has no width: lines are not folded, for grep and for tests. Neither styles nor folds are needed,
    # which take rich as long as a small kernel takes the emulator.
    text = _plain(rows, numbers, title, _rule(out)) if not out.isatty() else None
    if text is not None:
        out.write(text)
        return

    from rich import box
    from rich.console import Console
    from rich.table import Table

    class RaisingConsole(Console):
        """A console that leaves a closed pipe to the caller; rich itself would exit with status 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column, is_number in zip(rows[0] if rows else (), numbers):
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row.values()))
    console = RaisingConsole(file=out, highlight=False, emoji=False, markup=False)
    if out.isatty() and _least_width(rows) > console.width:
        out.write(_paragraphs(rows, title, console.width))
        return
    if out.isatty():
        console.print(table)
        return
    console.width = console.measure(table, options=console.options.update(max_width=100_000)).maximum
    with console.capture() as capture:
        console.print(table)
    out.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) or (isinstance(cell, str) and _NUMBER.fullmatch(cell) is not None)


def _rule(out: TextIO) -> str:
    """Returns the character of the line below column titles: one that the file's encoding has."""
    try:
        "─".encode(out.encoding or "utf-8")
    except UnicodeEncodeError:
        return "-"
    return "─"


def _least_width(rows: list[dict[str, object]]) -> int:
    """Returns the width of a table in which no column breaks its title or a word."""
    columns = {
        column: [word for row in rows for word in str(row[column]).split()] for column in (rows[0] if rows else ())
    }
    return sum(max(map(len, [column, *words])) + 3 for column, words in columns.items())


def _paragraphs(rows: list[dict[str, object]], title: str | None, width: int) -> str:
    """Returns a paragraph for each row: titles of columns, each with its cell."""
    texts = ["; ".join(f"{column} {cell}".strip() for column, cell in row.items() if str(cell)) for row in rows]
    paragraphs = [
        textwrap.fill(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        for text in texts
    ]
    return "\n\n".join([*([textwrap.fill(title, width)] if title else []), *paragraphs]) + "\n\n"


def _plain(rows: list[dict[str, object]], numbers: list[bool], title: str | None, rule: str) -> str | None:
    """Returns a table as rich prints it, without styles and without blanks at the ends of lines.

    Returns None for cells whose width is not their number of characters.

    Args:
        rows: as for `print_table`.
        numbers: for each column, whether it is set to the right.
        title: as for `print_table`.
        rule: character of the line below column titles.
    """
    cells = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)] if rows else []
    texts = [*(cell for line in cells for cell in line), title or ""]
    if not cells or not all(text.isascii() and text.isprintable() for text in texts):
        return None
    widths = [max(map(len, column)) for column in zip(*cells)]

    def line(row: list[str]) -> str:
        padded = (cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, numbers))
        return f" {'   '.join(padded)}".rstrip()

    width = sum(widths) + 3 * len(widths) - 1
    if title is not None and len(title) > width:
        return None
    lines = [*([title] if title is not None else []), "", line(cells[0])]
    lines += [f" {rule * (width - 2)}", *map(line, cells[1:]), ""]
    return "".join(f"{text}\n" for text in lines)
