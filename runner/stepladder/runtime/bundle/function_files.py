"""Writes and reads the bundle of a function (`bundle.function`)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepladder.runtime import targets
from stepladder.runtime.bundle.fields import Fields
from stepladder.runtime.bundle.function import (
    BUFFER_KINDS,
    SCHEMA_VERSION_ALIASES,
    SCHEMA_VERSION_CLUSTERS,
    SCHEMA_VERSION_DYNAMIC,
    SCHEMA_VERSION_EMPTY,
    SCHEMA_VERSION_FUNCTION,
    SCHEMA_VERSION_GROUPS,
    SCHEMA_VERSION_PARTS,
    SCHEMA_VERSION_PITCHED,
    SCHEMA_VERSION_PLACED,
    FunctionBuffer,
    FunctionBundle,
    FunctionManifest,
    Launch,
    PlainCode,
    PlainKernel,
)
from stepladder.runtime.bundle.function_rules import check_function
from stepladder.runtime.bundle.manifest import ACCESSES, CUBIN, MANIFEST, NO_CLUSTER, PTX, Argument, Bundle
from stepladder.runtime.bundle.manifest_reading import listed_files, parse_descriptor, parse_descriptor_index
from stepladder.runtime.bundle.problem_fields import parse_problem
from stepladder.runtime.bundle.reading import contents_of, read_bundle, read_fields, text_of
from stepladder.runtime.bundle.reference_operands import check_function_reference
from stepladder.runtime.bundle.reference_reading import parse_reference
from stepladder.runtime.bundle.writing import bundle_files, write_contents
from stepladder.runtime.element_types import BUFFER_TYPES
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import REFERENCE

_VERSIONS = (
    SCHEMA_VERSION_FUNCTION,
    SCHEMA_VERSION_GROUPS,
    SCHEMA_VERSION_ALIASES,
    SCHEMA_VERSION_DYNAMIC,
    SCHEMA_VERSION_PARTS,
    SCHEMA_VERSION_PLACED,
    SCHEMA_VERSION_PITCHED,
    SCHEMA_VERSION_CLUSTERS,
    SCHEMA_VERSION_EMPTY,
)


def is_function(path: str | os.PathLike[str]) -> bool:
    """Returns whether a folder is the bundle of a function, by its manifest's version.

    Args:
        path: of a folder; one without a manifest is none.

    Raises:
        StepladderError: there is a manifest that cannot be read.
    """
    if not (Path(path) / MANIFEST).is_file():
        return False
    return read_fields(Path(path)).integer("schema_version") in _VERSIONS


def write_function(
    path: str | os.PathLike[str], bundle: FunctionBundle, ir: Mapping[str, str], stages: Mapping[str, Mapping[str, str]]
) -> None:
    """Writes a function's bundle, as `write_bundle` writes that of a kernel.

    Args:
        path: the folder to make.
        bundle: what to write.
        ir: text of every dump of the function, by file name.
        stages: the same of each matmul's kernel, by folder.

    Raises:
        StepladderError: as `write_bundle`.
    """
    contents = {REFERENCE: bundle.reference.to_text().encode(), **bundle.data}
    contents |= {f"ir/{name}": text.encode() for name, text in ir.items()}
    for folder, kernel in bundle.kernels.items():
        if isinstance(kernel, Bundle):
            files = bundle_files(
                kernel.manifest, kernel.cubin, kernel.ptx, stages.get(folder, {}), {}, kernel.reference, kernel.data
            )
        else:
            files = {CUBIN: kernel.cubin, PTX: kernel.ptx.encode()}
            files |= {f"ir/{name}": text.encode() for name, text in kernel.ir.items()}
        contents |= {f"{folder}/{name}": content for name, content in files.items()}
    write_contents(path, bundle.manifest.to_json(), contents)


def read_function(path: str | os.PathLike[str]) -> FunctionBundle:
    """Reads and verifies the bundle of a function.

    Args:
        path: the bundle's folder.

    Returns:
        The manifest, the kernels, the constants and the reference program.

    Raises:
        StepladderError: as `read_bundle`; also operands of other types or sizes than their buffers, buffers outside of
            the workspace, and buffers that are read before a kernel has written them.
    """
    path = Path(path)
    fields = read_fields(path)
    manifest = _parse(fields)
    contents = contents_of(path, manifest.files)
    if REFERENCE not in contents:
        raise fields.error("files", f"does not list '{REFERENCE}'")
    data: dict[str, bytes] = {}
    for buffer, item in zip(manifest.buffers, fields.objects("buffers")):
        if buffer.kind == "constant":
            if buffer.data is None or len(contents.get(buffer.data, b"")) != buffer.bytes:
                raise item.error("data", f"must name a file of {buffer.bytes} bytes, got {buffer.data!r}")
            data[buffer.data] = contents[buffer.data]
    kernels: dict[str, Bundle | PlainCode] = {}
    for launch, item in zip(manifest.launches, fields.objects("launches")):
        if launch.kernel is None:
            kernels.setdefault(launch.folder, read_bundle(path / launch.folder))
            continue
        for name in (CUBIN, PTX):
            if f"{launch.folder}/{name}" not in contents:
                raise item.error("folder", f"is '{launch.folder}', and 'files' does not list its {name}")
        begin = f"{launch.folder}/ir/"
        ir = {name.removeprefix(begin): text_of(contents, name, path) for name in contents if name.startswith(begin)}
        kernels[launch.folder] = PlainCode(
            contents[f"{launch.folder}/{CUBIN}"], text_of(contents, f"{launch.folder}/{PTX}", path), ir
        )
    reference = parse_reference(contents[REFERENCE], str(path / REFERENCE))
    check_function_reference(reference, manifest, str(path / REFERENCE))
    bundle = FunctionBundle(path, manifest, kernels, reference, data)
    check_function(bundle, fields)
    return bundle


def parse_function_manifest(text: str, location: str) -> FunctionManifest:
    """Returns a function's manifest from its text; `check_function` checks it with its kernels.

    Args:
        text: JSON, as in `manifest.json`.
        location: where it comes from, for messages.

    Raises:
        StepladderError: as `read_function`, of the manifest alone.
    """
    try:
        return _parse(Fields(json.loads(text), location))
    except json.JSONDecodeError as error:
        raise StepladderError(f"not valid JSON ({error.msg})", location=location) from None


def _parse(fields: Fields) -> FunctionManifest:
    return FunctionManifest(
        function=fields.string("function"),
        target=fields.string("target", targets.TARGETS),
        buffers=tuple(
            FunctionBuffer(
                item.string("kind", BUFFER_KINDS),
                item.integer("number"),
                item.string("element_type", BUFFER_TYPES),
                item.integers("shape"),  # 0 of a tensor without elements, which no kernel takes
                item.integer("offset"),
                None if item.data.get("data") is None else item.string("data"),
                None if item.data.get("aliases") is None else item.integer("aliases"),
                None if item.data.get("strides") is None else item.extents("strides"),
            )
            for item in fields.objects("buffers")
        ),
        launches=tuple(_parse_launch(item) for item in fields.objects("launches")),
        workspace=fields.integer("workspace"),
        other_functions=fields.strings("other_functions"),
        steps=fields.strings("steps"),
        tool_versions=fields.string_map("tool_versions"),
        files=listed_files(fields),
        schema_version=fields.integer("schema_version"),
    )


def _parse_launch(fields: Fields) -> Launch:
    folder = fields.string("folder")
    if folder.startswith("/") or ".." in Path(folder).parts:
        raise fields.error("folder", f"is '{folder}', which is outside the bundle")
    operands = fields.object("operands")
    kernel = None if fields.data.get("kernel") is None else _parse_kernel(fields.object("kernel"))
    return Launch(fields.string("stage"), folder, {name: operands.integer(name) for name in operands.data}, kernel)


def _parse_kernel(fields: Fields) -> PlainKernel:
    arguments = []
    roles = tuple(f"p{number}" for number in range(len(fields.objects("arguments"))))
    is_group = "problems" in fields.data
    descriptors = tuple(parse_descriptor(item, roles) for item in fields.objects("tma_descriptors")) if is_group else ()
    for role, item in zip(roles, fields.objects("arguments")):
        arguments.append(
            Argument(
                item.string("name"),
                item.string("role", (role,)),
                item.string("element_type", BUFFER_TYPES),
                item.extents("shape"),
                item.string("access", ACCESSES),
                parse_descriptor_index(item, role, descriptors),
            )
        )
    group: dict[str, Any] = {}
    if is_group:
        group = {
            "problems": tuple(parse_problem(item) for item in fields.objects("problems")),
            "tma_descriptors": descriptors,
            # Came later: kernels of bundles without it read nothing before they wait.
            "read_early": fields.strings("read_early", default=()),
        }
    return PlainKernel(
        kernel_name=fields.string("kernel_name"),
        arguments=tuple(arguments),
        grid=fields.triple("grid"),
        block=fields.triple("block"),
        static_shared_memory=fields.integer("static_shared_memory"),
        # Kernels without it have none.
        dynamic_shared_memory=fields.integer("dynamic_shared_memory")
        if is_group or "dynamic_shared_memory" in fields.data
        else 0,
        flops=fields.integer("flops") if "flops" in fields.data else 0,
        registers=fields.integer("registers"),
        spills={name: fields.object("spills").integer(name) for name in ("stores", "loads")},
        steps=fields.strings("steps"),
        # Came later: kernels of no matmul without it do not wait.
        dependent_launch=fields.boolean("dependent_launch", default=False),
        # Came later: kernels of no matmul without it have none.
        cluster=fields.triple("cluster") if is_group or "cluster" in fields.data else NO_CLUSTER,
        **group,
    )


def read_any(path: str | os.PathLike[str]) -> Bundle | FunctionBundle:
    """Reads a bundle, of a kernel or of a function.

    Args:
        path: the bundle's folder.

    Returns:
        A `FunctionBundle` where the manifest's version is that of functions, else a `Bundle`.

    Raises:
        StepladderError: as `read_bundle` and `read_function`.
    """
    return read_function(path) if is_function(path) else read_bundle(path)
