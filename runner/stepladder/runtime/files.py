"""Reads and writes text files, with `-` for the standard streams; a file is written as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from stepladder.runtime.errors import StepladderError, printable, reason

STANDARD = "-"


def read_text(path: str) -> tuple[str, str]:
    """Returns the text of a file and the name that messages call it by; `-` is standard input.

    Args:
        path: of a file of UTF-8, with or without a byte order mark, or `-`.

    Raises:
        StepladderError: no such file, a folder, or not UTF-8.
    """
    name = "<stdin>" if path == STANDARD else printable(path)
    try:
        if path == STANDARD:
            return sys.stdin.buffer.read().decode("utf-8-sig"), name
        return Path(path).read_text(encoding="utf-8-sig"), name
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        raise StepladderError(
            f"not UTF-8 text: byte 0x{error.object[error.start]:02x}", location=f"{name}:{line}:{column}"
        ) from None
    except OSError as error:
        raise StepladderError(f"cannot read '{name}': {reason(error)}") from None
    except ValueError as error:  # a path with a null byte
        raise StepladderError(f"cannot read {path!r}: {error}") from None


def is_text(path: str) -> bool:
    """Returns whether a path is UTF-8: Python keeps other bytes of names as halves of surrogate pairs.

    Args:
        path: of a file or a folder.
    """
    return path.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in path)


def check_writable(path: str) -> None:
    """Finds out whether a file can be written, before work is done whose result it is to hold.

    Args:
        path: of the file; `-` is always writable.

    Raises:
        StepladderError: it is a folder, or its folder is missing or cannot be written.
    """
    target = _behind_links(path)
    if path == STANDARD or (target.exists() and not target.is_file() and not target.is_dir()):
        return
    if target.is_dir():
        raise StepladderError(f"cannot write '{path}': it is a folder")
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise StepladderError(f"cannot write '{path}': {reason(error)}") from None
    os.close(handle)
    os.unlink(temporary)


def write_text(path: str | None, text: str) -> None:
    """Writes text to a file; None and `-` are standard output.

    A symbolic link is kept: the file that it points to is written.

    Args:
        path: of the file, `-` or None.
        text: its whole content.

    Raises:
        StepladderError: the file cannot be written.
    """
    if path in (None, STANDARD):
        sys.stdout.write(text)
        return
    with replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # bytes of file names that are not UTF-8, as escapes


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Opens a file to be written whole or not at all: what the block writes replaces the file when it ends.

    Args:
        path: of the file.

    Raises:
        StepladderError: the file cannot be written, then as it was before.
    """
    target = _behind_links(path)
    if target.is_dir():
        raise StepladderError(f"cannot write '{path}': it is a folder")
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as file:  # a device or a pipe is written to, never replaced
                yield file
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            os.chmod(temporary, _mode(target))
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise StepladderError(f"cannot write '{path}': {reason(error)}") from None


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Makes a folder that is removed after the block.

    Returns:
        A context manager of the folder's path.

    Raises:
        StepladderError: it cannot be made, or what the block writes there does not fit on its disk.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="stepladder-") as name:
            yield Path(name)
    except OSError as error:
        # Errors of writing name no file, those of a program that cannot be run name it.
        if error.filename is not None and not str(error.filename).startswith(tempfile.gettempdir()):
            raise
        raise StepladderError(
            f"cannot write a temporary file: {reason(error)}", notes=["TMPDIR names the folder of temporary files"]
        ) from None


def _mode(target: Path) -> int:
    """Returns the permissions that a file has, or gets when it is made."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0o077)  # the only way to read it
    os.umask(mask)
    return 0o666 & ~mask


def _behind_links(path: str) -> Path:
    """Returns the file that `path` is or, after symbolic links, points to, whether it exists or not.

    Raises:
        StepladderError: links that lead back to themselves.
    """
    target = os.path.realpath(path) if os.path.islink(path) else path
    if os.path.islink(target):
        raise StepladderError(f"cannot write '{path}': {os.strerror(errno.ELOOP)}")
    return Path(target)


def write_json(path: str, result: dict[str, Any] | list[dict[str, Any]]) -> None:
    """Writes a result as JSON. Raises StepladderError as `write_text`.

    Args:
        path: as for `write_text`.
        result: data that JSON has.
    """
    write_text(path, json.dumps(result, indent=2, allow_nan=False) + "\n")


def make_folder(path: str) -> None:
    """Makes a folder, and those above it, where they are missing.

    Args:
        path: of the folder; one that exists is kept.

    Raises:
        StepladderError: it cannot be made.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise StepladderError(f"cannot write into '{path}': it is not a folder") from None
    except OSError as error:
        raise StepladderError(f"cannot write into '{path}': {reason(error)}") from None
