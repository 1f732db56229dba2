"""Reads a bundle: checks that every file is there and complete, and that every field of the manifest is valid."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from stepladder.runtime.bundle.fields import Fields, parse_object, show
from stepladder.runtime.bundle.limits import check_limits, check_problem
from stepladder.runtime.bundle.manifest import (
    ACCESSES,
    CUBIN,
    INTERLEAVES,
    L2_PROMOTIONS,
    MANIFEST,
    OOB_FILLS,
    PTX,
    ROLES,
    SCHEMA_VERSION,
    SCHEMA_VERSION_SEVERAL,
    SCHEMA_VERSION_VALUES,
    SPIRV_FORMAT,
    SWIZZLES,
    TMA_DIMENSIONS,
    WORKSPACE_ROLES,
    Argument,
    Bundle,
    Manifest,
    TmaDescriptor,
)
from stepladder.runtime.bundle.problem_fields import parse_problem
from stepladder.runtime.bundle.reference_operands import check_kernel_reference
from stepladder.runtime.bundle.reference_reading import parse_reference
from stepladder.runtime.bundle.several import check_several, parse_front, parse_workspaces
from stepladder.runtime.element_types import ELEMENT_TYPES, element_type
from stepladder.runtime.errors import StepladderError, reason
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import REFERENCE, Program
from stepladder.runtime.targets import TARGETS


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Reads and verifies the bundle at `path`.

    Args:
        path: the bundle's folder.

    Returns:
        The manifest, the kernels and the reference program.

    Raises:
        StepladderError: a file is missing, unreadable, truncated or edited, or a field of the manifest is missing, of
            the wrong type, or has a value that no kernel has; the message names the file or the field.
    """
    path = Path(path)
    if not path.is_dir():
        raise StepladderError(f"no bundle at '{path}': " + ("not a folder" if path.exists() else "no such folder"))
    manifest = _parse_manifest(read_fields(path))
    for name in (CUBIN, PTX):
        if name not in manifest.files:
            raise StepladderError(f"field 'files' does not list '{name}'", location=str(path / MANIFEST))
    contents = contents_of(path, manifest.files)
    ptx = text_of(contents, PTX, path)
    front = tuple((contents[kernel.cubin], text_of(contents, kernel.ptx, path)) for kernel in manifest.front)
    reference = None
    if REFERENCE in contents:
        reference = read_reference(contents[REFERENCE], manifest.problem, path)
    data = {name: contents[name] for name in _data_files(manifest, contents, path)}
    return Bundle(path, manifest, contents[CUBIN], ptx, reference, data, front)


def contents_of(path: Path, files: Mapping[str, str]) -> dict[str, bytes]:
    """Returns the content of a bundle's files, by their names.

    Args:
        path: the folder.
        files: SHA-256 by name.

    Raises:
        StepladderError: a file is missing, or of another digest.
    """
    return {name: _read_verified(path, name, digest) for name, digest in files.items()}


def read_contents(fields: Fields, path: Path) -> dict[str, bytes]:
    """Returns the content of every file that a manifest lists, by path relative to the bundle, verified.

    Args:
        fields: of the manifest.
        path: of the bundle.

    Raises:
        StepladderError: a file is missing or was edited, or the field `files` is of the wrong type.
    """
    return contents_of(path, listed_files(fields))


def text_of(contents: Mapping[str, bytes], name: str, path: Path) -> str:
    """Returns the text of a file.

    Args:
        contents: of a bundle's files, by name.
        name: of the file.
        path: of the bundle, for the message.

    Raises:
        StepladderError: it is no UTF-8.
    """
    try:
        return contents[name].decode()
    except UnicodeDecodeError:
        raise StepladderError(f"bundle file '{path / name}' is not UTF-8 text; compile it again") from None


def _data_files(manifest: Manifest, contents: Mapping[str, bytes], path: Path) -> list[str]:
    """Returns the files with the content of arguments that are constants.

    Raises:
        StepladderError: a file that the manifest does not list, or of another size than the argument.
    """
    names = []
    for argument in manifest.all_arguments:
        if argument.data is None:
            continue
        if argument.data not in contents:
            raise StepladderError(f"field 'files' does not list '{argument.data}'", location=str(path / MANIFEST))
        size = math.prod(argument.shape) * element_type(argument.element_type).bytes
        if len(contents[argument.data]) != size:
            raise StepladderError(
                f"argument {argument.name} has {size} bytes, and '{argument.data}' {len(contents[argument.data])}",
                location=str(path / MANIFEST),
            )
        names.append(argument.data)
    return names


