"""A folder of dumps: the IR after every step of the last run, numbered in order.

A run records the dumps that it wrote, so that the next run into the same folder removes those that it does not write
again. A file that no run wrote, or that was edited since, is never removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from stepladder.runtime.files import make_folder, write_text

# The name of the record: file name -> SHA-256 of each dump.
RECORD = ".stepladder-dumps.json"


def dump_name(number: int, name: str) -> str:
    """Returns the file name of a dump: `NN-name.mlir`, the input being number 0.

    Args:
        number: of the step in the run, from 1 on.
        name: of the step.
    """
    return f"{number:02d}-{name}.mlir"


class DumpFolder:
    """The folder that a run writes its dumps into. It is made, and the last run's dumps removed, with the first dump.

    Args:
        path: the folder.
        kept: a file that is not removed, also if it is a dump of the last run: the input, by its path.
    """

    def __init__(self, path: str, kept: str | None = None) -> None:
        self.path = Path(path)
        self._kept = kept
        self._written: dict[str, str] = {}

    def write(self, step: str, text: str) -> None:
        """Writes the next dump, the IR after a step; that of the step `input` is the first.

        Args:
            step: name of the step.
            text: the IR, as MLIR prints it.

        Raises:
            StepladderError: the folder or the file cannot be written.
        """
        name = dump_name(len(self._written), step)
        if not self._written:
            make_folder(str(self.path))
            self._remove_last()
        write_text(str(self.path / name), text)
        self._written[name] = _digest(text.encode())
        write_text(str(self.path / RECORD), json.dumps(self._written, indent=2) + "\n")

    def _remove_last(self) -> None:
        input_path = Path(self._kept).resolve() if self._kept is not None else None
        for name, digest in _recorded(self.path).items():
            file = self.path / name
            with contextlib.suppress(OSError):  # it is gone, or cannot be removed: then it is kept
                if not file.is_symlink() and _digest(file.read_bytes()) == digest and file.resolve() != input_path:
                    file.unlink()


def _recorded(folder: Path) -> dict[str, str]:
    """Returns what the record in a folder lists; nothing where there is none that can be read."""
    try:
        data = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {name: digest for name, digest in data.items() if isinstance(digest, str) and Path(name).name == name}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
