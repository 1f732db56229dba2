"""Checks the arguments and results of a reference program against the manifest of its bundle."""

from __future__ import annotations

import math

from stepladder.runtime.bundle.fields import Fields, show
from stepladder.runtime.bundle.function import FunctionManifest
from stepladder.runtime.problem import Operand, Problem, operand_of
from stepladder.runtime.reference import Argument, Generic, Program, Result


def check_kernel_reference(program: Program, problem: Problem, location: str) -> None:
    """Checks that a program takes and makes the operands of a kernel, and has its products.

    Args:
        program: as it was read.
        problem: of the kernel's manifest.
        location: path of the program's file, for errors.

    Raises:
        StepladderError: the field of the program that does not fit the problem.
    """
    fields = Fields({}, location)
    for kind, items in (("arguments", program.arguments), ("results", program.results)):
        for number, item in enumerate(items):
            if item.role is None:
                continue
            if item.role != "ab" and item.role not in problem.roles:
                raise fields.error(
                    f"{kind}[{number}].role", f"must be one of {', '.join(problem.roles)}, got {show(item.role)}"
                )
            _check_operand(fields, f"{kind}[{number}]", item, problem.operand(operand_of(item.role)))
    roles = [role for role, _ in program.outputs()]
    for role in ("c", *problem.result_roles):
        if roles.count(role) != 1:
            raise fields.error("results", f"and 'arguments' must write '{role}' once, got {roles.count(role)} times")
    products = sum(isinstance(item, Generic) and item.reduces for item in program.instructions)
    if products < problem.products:
        raise fields.error("instructions", f"must have {problem.products} or more reductions, got {products}")


def _check_operand(fields: Fields, name: str, item: Argument | Result, operand: Operand) -> None:
    """Checks that a buffer of the program is an operand in memory."""
    if item.type != operand.element_type:
        raise fields.error(f"{name}.type", f"must be {operand.element_type}, as in the manifest, got {show(item.type)}")
    if math.prod(item.shape) != math.prod(operand.shape):
        raise fields.error(
            f"{name}.shape",
            f"must have {math.prod(operand.shape)} elements, as in the manifest, got {show(list(item.shape))}",
        )


def check_function_reference(program: Program, manifest: FunctionManifest, location: str) -> None:
    """Checks that a program takes the arguments of a function and makes its results.

    Args:
        program: as it was read.
        manifest: of the function.
        location: path of the program's file, for errors.

    Raises:
        StepladderError: the field of the program that does not fit the manifest.
    """
    fields = Fields({}, location)
    inputs = [buffer for buffer in manifest.buffers if buffer.kind in ("argument", "constant")]
    results = [buffer for buffer in manifest.buffers if buffer.kind == "result"]
    if len(program.results) != len(results):
        raise fields.error("results", f"must be {len(results)}, as in the manifest, got {len(program.results)}")
    for kind, buffers, items in (("arguments", inputs, program.arguments), ("results", results, program.results)):
        for buffer in buffers:
            if buffer.number >= len(items):
                raise fields.error(kind, f"must have a number {buffer.number}, as in the manifest, got {len(items)}")
            operand = Operand(buffer.element_type, buffer.shape, "")
            _check_operand(fields, f"{kind}[{buffer.number}]", items[buffer.number], operand)
            if items[buffer.number].shape != buffer.shape:
                raise fields.error(
                    f"{kind}[{buffer.number}].shape",
                    f"must be {show(list(buffer.shape))}, as in the manifest, got "
                    f"{show(list(items[buffer.number].shape))}",
                )
