"""What a process is doing, in memory that it shares with the process that waits for it.

Native code that crashes leaves no exception behind: the process that waits reads here which step it was in.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator

_SIZE = 4096

_shared: mmap.mmap | None = None


def share() -> None:
    """Makes the memory, which processes forked later write and this one reads."""
    global _shared
    _shared = mmap.mmap(-1, _SIZE)


@contextlib.contextmanager
def during(description: str) -> Iterator[None]:
    """Says what the block does; without effect where nothing is shared.

    Args:
        description: completes "crashed in", such as "step 'tile_k' of the pipeline 'wmma'".

    Returns:
        A context manager.
    """
    before = current()
    _write(description)
    try:
        yield
    finally:
        _write(before)


def current() -> str:
    """Returns what is being done, of blocks in one another the innermost; empty where nothing is."""
    return bytes(_shared[:]).partition(b"\0")[0].decode(errors="replace") if _shared is not None else ""


def _write(description: str) -> None:
    if _shared is not None:
        content = description.encode(errors="replace")[: _SIZE - 1]
        _shared[: len(content) + 1] = content + b"\0"
