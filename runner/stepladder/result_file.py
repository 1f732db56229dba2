"""Results as JSON files."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from .errors import StepladderError


class ResultFile:
    """A JSON file to be written when the work is done.

    That it can be written is found out when the object is made: a measurement must not be lost to a mistyped path.

    Args:
        path: the file; its folder must be there.

    Raises:
        StepladderError: `path` is a folder, or its folder is not there or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        if self.path.is_dir():
            raise StepladderError(f"cannot write '{path}': it is a folder")
        self._temporary().unlink()

    def write(self, result: dict[str, Any]) -> None:
        """Writes `result`, all or nothing. Raises StepladderError."""
        temporary = self._temporary()
        try:
            temporary.write_text(json.dumps(result, indent=2, allow_nan=False) + "\n")
            temporary.replace(self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise self._refusal(error) from error

    def _temporary(self) -> Path:
        """Makes an empty file beside the result, so that replacing the result by it is one atomic rename."""
        try:
            handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        except OSError as error:
            raise self._refusal(error) from error
        os.fchmod(handle, 0o644)
        os.close(handle)
        return Path(name)

    def _refusal(self, error: OSError) -> StepladderError:
        return StepladderError(f"cannot write '{self.path}': {error.strerror or error}")
