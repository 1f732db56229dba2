"""The bundle of a kernel for Intel's GPUs: SPIR-V in place of cubin and PTX, and a manifest of its own.

    BUNDLE/kernel.spv      the SPIR-V module, for clCreateProgramWithIL or zeModuleCreate
    BUNDLE/kernel.ll       the LLVM IR that it is made from
    BUNDLE/manifest.json   how to launch it, what it computes and how it was made (`SpirvManifest`)
    BUNDLE/reference.json  what the payload computes
    BUNDLE/ir/             the IR after each step

`stepladder run` executes it on the CPU where Intel's OpenCL runtime is installed (`verify.opencl`); other commands that
take bundles refuse it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.runtime.bundle.fields import Fields
from stepladder.runtime.bundle.limits import check_arguments
from stepladder.runtime.bundle.manifest import ACCESSES, MANIFEST, SPIRV, SPIRV_FORMAT, Argument, problem_json
from stepladder.runtime.bundle.manifest_reading import listed_files, parse_argument
from stepladder.runtime.bundle.problem_fields import parse_problem
from stepladder.runtime.bundle.reading import read_contents, read_fields, read_reference
from stepladder.runtime.bundle.writing import write_contents
from stepladder.runtime.element_types import ELEMENT_TYPES, element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import REFERENCE, Program
from stepladder.runtime.targets import XE_SUBGROUPS, XE_TARGETS, XE_WORK_GROUP

SPIRV_SCHEMA_VERSION = 1
LLVM_IR = "kernel.ll"


@dataclass(frozen=True)
class SpirvManifest:
    """The manifest of a SPIR-V kernel; the fields are those of `manifest.json`.

    Attributes:
        kernel_name: entry point in the module.
        target: Intel GPU, for example `bmg`.
        arguments: in the order of the kernel's parameters, each a pointer to global memory, aligned to 64 bytes.
        problem: what the kernel computes; None for a XeTile program, whose arguments have no roles.
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
    problem: Problem | None
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
        data["problem"] = None if self.problem is None else problem_json(self.problem)
        for argument in data["arguments"]:
            del argument["descriptor"]
        return {"schema_version": data.pop("schema_version"), "format": data.pop("format"), **data}


def write_spirv_bundle(
    path: str | os.PathLike[str],
    manifest: SpirvManifest,
    spirv: bytes,
    llvm_ir: str,
    ir: Mapping[str, str],
    reference: Program | None,
    data: Mapping[str, bytes],
) -> None:
    """Writes a bundle, all or nothing, over the bundle at `path` if there is one; other files there are kept.

    Args:
        path: the folder to make.
        manifest: how to launch the kernel.
        spirv: the module.
        llvm_ir: what it is made from.
        ir: text of every dump by file name.
        reference: what the payload computes; None where that is not known.
        data: content of the files that arguments name as their data.

    Raises:
        StepladderError: as `write_bundle`.
    """
    texts = {LLVM_IR: llvm_ir} | {f"ir/{name}": text for name, text in ir.items()}
    if reference is not None:
        texts[REFERENCE] = reference.to_text()
    contents = {SPIRV: spirv} | {name: text.encode() for name, text in texts.items()} | dict(data)
    write_contents(path, manifest.to_json(), contents)


@dataclass(frozen=True)
class SpirvBundle:
    """A bundle with SPIR-V, read and verified.

    Attributes:
        manifest: its manifest.
        spirv: content of `kernel.spv`.
        reference: what the payload computes; None for a XeTile program.
        data: content of the files that arguments name as their data.
    """

    manifest: SpirvManifest
    spirv: bytes
    reference: Program | None
    data: Mapping[str, bytes]

    def constants(self) -> dict[str, np.ndarray]:
        """Returns the buffers that are constants of the payload, by role, of their storage types and shapes."""
        return {
            item.role: np.frombuffer(self.data[item.data], element_type(item.element_type).dtype).reshape(item.shape)
            for item in self.manifest.arguments
            if item.data is not None
        }


