"""The catalog: pipelines, steps and knobs of the package, as rows of tables.

Reading them needs MLIR, whose import takes longest. The catalog of the package's own pipelines is therefore stored in
the cache folder, with a digest of the texts that it was read from and of the program's version. If the digest differs
or the file is damaged, the catalog is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepladder import __version__
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.files import write_text
from stepladder.runtime.resources import cache_dir, pipeline_names, transforms_dir

if TYPE_CHECKING:
    from stepladder.pipeline.definition import Pipeline

Row = dict[str, Any]
Rows = list[Row]

KINDS = ("pipelines", "steps", "knobs")
_FILE = "catalog.json"


def rows(kind: str, pipeline: str | None = None) -> Rows:
    """Returns a row for each pipeline, step or knob.

    Args:
        kind: one of KINDS.
        pipeline: only of this one, the name of a pipeline of the package or the path of a pipeline file.

    Raises:
        StepladderError: no such pipeline, or a script that does not parse.
    """
    if pipeline is not None and pipeline not in pipeline_names():
        return _read([pipeline])[kind]
    digest = _digest()
    rows_by_kind = _kept(digest)
    if rows_by_kind is None:
        rows_by_kind = _read(pipeline_names())
        _keep(digest, rows_by_kind)
    return [row for row in rows_by_kind[kind] if pipeline in (None, row["pipeline"])]


def _digest() -> str:
    """Returns a digest of the package's pipelines and steps, and of what reads them."""
    folder = transforms_dir()
    readers = [Path(__file__).with_name(f"{name}.py") for name in ("catalog", "definition", "library", "sequences")]
    digest = hashlib.sha256(__version__.encode())
    for path in [*sorted(folder.rglob("*.mlir")), *readers]:
        text = path.read_bytes()
        digest.update(f"\n{path.name} {path.parent.name} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


def _kept(digest: str) -> dict[str, Rows] | None:
    """Returns the rows that were kept under a digest; None where there are none that can be used."""
    try:
        cached = json.loads((cache_dir() / _FILE).read_text())
        if (
            cached["digest"] != digest
            or hashlib.sha256(json.dumps(cached["rows"]).encode()).hexdigest() != cached["check"]
        ):
            return None
        return cached["rows"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


def _keep(digest: str, rows_by_kind: dict[str, Rows]) -> None:
    """Keeps rows for the next time; where the cache folder cannot be written, the next time takes as long."""
    check = hashlib.sha256(json.dumps(rows_by_kind).encode()).hexdigest()
    with contextlib.suppress(OSError, StepladderError):
        cache_dir().mkdir(parents=True, exist_ok=True)
        write_text(str(cache_dir() / _FILE), json.dumps({"digest": digest, "check": check, "rows": rows_by_kind}))


def _read(names: Iterable[str]) -> dict[str, Rows]:
    """Returns the rows of pipelines by kind, read from their scripts."""
    from stepladder.pipeline import library
    from stepladder.pipeline.context import mlir_context

    rows_by_kind: dict[str, Rows] = {kind: [] for kind in KINDS}
    for name in names:
        with mlir_context():
            pipeline = library.load(name)
            for kind, of_pipeline in _describe(pipeline).items():
                rows_by_kind[kind] += of_pipeline
    return rows_by_kind


def _described(key: str, text: str) -> Row:
    """Returns a description, also under the key that the JSON of `stepladder list` has had from the beginning."""
    return {key: text, "description": text}


def _describe(pipeline: Pipeline) -> dict[str, Rows]:
    return {
        "pipelines": [
            {"pipeline": pipeline.name, "steps": len(pipeline.steps), **_described("what it does", pipeline.summary())}
        ],
        "steps": [
            {
                "pipeline": pipeline.name,
                "step": step.name,
                "kind": "optimization" if step.optimization else "lowering",
                "ops": ", ".join(step.dialects) or "upstream",
                "when": step.condition.describe() if step.condition else "always",
                **_described("what it does", step.summary()),
            }
            for step in pipeline.steps
        ],
        "knobs": [
            {
                "pipeline": pipeline.name,
                "knob": knob.name,
                "default": knob.default,
                "options": knob.options_text(),
                **_described("what it is", knob.description),
                "values": None if knob.multiple_of is not None else list(knob.options),
                "multiple_of": knob.multiple_of,
            }
            for knob in pipeline.knobs.values()
        ],
    }
