"""Random integers for the arguments of a reference program, of which some are indices, and others divisors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from stepladder.runtime.element_types import BOOLEAN, ElementType
from stepladder.runtime.reference import Generic, Insert, Instruction, Program, Reshape, Slice
from stepladder.runtime.reference_operations import GATHER, is_float
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.reference_evaluation import Evaluation

_DIVISIONS = frozenset(
    f"arith.{name}" for name in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
)
# Casts that keep a number of -8 to 8 other than 0 so.
_KEPT = ("arith.extsi", "arith.extui", "arith.index_cast", "arith.trunci")


class IntegerArguments:
    """Draws integers of the arguments of a reference program: -8 to 8, booleans, indices of all elements that there
    are, and divisors other than 0, by which no quotient is defined.

    Args:
        program: whose gathers (`tensor.extract`) read elements by indices.
    """

    def __init__(self, program: Program) -> None:
        evaluation = Evaluation(program, {}, NumPyArrays())
        numbers = {item.value: number for number, item in enumerate(program.arguments) if not is_float(item.type)}
        # The least extent of an axis that an index along it depends on the argument, by its index.
        self._limits: dict[int, int] = {}
        self._divisors: set[int] = set()
        for generic in program.instructions:
            if isinstance(generic, Generic):
                self._note_limits(generic, evaluation, numbers)
                self._divisors.update(_divisors_of(generic, evaluation, numbers))

    def draw(
        self, number: int, element: ElementType, shape: Sequence[int], generator: np.random.Generator
    ) -> np.ndarray:
        """Returns random integers for an argument.

        Args:
            number: of the argument.
            element: its integer type.
            shape: its extents.
            generator: of random numbers.
        """
        limit = self._limits.get(number)
        low, high = (0, 2) if element.name == BOOLEAN else (-8, 9)
        if limit is not None:
            low, high = 0, limit
        integers = generator.integers(low, high, shape).astype(element.dtype)
        return np.where(integers == 0, integers.dtype.type(1), integers) if number in self._divisors else integers

    def _note_limits(self, generic: Generic, evaluation: Evaluation, numbers: Mapping[int, int]) -> None:
        for op in (item for item in generic.body if item.name == GATHER):
            for extent, index in zip(evaluation.shape(op.operands[0]), op.operands[1:]):
                for value in _arguments_of(_read_by(generic, [index]), evaluation):
                    if value in numbers:
                        number = numbers[value]
                        self._limits[number] = min(extent, self._limits.get(number, extent))


def _divisors_of(generic: Generic, evaluation: Evaluation, numbers: Mapping[int, int]) -> set[int]:
    """Returns the indices of the arguments whose elements a body divides integers by, as they are or cast."""
    definitions = {op.result: op for op in generic.body}
    operands = dict(zip(generic.arguments, (*generic.inputs, *generic.outputs)))
    divisors = set()
    for op in (item for item in generic.body if item.name in _DIVISIONS):
        value = op.operands[1]
        while value in definitions and definitions[value].name in _KEPT:
            value = definitions[value].operands[0]
        value = operands.get(value, value)
        while value in evaluation.makers and isinstance(evaluation.makers[value][0], Reshape | Slice):
            (value,) = _sources(evaluation.makers[value])
        if value in numbers:
            divisors.add(numbers[value])
    return divisors


def _read_by(generic: Generic, values: Iterable[int]) -> set[int]:
    """Returns the values of the program that values of a body depend on."""
    definitions = {op.result: op for op in generic.body}
    operands = dict(zip(generic.arguments, (*generic.inputs, *generic.outputs)))
    inputs: set[int] = set()
    pending, visited = list(values), set()
    while pending:
        value = pending.pop()
        if value in visited:
            continue
        visited.add(value)
        if value in definitions:
            pending += definitions[value].operands
        else:
            inputs.add(operands.get(value, value))
    return inputs


def _arguments_of(values: Iterable[int], evaluation: Evaluation) -> set[int]:
    """Returns the values of the program that others depend on, those of its arguments among them."""
    pending, visited = list(values), set()
    while pending:
        value = pending.pop()
        if value not in visited:
            visited.add(value)
            pending += _sources(evaluation.makers[value]) if value in evaluation.makers else ()
    return visited


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
