"""arith: arithmetic on scalars and vectors, wrapped and rounded to the type of the op."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.elements import (
    number,
    plain,
    reinterpreted,
    rounded,
    rounded_sum,
    signed,
    unsigned,
    wrapped,
)
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Builder, Instruction, complex_array, decode_attributes
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.types import Opaque, Scalar, Vector
from stepladder.emulator.core.values import Value
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import FAILED, StepladderError


@lowers("arith.constant")
def lower_constant(builder: Builder, op: ir.Operation) -> None:
    """`arith.constant`: its value; one of complex numbers is read from its text, which the bindings do not take."""
    results = builder.defined(op.results)
    type_ = builder.slot_types[results[0]]
    if isinstance(type_, Opaque):
        raise StepladderError(
            f"the emulator does not support {op.name} of {op.results[0].type}", location=builder.location
        )
    attributes = {"value": complex_array(op, type_)} if type_.element.dtype.kind == "c" else decode_attributes(op)
    builder.emit(op.name, constant, (), results, attributes)


def constant(fiber: Fiber, op: Instruction) -> Value:
    """A scalar, or a vector or tensor of them."""
    if "value" not in op.cache:
        value = op.attributes["value"]
        element = op.result_types[0].element
        op.cache["value"] = value if isinstance(value, np.ndarray) else number(value, element)
    return op.cache["value"]


@executes("arith.select")
def select(fiber: Fiber, op: Instruction, condition: Value, true: Value, false: Value) -> Value:
    """One value or the other: of all lanes, lane by lane, or element by element of a vector."""
    type_ = op.result_types[0]
    if not isinstance(condition, np.ndarray):
        return true if condition else false
    if not isinstance(type_, (Scalar, Vector)):
        return values.merge([true, false], [condition, ~condition], fiber.count, type_.rank)
    if op.operand_types[0].rank < type_.rank:
        condition = condition.reshape(-1, *(1,) * type_.rank)
    return np.where(condition, true, false).astype(type_.element.dtype, copy=False)


# Integers. Python's are exact and are wrapped at the end, NumPy's wrap themselves.


def _integers(function: Callable, interpret: Callable = signed) -> Callable:
    """Returns what executes an op on integers that `interpret` (`signed`, `unsigned`) gives the meaning of."""

    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        element = op.result_types[0].element
        width = element.width
        if interpret is signed and width > 1:
            return wrapped(function(*operands), element)
        return wrapped(function(*[interpret(operand, width) for operand in operands]), element)

    return execute


def _divisions(function: Callable, interpret: Callable = signed) -> Callable:
    """Returns what executes a division: inactive lanes may divide by zero, others must not."""

    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
        element = op.result_types[0].element
        left, right = interpret(left, element.width), interpret(right, element.width)
        zero = right == 0
        if np.any(zero):
            is_lanes = isinstance(zero, np.ndarray) and zero.ndim > op.operand_types[1].rank
            if not is_lanes or fiber.mask is None or zero[fiber.mask].any():
                raise StepladderError(f"{op.name} divides by zero", location=op.location, status=FAILED)
            right = right + zero
        return wrapped(function(left, right), element)

    return execute


def _quotient(left: Value, right: Value) -> Value:
    down = left // right
    return down + ((left - down * right != 0) & ((left < 0) != (right < 0)))


def _remainder(left: Value, right: Value) -> Value:
    return left - _quotient(left, right) * right


def _quotient_up(left: Value, right: Value) -> Value:
    down = left // right
    return down + (left - down * right != 0)


def _least(left: Value, right: Value) -> Value:
    return np.minimum(left, right) if _is_array(left, right) else min(left, right)


def _greatest(left: Value, right: Value) -> Value:
    return np.maximum(left, right) if _is_array(left, right) else max(left, right)


def _is_array(*operands: Value) -> bool:
    return any(isinstance(operand, np.ndarray) for operand in operands)


executes("arith.addi", "index.add")(_integers(operator.add))
executes("arith.subi", "index.sub")(_integers(operator.sub))
executes("arith.muli", "index.mul")(_integers(operator.mul))
executes("arith.andi", "index.and")(_integers(operator.and_))
executes("arith.ori", "index.or")(_integers(operator.or_))
executes("arith.xori", "index.xor")(_integers(operator.xor))
executes("arith.maxsi", "index.maxs")(_integers(_greatest))
executes("arith.minsi", "index.mins")(_integers(_least))
executes("arith.maxui", "index.maxu")(_integers(_greatest, unsigned))
executes("arith.minui", "index.minu")(_integers(_least, unsigned))
executes("arith.divsi", "index.divs")(_divisions(_quotient))
executes("arith.remsi", "index.rems")(_divisions(_remainder))
executes("arith.floordivsi", "index.floordivs")(_divisions(operator.floordiv))
executes("arith.ceildivsi", "index.ceildivs")(_divisions(_quotient_up))
executes("arith.divui", "index.divu")(_divisions(operator.floordiv, unsigned))
executes("arith.remui", "index.remu")(_divisions(operator.mod, unsigned))
executes("arith.ceildivui", "index.ceildivu")(_divisions(_quotient_up, unsigned))


def _shifts(function: Callable, interpret: Callable) -> Callable:
    """Returns the function that executes a shift. A shift by the width or more is poison: any value is allowed."""

    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
        element = op.result_types[0].element
        amount = _least(unsigned(right, element.width), element.width - 1)
        left = interpret(left, element.width)
        if isinstance(amount, np.ndarray):
            # NumPy requires both to be of one type; an amount fits any.
            other = np.uint64 if interpret is unsigned else np.int64
            amount = amount.astype(left.dtype if isinstance(left, np.ndarray) else other)
        return wrapped(function(left, amount), element)

    return execute


executes("arith.shli", "index.shl")(_shifts(operator.lshift, signed))
executes("arith.shrsi", "index.shrs")(_shifts(operator.rshift, signed))
executes("arith.shrui", "index.shru")(_shifts(operator.rshift, unsigned))


def _exact(value: Value, width: int, interpret: Callable) -> Value:
    """Returns an integer as Python's, or as an array of Python's: wide enough for any product."""
    value = interpret(value, width)
    return value.astype(object) if isinstance(value, np.ndarray) else int(value)


def _halves(op: Instruction, value: Value) -> Value:
    element = op.result_types[0].element
    if not isinstance(value, np.ndarray):
        return wrapped(value, element), wrapped(value >> element.width, element)
    mask = (1 << element.width) - 1
    as_type = np.dtype(f"u{element.bytes}") if element.width > 1 else np.uint8
    return tuple(wrapped((part & mask).astype(as_type), element) for part in (value, value >> element.width))


@executes("arith.mulsi_extended")
def mulsi_extended(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """The low and the high half of a product of signed integers."""
    width = op.result_types[0].element.width
    return _halves(op, _exact(left, width, signed) * _exact(right, width, signed))


@executes("arith.mului_extended")
def mului_extended(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """The low and the high half of a product of unsigned integers."""
    width = op.result_types[0].element.width
    return _halves(op, _exact(left, width, unsigned) * _exact(right, width, unsigned))


@executes("arith.addui_extended")
def addui_extended(fiber: Fiber, op: Instruction, left: Value, right: Value) -> tuple[Value, ...]:
    """A sum of unsigned integers, and whether it overflowed."""
    element = op.result_types[0].element
    total = wrapped(signed(left, element.width) + signed(right, element.width), element)
    return total, unsigned(total, element.width) < unsigned(left, element.width)


@executes("arith.subui_extended")
def subui_extended(fiber: Fiber, op: Instruction, left: Value, right: Value) -> tuple[Value, ...]:
    """A difference of unsigned integers, and whether it is negative."""
    element = op.result_types[0].element
    difference = wrapped(signed(left, element.width) - signed(right, element.width), element)
    return difference, plain(np.asarray(unsigned(left, element.width) < unsigned(right, element.width)))


_COMPARISONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
# Of integers, by the encoding of cmpi.
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_PREDICATES = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)
# Predicates by the one that they are the opposite of.
_OPPOSITES = {
    "ueq": "one",
    "ugt": "ole",
    "uge": "olt",
    "ult": "oge",
    "ule": "ogt",
    "une": "oeq",
    "ord": "uno",
    "true": "false",
}


def compare_integers(predicate: str, left: Value, right: Value, width: int) -> Value:
    """Returns whether a predicate holds.

    Args:
        predicate: "eq", "slt", "ult" and so on.
        left, right: integers, uniform or with lanes.
        width: bits.
    """
    interpret = unsigned if predicate[0] == "u" else signed
    return plain(_COMPARISONS[predicate[-2:]](interpret(left, width), interpret(right, width)))


@executes("arith.cmpi")
def cmpi(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Compares integers."""
    return compare_integers(PREDICATES[op.attributes["predicate"]], left, right, op.operand_types[0].element.width)