def read_launch(path: str | os.PathLike[str]) -> tuple[Manifest, Program | None]:
    """Returns the manifest of the bundle at `path`, and what its payload computes, None where it has no reference.

    The kernel's files are not looked at: what they say may be run in another version.

    Args:
        path: the bundle's folder.

    Raises:
        StepladderError: as for `read_bundle`.
    """
    path = Path(path)
    if not path.is_dir():
        raise StepladderError(f"no bundle at '{path}': " + ("not a folder" if path.exists() else "no such folder"))
    manifest = _parse_manifest(read_fields(path))
    if REFERENCE not in manifest.files:
        return manifest, None
    return manifest, read_reference(_read_verified(path, REFERENCE, manifest.files[REFERENCE]), manifest.problem, path)


def read_reference(content: bytes, problem: Problem, path: Path) -> Program:
    """Returns the reference program of a kernel's bundle.

    Args:
        content: of its file.
        problem: of the manifest.
        path: of the bundle.

    Raises:
        StepladderError: no program that can be evaluated, or one of other operands than the problem's; names the field.
    """
    location = str(path / REFERENCE)
    program = parse_reference(content, location)
    check_kernel_reference(program, problem, location)
    return program


def read_fields(path: Path) -> Fields:
    """Returns the fields of the manifest in the folder `path`, none of them looked at.

    Args:
        path: the bundle's folder.

    Raises:
        StepladderError: the manifest is missing or unreadable, or is no JSON object.
    """
    file = path / MANIFEST
    return parse_object(_read(file), str(file), "manifest", "the bundle is truncated or was edited")


def listed_files(fields: Fields) -> dict[str, str]:
    """Returns the manifest's `files`, path relative to the bundle -> SHA-256.

    Args:
        fields: of the manifest.

    Raises:
        StepladderError: the field is missing or of the wrong type, or names a file outside of the bundle.
    """
    files = fields.string_map("files")
    for name in files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise fields.error("files", f"names '{name}', which is outside the bundle")
    return files


def _read_verified(path: Path, name: str, digest: str) -> bytes:
    content = _read(path / name)
    if hashlib.sha256(content).hexdigest() != digest:
        raise StepladderError(
            f"bundle file '{path / name}' is truncated or was edited: its SHA-256 is not the one in "
            f"{MANIFEST}; compile it again"
        )
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise StepladderError(f"bundle file '{path}' is missing") from None
    except (OSError, ValueError) as error:  # the latter is a name that holds a zero byte
        raise StepladderError(f"cannot read bundle file '{path}': {reason(error)}") from error


def parse_manifest(text: str, location: str) -> Manifest:
    """Returns the manifest in a text, as `Manifest.to_json` gives it.

    Args:
        text: JSON.
        location: where it comes from, for messages.

    Raises:
        StepladderError: no JSON, or a field that no kernel has.
    """
    try:
        return _parse_manifest(Fields(json.loads(text), location))
    except json.JSONDecodeError as error:
        raise StepladderError(f"not valid JSON ({error.msg})", location=location) from None


def _parse_manifest(fields: Fields) -> Manifest:
    if fields.data.get("format") == SPIRV_FORMAT:
        target = fields.string("target")
        raise fields.error(
            "format",
            f"is '{SPIRV_FORMAT}': the kernel is for '{target}', and kernels of NVIDIA's GPUs are launched here",
        )
    version = fields.integer("schema_version")
    versions = SCHEMA_VERSION, SCHEMA_VERSION_SEVERAL, SCHEMA_VERSION_VALUES
    if version not in versions:
        raise fields.error(
            "schema_version",
            f"is {version}, and this version of stepladder reads {', '.join(map(str, versions))}; "
            "compile the bundle again, or use the version that made it",
        )
    workspaces = parse_workspaces(fields)
    for item in fields.objects("arguments"):
        if "by_value" in item.data and version < SCHEMA_VERSION_VALUES:
            raise item.error("by_value", f"requires schema_version {SCHEMA_VERSION_VALUES}")
    descriptors = tuple(parse_descriptor(item, ROLES + WORKSPACE_ROLES) for item in fields.objects("tma_descriptors"))
    manifest = Manifest(
        schema_version=version,
        kernel_name=fields.string("kernel_name"),
        target=fields.string("target", TARGETS),
        arguments=tuple(parse_argument(item, descriptors) for item in fields.objects("arguments")),
        tma_descriptors=descriptors,
        grid=fields.triple("grid"),
        block=fields.triple("block"),
        cluster=fields.triple("cluster"),
        # Came later: kernels of bundles without it do not wait for the one before them.
        dependent_launch=fields.boolean("dependent_launch", default=False),
        # Came later: kernels of bundles without it read nothing before they wait.
        read_early=fields.strings("read_early", default=()),
        # Came later: bundles without them were compiled of a module with one function.
        function=fields.string("function", default=""),
        other_functions=fields.strings("other_functions", default=()),
        static_shared_memory=fields.integer("static_shared_memory"),
        dynamic_shared_memory=fields.integer("dynamic_shared_memory"),
        registers=fields.integer("registers"),
        spills={name: fields.object("spills").integer(name) for name in ("stores", "loads")},
        problem=parse_problem(fields.object("problem")),
        pipeline=fields.string("pipeline"),
        steps=fields.strings("steps"),
        without=fields.strings("without"),
        knobs=fields.knobs("knobs"),
        tool_versions=fields.string_map("tool_versions"),
        files=listed_files(fields),
        front=parse_front(fields, lambda item: parse_argument(item, ())),
        workspaces=workspaces,
    )
    check_limits(manifest, fields)
    check_several(manifest, fields)
    check_problem(manifest, fields)
    return manifest


