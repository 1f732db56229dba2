"""Compares the launches in the manifest of a bundle with the IR of the bundle.

The emulator runs the IR or the PTX with the launch of the manifest, and a GPU runs the PTX with it. If IR and manifest
disagree, the result of one run says nothing about the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from stepladder.mlir.traverse import walk
from stepladder.pipeline.codegen.kernel import Kernel, Program, find_program
from stepladder.pipeline.context import parse_payload
from stepladder.runtime.bundle import (
    MANIFEST,
    Bundle,
    FrontKernel,
    FunctionBundle,
    FunctionManifest,
    Manifest,
    PlainKernel,
)
from stepladder.runtime.bundle.fields import show
from stepladder.runtime.bundle.manifest_reading import listed_files
from stepladder.runtime.bundle.reading import read_fields
from stepladder.runtime.bundle.spirv import SpirvManifest
from stepladder.runtime.errors import StepladderError

_IR = "ir"
_NOTES = ("compile the payload again: the manifest was edited, or it is of another kernel",)
# Fields of a manifest, and of a kernel that is launched before that of the matmul, by the attributes of a `Kernel`.
_FRONT = {"kernel_name": "name", "grid": "grid", "block": "block"}
_FIELDS = {**_FRONT, "target": "target", "cluster": "cluster", "dynamic_shared_memory": "dynamic_shared_memory"}
_PLAIN = {field: name for field, name in _FIELDS.items() if field != "target"}
_OF_FUNCTION = {"target": "target"}
_XE = {"kernel_name": "name", "target": "target", "grid": "grid", "work_group": "block"}


def check_launch(bundle: Bundle) -> None:
    """Checks the launches of a bundle against its IR, in the current MLIR context.

    Args:
        bundle: of one matmul, and of kernels before it; one without IR is accepted.

    Raises:
        StepladderError: a field that disagrees; the message has both values.
    """
    _check_matmul(bundle.path, bundle.manifest)


def check_launches(bundle: FunctionBundle) -> None:
    """Checks all launches of a function's bundle against its IR, in the current MLIR context.

    Args:
        bundle: of the function, read from its folder.

    Raises:
        StepladderError: as `check_launch`.
    """
    for number, launch in enumerate(bundle.manifest.launches):
        if launch.kernel is None:
            _check_matmul(bundle.path / launch.folder, bundle.matmul(launch).manifest)
            continue
        found = _launched(bundle.path, bundle.manifest.files, f"{launch.folder}/{_IR}")
        if found is not None:
            file, program = found
            place = f"launches[{number}].kernel."
            _compare(bundle.path / MANIFEST, file, bundle.manifest, program.kernel, _OF_FUNCTION)
            _compare(bundle.path / MANIFEST, file, launch.kernel, program.kernel, _PLAIN, place)


def check_work_groups(folder: Path, manifest: SpirvManifest) -> None:
    """Checks the launch of a bundle with SPIR-V against its IR, in the current MLIR context.

    Args:
        folder: of the bundle.
        manifest: of the bundle.

    Raises:
        StepladderError: as `check_launch`.
    """
    found = _launched(folder, listed_files(read_fields(folder)), _IR)
    if found is not None:
        file, program = found
        _compare(folder / MANIFEST, file, manifest, program.kernel, _XE)


def _check_matmul(folder: Path, manifest: Manifest) -> None:
    found = _launched(folder, manifest.files, _IR)
    if found is None:
        return
    file, program = found
    if len(manifest.front) != len(program.front):
        raise StepladderError(
            f"field 'front' has {len(manifest.front)} kernels, and {file} launches {len(program.front)} before that of "
            "the matmul",
            location=str(folder / MANIFEST),
            notes=_NOTES,
        )
    for number, (stated, kernel) in enumerate(zip(manifest.front, program.front)):
        _compare(folder / MANIFEST, file, stated, kernel, _FRONT, f"front[{number}].")
    _compare(folder / MANIFEST, file, manifest, program.kernel, _FIELDS)


def _launched(folder: Path, files: Collection[str], where: str) -> tuple[str, Program] | None:
    """Returns the last IR of a kernel that launches it, by the name of its file; None where there is none."""
    for name in sorted(files, reverse=True):
        if Path(name).parent != Path(where) or not name.endswith(".mlir"):
            continue
        module = parse_payload((folder / name).read_text(), str(folder / name))
        return (name, find_program(module)) if walk(module, "gpu.launch_func") else None
    return None


def _compare(
    manifest: Path,
    file: str,
    stated: Manifest | FrontKernel | FunctionManifest | PlainKernel | SpirvManifest,
    kernel: Kernel,
    fields: dict[str, str],
    place: str = "",
) -> None:
    """Refuses the first field of a manifest that is not what the IR says; `place` is where the fields are in it."""
    for field, name in fields.items():
        in_manifest, in_ir = (_as_json(value) for value in (getattr(stated, field), getattr(kernel, name)))
        if in_manifest != in_ir:
            raise StepladderError(
                f"field '{place}{field}' is {show(in_manifest)}, and the kernel that {file} launches has {show(in_ir)}",
                location=str(manifest),
                notes=_NOTES,
            )


def _as_json(value: object) -> object:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
