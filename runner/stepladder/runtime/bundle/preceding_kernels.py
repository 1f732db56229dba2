"""Bundles with several kernels: reads and checks the kernels before that of the matmul, and the workspaces."""

from __future__ import annotations

import math
from collections.abc import Callable

from stepladder.runtime import targets
from stepladder.runtime.bundle.fields import Fields, show
from stepladder.runtime.bundle.function import PlainKernel
from stepladder.runtime.bundle.manifest import (
    SCHEMA_VERSION_SEVERAL,
    WORKSPACE_ROLES,
    Argument,
    FrontKernel,
    Manifest,
    Workspace,
)
from stepladder.runtime.element_types import ELEMENT_TYPES, element_type

# Bytes that a row pitch of a TMA descriptor is a multiple of.
_PITCH = 16


def parse_workspaces(fields: Fields) -> tuple[Workspace, ...]:
    """Returns the `workspaces` of a manifest; one of an older version has none.

    Args:
        fields: of the manifest.

    Raises:
        StepladderError: a field of a manifest that has a newer one than its version, or one of the wrong type.
    """
    for name in ("workspaces", "front"):
        if name in fields.data and fields.integer("schema_version") < SCHEMA_VERSION_SEVERAL:
            raise fields.error(name, f"requires schema_version {SCHEMA_VERSION_SEVERAL}")
    items = fields.objects("workspaces") if "workspaces" in fields.data else []
    if len(items) > len(WORKSPACE_ROLES):
        raise fields.error("workspaces", f"must have at most {len(WORKSPACE_ROLES)} entries, got {len(items)}")
    return tuple(Workspace(item.string("element_type", ELEMENT_TYPES), item.extents("shape")) for item in items)


def parse_front(fields: Fields, argument: Callable[[Fields], Argument]) -> tuple[FrontKernel, ...]:
    """Returns the `front` of a manifest; one of an older version has none.

    Args:
        fields: the manifest.
        argument: reads an argument of a kernel.

    Raises:
        StepladderError: a field is missing or of the wrong type.
    """
    return tuple(
        FrontKernel(
            kernel_name=item.string("kernel_name"),
            cubin=item.string("cubin"),
            ptx=item.string("ptx"),
            arguments=tuple(argument(entry) for entry in item.objects("arguments")),
            grid=item.triple("grid"),
            block=item.triple("block"),
            static_shared_memory=item.integer("static_shared_memory"),
            registers=item.integer("registers"),
            spills={name: item.object("spills").integer(name) for name in ("stores", "loads")},
        )
        for item in (fields.objects("front") if "front" in fields.data else ())
    )


def check_preceding_kernels(manifest: Manifest, fields: Fields) -> None:
    """Checks the kernels before that of the matmul: limits of the target, operands, and that each workspace that is
    read was written, by one kernel, before.

    Args:
        manifest: what was read.
        fields: what it was read from.

    Raises:
        StepladderError: the first field that does not hold.
    """
    for name in ("arguments", "tma_descriptors"):
        for item in fields.objects(name):
            _check_role(manifest, item.string("role"), item)
    written: set[str] = set()
    read = {argument.role for argument in manifest.arguments if argument.role in WORKSPACE_ROLES}
    for item, kernel in zip(fields.objects("front") if manifest.front else (), manifest.front):
        check_launch(kernel, manifest.target, item)
        for entry, argument in zip(item.objects("arguments"), kernel.arguments):
            if argument.role in WORKSPACE_ROLES[: len(manifest.workspaces)]:
                is_read = argument.access == "read"
                if is_read and argument.role not in written:
                    raise entry.error("role", f"is '{argument.role}', which no earlier kernel writes")
                if not is_read and argument.role in written:
                    raise entry.error("role", f"is '{argument.role}', which an earlier kernel writes")
                (read if is_read else written).add(argument.role)
                _check_operand(manifest, argument, entry, "read" if is_read else "write")
            else:
                _check_operand(manifest, argument, entry, "read")
            if argument.descriptor is not None:
                raise entry.error("descriptor", "must be null: kernels before that of the matmul take pointers")
        for name in (kernel.cubin, kernel.ptx):
            if name not in manifest.files:
                raise fields.error("files", f"does not list '{name}'")
    roles = set(WORKSPACE_ROLES[: len(manifest.workspaces)])
    if written != roles or read != roles:
        raise fields.error(
            "workspaces",
            f"must each be written by a kernel of 'front' and read by a later one: there are "
            f"{', '.join(sorted(roles)) or 'none'}, written {', '.join(sorted(written)) or 'none'}, read "
            f"{', '.join(sorted(read)) or 'none'}",
        )
    for item, descriptor in zip(fields.objects("tma_descriptors"), manifest.tma_descriptors):
        if descriptor.role in WORKSPACE_ROLES:
            _check_descriptor(manifest, descriptor.role, descriptor.shape, descriptor.strides, item)


