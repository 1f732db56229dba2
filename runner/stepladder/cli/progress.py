"""Reports the progress of launches on the emulator, and the estimated time that is left, on standard error.

The report is a progress bar on a terminal, and lines at growing intervals elsewhere.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

# Seconds until the first plain line, and between two of them at most; in between the distance doubles.
FIRST_LINE = 5.0
LONGEST_SILENCE = 60.0

# The estimate covers all of the past: a block can take longer than the window of rich.
_LOOK_BACK = 24 * 3600.0


class LaunchProgress:
    """Shows the progress of launches of one grid; a context manager, called as the emulator's `progress`.

    Args:
        launches: how many there will be.
        file: where to; standard error unless given.
        clock: returns seconds.
    """

    def __init__(
        self, launches: int = 1, *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._launches = launches
        self._file = file or sys.stderr
        self._clock = clock
        self._launch = 0
        self._bar: Progress | None = None

    def __enter__(self) -> LaunchProgress:
        self._began = self._clock()
        self._wait = FIRST_LINE
        self._next = self._began + self._wait
        if self._file.isatty():
            self._bar = _make_bar(self._file)
            self._task = self._bar.add_task("emulating", total=None)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Takes note of `done` blocks (or clusters) of `total` that have ended in the launch that runs."""
        overall, in_all = self._launch * total + done, self._launches * total
        if done == total:
            self._launch = min(self._launch + 1, self._launches - 1)
        if self._bar is not None:
            self._bar.update(self._task, completed=overall, total=in_all)
        elif 0 < overall < in_all and self._clock() >= self._next:
            self._print_line(overall, in_all)

    def _print_line(self, done: int, total: int) -> None:
        elapsed = self._clock() - self._began
        left = elapsed * (total - done) / done
        print(
            f"{done} of {total} blocks ({100 * done // total}%) in {describe_seconds(elapsed)}, about "
            f"{describe_seconds(left)} left",
            file=self._file,
            flush=True,
        )
        self._wait = min(2 * self._wait, LONGEST_SILENCE)
        self._next = self._clock() + self._wait


def describe_seconds(seconds: float) -> str:
    """Returns a duration in words for people, for example `45 s`, `8 min` or `2 h 5 min`.

    Args:
        seconds: at least 0.
    """
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _make_bar(file: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("blocks,"),
        TimeElapsedColumn(),
        TextColumn("passed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(file=file),
        transient=True,
        speed_estimate_period=_LOOK_BACK,
    )
