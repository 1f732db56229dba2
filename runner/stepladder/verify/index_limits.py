"""Finds the arguments of a reference program that are indices, and their ranges, for random inputs."""

from __future__ import annotations

from collections.abc import Iterable

from stepladder.runtime.element_types import BOOLEAN, ElementType
from stepladder.runtime.reference import Generic, Insert, Instruction, Program, Reshape, Slice
from stepladder.runtime.reference_operations import GATHER, is_float
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.reference_evaluation import Evaluation


def index_limits(program: Program) -> dict[int, int]:
    """Returns the number of elements that each integer argument may name one of, by the argument's number.

    Args:
        program: whose gathers (`tensor.extract`) read elements by indices.

    Returns:
        The least extent of an axis that an index along it depends on the argument; no entry for other arguments.
    """
    evaluation = Evaluation(program, {}, NumPyArrays())
    numbers = {item.value: number for number, item in enumerate(program.arguments) if not is_float(item.type)}
    limits: dict[int, int] = {}
    for generic in program.instructions:
        if not isinstance(generic, Generic):
            continue
        for op in (item for item in generic.body if item.name == GATHER):
            for extent, index in zip(evaluation.shape(op.operands[0]), op.operands[1:]):
                for value in _arguments_of(_read_by(generic, [index]), evaluation):
                    if value in numbers:
                        limits[numbers[value]] = min(extent, limits.get(numbers[value], extent))
    return limits


def integer_range(element: ElementType, limit: int | None) -> tuple[int, int]:
    """Returns the first random integer of an argument, and the end of their range: -8 to 8, unless it has indices or
    truth values.

    Args:
        element: the argument's integer type.
        limit: of the argument, of `index_limits`; None where it has none.
    """
    if limit is not None:
        return 0, limit
    return (0, 2) if element.name == BOOLEAN else (-8, 9)


def _read_by(generic: Generic, values: Iterable[int]) -> set[int]:
    """Returns the values of the program that values of a body depend on."""
    made = {op.result: op for op in generic.body}
    outside = dict(zip(generic.arguments, (*generic.inputs, *generic.outputs)))
    found: set[int] = set()
    pending, seen = list(values), set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in made:
            pending += made[value].operands
        else:
            found.add(outside.get(value, value))
    return found


def _arguments_of(values: Iterable[int], evaluation: Evaluation) -> set[int]:
    """Returns the values of the program that others depend on, those of its arguments among them."""
    pending, seen = list(values), set()
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            pending += _sources(evaluation.makers[value]) if value in evaluation.makers else ()
    return seen


def _sources(made_by: tuple[Instruction, int]) -> list[int]:
    """Returns the values that a value is made from."""
    instruction, number = made_by
    match instruction:
        case Generic():
            return list(_read_by(instruction, [instruction.yields[number]]))
        case Reshape() | Slice():
            return [instruction.source]
        case Insert():
            return [instruction.source, instruction.target]
    return []