def _check_role(manifest: Manifest, role: str, fields: Fields) -> None:
    if role in WORKSPACE_ROLES[len(manifest.workspaces) :]:
        raise fields.error("role", f"is '{role}', and 'workspaces' has {len(manifest.workspaces)} entries")


def _check_operand(manifest: Manifest, argument: Argument, fields: Fields, access: str) -> None:
    _check_role(manifest, argument.role, fields)
    operand = manifest.operand(argument.role)
    for name, expected, value in (
        ("element_type", operand.element_type, argument.element_type),
        ("shape", list(operand.shape), list(argument.shape)),
        ("access", access, argument.access),
        ("by_value", operand.by_value, argument.by_value),
    ):
        if expected != value:
            raise fields.error(name, f"must be {show(expected)}, as '{argument.role}' has it, got {show(value)}")


def check_launch(kernel: FrontKernel | PlainKernel, target_name: str, fields: Fields) -> None:
    """Checks the launch and the resources of a kernel against its target.

    Args:
        kernel: one that is no matmul.
        target_name: of a target in `targets.TARGETS`.
        fields: what the kernel was read from.

    Raises:
        StepladderError: the first field that passes a limit, with the limit.
    """
    target = targets.find(target_name)
    threads = math.prod(kernel.block)
    for name, extents, limits in (("grid", kernel.grid, targets.GRID), ("block", kernel.block, targets.BLOCK)):
        if any(extent > limit for extent, limit in zip(extents, limits)):
            raise fields.error(name, f"must be at most {' x '.join(map(str, limits))}, got {show(list(extents))}")
    if threads > targets.THREADS:
        raise fields.error("block", f"must have at most {targets.THREADS} threads, got {threads}")
    most = targets.registers_of_thread(threads)
    if kernel.registers > most:
        raise fields.error("registers", f"must be at most {most} a thread, got {show(kernel.registers)}")
    if kernel.static_shared_memory > target.shared_memory:
        raise fields.error(
            "static_shared_memory", f"must be at most {target.shared_memory}, got {show(kernel.static_shared_memory)}"
        )
    if isinstance(kernel, PlainKernel):
        dynamic, left = kernel.dynamic_shared_memory, target.shared_memory - kernel.static_shared_memory
        if dynamic > left:
            raise fields.error("dynamic_shared_memory", f"must be at most {left}, got {show(dynamic)}")
        if any(blocks % size for blocks, size in zip(kernel.grid, kernel.cluster)):
            raise fields.error("grid", f"must be a multiple of the cluster, got {show(list(kernel.grid))}")
        for role in kernel.read_early:
            if all(argument.role != role or argument.access != "read" for argument in kernel.arguments):
                raise fields.error("read_early", f"must name arguments that the kernel only reads, got {show(role)}")
        if kernel.dependent_launch and target.compute_capability < targets.HOPPER:
            raise fields.error(
                "dependent_launch", f"needs a target of compute capability 9.0 or later, and 'target' is {target.name}"
            )
        if kernel.read_early and kernel.dependent_launch:
            raise fields.error("dependent_launch", "must be false with 'read_early', got true")


def _check_descriptor(
    manifest: Manifest, role: str, shape: tuple[int, ...], strides: tuple[int, ...], fields: Fields
) -> None:
    """Checks that a descriptor stays inside of a workspace, whose row pitch TMA takes, or is the part of it that A or B
    is, of which the matrices of a batch may be elsewhere."""
    workspace = manifest.operand(role)
    width = element_type(workspace.element_type).bytes
    windows = (manifest.problem.a_window, manifest.problem.b_window)
    parts = [window for window in windows if window is not None and window.shape == workspace.shape]
    if any(strides == tuple(stride * width for stride in part.strides[:-1] if stride) for part in parts):
        return
    # A matrix of all elements may have other extents than the buffer.
    extents = shape if math.prod(shape) == math.prod(workspace.shape) else workspace.shape
    if len(shape) != len(extents) or any(inner > outer for inner, outer in zip(shape, extents)):
        raise fields.error(
            "shape", f"must be inside of {show(list(extents))}, that of '{role}', got {show(list(shape))}"
        )
    pitches = [math.prod(extents[axis:]) * width for axis in range(1, len(extents))]
    if list(strides) != pitches or any(pitch % _PITCH for pitch in pitches):
        raise fields.error(
            "strides", f"must be {show(pitches)}, those of '{role}', multiples of {_PITCH}, got {show(list(strides))}"
        )
