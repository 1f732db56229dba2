"""llvm: intrinsics on scalars, vectors and blocks of memory."""

from __future__ import annotations

import functools
from collections.abc import Callable

import ml_dtypes
import numpy as np

from stepladder.emulator.core.elements import plain, rounded, signed, unsigned, wrapped
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import EXECUTED, executes
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value, in_lanes, lanes
from stepladder.emulator.dialects import arith, math  # noqa: F401  (register what is looked up)
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.reductions import combined
from stepladder.emulator.hardware.warps import alike
from stepladder.emulator.memory import pointers

_BYTE = Scalar("i8", np.dtype(np.int8), 8)

# By the op of math that each is; some have an operand more, which gives the result for zero or the minimum.
_MATH = {
    "acos": "acos",
    "asin": "asin",
    "atan": "atan",
    "atan2": "atan2",
    "copysign": "copysign",
    "cosh": "cosh",
    "log10": "log10",
    "nearbyint": "roundeven",
    "pow": "powf",
    "powi": "fpowi",
    "rint": "roundeven",
    "round": "round",
    "roundeven": "roundeven",
    "sinh": "sinh",
    "tan": "tan",
    "tanh": "tanh",
    "trunc": "trunc",
    "abs": "absi",
    "ctlz": "ctlz",
    "cttz": "cttz",
    "ctpop": "ctpop",
}


def _first_operands(function: Value, count: int) -> Callable:
    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        return function(fiber, op, *operands[:count])

    return execute


for _name, _other in _MATH.items():
    _count = 2 if _name in ("atan2", "copysign", "pow", "powi") else 1
    executes(f"llvm.intr.{_name}")(_first_operands(EXECUTED[f"math.{_other}"], _count))


