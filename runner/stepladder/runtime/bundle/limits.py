"""Limits of a manifest's values: those of its target, and those that its problem implies for its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable

from stepladder.runtime import targets
from stepladder.runtime.bundle.fields import Fields, show
from stepladder.runtime.bundle.manifest import SCHEMA_VERSION_VALUES, WORKSPACE_ROLES, Argument, Manifest
from stepladder.runtime.element_types import (
    ELEMENT_TYPES,
    INTEGER_SUMS,
    OPERAND_TYPES,
    element_type,
)
from stepladder.runtime.problem import Operand, Problem, epilogue_role


def check_limits(manifest: Manifest, fields: Fields) -> None:
    """Checks a manifest's launch and resources against what its target has.

    Args:
        manifest: of a target in `targets.TARGETS`.
        fields: what it was read from.

    Raises:
        StepladderError: the first field that passes a limit, with the limit.
    """
    target = targets.find(manifest.target)
    threads = math.prod(manifest.block)
    _check_extents(manifest.grid, targets.GRID, "blocks", "grid", fields)
    _check_extents(manifest.block, targets.BLOCK, "threads", "block", fields)
    if threads > targets.THREADS:
        raise fields.error(
            "block", f"must have at most {targets.THREADS} threads, got {threads}: {show(list(manifest.block))}"
        )
    most = targets.registers_of_thread(threads)
    if manifest.registers > most:
        raise fields.error(
            "registers",
            f"must be at most {most} a thread in a block of {threads} threads, got {show(manifest.registers)}",
        )
    _check_shared_memory(manifest, target, fields)
    _check_clusters(manifest, target, fields)
    if target.compute_capability < targets.HOPPER:
        for name, is_used in (
            ("tma_descriptors", bool(manifest.tma_descriptors)),
            ("dependent_launch", manifest.dependent_launch),
            ("read_early", bool(manifest.read_early)),
        ):
            if is_used:
                raise fields.error(
                    name, f"needs a target of compute capability 9.0 or later, and 'target' is {target.name}"
                )


def _check_extents(extents: tuple[int, ...], limits: tuple[int, ...], unit: str, name: str, fields: Fields) -> None:
    if any(extent > limit for extent, limit in zip(extents, limits)):
        raise fields.error(name, f"must be at most {' x '.join(map(str, limits))} {unit}, got {show(list(extents))}")


def _check_shared_memory(manifest: Manifest, target: targets.Target, fields: Fields) -> None:
    static, dynamic = manifest.static_shared_memory, manifest.dynamic_shared_memory
    if static > target.shared_memory:
        raise fields.error(
            "static_shared_memory", f"must be at most {target.shared_memory} bytes on {target.name}, got {show(static)}"
        )
    if static + dynamic > target.shared_memory:
        raise fields.error(
            "dynamic_shared_memory",
            f"must be at most {target.shared_memory - static} bytes on "
            f"{target.name}, beside {static} static ones, got {show(dynamic)}",
        )


def _check_clusters(manifest: Manifest, target: targets.Target, fields: Fields) -> None:
    cluster = list(manifest.cluster)
    if math.prod(cluster) > target.cluster:
        accepted = (
            f"must have at most {target.cluster} blocks on {target.name}"
            if target.cluster > 1
            else f"must be [1, 1, 1] on {target.name}, which has no clusters"
        )
        raise fields.error("cluster", f"{accepted}, got {show(cluster)}")
    if any(blocks % size for blocks, size in zip(manifest.grid, cluster)):
        raise fields.error(
            "grid",
            f"must be a multiple of the cluster {show(cluster)} in every dimension, got {show(list(manifest.grid))}",
        )


def check_problem(manifest: Manifest, fields: Fields) -> None:
    """Checks that a manifest's types go together, and that its arguments are the operands of its problem.

    Args:
        manifest: what was read.
        fields: what it was read from.

    Raises:
        StepladderError: the first field that disagrees with the problem, with the value that would agree.
    """
    _check_types(manifest, fields)
    _check_windows(manifest, fields)
    check_arguments(manifest.all_arguments, manifest.problem, manifest.operand, fields)
    for role in manifest.read_early:
        if all(argument.role != role or argument.access != "read" for argument in manifest.arguments):
            raise fields.error("read_early", f"must name arguments that the kernel only reads, got {show(role)}")
    for item, descriptor in zip(fields.objects("tma_descriptors"), manifest.tma_descriptors):
        operand = manifest.operand(descriptor.role)
        if descriptor.element_type != operand.element_type:
            raise item.error(
                "element_type",
                f"must be {show(operand.element_type)}, as 'problem' has it, got {show(descriptor.element_type)}",
            )
        size = math.prod(operand.shape) * element_type(operand.element_type).bytes
        if descriptor.end > size:
            raise item.error(
                "shape",
                f"must be that of a tensor within the {size} bytes of '{descriptor.role}': it ends at byte "
                f"{show(descriptor.end)} with shape {show(list(descriptor.shape))}, strides "
                f"{show(list(descriptor.strides))} and offset {show(descriptor.offset)}",
            )


def check_arguments(
    arguments: tuple[Argument, ...], problem: Problem, operand_of: Callable[[str], Operand], fields: Fields
) -> None:
    """Checks that arguments are the operands of a problem.

    Args:
        arguments: of all kernels; those of the matmul, which `fields` lists, are the last.
        problem: what the kernels compute.
        operand_of: gives the operand of a role of `arguments`.
        fields: of the manifest.

    Raises:
        StepladderError: the first field that disagrees with the problem, with the value that would agree.
    """
    shared = {"b"} if problem.b_is_a else set()  # a kernel may take the one buffer once
    second_b = set() if problem.second_b is None else {epilogue_role(problem.second_b)}
    # An operand that makes no difference to a result, such as one that is multiplied by 0, is no parameter.
    optional = shared | (set(problem.epilogue_roles) - second_b)
    roles = problem.roles
    # Operands that a preceding kernel copies to a workspace are read by that kernel, not by this one.
    present = {argument.role for argument in arguments if argument.role not in WORKSPACE_ROLES}
    if not set(roles) - optional <= present <= set(roles):
        listing = ", ".join(argument.role for argument in arguments) or "none"
        raise fields.error("arguments", f"must have one of each role {', '.join(roles)}, got {listing}")
    items = fields.objects("arguments")
    for item, argument in zip(items, arguments[len(arguments) - len(items) :]):
        operand = operand_of(argument.role)
        for name, expected, value in (
            ("element_type", operand.element_type, argument.element_type),
            ("shape", list(operand.shape), list(argument.shape)),
            ("access", operand.access, argument.access),
            ("by_value", operand.by_value, argument.by_value),
        ):
            if expected != value:
                raise item.error(name, f"must be {show(expected)}, as 'problem' has it, got {show(value)}")


def _check_windows(manifest: Manifest, fields: Fields) -> None:
    """Checks that operands that are parts of buffers are inside of them."""
    problem = manifest.problem
    for role in "abc":
        window = problem.window(role)
        if window is None:
            continue
        item = fields.object("problem").object(f"{role}_window")
        if window.batch and math.prod(window.batch) != problem.batch:
            raise item.error("batch", f"must have a product of {problem.batch}, got {window.batch}")
        shape = window.extents(getattr(problem, f"{role}_shape"))
        if len(window.strides) != len(shape) or window.strides[-1] != 1:
            raise item.error(
                "strides", f"must be one for each of {len(shape)} dimensions, the last one 1, got {window.strides}"
            )
        if 0 in window.strides[len(window.batch) if role != "c" else 0 :]:
            raise item.error("strides", f"must be positive but for the batch of an A or B, got {window.strides}")
        end = window.offset + sum((size - 1) * stride for size, stride in zip(shape, window.strides)) + 1
        if end > math.prod(window.shape):
            raise item.error("shape", f"must have {end} elements or more, where the operand ends, got {window.shape}")
        if manifest.schema_version < SCHEMA_VERSION_VALUES:
            raise fields.object("problem").error(f"{role}_window", f"requires schema_version {SCHEMA_VERSION_VALUES}")


def _check_types(manifest: Manifest, fields: Fields) -> None:
    problem = manifest.problem
    is_integer = element_type(problem.a_type).is_integer
    for name in ("b_type", "acc_type", "c_type"):
        accepted = OPERAND_TYPES if name == "b_type" else list(ELEMENT_TYPES)
        accepted = [type_ for type_ in accepted if element_type(type_).is_integer == is_integer]
        if is_integer and name != "b_type":
            accepted = [INTEGER_SUMS]
        if name == "c_type" and problem.has_epilogue:  # elementwise ops may make numbers of other types of the sums
            accepted = list(ELEMENT_TYPES)
        if getattr(problem, name) not in accepted:
            raise fields.object("problem").error(
                name,
                f"must be one of {', '.join(accepted)} where a_type is "
                f"{problem.a_type}, got {show(getattr(problem, name))}",
            )
