"""Rules for the constants and scalar ops of reference programs, which make these computable."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepladder.runtime.bundle.fields import show
from stepladder.runtime.element_types import BOOLEAN, BUFFER_TYPES, ELEMENT_TYPES
from stepladder.runtime.reference_operations import (
    ARITHMETIC,
    BITCAST,
    CASTS,
    FLOAT_CASTS,
    GATHER,
    OPERATIONS,
    PREDICATES,
    is_float,
)

_INTEGER = re.compile(r"i([1-9]|[1-5][0-9]|6[0-4])")
# Ops of one and three operands; others of one type have two.
_UNARY = ARITHMETIC & {"arith.negf"} | {
    name for name in ARITHMETIC if name.startswith("math.") and name not in ("math.atan2", "math.copysign", "math.powf")
} - {"math.fma"}
_TERNARY = ("arith.select", "math.fma")
# Of each cast, whether operand and result are floating point.
_CAST_KINDS = {
    "arith.sitofp": (False, True),
    "arith.uitofp": (False, True),
    "arith.fptosi": (True, False),
    "arith.fptoui": (True, False),
    **dict.fromkeys(FLOAT_CASTS, (True, True)),
}
# Ops on the bits of an integer, which are those of a number of at most 64 bits with a sign.
_WIDER, _NARROWER = ("arith.extsi", "arith.extui"), "arith.trunci"
# Types whose bits may be taken as those of another one, with how many they are.
_OF_BITS = {name: item.bits for name, item in BUFFER_TYPES.items() if name != BOOLEAN}


def is_number_type(type_: str) -> bool:
    """Returns whether values of a type can be evaluated: integers of up to 64 bits, indices, and element types of
    floating point.

    Args:
        type_: MLIR's name of an element type.
    """
    if type_ in ELEMENT_TYPES or type_ == "index":
        return True
    return _INTEGER.fullmatch(type_) is not None


def width_of(type_: str) -> int:
    """Returns the bits of an integer; an index has 64.

    Args:
        type_: MLIR's name of an integer type, or `index`.
    """
    return 64 if type_ == "index" else int(type_[1:])


def number_problem(number: object, type_: str) -> str | None:
    """Returns why JSON data is no number of a type, as a predicate, or None where it is one.

    Args:
        number: an integer, or a floating-point number as `float.hex` writes it.
        type_: MLIR's name of the scalar's type.
    """
    if is_float(type_):
        try:
            float.fromhex(number if isinstance(number, str) else "none")
        except (ValueError, OverflowError):
            return f'must be a floating-point number in hexadecimal, such as "0x1.8p+0", got {show(number)}'
        return None
    width = width_of(type_)
    # With or without a sign; what has 64 bits has a sign.
    end = 1 << min(width, 63)
    if type(number) is not int or not -(1 << width - 1) <= number < end:
        return f"must be an integer of {type_}, got {show(number)}"
    return None


def operation_problem(name: str, types: Sequence[str], type_: str, rank: int) -> tuple[str, str] | None:
    """Returns the field of a scalar op that is not as the op wants it, and why, as a predicate; else None.

    Args:
        name: of the op.
        types: of its operands, each a scalar's.
        type_: of its result, likewise.
        rank: axes of the value that a gather reads.
    """
    if name not in OPERATIONS:
        return "name", f"must be an op that a reference program may hold, got '{name}'"
    count = _count_of(name, rank)
    if len(types) != count:
        return "operands", f"must be {count} for {name}, got {len(types)}"
    wanted = _operands_problem(name, types)
    if wanted is not None:
        return "operands", f"must be {wanted} for {name}, got {', '.join(types) or 'none'}"
    wanted = _result_problem(name, types, type_)
    return None if wanted is None else ("type", f"must be {wanted} for {name}, got {type_}")


def _count_of(name: str, rank: int) -> int:
    """Returns how many operands an op has."""
    if name == GATHER:
        return 1 + rank
    if name in ("arith.constant", "linalg.index"):
        return 0
    if name in _TERNARY:
        return 3
    return 1 if name in _UNARY or name in CASTS else 2


def _operands_problem(name: str, types: Sequence[str]) -> str | None:
    """Returns what the types of an op's operands must be, where they are something else."""
    if name == GATHER:
        return None if all(item == "index" for item in types[1:]) else "a value and indices"
    if name == "arith.select":
        return None if types[0] == "i1" and types[1] == types[2] else "an i1 and two of one type"
    if name in CASTS:
        return _cast_problem(name, types[0])
    if not types:
        return None
    if len(set(types)) > 1:
        return "of one type"
    wants_float = name == "arith.cmpf" or (name.startswith("math.") and name != "math.absi") or name.endswith("f")
    if wants_float != is_float(types[0]):
        return "floating-point numbers" if wants_float else "integers"
    return None


def _cast_problem(name: str, operand: str) -> str | None:
    if name == BITCAST:
        return None if operand in _OF_BITS else f"a number of {', '.join(_OF_BITS)}"
    wants_float = _CAST_KINDS.get(name, (False, False))[0]
    if wants_float != is_float(operand):
        return "a floating-point number" if wants_float else "an integer"
    if name in (*_WIDER, _NARROWER) and operand == "index":
        return "an integer of a width"
    return None


def _result_problem(name: str, types: Sequence[str], type_: str) -> str | None:
    """Returns what the type of an op's result must be, where it is something else."""
    if name == "linalg.index":
        return None if type_ == "index" else "index"
    if name == "arith.constant":
        return None
    if name in PREDICATES:
        return None if type_ == "i1" else "i1"
    if name == GATHER:
        return None if type_ == types[0] else types[0]
    if name == BITCAST:
        bits = _OF_BITS[types[0]]
        return None if _OF_BITS.get(type_) == bits else f"a type of {bits} bits"
    if name == "arith.index_cast":
        is_cast = not is_float(type_) and (type_ == "index") != (types[0] == "index")
        return None if is_cast else "an integer, or an index of an integer"
    if name in _WIDER or name == _NARROWER:
        if is_float(type_) or type_ == "index":
            return "an integer of a width"
        grows = width_of(type_) > width_of(types[0])
        if width_of(type_) == width_of(types[0]) or grows != (name in _WIDER):
            return f"an integer of {'more' if name in _WIDER else 'fewer'} bits than {types[0]}"
        return None
    if name in CASTS:
        wants_float = _CAST_KINDS[name][1]
        if wants_float != is_float(type_) or type_ == "index":
            return "a floating-point type" if wants_float else "an integer of a width"
        return None
    return None if type_ == types[-1] else types[-1]
