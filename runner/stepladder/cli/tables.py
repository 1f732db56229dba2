"""Tables for people."""

from __future__ import annotations

import sys
from typing import TextIO


def verdict(passed: bool) -> str:
    """Returns the word that results are given in, for people and for grep."""
    return "PASS" if passed else "FAIL"


def print_table(rows: list[dict[str, object]], *, title: str | None = None, file: TextIO | None = None) -> None:
    """Prints rows of equal keys as a table; numbers are set to the right.

    Args:
        rows: column title -> cell, the same keys in every row.
        title: printed above.
        file: None for standard output.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    class RaisingConsole(Console):
        """A console that leaves a closed pipe to the caller; rich itself would exit with status 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in rows[0] if rows else ():
        is_number = all(isinstance(row[column], int | float) for row in rows)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row.values()))
    out = file or sys.stdout
    console = RaisingConsole(file=out, highlight=False, emoji=False, markup=False)
    if not out.isatty():  # a file or a pipe has no width: lines are not folded, for grep and for tests
        console.width = console.measure(table, options=console.options.update(max_width=100_000)).maximum
    console.print(table)
