"""The bundle of a kernel for Intel's GPUs: SPIR-V in place of cubin and PTX, and a manifest of its own.

    BUNDLE/kernel.spv      the SPIR-V module, for clCreateProgramWithIL or zeModuleCreate
    BUNDLE/kernel.ll       the LLVM IR that it is made from
    BUNDLE/manifest.json   how to launch it, what it computes and how it was made (`SpirvManifest`)
    BUNDLE/reference.json  what the payload computes
    BUNDLE/ir/             the IR after each step

Nothing here launches it: the commands that run bundles refuse it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from stepladder.runtime.bundle.manifest import SPIRV, SPIRV_FORMAT, Argument, problem_json
from stepladder.runtime.bundle.reading import read_contents, read_fields
from stepladder.runtime.bundle.writing import write_contents
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import REFERENCE, Program

SPIRV_SCHEMA_VERSION = 1
LLVM_IR = "kernel.ll"


@dataclass(frozen=True)
class SpirvManifest:
    """What `manifest.json` holds; the fields are those of the file.

    Attributes:
        kernel_name: entry point in the module.
        target: Intel GPU, for example `bmg`.
        arguments: in the order of the kernel's parameters, each a pointer to global memory, aligned to 64 bytes.
        problem: what the kernel computes.
        grid: work-groups along x, y, z.
        work_group: threads (work-items) of a work-group along x, y, z; the global size is that times the grid.
        subgroup_size: threads of a sub-group, which the kernel requires.
        shared_local_memory: bytes a work-group, static.
        validated: whether spirv-val has checked the module.
        pipeline: name of the pipeline.
        steps: names of the steps that ran, in order.
        without: names of the steps left out.
        knobs: value of every knob.
        tool_versions: version of every tool in the build.
        function: name of the payload's function that was compiled.
        other_functions: names of the others in its module, which is `ir/00-input.mlir`.
        format: tells this layout from that of bundles for NVIDIA's GPUs.
        schema_version: version of this layout.
    """

    kernel_name: str
    target: str
    arguments: tuple[Argument, ...]
    problem: Problem
    grid: tuple[int, int, int]
    work_group: tuple[int, int, int]
    subgroup_size: int
    shared_local_memory: int
    validated: bool
    pipeline: str
    steps: tuple[str, ...]
    without: tuple[str, ...] = ()
    knobs: dict[str, Any] = field(default_factory=dict)
    tool_versions: dict[str, str] = field(default_factory=dict)
    function: str = ""
    other_functions: tuple[str, ...] = ()
    format: str = SPIRV_FORMAT
    schema_version: int = SPIRV_SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest as JSON data, the schema version and the format first."""
        data = asdict(self)
        data["problem"] = problem_json(self.problem)
        for argument in data["arguments"]:
            del argument["descriptor"]
        return {"schema_version": data.pop("schema_version"), "format": data.pop("format"), **data}


def write_spirv_bundle(
    path: str | os.PathLike[str],
    manifest: SpirvManifest,
    spirv: bytes,
    llvm_ir: str,
    ir: Mapping[str, str],
    reference: Program,
    data: Mapping[str, bytes],
) -> None:
    """Writes a bundle, all or nothing, over the bundle at `path` if there is one; other files there are kept.

    Args:
        path: the folder to make.
        manifest: how to launch the kernel.
        spirv: the module.
        llvm_ir: what it is made from.
        ir: text of every dump by file name.
        reference: what the payload computes.
        data: content of the files that arguments name as their data.

    Raises:
        StepladderError: as `write_bundle`.
    """
    texts = {LLVM_IR: llvm_ir, REFERENCE: reference.to_text()} | {f"ir/{name}": text for name, text in ir.items()}
    contents = {SPIRV: spirv} | {name: text.encode() for name, text in texts.items()} | dict(data)
    write_contents(path, manifest.to_json(), contents)


def read_spirv(path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    """Returns the manifest of a bundle, as JSON data, and its SPIR-V module; all files are verified.

    Raises:
        StepladderError: no such bundle, one of another format, or a file that is missing or was edited.
    """
    path = Path(path)
    if not path.is_dir():
        raise StepladderError(f"no bundle at '{path}': " + ("not a folder" if path.exists() else "no such folder"))
    fields = read_fields(path)
    if fields.data.get("format") != SPIRV_FORMAT:
        raise StepladderError(f"'{path}' is no bundle with SPIR-V", location=fields.location)
    if SPIRV not in fields.string_map("files"):
        raise fields.error("files", f"does not list '{SPIRV}'")
    return fields.data, read_contents(fields, path)[SPIRV]
