"""Compiled kernels on disk, between processes: in the cache of machine code, bounded and safe for many processes.

A key covers all that a kernel depends on: the payload, the pipeline's files, the knobs, the target, this package's own
code and the versions of the tools. Looking a kernel up imports no MLIR.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Mapping
from pathlib import Path

from stepladder.runtime.bundle import Bundle, parse_manifest
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import from_text
from stepladder.runtime.resources import transforms_dir

_PACKAGES = ("torch-mlir", "mlir-python-bindings", "llvmlite", "nvidia-cuda-nvcc", "nvidia-nvvm")
_KINDS = {"manifest": str, "cubin": str, "ptx": str, "reference": str, "data": str}


@functools.lru_cache(maxsize=1)
def _program_digest() -> str:
    """Returns a digest of this package's code and scripts, and of the versions of the tools."""
    digest = hashlib.sha256()
    scripts = transforms_dir()
    files = [Path(__file__).parents[1].rglob("*.py"), scripts.rglob("*.mlir"), scripts.rglob("*.json")]
    for path in sorted(path for found in files for path in found):
        content = path.read_bytes()
        digest.update(f"\n{path.name} {len(content)}\n".encode())
        digest.update(content)
    for name in _PACKAGES:
        try:
            digest.update(f"\n{name} {importlib.metadata.version(name)}".encode())
        except importlib.metadata.PackageNotFoundError:
            continue
    digest.update(os.environ.get("STEPLADDER_PTXAS", "").encode())
    return digest.hexdigest()


@functools.lru_cache(maxsize=1)
def pipelines() -> tuple[str, ...]:
    """Returns the names of the package's pipelines."""
    return tuple(sorted(path.stem for path in transforms_dir().glob("*.mlir")))


def key_of(description: Mapping[str, object], database: Path) -> str:
    """Returns the key of a kernel.

    Args:
        description: of the request, as JSON data: payload, function, pipeline, knobs and so on.
        database: the tuning database, which knobs are chosen from.
    """
    digest = hashlib.sha256(json.dumps([_program_digest(), description], sort_keys=True).encode())
    if database.is_file():
        digest.update(database.read_bytes())
    return f"kernel {digest.hexdigest()}"


def load(key: str) -> Bundle | None:
    """Returns the kernel of a key, without its IR; None where there is none that can be used."""
    from stepladder.pipeline.codegen import cache

    found = cache.lookup(key, _KINDS)
    if found is None:
        return None
    try:
        data = {name: base64.b64decode(content) for name, content in json.loads(str(found["data"])).items()}
        manifest = parse_manifest(str(found["manifest"]), "the cache")
        return Bundle(
            Path(key),
            manifest,
            base64.b64decode(str(found["cubin"])),
            str(found["ptx"]),
            from_text(str(found["reference"]), "the cache"),
            data,
            tuple((data[item.cubin], data[item.ptx].decode()) for item in manifest.front),
        )
    except (StepladderError, KeyError, ValueError, TypeError, AttributeError):  # damaged: it is compiled again
        return None


def save(key: str, bundle: Bundle) -> None:
    """Stores a kernel under a key, where the cache can be used."""
    from stepladder.pipeline.codegen import cache

    assert bundle.reference is not None  # of every build
    # A manifest that is read names only files that it lists: here those in memory.
    files = {name: hashlib.sha256(content).hexdigest() for name, content in bundle.data.items()}
    cache.store(
        key,
        {
            "manifest": json.dumps(dataclasses.replace(bundle.manifest, files=files).to_json()),
            "cubin": base64.b64encode(bundle.cubin).decode(),
            "ptx": bundle.ptx,
            "reference": bundle.reference.to_text(),
            "data": json.dumps({name: base64.b64encode(content).decode() for name, content in bundle.data.items()}),
        },
    )
