"""Pipelines that this process has loaded, so that it parses and merges the scripts of a pipeline once.

A pipeline belongs to an MLIR context, and a run writes into its module. What is kept is therefore the module as
bytecode, with the locations, and the description of the pipeline, which holds no MLIR. Only the pipelines of the
package are kept: the scripts that they include are all in the package's folder, so that a change of any is seen.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stepladder.extension.lib.dialect import dialects
from stepladder.mlir.bindings import ir
from stepladder.pipeline.definition import Knob, Pipeline, Step
from stepladder.pipeline.sequences import sequences_by_name
from stepladder.runtime.resources import transforms_dir

# The sources of a script: path, time and size of every script, and the ops of the dialects written in Python.
_State = tuple[frozenset[tuple[str, int, int]], tuple[tuple[object, ...], ...]]


@dataclass(frozen=True)
class _Loaded:
    """A pipeline as `library.load` returned it; attributes as those of `Pipeline`, with its module as bytecode."""

    state: _State
    bytecode: bytes
    knobs: dict[str, Knob]
    derived: dict[str, str]
    steps: tuple[Step, ...]
    whole_function: bool
    program_step: str | None
    program_knobs: dict[str, str]


_LOADED: dict[Path, _Loaded] = {}


def state_of(path: Path) -> _State | None:
    """Returns what the pipeline of a file depends on, to be compared later; None for a file that is not the package's.

    Args:
        path: of the pipeline.
    """
    folder = transforms_dir()
    if folder not in path.parents or ".." in path.parts:
        return None
    python_ops = tuple((dialect, *dialect.operations) for dialect in dialects())
    return frozenset(_scripts(str(folder))), python_ops


def _scripts(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _scripts(entry.path)
            elif entry.name.endswith(".mlir"):
                status = entry.stat()
                yield entry.path, status.st_mtime_ns, status.st_size


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
        module = ir.Module.parse(entry.bytecode)
    except ir.MLIRError:  # a context without the extension: the scripts' own error is the better one
        return None
    return Pipeline(
        path.stem,
        path,
        module,
        sequences_by_name(module)[path.stem],
        dict(entry.knobs),
        dict(entry.derived),
        list(entry.steps),
        entry.whole_function,
        entry.program_step,
        dict(entry.program_knobs),
    )


def keep(pipeline: Pipeline, state: _State) -> None:
    """Keeps a pipeline for the next time that it is loaded.

    Args:
        pipeline: before values are written into its module.
        state: from `state_of`, before the scripts were read.
    """
    bytecode = io.BytesIO()
    pipeline.module.operation.write_bytecode(bytecode)
    _LOADED[pipeline.path] = _Loaded(
        state,
        bytecode.getvalue(),
        dict(pipeline.knobs),
        dict(pipeline.derived),
        tuple(pipeline.steps),
        pipeline.whole_function,
        pipeline.program_step,
        dict(pipeline.program_knobs),
    )