def _holds(predicate: str, left: Value, right: Value) -> Value:
    match predicate:
        case "false":
            return np.isnan(left) & False
        case "uno":
            return np.isnan(left) | np.isnan(right)
        case "one":
            return (left < right) | (left > right)
    return _COMPARISONS[predicate[1:]](left, right)


@executes("arith.cmpf")
def cmpf(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Compares floating-point numbers; NaN makes ordered predicates false and unordered ones true."""
    predicate = _FLOAT_PREDICATES[op.attributes["predicate"]]
    opposite = _OPPOSITES.get(predicate)
    return plain(_holds(predicate, left, right) if opposite is None else np.logical_not(_holds(opposite, left, right)))


# Floating-point arithmetic: NumPy rounds every operation to the type, once.


def _floats(function: Callable) -> Callable:
    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        return plain(function(*operands))

    return execute


def _minimum(left: Value, right: Value) -> Value:
    # NumPy may take either zero; the negative one is less.
    return np.where(left == right, np.where(np.signbit(left), left, right), np.minimum(left, right))


def _maximum(left: Value, right: Value) -> Value:
    return np.where(left == right, np.where(np.signbit(left), right, left), np.maximum(left, right))


executes("arith.addf")(_floats(operator.add))
executes("arith.subf")(_floats(operator.sub))
executes("arith.mulf")(_floats(operator.mul))
executes("arith.divf")(_floats(np.divide))
executes("arith.remf")(_floats(np.fmod))
executes("arith.negf")(_floats(operator.neg))
executes("arith.minimumf")(_floats(_minimum))
executes("arith.maximumf")(_floats(_maximum))
executes("arith.minnumf")(_floats(np.fmin))
executes("arith.maxnumf")(_floats(np.fmax))


# Conversions.


@executes("arith.extf", "arith.truncf", "arith.convertf", "nvgpu.extf", "nvgpu.truncf")
def to_float_type(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A floating-point number of another type; one that is wider holds it as it is."""
    if op.attributes.get("roundingmode", 0):
        raise Unsupported(op, "with a rounding mode other than to nearest")
    return rounded(value, op.result_types[0].element)


@executes("arith.extsi", "arith.trunci", "arith.index_cast", "index.casts")
def to_signed_width(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """An integer of another width: the sign is repeated, or bits are dropped."""
    return wrapped(signed(value, op.operand_types[0].element.width), op.result_types[0].element)


@executes("arith.extui", "arith.index_castui", "index.castu")
def to_unsigned_width(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """An integer of another width, zero-extended or truncated."""
    return wrapped(unsigned(value, op.operand_types[0].element.width), op.result_types[0].element)


def _to_float(op: Instruction, value: Value) -> Value:
    value = np.asarray(value)
    element = op.result_types[0].element
    if element.name in ("f16", "f32", "f64"):
        return plain(value.astype(element.dtype))
    value = value.astype(np.uint64 if value.dtype.kind == "u" else np.int64)
    # Each half is exact as float64; their sum is rounded once.
    low = value & 0xFFFF_FFFF
    return rounded_sum((value - low).astype(np.float64), low.astype(np.float64), element)


@executes("arith.sitofp")
def sitofp(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A signed integer as a floating-point number."""
    return _to_float(op, signed(value, op.operand_types[0].element.width))


@executes("arith.uitofp")
def uitofp(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """An unsigned integer as a floating-point number."""
    return _to_float(op, unsigned(value, op.operand_types[0].element.width))


@executes("arith.fptosi")
def fptosi(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A floating-point number as a signed integer, rounded towards zero.

    One that is out of range is poison: here the nearest one that there is, as GPUs have it; NaN becomes 0.
    """
    element = op.result_types[0].element
    half = 2.0 ** (element.width - 1)
    integral = np.nan_to_num(_whole(value), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = np.where(integral < half, np.maximum(integral, -half), 0).astype(np.int64)
    return wrapped(plain(np.where(integral >= half, np.int64((1 << (element.width - 1)) - 1), inside)), element)


@executes("arith.fptoui")
def fptoui(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A floating-point number as an unsigned integer, rounded towards zero; out of range as for `fptosi`."""
    element = op.result_types[0].element
    integral = np.maximum(np.nan_to_num(_whole(value), nan=0.0, posinf=np.inf, neginf=-np.inf), 0)
    beyond = integral >= 2.0**element.width
    large = integral >= 2.0**63
    bits = np.where(beyond, 0, np.where(large, integral - 2.0**64, integral)).astype(np.int64)
    return wrapped(plain(np.where(beyond, np.int64(-1), bits)), element)


def _whole(value: Value) -> np.ndarray:
    return np.trunc(np.asarray(value).astype(np.float64))


@executes("arith.bitcast")
def bitcast(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The same bits as another type."""
    return reinterpreted(value, op.operand_types[0].element, op.result_types[0].element)
