"""Pipelines that this process has loaded, so that it parses and merges the scripts of a pipeline once.

A pipeline belongs to an MLIR context, and a run writes into its module. What is kept is therefore the module as
bytecode, with the locations, and the description of the pipeline, which holds no MLIR. Most of those that load a
pipeline ask for its knobs and its steps only: the bytecode is read when a module is first asked for.

A pipeline depends on the scripts of the package and, where it is a user's, on those in the folders where its steps are
searched: a new file there may come before one of the package. Scripts of a user are also compared by their content,
since they may be written anew within the resolution of a file's time.
"""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepladder.extension.lib.dialect import dialects
from stepladder.mlir.bindings import ir
from stepladder.pipeline.definition import Knob, Pipeline, Step
from stepladder.pipeline.scripts import SEARCHED_FOLDERS
from stepladder.pipeline.sequences import sequences_by_name
from stepladder.runtime.resources import transforms_dir

# The sources of a script: path, time and size of every script, and the ops of the dialects written in Python.
_State = tuple[frozenset[tuple[str, int, int]], tuple[tuple[object, ...], ...]]


@dataclass(frozen=True)
class _Loaded:
    """A pipeline as `library.load` returned it; attributes as those of `Pipeline`, with its module as bytecode, and the
    content of the scripts that are not the package's."""

    state: _State
    contents: Mapping[Path, bytes]
    bytecode: bytes
    knobs: dict[str, Knob]
    derived: dict[str, str]
    steps: tuple[Step, ...]
    whole_function: bool
    program_step: str | None
    program_knobs: dict[str, str]


_LOADED: dict[Path, _Loaded] = {}


def state_of(path: Path) -> _State | None:
    """Returns what the pipeline of a file depends on, to be compared later; None where a folder cannot be read.

    Args:
        path: of the pipeline.
    """
    folder = transforms_dir()
    python_ops = tuple((dialect, *dialect.operations) for dialect in dialects())
    try:
        own = () if _is_of_package(path) else _searched_scripts(str(path.parent), set())
        return frozenset((*_scripts(str(folder)), *own)), python_ops
    except OSError:
        return None


def _is_of_package(path: Path) -> bool:
    return transforms_dir() in path.parents and ".." not in path.parts


def _scripts(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _scripts(entry.path)
            elif entry.name.endswith(".mlir"):
                yield _identity(entry)


def _searched_scripts(folder: str, seen: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yields the scripts in the folders where `scripts.find` looks; `seen` ends loops of links."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".mlir") and entry.is_file():
                yield _identity(entry)
            elif entry.name in SEARCHED_FOLDERS and entry.is_dir():
                yield from _searched_scripts(entry.path, seen)


def _identity(entry: os.DirEntry[str]) -> tuple[str, int, int]:
    status = entry.stat()
    return entry.path, status.st_mtime_ns, status.st_size


def _contents(paths: Collection[Path]) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in paths if not _is_of_package(path)}


def find(path: Path, state: _State) -> Pipeline | None:
    """Returns a pipeline that was kept, in the current MLIR context; None where there is none for this state.

    Args:
        path: of the pipeline.
        state: from `state_of`.
    """
    entry = _LOADED.get(path)
    if entry is None or entry.state != state:
        return None
    try:
        if _contents(entry.contents) != entry.contents:
            return None
    except OSError:  # loading has the better error
        return None
    context = ir.Context.current
    if not all(context.is_registered_operation(op.OPERATION_NAME) for it in dialects() for op in it.operations[:1]):
        return None  # a context without the extension: loading has the better error here too

    def parse() -> tuple[ir.Module, ir.Operation]:
        module = ir.Module.parse(entry.bytecode, context)
        return module, sequences_by_name(module)[path.stem]

    return Pipeline(
        path.stem,
        path,
        parse,
        dict(entry.knobs),
        dict(entry.derived),
        list(entry.steps),
        entry.whole_function,
        entry.program_step,
        dict(entry.program_knobs),
    )


def keep(pipeline: Pipeline, state: _State, sources: Collection[Path]) -> None:
    """Keeps a pipeline for the next time that it is loaded, unless its scripts have changed meanwhile.

    Args:
        pipeline: before values are written into its module.
        state: from `state_of`, before the scripts were read.
        sources: the scripts that it was read from.
    """
    try:
        contents = _contents(sources)
    except OSError:
        return
    if contents and state_of(pipeline.path) != state:
        return
    bytecode = io.BytesIO()
    pipeline.module.operation.write_bytecode(bytecode)
    _LOADED[pipeline.path] = _Loaded(
        state,
        contents,
        bytecode.getvalue(),
        dict(pipeline.knobs),
        dict(pipeline.derived),
        tuple(pipeline.steps),
        pipeline.whole_function,
        pipeline.program_step,
        dict(pipeline.program_knobs),
    )