def parse_argument(fields: Fields, descriptors: tuple[TmaDescriptor, ...]) -> Argument:
    """Returns an entry of a manifest's `arguments`.

    Args:
        fields: of the entry.
        descriptors: of the manifest, which an entry may refer to.

    Raises:
        StepladderError: a field is missing, or has a value that no argument has; names it.
    """
    role = fields.string("role", ROLES + WORKSPACE_ROLES)
    return Argument(
        name=fields.string("name"),
        role=role,
        element_type=fields.string("element_type", ELEMENT_TYPES),
        shape=fields.extents("shape"),
        access=fields.string("access", ACCESSES),
        descriptor=parse_descriptor_index(fields, role, descriptors),
        # Came later: buffers of bundles without it are no constants.
        data=None if fields.data.get("data") is None else fields.string("data"),
        # Came later as well.
        by_value=fields.boolean("by_value", default=False),
    )


def parse_descriptor_index(fields: Fields, role: str, descriptors: tuple[TmaDescriptor, ...]) -> int | None:
    """Returns an argument's `descriptor`; it came later: arguments without it are pointers.

    Args:
        fields: of the argument.
        role: of the argument.
        descriptors: of the kernel, which the argument may refer to.

    Raises:
        StepladderError: there is no such descriptor, or it is of another role.
    """
    if fields.data.get("descriptor") is None:
        return None
    index = fields.integer("descriptor")
    if index >= len(descriptors):
        raise fields.error("descriptor", f"is {index}, and 'tma_descriptors' has {len(descriptors)} entries entries")
    if descriptors[index].role != role:
        raise fields.error(
            "descriptor",
            f"is {index}, and 'tma_descriptors[{index}]' is of role '{descriptors[index].role}', not '{role}'",
        )
    return index


def parse_descriptor(fields: Fields, roles: tuple[str, ...]) -> TmaDescriptor:
    """Returns an entry of a kernel's `tma_descriptors`.

    Args:
        fields: of the entry.
        roles: that it may have.

    Raises:
        StepladderError: a field is missing, or has a value that no descriptor has; names it.
    """
    shape = fields.extents("shape")
    rank = len(shape)
    if not 1 <= rank <= TMA_DIMENSIONS:
        raise fields.error("shape", f"must have 1 to {TMA_DIMENSIONS} dimensions, got {rank}")
    element_strides = fields.extents("element_strides", rank)
    if set(element_strides) != {1}:
        raise fields.error("element_strides", f"must be 1 in every dimension, got {show(list(element_strides))}")
    return TmaDescriptor(
        role=fields.string("role", roles),
        element_type=fields.string("element_type", ELEMENT_TYPES),
        shape=shape,
        strides=fields.extents("strides", rank - 1),
        box=fields.extents("box", rank),
        element_strides=element_strides,
        interleave=fields.string("interleave", INTERLEAVES),
        swizzle=fields.string("swizzle", SWIZZLES),
        l2_promotion=fields.string("l2_promotion", L2_PROMOTIONS),
        oob_fill=fields.string("oob_fill", OOB_FILLS),
        # Came later: descriptors without it begin where their buffers do.
        offset=fields.integer("offset", 0) if "offset" in fields.data else 0,
    )
