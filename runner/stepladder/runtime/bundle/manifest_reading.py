"""Reads the manifest of a kernel, and checks that every field is valid."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from stepladder.runtime.bundle.fields import Fields, show
from stepladder.runtime.bundle.limits import check_limits, check_problem
from stepladder.runtime.bundle.manifest import (
    ACCESSES,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    ROLES,
    SCHEMA_VERSION,
    SCHEMA_VERSION_SEVERAL,
    SCHEMA_VERSION_VALUES,
    SPIRV_FORMAT,
    SWIZZLES,
    TMA_DIMENSIONS,
    WORKSPACE_ROLES,
    Argument,
    Manifest,
    TmaDescriptor,
)
from stepladder.runtime.bundle.preceding_kernels import check_preceding_kernels, parse_front, parse_workspaces
from stepladder.runtime.bundle.problem_fields import parse_problem
from stepladder.runtime.element_types import ELEMENT_TYPES
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.targets import TARGETS


def parse_manifest(text: str, location: str) -> Manifest:
    """Returns the manifest in a text, as `Manifest.to_json` gives it.

    Args:
        text: JSON.
        location: where it comes from, for messages.

    Raises:
        StepladderError: no JSON, or a field that no kernel has.
    """
    try:
        return manifest_of(Fields(json.loads(text), location))
    except json.JSONDecodeError as error:
        raise StepladderError(f"not valid JSON ({error.msg})", location=location) from None


def manifest_of(fields: Fields) -> Manifest:
    """Returns the manifest of fields.

    Args:
        fields: as `Manifest.to_json` has them.

    Raises:
        StepladderError: a field that no kernel has.
    """
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
    check_preceding_kernels(manifest, fields)
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
        raise fields.error("descriptor", f"is {index}, and 'tma_descriptors' has {len(descriptors)} entries")
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
