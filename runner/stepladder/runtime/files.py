"""Text files in and out, with `-` for the standard streams; what is written is written whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from stepladder.runtime.errors import StepladderError

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


def check_writable(path: str) -> None:
    """Finds out whether a file can be written, before work is done whose result it is to hold.

    Raises:
        StepladderError: it is a folder, or its folder is missing or cannot be written.
    """
    target = Path(path)
    if path == STANDARD or (target.exists() and not target.is_file() and not target.is_dir()):
        return
    if target.is_dir():
        raise StepladderError(f"cannot write '{path}': it is a folder")
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise StepladderError(f"cannot write '{path}': {error.strerror}") from None
    os.close(handle)
    os.unlink(temporary)


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
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_text(text)  # a device or a pipe is written to, never replaced
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


def write_json(path: str, result: dict[str, Any]) -> None:
    """Writes a result as JSON. Raises StepladderError as `write_text`."""
    write_text(path, json.dumps(result, indent=2, allow_nan=False) + "\n")


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