def is_spirv_bundle(path: str | os.PathLike[str]) -> bool:
    """Returns whether a folder has the manifest of a bundle with SPIR-V; it need not be a valid one.

    Args:
        path: of the folder.
    """
    if not (Path(path) / MANIFEST).is_file():
        return False
    try:
        return read_fields(Path(path)).data.get("format") == SPIRV_FORMAT
    except StepladderError:
        return False


def read_spirv_bundle(path: str | os.PathLike[str]) -> SpirvBundle:
    """Reads and verifies the bundle at `path`.

    Args:
        path: of the folder.

    Returns:
        The bundle, whose files have the digests of its manifest.

    Raises:
        StepladderError: no such bundle, one of another format, a field of the manifest that no kernel has, or a file
            that is missing or was edited.
    """
    path = Path(path)
    if not path.is_dir():
        raise StepladderError(f"no bundle at '{path}': " + ("not a folder" if path.exists() else "no such folder"))
    fields = read_fields(path)
    if fields.data.get("format") != SPIRV_FORMAT:
        raise StepladderError(f"'{path}' is no bundle with SPIR-V", location=fields.location)
    version = fields.integer("schema_version")
    if version != SPIRV_SCHEMA_VERSION:
        raise fields.error(
            "schema_version", f"is {version}, and this version of stepladder reads {SPIRV_SCHEMA_VERSION}"
        )
    files = listed_files(fields)
    is_program = fields.data.get("problem") is None
    for name in (SPIRV,) if is_program else (SPIRV, REFERENCE):
        if name not in files:
            raise fields.error("files", f"does not list '{name}'")
    manifest = SpirvManifest(
        kernel_name=fields.string("kernel_name"),
        target=fields.string("target", XE_TARGETS),
        arguments=tuple(
            _buffer(item) if is_program else parse_argument(item, ()) for item in fields.objects("arguments")
        ),
        problem=None if is_program else parse_problem(fields.object("problem")),
        grid=fields.triple("grid"),
        work_group=fields.triple("work_group"),
        subgroup_size=fields.integer("subgroup_size", 1),
        shared_local_memory=fields.integer("shared_local_memory"),
        validated=fields.boolean("validated", default=False),
        pipeline=fields.string("pipeline"),
        steps=fields.strings("steps"),
        without=fields.strings("without"),
        knobs=fields.knobs("knobs"),
        tool_versions=fields.string_map("tool_versions"),
        function=fields.string("function"),
        other_functions=fields.strings("other_functions"),
    )
    _check_limits(manifest, fields)
    if manifest.problem is not None:
        for item in fields.objects("arguments"):
            item.string("role", manifest.problem.roles)  # no workspaces
        check_arguments(manifest.arguments, manifest.problem, manifest.problem.operand, fields)
    contents = read_contents(fields, path)
    for argument in manifest.arguments:
        if argument.data is not None and argument.data not in contents:
            raise fields.error("files", f"does not list '{argument.data}'")
    reference = None
    if REFERENCE in contents and manifest.problem is not None:
        reference = read_reference(contents[REFERENCE], manifest.problem, path)
    return SpirvBundle(manifest, contents[SPIRV], reference, contents)


def _check_limits(manifest: SpirvManifest, fields: Fields) -> None:
    """Refuses a launch that the target does not take."""
    threads, target = math.prod(manifest.work_group), XE_TARGETS[manifest.target]
    if threads > XE_WORK_GROUP:
        raise fields.error("work_group", f"must have at most {XE_WORK_GROUP} threads, got {threads}")
    if manifest.subgroup_size not in XE_SUBGROUPS:
        accepted = ", ".join(map(str, XE_SUBGROUPS))
        raise fields.error("subgroup_size", f"must be one of {accepted}, got {manifest.subgroup_size}")
    if manifest.shared_local_memory > target.shared_memory:
        raise fields.error(
            "shared_local_memory",
            f"must be at most {target.shared_memory} bytes on {target.name}, got {manifest.shared_local_memory}",
        )


def _buffer(fields: Fields) -> Argument:
    """Returns an argument of a XeTile program's kernel."""
    return Argument(
        fields.string("name"),
        "",
        fields.string("element_type", ELEMENT_TYPES),
        fields.extents("shape"),
        fields.string("access", ACCESSES),
    )
