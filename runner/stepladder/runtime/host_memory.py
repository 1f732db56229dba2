"""The free memory of the host: a larger request is refused before the system ends the process."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from stepladder.runtime.errors import BAD_INPUT, StepladderError

_SYSTEM = Path("/proc/meminfo")
_CONTAINER = Path("/sys/fs/cgroup/memory.max")

# Less than this is not worth a look at what there is, in bytes.
SMALL = 2**28


def available() -> int | None:
    """Returns the bytes that can still be taken, of the machine or of the container's limit; None if unknown."""
    limits = []
    with contextlib.suppress(OSError):
        limits += [int(size) * 1024 for size in re.findall(r"^MemAvailable:\s+(\d+) kB", _SYSTEM.read_text(), re.M)]
    with contextlib.suppress(OSError):
        limits += [int(size) for size in re.findall(r"^\d+", _CONTAINER.read_text())]
    return min(limits, default=None)


def require(size: int, what: str, *, location: str | None = None, status: int = BAD_INPUT) -> None:
    """Checks that there is memory for something.

    Args:
        size: bytes that it takes at least.
        what: it, for the message: "WHAT needs 3.6 TiB of memory".
        location, status: of the error.

    Raises:
        StepladderError: there is less.
    """
    if size < SMALL:
        return
    free = available()
    if free is not None and size > free:
        raise StepladderError(
            f"{what} needs {_text(size)} of memory, and {_text(free)} are available", location=location, status=status
        )


def _text(size: float) -> str:
    for unit in ("MiB", "GiB", "TiB", "PiB"):
        size /= 1024 if unit != "MiB" else 2**20
        if size < 1024:
            break
    return f"{size:.1f} {unit}"
