"""Compiled kernels and functions on disk, between processes: in the cache of machine code.

The cache is bounded and safe for many processes.

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

from stepladder.runtime.bundle import (
    Bundle,
    FunctionBundle,
    PlainCode,
    check_function,
    parse_function_manifest,
    parse_manifest,
    parse_reference,
)
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.resources import transforms_dir

_PACKAGES = ("torch-mlir", "mlir-python-bindings", "llvmlite", "nvidia-cuda-nvcc", "nvidia-nvvm")
_KINDS = {"manifest": str, "cubin": str, "ptx": str, "reference": str, "data": str}
_FUNCTION_KINDS = {"manifest": str, "kernels": str, "reference": str, "data": str}
_DAMAGES = (StepladderError, KeyError, ValueError, TypeError, AttributeError)
# Characters of an entry, of the 256 MiB of the cache.
_LARGEST = 32 * 1024 * 1024


@functools.lru_cache(maxsize=1)
def _program_digest() -> str:
    """Returns a digest of this package's code and scripts, and of the versions of the tools."""
    digest = hashlib.sha256()
    scripts = transforms_dir()
    files = [Path(__file__).parents[1].rglob("*.py"), scripts.rglob("*.mlir"), scripts.rglob("*.json")]
    for path in sorted(path for group in files for path in group):
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
    """Returns the common part of the keys of a request, for its kernel and for its function.

    Args:
        description: of the request, as JSON data: payload, function, pipeline, knobs and so on.
        database: the tuning database, which knobs are chosen from.
    """
    digest = hashlib.sha256(json.dumps([_program_digest(), description], sort_keys=True).encode())
    if database.is_file():
        digest.update(database.read_bytes())
    return digest.hexdigest()


def load(key: str) -> Bundle | None:
    """Returns the kernel of a key, without its IR; None where there is none that can be used.

    Args:
        key: of the request that made it, a digest.
    """
    from stepladder.pipeline.codegen import cache

    files = cache.lookup(f"kernel {key}", _KINDS)
    if files is None:
        return None
    try:
        return _bundle_of({name: str(text) for name, text in files.items()}, Path(key))
    except _DAMAGES:  # it is compiled again
        return None


def save(key: str, bundle: Bundle) -> None:
    """Stores a kernel under a key, where the cache can be used.

    Args:
        key: of the request that made it, a digest.
        bundle: the kernel's.
    """
    _store(f"kernel {key}", _texts_of(bundle))


def load_function(key: str) -> FunctionBundle | None:
    """Returns the function of a key, without its IR; None where there is none that can be used.

    Args:
        key: of the request that made it, a digest.
    """
    from stepladder.pipeline.codegen import cache

    files = cache.lookup(f"function {key}", _FUNCTION_KINDS)
    if files is None:
        return None
    try:
        path = Path(key)
        kernels: dict[str, Bundle | PlainCode] = {}
        for folder, texts in json.loads(str(files["kernels"])).items():
            if "manifest" in texts:
                kernels[folder] = _bundle_of(texts, path / folder)
            else:
                kernels[folder] = PlainCode(_bytes(texts["cubin"]), texts["ptx"])
        bundle = FunctionBundle(
            path,
            parse_function_manifest(str(files["manifest"]), "the cache"),
            kernels,
            parse_reference(str(files["reference"]).encode(), "the cache"),
            {name: _bytes(content) for name, content in json.loads(str(files["data"])).items()},
        )
        check_function(bundle)
        return bundle
    except _DAMAGES:  # it is compiled again
        return None


def save_function(key: str, bundle: FunctionBundle) -> None:
    """Stores a function under a key, where the cache can be used; one with large constants is not stored.

    Args:
        key: of the request that made it, a digest.
        bundle: the function's.
    """
    kernels: dict[str, dict[str, str]] = {}
    for folder, kernel in bundle.kernels.items():
        if isinstance(kernel, Bundle):
            kernels[folder] = _texts_of(kernel)
        else:
            kernels[folder] = {"cubin": _text(kernel.cubin), "ptx": kernel.ptx}
    _store(
        f"function {key}",
        {
            "manifest": json.dumps(bundle.manifest.to_json()),
            "kernels": json.dumps(kernels),
            "reference": bundle.reference.to_text(),
            "data": json.dumps({name: _text(content) for name, content in bundle.data.items()}),
        },
    )


def _store(key: str, texts: Mapping[str, str]) -> None:
    """Stores texts, unless they are so large that they would drive out most of what the cache holds."""
    from stepladder.pipeline.codegen import cache

    if sum(map(len, texts.values())) <= _LARGEST:
        cache.store(key, dict(texts))


def _texts_of(bundle: Bundle) -> dict[str, str]:
    """Returns a kernel as texts."""
    assert bundle.reference is not None  # of every build
    # A manifest that is read names only files that it lists: here those in memory.
    files = {name: hashlib.sha256(content).hexdigest() for name, content in bundle.data.items()}
    return {
        "manifest": json.dumps(dataclasses.replace(bundle.manifest, files=files).to_json()),
        "cubin": _text(bundle.cubin),
        "ptx": bundle.ptx,
        "reference": bundle.reference.to_text(),
        "data": json.dumps({name: _text(content) for name, content in bundle.data.items()}),
    }


def _bundle_of(texts: Mapping[str, str], path: Path) -> Bundle:
    """Returns the kernel that texts are of; raises one of `_DAMAGES` for other texts."""
    data = {name: _bytes(content) for name, content in json.loads(texts["data"]).items()}
    manifest = parse_manifest(texts["manifest"], "the cache")
    return Bundle(
        path,
        manifest,
        _bytes(texts["cubin"]),
        texts["ptx"],
        parse_reference(texts["reference"].encode(), "the cache"),
        data,
        tuple((data[item.cubin], data[item.ptx].decode()) for item in manifest.front),
    )


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
