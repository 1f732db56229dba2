"""Reads the files of a bundle, and checks that every one is there and complete."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from pathlib import Path

from stepladder.runtime.bundle.fields import Fields, parse_object
from stepladder.runtime.bundle.manifest import (
    CUBIN,
    MANIFEST,
    PTX,
    Bundle,
    Manifest,
)
from stepladder.runtime.bundle.manifest_reading import listed_files, manifest_of
from stepladder.runtime.bundle.reference_operands import check_kernel_reference
from stepladder.runtime.bundle.reference_reading import parse_reference
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError, reason
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import REFERENCE, Program


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Reads and verifies the bundle at `path`.

    Args:
        path: the bundle's folder.

    Returns:
        The manifest, the kernels and the reference program.

    Raises:
        StepladderError: a file is missing, unreadable, truncated or edited, or a field of the manifest is missing, of
            the wrong type, or has a value that no kernel has; the message names the file or the field.
    """
    path = Path(path)
    if not path.is_dir():
        raise StepladderError(f"no bundle at '{path}': " + ("not a folder" if path.exists() else "no such folder"))
    manifest = manifest_of(read_fields(path))
    for name in (CUBIN, PTX):
        if name not in manifest.files:
            raise StepladderError(f"field 'files' does not list '{name}'", location=str(path / MANIFEST))
    contents = contents_of(path, manifest.files)
    ptx = text_of(contents, PTX, path)
    front = tuple((contents[kernel.cubin], text_of(contents, kernel.ptx, path)) for kernel in manifest.front)
    reference = None
    if REFERENCE in contents:
        reference = read_reference(contents[REFERENCE], manifest.problem, path)
    data = {name: contents[name] for name in _data_files(manifest, contents, path)}
    return Bundle(path, manifest, contents[CUBIN], ptx, reference, data, front)


def contents_of(path: Path, files: Mapping[str, str]) -> dict[str, bytes]:
    """Returns the content of a bundle's files, by their names.

    Args:
        path: the folder.
        files: SHA-256 by name.

    Raises:
        StepladderError: a file is missing, or of another digest.
    """
    return {name: _read_verified(path, name, digest) for name, digest in files.items()}


def read_contents(fields: Fields, path: Path) -> dict[str, bytes]:
    """Returns the content of every file that a manifest lists, by path relative to the bundle, verified.

    Args:
        fields: of the manifest.
        path: of the bundle.

    Raises:
        StepladderError: a file is missing or was edited, or the field `files` is of the wrong type.
    """
    return contents_of(path, listed_files(fields))


def text_of(contents: Mapping[str, bytes], name: str, path: Path) -> str:
    """Returns the text of a file.

    Args:
        contents: of a bundle's files, by name.
        name: of the file.
        path: of the bundle, for the message.

    Raises:
        StepladderError: it is no UTF-8.
    """
    try:
        return contents[name].decode()
    except UnicodeDecodeError:
        raise StepladderError(f"bundle file '{path / name}' is not UTF-8 text; compile it again") from None


def _data_files(manifest: Manifest, contents: Mapping[str, bytes], path: Path) -> list[str]:
    """Returns the files with the content of arguments that are constants.

    Raises:
        StepladderError: a file that the manifest does not list, or of another size than the argument.
    """
    names = []
    for argument in manifest.all_arguments:
        if argument.data is None:
            continue
        if argument.data not in contents:
            raise StepladderError(f"field 'files' does not list '{argument.data}'", location=str(path / MANIFEST))
        size = math.prod(argument.shape) * element_type(argument.element_type).bytes
        if len(contents[argument.data]) != size:
            raise StepladderError(
                f"argument {argument.name} has {size} bytes, and '{argument.data}' {len(contents[argument.data])}",
                location=str(path / MANIFEST),
            )
        names.append(argument.data)
    return names


def read_launch(path: str | os.PathLike[str]) -> tuple[Manifest, Program | None]:
    """Returns the manifest of the bundle at `path`, and what its payload computes, None where it has no reference.

    The kernel's files are not looked at: what they say may be run in another version.

    Args:
        path: the bundle's folder.

    Raises:
        StepladderError: as for `read_bundle`.
    """
    path = Path(path)
    if not path.is_dir():
        raise StepladderError(f"no bundle at '{path}': " + ("not a folder" if path.exists() else "no such folder"))
    manifest = manifest_of(read_fields(path))
    if REFERENCE not in manifest.files:
        return manifest, None
    return manifest, read_reference(_read_verified(path, REFERENCE, manifest.files[REFERENCE]), manifest.problem, path)


def read_reference(content: bytes, problem: Problem, path: Path) -> Program:
    """Returns the reference program of a kernel's bundle.

    Args:
        content: of its file.
        problem: of the manifest.
        path: of the bundle.

    Raises:
        StepladderError: no program that can be evaluated, or one of other operands than the problem's; names the field.
    """
    location = str(path / REFERENCE)
    program = parse_reference(content, location)
    check_kernel_reference(program, problem, location)
    return program


def read_fields(path: Path) -> Fields:
    """Returns the fields of the manifest in the folder `path`, none of them looked at.

    Args:
        path: the bundle's folder.

    Raises:
        StepladderError: the manifest is missing or unreadable, or is no JSON object.
    """
    file = path / MANIFEST
    return parse_object(_read(file), str(file), "manifest", "the bundle is truncated or was edited")


def _read_verified(path: Path, name: str, digest: str) -> bytes:
    content = _read(path / name)
    if hashlib.sha256(content).hexdigest() != digest:
        raise StepladderError(
            f"bundle file '{path / name}' is truncated or was edited: its SHA-256 is not the one in "
            f"{MANIFEST}; compile it again"
        )
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise StepladderError(f"bundle file '{path}' is missing") from None
    except (OSError, ValueError) as error:  # the latter is a name that holds a zero byte
        raise StepladderError(f"cannot read bundle file '{path}': {reason(error)}") from error
