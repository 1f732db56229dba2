"""The table of docs/python.md: what a call costs."""

from __future__ import annotations

from collections.abc import Callable

from common import result, table, where


def calls_table() -> str:
    """Returns the host time of calls, beside PyTorch's."""
    measured = result("python_calls")
    rows = [{"call": name, "us": f"{value:.1f}"} for name, value in measured["microseconds"].items()]
    what = measured["what"]
    return table(rows) + f"\n{what[0].upper()}{what[1:]}; `out` is given or allocated. {where(measured)}.\n"


REGIONS: dict[str, Callable[[], str]] = {"calls": calls_table}