@executes("llvm.intr.exp10")
def exp10(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """Ten to a power."""
    return rounded(np.power(10.0, np.asarray(value).astype(np.float64)), op.result_types[0].element)


# Bits of `llvm.intr.is.fpclass` of values below and above 0.
_CLASSES = {"normal": (1 << 3, 1 << 8), "subnormal": (1 << 4, 1 << 7), "zero": (1 << 5, 1 << 6)}
_INFINITE = 1 << 2, 1 << 9
_SIGNALING, _QUIET = 1, 2


@executes("llvm.intr.is.fpclass")
def is_fpclass(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """Whether a value is of one of some classes."""
    accepted_classes, value = op.attributes["bit"], np.asarray(value)
    kinds = np.finfo(value.dtype) if value.dtype.kind == "f" else ml_dtypes.finfo(value.dtype)
    bits = value.view(f"i{value.dtype.itemsize}")
    is_quiet = (bits >> (kinds.nmant - 1) & 1) == 1
    size, below = np.abs(value), np.signbit(value)
    class_of_value = np.where(np.isnan(value), np.where(is_quiet, _QUIET, _SIGNALING), np.where(below, *_INFINITE))
    for name, holds in {
        "normal": (size >= kinds.smallest_normal) & np.isfinite(value),
        "subnormal": (size > 0) & (size < kinds.smallest_normal),
        "zero": size == 0,
    }.items():
        class_of_value = np.where(holds, np.where(below, *_CLASSES[name]), class_of_value)
    return plain((class_of_value & accepted_classes) != 0)


@executes("llvm.intr.ldexp")
def ldexp(fiber: Fiber, op: Instruction, value: Value, power: Value) -> Value:
    """A value times a power of two."""
    scaled = np.ldexp(np.asarray(value).astype(np.float64), np.clip(power, -4096, 4096))
    return rounded(scaled, op.result_types[0].element)


@executes("llvm.intr.frexp")
def frexp(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """A significand from 0.5 to 1, and the power of two that it is multiplied by."""
    element = op.operand_types[0].element
    fraction, power = np.frexp(np.asarray(value).astype(np.float64))
    return Struct((rounded(fraction, element), plain(np.asarray(power, np.int32))))


def _to_integer(rounds: Callable) -> Callable:
    def execute(fiber: Fiber, op: Instruction, value: Value) -> Value:
        """The nearest integer, of those of the type."""
        element = op.result_types[0].element
        limits = np.iinfo(element.dtype)
        exact = rounds(np.asarray(value).astype(np.float64))
        inside = (exact > limits.min) & (exact < limits.max)
        beyond = np.where(exact >= limits.max, limits.max, limits.min)
        return plain(np.where(inside, np.where(inside, exact, 0).astype(element.dtype), beyond))

    return execute


for _name in ("lrint", "llrint"):
    executes(f"llvm.intr.{_name}")(_to_integer(np.rint))
for _name in ("lround", "llround"):  # halves away from zero
    executes(f"llvm.intr.{_name}")(
        _to_integer(lambda exact: np.trunc(exact) + np.sign(exact) * (np.abs(exact - np.trunc(exact)) >= 0.5))
    )


@executes(
    "llvm.intr.launder.invariant.group",
    "llvm.intr.strip.invariant.group",
    "llvm.intr.ssa.copy",
    "llvm.intr.expect.with.probability",
    "llvm.intr.arithmetic.fence",
    "llvm.intr.annotation",
    "llvm.intr.ptr.annotation",
    "llvm.intr.threadlocal.address",
)
def same(fiber: Fiber, op: Instruction, value: Value, *others: Value) -> Value:
    """The same value."""
    return value


@executes("llvm.intr.fake.use", "llvm.intr.invariant.end", "llvm.intr.debugtrap", "llvm.intr.stackrestore")
def nothing(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing."""


@executes("llvm.intr.invariant.start", "llvm.intr.stacksave")
def token(fiber: Fiber, op: Instruction, *pointer: Value) -> int:
    """A token, which is not used."""
    return 0


@executes("llvm.intr.is.constant")
def is_constant(fiber: Fiber, op: Instruction, value: Value) -> bool:
    """False, which LLVM allows for any value."""
    return False


@executes("llvm.intr.trap", "llvm.intr.ubsantrap")
def trap(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """An instruction that no thread may reach."""
    fiber.group.sanitizer.report("assertion", f"{fiber.group.thread_name(fiber.lanes[0])} executes a trap", op)


# Integers.


def _exact(value: Value, element: Scalar, *, without_sign: bool) -> Value:
    """Returns an integer as Python's, or an array of them: wide enough for any product."""
    value = unsigned(value, element.width) if without_sign else signed(value, element.width)
    return value.astype(object) if isinstance(value, np.ndarray) else int(value)


_EXACT = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "shl": lambda left, right: left << right,
}


def _limits(element: Scalar, without_sign: bool) -> tuple[int, int]:
    half = 1 << (element.width - 1)
    return (0, 2 * half - 1) if without_sign else (-half, half - 1)


def _as_type(value: Value, element: Scalar) -> Value:
    if not isinstance(value, np.ndarray):
        return wrapped(value, element)
    mask = (1 << element.width) - 1
    kind = np.dtype(f"u{element.bytes}") if element.width > 1 else np.uint8
    return wrapped((value & mask).astype(kind), element)


def _overflowing(name: str, without_sign: bool) -> Callable:
    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
        """The wrapped result, and whether it is another than the exact one."""
        element = op.operand_types[0].element
        exact = _EXACT[name](*(_exact(value, element, without_sign=without_sign) for value in (left, right)))
        low, high = _limits(element, without_sign)
        beyond = (exact < low) | (exact > high)
        beyond = beyond.astype(bool) if isinstance(beyond, np.ndarray) else bool(beyond)
        return Struct((_as_type(exact, element), beyond))

    return execute


def _saturating(name: str, without_sign: bool) -> Callable:
    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
        """The exact result, or the nearest that there is."""
        element = op.operand_types[0].element
        exact = _EXACT[name](
            _exact(left, element, without_sign=without_sign),
            _exact(right, element, without_sign=without_sign or name == "shl"),
        )
        low, high = _limits(element, without_sign)
        near = np.minimum(np.maximum(exact, low), high) if isinstance(exact, np.ndarray) else min(max(exact, low), high)
        return _as_type(near, element)

    return execute


for _letter, _without in (("s", False), ("u", True)):
    for _name in ("add", "sub", "mul"):
        executes(f"llvm.intr.{_letter}{_name}.with.overflow")(_overflowing(_name, _without))
    for _name in ("add", "sub", "shl"):
        executes(f"llvm.intr.{_letter}{_name}.sat")(_saturating(_name, _without))


def _compared(without_sign: bool) -> Callable:
    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
        """1, 0 or -1: whether one value is more than, equal to or less than the other."""
        element = op.operand_types[0].element
        left, right = (_exact(value, element, without_sign=without_sign) for value in (left, right))
        order = np.asarray(left > right, np.int8) - np.asarray(left < right, np.int8)
        return plain(order.astype(op.result_types[0].element.dtype))

    return execute


executes("llvm.intr.scmp")(_compared(False))
executes("llvm.intr.ucmp")(_compared(True))


def _funnel(left_shift: bool) -> Callable:
    def execute(fiber: Fiber, op: Instruction, high: Value, low: Value, amount: Value) -> Value:
        """Bits of two values one after the other, shifted."""
        element = op.result_types[0].element
        width = element.width
        high, low, amount = (_exact(value, element, without_sign=True) for value in (high, low, amount))
        double_word, amount = (high << width) | low, amount % width
        return _as_type(double_word >> (width - amount) if left_shift else double_word >> amount, element)

    return execute


executes("llvm.intr.fshl")(_funnel(True))
executes("llvm.intr.fshr")(_funnel(False))


def _bits_of(function: Value) -> Callable:
    def execute(fiber: Fiber, op: Instruction, value: Value) -> Value:
        """The bits of a value in another order."""
        element = op.result_types[0].element
        value = _exact(value, element, without_sign=True)
        if isinstance(value, np.ndarray):
            apply_to_each = np.vectorize(lambda number: function(int(number), element.width), otypes=[object])
            return _as_type(apply_to_each(value), element)
        return _as_type(function(value, element.width), element)

    return execute


executes("llvm.intr.bitreverse")(_bits_of(lambda value, width: int(f"{value:0{width}b}"[::-1], 2)))
executes("llvm.intr.bswap")(_bits_of(lambda value, width: int.from_bytes(value.to_bytes(width // 8, "little"), "big")))


# Vectors.


_INTEGER_REDUCE = ("add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin")
_FLOAT_REDUCE = ("fmax", "fmin", "fmaximum", "fminimum", "fadd", "fmul")


def _reduction(kind: str) -> Callable:
    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        """The elements of a vector combined, from the first to the last."""
        *initial, value = operands
        element = op.operand_types[-1].element
        value = np.asarray(value)
        parts = [*initial, *(value[..., number] for number in range(value.shape[-1]))]
        return plain(np.asarray(functools.reduce(lambda left, right: combined(kind, element, left, right), parts)))

    return execute


for _kind in (*_INTEGER_REDUCE, *_FLOAT_REDUCE):
    executes(f"llvm.intr.vector.reduce.{_kind}")(_reduction(_kind))


@executes("llvm.intr.stepvector")
def stepvector(fiber: Fiber, op: Instruction) -> Value:
    """0, 1, 2, ..."""
    type_ = op.result_types[0]
    return np.arange(type_.shape[0]).astype(type_.element.dtype)


@executes("llvm.intr.vector.extract")
def vector_extract(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """Neighbours of a vector."""
    first = op.attributes["pos"]
    return value[..., first : first + op.result_types[0].shape[0]]


@executes("llvm.intr.vector.insert")
def vector_insert(fiber: Fiber, op: Instruction, value: Value, part: Value) -> Value:
    """A vector with other neighbours."""
    value, part = in_lanes([value, part], [1, 1], fiber.count)
    result = np.array(value)
    first = op.attributes["pos"]
    result[..., first : first + part.shape[-1]] = part
    return result


@executes("llvm.intr.vector.interleave2")
def interleave(fiber: Fiber, op: Instruction, *halves: Value) -> Value:
    """The elements of two vectors in turn."""
    pair = np.stack(in_lanes(halves, [1, 1], fiber.count), axis=-1)
    return pair.reshape(*pair.shape[:-2], -1)


@executes("llvm.intr.vector.deinterleave2")
def deinterleave(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The elements of a vector with even and those with odd indices."""
    return Struct((value[..., ::2], value[..., 1::2]))


# Blocks of memory.


@executes("llvm.intr.memcpy", "llvm.intr.memmove", "llvm.intr.memcpy.inline")
def memcpy(fiber: Fiber, op: Instruction, target: Value, source: Value, *length: Value) -> None:
    """Copies bytes."""
    byte_count = length[0] if length else op.attributes["len"]
    for part in alike(fiber, [byte_count]):
        count = int(part.first(byte_count))
        apart = np.abs(np.atleast_1d(target - source))
        overlaps = (apart > 0) & (apart < count)
        if "memmove" not in op.name and (overlaps if len(overlaps) == 1 else overlaps[part.lanes]).any():
            fiber.group.sanitizer.report("assumption", "its source and its destination overlap", op)
        data = pointers.read(part, op, source, _BYTE, (count,), shared=pointers.is_shared(op.operand_types[1]))
        pointers.write(part, op, target, data, _BYTE, (count,), shared=pointers.is_shared(op.operand_types[0]))


@executes("llvm.intr.memset", "llvm.intr.memset.inline")
def memset(fiber: Fiber, op: Instruction, target: Value, value: Value, *length: Value) -> None:
    """Fills bytes."""
    byte_count = length[0] if length else op.attributes["len"]
    byte = lanes(np.asarray(value, np.int8), fiber.count)[:, None]
    for part in alike(fiber, [byte_count]):
        shape = (int(part.first(byte_count)),)
        data = np.broadcast_to(byte, (fiber.count, *shape))
        pointers.write(part, op, target, data, _BYTE, shape, shared=pointers.is_shared(op.operand_types[0]))


@executes("llvm.intr.sincos")
def sincos(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The sine and the cosine."""
    element = op.operand_types[0].element
    exact = np.asarray(value).astype(np.float64)
    parts = [lanes(np.asarray(rounded(function(exact), element)), fiber.count) for function in (np.sin, np.cos)]
    return AccumulatorRegisters(np.stack(parts, axis=1)) if parts[0].ndim == 1 else Struct(tuple(parts))


@executes("llvm.intr.ptrmask")
def ptrmask(fiber: Fiber, op: Instruction, pointer: Value, mask: Value) -> Value:
    """An address with some bits cleared."""
    return pointer & mask
