"""Reproducers of failing steps: the IR before the step, and the command that shows the failure.

A reproducer is written into a folder that the user names, or into a temporary one, of which the last few are kept.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from stepladder.pipeline.request import Request
from stepladder.runtime.errors import reason

# Temporary folders with a reproducer that are kept; older ones are removed.
KEPT = 10

_FOLDER = "stepladder-reproducer-"
_FILE = "reproduce-{}.mlir"


def write_reproducer(step: str, before: str, request: Request, folder: Path | None) -> list[str]:
    """Writes the reproducer of a failing step.

    Args:
        step: the step's name.
        before: the IR that the step ran over.
        request: of the run, with all its knobs.
        folder: where to write it; None for a temporary folder.

    Returns:
        Notes for the error message: the command, or why there is no reproducer.
    """
    one_step = Request(request.pipeline, request.settings, step, step, request.without)
    try:
        path = make_path(step, folder)
        path.write_text(f"// {one_step.command_line(str(path))}\n{before}")
    except OSError as error:
        return [f"the reproducer could not be written: {reason(error)}"]
    command = f"to reproduce: {one_step.command_line(str(path))}"
    return [command] if folder else [command, describe_kept()]


def make_path(step: str, folder: Path | None = None) -> Path:
    """Returns the file for the reproducer of a step, whose folder exists.

    Without a folder, a temporary one is made, and all but the last `KEPT` of this user's are removed.

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
    """Returns the note about temporary reproducers: their folder, and how many of them are kept."""
    return f"{tempfile.gettempdir()} keeps the last {KEPT} reproducers"


def _remove_old(newest: Path) -> None:
    """Removes this user's temporary reproducers that are older than the last `KEPT`, and no other file."""
    folders = []
    for folder in newest.parent.glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if folder.is_dir() and not folder.is_symlink() and status.st_uid == newest.stat().st_uid:
                folders.append((folder == newest, status.st_mtime_ns, folder))
    for _, _, folder in sorted(folders)[:-KEPT]:
        with contextlib.suppress(OSError):  # another process removes it, or it holds another file
            for file in folder.glob(_FILE.format("*")):
                file.unlink()
            os.rmdir(folder)
