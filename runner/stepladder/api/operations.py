"""Elementwise operations on the values of a recording: casts, arithmetic, comparisons, functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepladder.api.recording import FLOATS, INTEGERS, OPERAND_TYPES, Recording, Value, refuse
from stepladder.api.views import is_array

# Predicates of arith.cmpf and arith.cmpi.
_PREDICATES = {
    "lt": ("olt", "slt"),
    "le": ("ole", "sle"),
    "gt": ("ogt", "sgt"),
    "ge": ("oge", "sge"),
    "eq": ("oeq", "eq"),
    "ne": ("une", "ne"),
}
_EXPONENTS = 127  # the largest of f32
_I32 = np.iinfo(np.int32)
_BINARY = {
    "add": ("arith.addf", "arith.addi"),
    "sub": ("arith.subf", "arith.subi"),
    "mul": ("arith.mulf", "arith.muli"),
    "maximum": ("arith.maximumf", "arith.maxsi"),
    "minimum": ("arith.minimumf", "arith.minsi"),
}


def recording_of(values: Sequence[object]) -> Recording:
    """Returns the recording that the traced ones of some values belong to.

    Args:
        values: of which one at least is traced.
    """
    return next(value.recording for value in values if isinstance(value, Value))


def lifted(values: Sequence[object]) -> list[Value]:
    """Returns values as traced ones of one type: scalars take the type of the arrays, and narrow types the widest.

    Args:
        values: of the epilogue, arrays and scalars; one at least is traced.

    Raises:
        EpilogueError: a value that is none of these, or types that have none in common.
    """
    recording = recording_of(values)
    operands = [recording.operand(value) if is_array(value) else value for value in values]
    types = [value.type for value in operands if isinstance(value, Value)]
    numbers = [_number(value) for value in operands if not isinstance(value, Value)]
    type_ = _common(types)
    if type_ in INTEGERS and any(isinstance(value, float) for value in numbers):
        type_ = "f32"
    if type_ in INTEGERS and numbers:
        type_ = "i32"
        if any(not _I32.min <= number <= _I32.max for number in numbers):
            refuse("an integer beyond the range of i32", f"accepted: from {_I32.min} to {_I32.max}, or a float")
    return [
        cast(value, type_) if isinstance(value, Value) else recording.constant(_number(value), type_)
        for value in operands
    ]


def _number(value: object) -> int | float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        refuse(f"a value of type {type(value).__name__}", "accepted: arrays and scalars")
    if isinstance(value, (int, np.integer)):
        if abs(int(value)) >> _EXPONENTS:
            refuse("an integer beyond the range of f32", "accepted: values up to 2^127")
        return int(value)
    return float(value)


def _common(types: Sequence[str]) -> str:
    """Returns the type that values of several types are computed in."""
    if "i1" in types:
        if set(types) == {"i1"}:
            return "i1"
        refuse("arithmetic on a condition", "accepted: where(condition, x, y)")
    floats = {type_ for type_ in types if type_ in FLOATS}
    if not floats:
        return max(types, key=lambda type_: INTEGERS[type_])
    return floats.pop() if len(floats) == 1 and len({*types}) == 1 else "f32"


def cast(value: Value, type_: str) -> Value:
    """Returns a value in another type.

    Args:
        value: of the epilogue.
        type_: by its MLIR name.

    Raises:
        EpilogueError: a cast of conditions, to narrower integers, or to a type that epilogues do not have.
    """
    record, source_type = value.recording.record, value.type
    if source_type == type_:
        return value
    if source_type == "i1" or type_ not in OPERAND_TYPES:
        refuse(
            f"a cast from {source_type} to {type_}",
            "accepted: casts between f32, f16 and bf16, and of integers to these",
        )
    if source_type in INTEGERS:
        if type_ in INTEGERS and INTEGERS[type_] > INTEGERS[source_type]:
            return record("arith.extsi", [value], type_)
        if type_ in INTEGERS:
            refuse(f"a cast from {source_type} to {type_}", "accepted: casts to wider types")
        number = record("arith.sitofp", [value], "f32")
        return number if type_ == "f32" else cast(number, type_)
    if type_ in INTEGERS:
        refuse(f"a cast from {source_type} to {type_}", "accepted: casts to types of floating point")
    if type_ == "f32":
        return record("arith.extf", [value], type_)
    return record("arith.truncf", [cast(value, "f32")], type_)


def binary(name: str, left: object, right: object) -> Value:
    """Records a sum, a difference, a product, a maximum or a minimum.

    Args:
        name: `add`, `sub`, `mul`, `maximum` or `minimum`.
        left: of the epilogue, an array or a scalar.
        right: as `left`; one of the two is of the epilogue.

    Returns:
        The result, in the common type.

    Raises:
        EpilogueError: operands that are conditions.
    """
    first, second = lifted([left, right])
    if first.type == "i1":
        refuse("arithmetic on a condition", "accepted: where(condition, x, y)")
    return first.recording.record(_BINARY[name][first.type in INTEGERS], [first, second], first.type)


def as_float(value: Value) -> Value:
    """Returns a value in a type of floating point.

    Args:
        value: of the epilogue; integers are cast to f32.
    """
    return value if value.type in FLOATS else cast(value, "f32")


def divide(left: object, right: object) -> Value:
    """Records a quotient, of integers in f32.

    Args:
        left: of the epilogue, an array or a scalar.
        right: as `left`; one of the two is of the epilogue.

    Returns:
        The quotient, of floating point.

    Raises:
        EpilogueError: operands that are conditions.
    """
    first, second = lifted([left, right])
    if first.type == "i1":
        refuse("arithmetic on a condition", "accepted: where(condition, x, y)")
    first, second = as_float(first), as_float(second)
    return first.recording.record("arith.divf", [first, second], first.type)


def compare(name: str, left: object, right: object) -> Value:
    """Records a comparison; its result is a condition for `where`.

    Args:
        name: as of Python's methods: `lt`, `le`, `gt`, `ge` and so on.
        left: of the epilogue, an array or a scalar.
        right: as `left`; one of the two is of the epilogue.

    Returns:
        The condition.

    Raises:
        EpilogueError: operands that are conditions.
    """
    first, second = lifted([left, right])
    if first.type == "i1":
        refuse("the comparison of two conditions", "accepted: & and | of conditions")
    is_integer = first.type in INTEGERS
    predicate = _PREDICATES[name][is_integer]
    return first.recording.record(f"arith.cmp{'i' if is_integer else 'f'}", [first, second], "i1", predicate)


def unary(name: str, value: Value) -> Value:
    """Records a function of floating point, of integers in f32.

    Args:
        name: of the op, with its dialect.
        value: of the epilogue.

    Returns:
        The result, of floating point.
    """
    operand = as_float(value)
    return value.recording.record(name, [operand], operand.type)


def absolute(value: Value) -> Value:
    """Records absolute values.

    Args:
        value: of the epilogue.

    Returns:
        The result, of the type of `value`; of floating point for one that is no integer.
    """
    if value.type in INTEGERS:
        return value.recording.record("math.absi", [value], value.type)
    return unary("math.absf", value)


def as_condition(value: object) -> Value:
    """Returns a value that is a condition; refuses any other.

    Args:
        value: what the epilogue passes.

    Raises:
        EpilogueError: it is no comparison of arrays.
    """
    if not isinstance(value, Value) or value.type != "i1":
        refuse("a condition that is not a comparison of arrays", "accepted: x < y, x > y, ..., and & and | of these")
    return value


def select(condition: object, left: object, right: object) -> Value:
    """Records the choice between two values.

    Args:
        condition: a comparison of arrays.
        left: where it holds: of the epilogue, an array or a scalar.
        right: where it does not: as `left`.

    Returns:
        The result, in the common type.

    Raises:
        EpilogueError: another condition, or values that have no type in common.
    """
    condition_value = as_condition(condition)
    if not isinstance(left, Value) and not isinstance(right, Value):
        if is_array(left) or is_array(right):
            left, right = (
                condition_value.recording.operand(value) if is_array(value) else value for value in (left, right)
            )
        else:
            left = condition_value.recording.constant(_number(left), "f32")
    first, second = lifted([left, right])
    return condition_value.recording.record("arith.select", [condition_value, first, second], first.type)
