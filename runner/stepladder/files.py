"""Text files in and out, with `-` for the standard streams; what is written is written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from stepladder.errors import StepladderError

STANDARD = "-"


def read_text(path: str) -> tuple[str, str]:
    """Returns the text of a file and the name that messages call it by; `-` is standard input.

    Raises:
        StepladderError: no such file, a folder, or not text.
    """
    if path == STANDARD:
        return sys.stdin.read(), "<stdin>"
    try:
        return Path(path).read_text(), path
    except UnicodeDecodeError:
        raise StepladderError("not a text file", location=path) from None
    except OSError as error:
        raise StepladderError(f"cannot read '{path}': {error.strerror}") from None


def write_text(path: str | None, text: str) -> None:
    """Writes text to a file; None and `-` are standard output.

    Raises:
        StepladderError: the file cannot be written.
    """
    if path in (None, STANDARD):
        sys.stdout.write(text)
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a device or a pipe is written to, never replaced
            target.write_text(text)
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise StepladderError(f"cannot write '{path}': {error.strerror}") from None


def write_folder(path: str, files: dict[str, str]) -> None:
    """Writes files into a folder, which is made where it is missing.

    Raises:
        StepladderError: the folder or a file cannot be written.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StepladderError(f"cannot write into '{path}': {error.strerror}") from None
    for name, text in files.items():
        write_text(str(Path(path, name)), text)
