"""The place of a failing step's reproducer: a folder that the user names, or a temporary one; few of these are kept."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

# Temporary folders with a reproducer that are kept; older ones are removed.
KEPT = 10

_FOLDER = "stepladder-reproducer-"
_FILE = "reproduce-{}.mlir"


def make_place(step: str, folder: Path | None = None) -> Path:
    """Returns the file for the reproducer of a step, in a folder that is there.

    Without a folder, a temporary one is made, and all but the last `KEPT` of those that this user has are removed.

    Args:
        step: the step's name.
        folder: where to put it.

    Raises:
        OSError: the folder cannot be made.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    else:
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
        _remove_old(folder)
    return folder / _FILE.format(step)


def describe_kept() -> str:
    """Returns the note that goes with a temporary reproducer: where they are, and how many."""
    return f"{tempfile.gettempdir()} keeps the last {KEPT} reproducers"


def _remove_old(newest: Path) -> None:
    """Removes this user's temporary reproducers that are older than the last `KEPT`, and nothing beside them."""
    found = []
    for folder in newest.parent.glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if folder.is_dir() and not folder.is_symlink() and status.st_uid == newest.stat().st_uid:
                found.append((folder == newest, status.st_mtime_ns, folder))
    for _, _, folder in sorted(found)[:-KEPT]:
        with contextlib.suppress(OSError):  # another process removes it, or it holds something else
            for file in folder.glob(_FILE.format("*")):
                file.unlink()
            os.rmdir(folder)
