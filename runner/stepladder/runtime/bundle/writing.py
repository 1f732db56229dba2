"""Writes a bundle as a whole: replaces the files of an older bundle and keeps all others."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from stepladder.runtime.bundle.manifest import CUBIN, MANIFEST, PTX, SPIRV, Manifest
from stepladder.runtime.bundle.manifest_reading import listed_files
from stepladder.runtime.bundle.reading import read_fields
from stepladder.runtime.errors import StepladderError, reason
from stepladder.runtime.files import STANDARD
from stepladder.runtime.reference import REFERENCE, Program


def write_bundle(
    path: str | os.PathLike[str],
    manifest: Manifest,
    cubin: bytes,
    ptx: str,
    ir: Mapping[str, str],
    others: Mapping[str, str] | None = None,
    reference: Program | None = None,
    data: Mapping[str, bytes] | None = None,
) -> None:
    """Writes a bundle, all or nothing, over the bundle at `path` if there is one.

    Files that the older bundle's manifest lists are replaced or removed; every other file in the folder is kept.

    Args:
        path: the folder to make; its parent folders are made too. A symbolic link is followed.
        manifest: `files` is ignored: it is computed here.
        cubin: machine code.
        ptx: PTX text.
        ir: text of every dump by file name.
        others: text of further files by path relative to the bundle.
        reference: what the payload computes.
        data: content of the files that arguments name as their data, and of the images of kernels before that of the
            matmul, by path relative to the bundle.

    Raises:
        StepladderError: the path cannot be written, `path` is there and is no bundle, or a file that the older
            bundle's manifest does not list has the name of one to write.
    """
    write_contents(
        path, manifest.to_json(), bundle_files(manifest, cubin, ptx, ir, others or {}, reference, data or {})
    )


def bundle_files(
    manifest: Manifest,
    cubin: bytes,
    ptx: str,
    ir: Mapping[str, str],
    others: Mapping[str, str],
    reference: Program | None,
    data: Mapping[str, bytes],
) -> dict[str, bytes]:
    """Returns the content of a bundle's files by their paths in it, with a complete manifest.

    Args:
        manifest: `files` is ignored: it is computed here.
        cubin: machine code.
        ptx: PTX text.
        ir: text of every dump by file name.
        others: text of further files by path relative to the bundle.
        reference: what the payload computes; None for a bundle that does not say it.
        data: content of files that are no text, by path relative to the bundle.
    """
    texts = {PTX: ptx} | {f"ir/{name}": text for name, text in ir.items()}
    texts |= others
    if reference is not None:
        texts[REFERENCE] = reference.to_text()
    contents = {CUBIN: cubin} | {name: text.encode() for name, text in texts.items()} | dict(data)
    contents[MANIFEST] = _manifest_file(manifest.to_json(), contents)
    return contents


def _manifest_file(fields: Mapping[str, Any], contents: Mapping[str, bytes]) -> bytes:
    """Returns the content of a manifest, with the digests of the other files."""
    digests = {
        name: hashlib.sha256(content).hexdigest() for name, content in sorted(contents.items()) if name != MANIFEST
    }
    return (json.dumps({**fields, "files": digests}, indent=2) + "\n").encode()


def write_contents(path: str | os.PathLike[str], manifest: dict[str, Any], contents: Mapping[str, bytes]) -> None:
    """Writes a manifest, and the files that it lists, all or nothing, over the bundle at `path` if there is one.

    Args:
        path: the folder to make.
        manifest: as JSON data; `files` is computed here.
        contents: of the files, by path relative to the bundle.

    Raises:
        StepladderError: as `write_bundle`.
    """
    output = Path(path)
    path = _place(output)
    contents = {**contents, MANIFEST: _manifest_file(manifest, contents)}

    temporary: Path | None = None
    try:
        entries = _kept(path, _listed(output, path))
        _check_names(output, contents, entries)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        fresh = temporary / "new"
        for name, content in contents.items():
            target = fresh / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        for name in entries:
            _carry(path / name, fresh / name)
        # A folder cannot be renamed over a folder with files in it: the old bundle moves out of the way first.
        if path.exists():
            path.rename(temporary / "old")
        fresh.rename(path)
    except OSError as error:
        # A file where a folder should be made is "File exists" to mkdir, which says little to a user.
        cause = "Not a directory" if isinstance(error, FileExistsError) else reason(error)
        raise StepladderError(f"cannot write bundle '{output}': {cause}") from error
    finally:
        if temporary is not None:
            _restore(temporary / "old", path)
            shutil.rmtree(temporary, ignore_errors=True)


def check_output(path: str | os.PathLike[str]) -> None:
    """Finds out whether a bundle may be written to `path`, before the work is done that makes it.

    Args:
        path: the folder of a bundle, which need not exist.

    Raises:
        StepladderError: `path` is there and is no bundle, or it is `-`.
    """
    if os.fspath(path) == STANDARD:
        raise StepladderError("a bundle is a folder, which standard output cannot take; name one, or './-'")
    _listed(Path(path), _place(Path(path)))


def _place(output: Path) -> Path:
    """Returns where a bundle of the path `output` is or would be, behind any symbolic link."""
    return Path(os.path.realpath(output)) if output.is_symlink() else output


def _listed(output: Path, path: Path) -> set[str]:
    """Returns the files of the bundle at `path`, its manifest included; none where there is nothing yet.

    Raises:
        StepladderError: `path` is there and is no bundle.
    """
    if not os.path.lexists(path):
        return set()
    refusal = f"'{output}' exists and is not a bundle; it was not changed. Name another output"
    if not (path / MANIFEST).is_file():
        raise StepladderError(refusal)
    try:
        fields = read_fields(path)
        fields.integer("schema_version")
        files = listed_files(fields)
    except StepladderError as error:
        raise StepladderError(refusal, notes=[error.render()]) from None
    if CUBIN not in files and SPIRV not in files and not any(name.startswith("kernels/") for name in files):
        raise StepladderError(refusal, notes=[f"{path / MANIFEST}: field 'files' does not list '{CUBIN}'"])
    return {MANIFEST, *(str(PurePosixPath(name)) for name in files)}


def _kept(path: Path, listed: set[str]) -> dict[str, bool]:
    """Returns the entries of the folder `path` that are kept, name -> whether it is a folder: all but those `listed`.

    Folders that hold listed files and nothing else are not in it.
    """
    entries = dict(_entries(path, "")) if listed else {}
    unlisted = {name: is_folder for name, is_folder in entries.items() if is_folder or name not in listed}
    of_bundle = {str(parent) for name in listed for parent in PurePosixPath(name).parents}
    return {name: is_folder for name, is_folder in unlisted.items() if not (is_folder and name in of_bundle)}


def _entries(folder: Path, prefix: str) -> Iterator[tuple[str, bool]]:
    """Yields every entry below a folder, as its name relative to it and whether it is a folder, parents first."""
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        yield prefix + entry.name, is_folder
        if is_folder:
            yield from _entries(folder / entry.name, f"{prefix}{entry.name}/")


def _check_names(output: Path, contents: Mapping[str, bytes], entries: Mapping[str, bool]) -> None:
    """Raises StepladderError where a file to write has the path of an entry that is kept, or of a folder above it."""
    files = set(contents)
    folders = {str(parent) for name in contents for parent in PurePosixPath(name).parents}
    for name, is_folder in entries.items():
        if name in files or (name in folders and not is_folder):
            raise StepladderError(
                f"'{output / name}' has the name of a file of the new bundle, and {MANIFEST} does not list it; it was "
                "not changed. Move it, or name another output"
            )


def _carry(source: Path, target: Path) -> None:
    """Makes an entry of the older bundle one of the newer, so that both have it."""
    if source.is_dir() and not source.is_symlink():
        target.mkdir(parents=True, exist_ok=True)
        shutil.copystat(source, target)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # not every file system has links
        shutil.copy2(source, target, follow_symlinks=False)


def _restore(old: Path, path: Path) -> None:
    """Puts the old bundle back if writing stopped between the two renames."""
    if old.exists() and not path.exists():
        old.rename(path)
