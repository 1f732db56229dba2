"""Arguments of a reference program whose roots it takes, such as the variance of a batch norm.

A root of a negative number is NaN, which compares equal to any other NaN; and torch-mlir asserts that it is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from stepladder.runtime.reference import Constant, Generic, Operation, Program, Reshape, Slice
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.reference_evaluation import Evaluation

_ROOTS = ("math.sqrt", "math.rsqrt")
# Ops whose result is positive where both operands are, of which one is a constant, and casts.
_KEEPING = frozenset(f"arith.{name}" for name in ("addf", "divf", "extf", "maximumf", "maxnumf", "mulf", "truncf"))


def positive_arguments(program: Program) -> set[int]:
    """Returns the indices of the arguments whose roots a program takes, as they are, or after a cast, a sum, a product
    or a quotient with a constant.

    Args:
        program: the reference.
    """
    evaluation = Evaluation(program, {}, NumPyArrays())
    numbers = {item.value: number for number, item in enumerate(program.arguments)}
    found = set()
    for generic in program.instructions:
        if isinstance(generic, Generic):
            for op in (item for item in generic.body if item.name in _ROOTS):
                value = _source(generic, op.operands[0], evaluation)
                if value in numbers:
                    found.add(numbers[value])
    return found


def _source(generic: Generic, value: int, evaluation: Evaluation) -> int:
    """Returns the value of the program that one of a body is made from by ops that keep positive numbers so."""
    while True:
        value = _in_body(generic, value, evaluation)
        instruction, number = evaluation.makers.get(value, (None, 0))
        while isinstance(instruction, Reshape | Slice):
            value = instruction.source
            instruction, number = evaluation.makers.get(value, (None, 0))
        if not isinstance(instruction, Generic) or instruction.reduces:
            return value
        generic, value = instruction, instruction.yields[number]
        if value not in {*generic.arguments, *(op.result for op in generic.body)}:
            return value


def _in_body(generic: Generic, value: int, evaluation: Evaluation) -> int:
    """Returns the operand that a value of a body comes from by `_KEEPING` ops; else the value that they read."""
    definitions = {op.result: op for op in generic.body}
    operands = dict(zip(generic.arguments, (*generic.inputs, *generic.outputs)))
    while value in definitions and definitions[value].name in _KEEPING:
        varying = [item for item in definitions[value].operands if not _is_constant(item, definitions, evaluation)]
        if len(varying) != 1:
            return value
        (value,) = varying
    return operands.get(value, value)


def _is_constant(value: int, definitions: Mapping[int, Operation], evaluation: Evaluation) -> bool:
    while value in definitions and len(definitions[value].operands) == 1:  # a cast
        (value,) = definitions[value].operands
    if value in definitions:
        return definitions[value].name == "arith.constant"
    return isinstance(evaluation.makers.get(value, (None, 0))[0], Constant)
