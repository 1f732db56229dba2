"""Integers: arithmetic, logic and shifts.

Source: PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.ptx import syntax, types
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_U16, _U32, _B32 = PtxType("u16", "u", 16), PtxType("u32", "u", 32), PtxType("b32", "b", 32)
_PRED = PtxType("pred", "pred", 1)
_WIDTHS = (16, 32, 64)


def _is_array(*operands: Value) -> bool:
    return any(isinstance(operand, np.ndarray) for operand in operands)


def emit(site: Site, function: Callable, reads: list[PtxType], width: int) -> None:
    """Emits what computes integers from integers, given as Python's or as arrays of the types' NumPy types.

    Args:
        site: the instruction, whose first operand is written and whose others are read.
        function: of the operands.
        reads: types of the operands that are read.
        width: of the result.
    """
    site.count(1 + len(reads))

    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        return types.stored(function(*map(types.number, operands, reads)), width)

    site.emit(execute, [site.read(1 + number, type_) for number, type_ in enumerate(reads)], [site.write(0, width)])


def add(site: Site, type_: PtxType) -> None:
    """Emits a sum or a difference of integers.

    Args:
        site: the instruction.
        type_: of the operands.
    """
    subtracts = site.family == "sub"
    saturates = site.flag("sat")
    if saturates:
        emit(site, lambda left, right: _saturated(left, right, subtracts), [type_, type_], type_.bits)
    elif subtracts:
        emit(site, lambda left, right: left - right, [type_, type_], type_.bits)
    else:
        emit(site, lambda left, right: left + right, [type_, type_], type_.bits)


def _saturated(left: Value, right: Value, subtracts: bool) -> Value:
    left, right = (np.asarray(value).astype(np.int64) for value in (left, right))
    return types.plain(np.clip(left - right if subtracts else left + right, -(1 << 31), (1 << 31) - 1))


def multiply(site: Site, type_: PtxType) -> None:
    """Emits a product of integers: its lower or its upper half, or all of it; for `mad` a third operand is added.

    Args:
        site: the instruction.
        type_: of the factors.
    """
    part = site.choice(("lo", "hi", "wide"))
    width = 2 * type_.bits if part == "wide" else type_.bits
    saturates = site.family == "mad" and part == "hi" and type_.name == "s32" and site.flag("sat")
    product = _low if part == "lo" else _high(type_) if part == "hi" else _wide(type_)
    if site.family != "mad":
        emit(site, product, [type_, type_], width)
        return
    result_type = PtxType(f"{type_.kind}{width}", type_.kind, width)

    def total(left: Value, right: Value, more: Value) -> Value:
        result = product(left, right)
        if saturates:
            return _saturated(types.number(types.stored(result, width), result_type), more, False)
        if not _is_array(result):
            result = types.number(types.stored(result, width), result_type)
        return types.number(types.stored(result, width), result_type) + more

    emit(site, total, [type_, type_, result_type], width)


def _low(left: Value, right: Value) -> Value:
    return left * right


def _wide(type_: PtxType) -> Callable:
    wide = np.dtype(f"{'u' if type_.kind == 'u' else 'i'}{type_.bits // 4}")

    def product(left: Value, right: Value) -> Value:
        if not _is_array(left, right):
            return left * right
        return np.asarray(left).astype(wide) * np.asarray(right).astype(wide)

    return product


def _high(type_: PtxType) -> Callable:
    def product(left: Value, right: Value) -> Value:
        if not _is_array(left, right):
            return left * right >> type_.bits
        if type_.bits < 64:
            return _wide(type_)(left, right) >> type_.bits
        return _each(lambda a, b: types.wrap(a * b >> 64, 64), left, right)

    return product


def _each(function: Callable, *operands: Value) -> np.ndarray:
    """Returns what a function of Python's integers gives for each lane."""
    rows = np.broadcast_arrays(*operands)
    return np.array([function(*map(int, row)) for row in zip(*rows)], np.int64)


@instruction("mul24", "mad24", is_pure=True)
def mul24(site: Site) -> None:
    """The product of the lower 24 bits, its lower 32 bits or its upper."""
    type_ = site.type("su", (32,))
    shift = 16 if site.choice(("lo", "hi")) == "hi" else 0
    saturates = site.flag("sat")

    def low(value: Value) -> Value:
        low_bits = np.asarray(value).astype(np.int64) & 0xFFFFFF
        return np.where(low_bits & 0x800000, low_bits - 0x1000000, low_bits) if type_.kind == "s" else low_bits

    def product(left: Value, right: Value, *more: Value) -> Value:
        result = (low(left) * low(right) >> shift) + (np.asarray(more[0]).astype(np.int64) if more else 0)
        return types.plain(np.clip(result, -(1 << 31), (1 << 31) - 1) if saturates else result)

    emit(site, product, [type_] * (3 if site.family == "mad24" else 2), 32)


def divide(site: Site, type_: PtxType) -> None:
    """Emits a quotient or a remainder of integers, rounded to zero; a quotient by zero has all bits set.

    Args:
        site: the instruction.
        type_: of the operands.
    """
    remains = site.family == "rem"

    def one(left: int, right: int) -> int:
        if right == 0:
            return left if remains else -1
        quotient = abs(left) // abs(right)
        quotient = -quotient if (left < 0) != (right < 0) else quotient
        return left - quotient * right if remains else quotient

    def many(left: Value, right: Value) -> Value:
        if not _is_array(left, right):
            return one(left, right)
        if type_.bits == 64:
            rows = np.broadcast_arrays(left, right)
            return np.array([types.wrap(one(int(a), int(b)), 64) for a, b in zip(*rows)], np.int64)
        a, b = (np.asarray(value).astype(np.int64) for value in (left, right))
        safe = np.where(b == 0, 1, b)
        quotient = np.abs(a) // np.abs(safe) * np.where((a < 0) != (safe < 0), -1, 1)
        return np.where(b == 0, a, a - quotient * safe) if remains else np.where(b == 0, -1, quotient)

    emit(site, many, [type_, type_], type_.bits)


def extreme(site: Site, type_: PtxType) -> None:
    """Emits the minimum or the maximum of two integers.

    Args:
        site: the instruction.
        type_: of the operands.
    """
    uniform, arrays = (min, np.minimum) if site.family == "min" else (max, np.maximum)
    clamps = type_.name == "s32" and site.flag("relu")

    def one(left: Value, right: Value) -> Value:
        result = arrays(left, right) if _is_array(left, right) else uniform(left, right)
        return np.maximum(result, 0) if clamps else result

    emit(site, one, [type_, type_], type_.bits)


_OF_PAIRS: dict[str, Callable] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def pairs(site: Site, type_: PtxType) -> None:
    """Emits a sum or an extremum of pairs of integers of 16 bits, each half of a register on its own.

    Args:
        site: the instruction.
        type_: `u16x2` or `s16x2`.
    """
    function = _OF_PAIRS[site.family]
    half = PtxType(type_.name, type_.kind, type_.bits)
    clamps = type_.kind == "s" and site.family != "add" and site.flag("relu")

    def one(left: Value, right: Value) -> Value:
        result = function(*(np.asarray(types.number(value, half), half.dtype) for value in (left, right)))
        return types.extended(types.plain(np.maximum(result, 0) if clamps else result), _U16, _B32.bits)

    def both(left: Value, right: Value) -> Value:
        return one(left >> half.bits, right >> half.bits) << half.bits | one(left, right)

    emit(site, both, [_B32, _B32], _B32.bits)


def unary(site: Site, type_: PtxType) -> None:
    """Emits the negative or the absolute value of an integer.

    Args:
        site: the instruction.
        type_: of the operand.
    """
    emit(site, (lambda value: -value) if site.family == "neg" else abs, [type_], type_.bits)


@instruction("sad", is_pure=True)
def sad(site: Site) -> None:
    """The absolute difference of two integers, added to a third."""
    type_ = site.type("su", _WIDTHS)

    def total(left: Value, right: Value, more: Value) -> Value:
        if not _is_array(left, right, more):
            return abs(left - right) + more
        return np.where(np.greater(left, right), np.subtract(left, right), np.subtract(right, left)) + more

    emit(site, total, [type_] * 3, type_.bits)


# Logic.

_LOGIC = {
    "and": lambda left, right: left & right,
    "or": lambda left, right: left | right,
    "xor": lambda left, right: left ^ right,
}


@instruction("and", "or", "xor", is_pure=True)
def logic(site: Site) -> None:
    """Bits of two operands combined; predicates too."""
    type_ = site.types(1)[0]
    if type_.kind == "pred":
        site.count(3)
        function = _LOGIC[site.family]
        site.emit(
            lambda fiber, op, left, right: function(left, right),
            [site.read(1, type_), site.read(2, type_)],
            [site.write(0, 1)],
        )
        return
    emit(site, _LOGIC[site.family], [type_, type_], type_.bits)


@instruction("not", "cnot", is_pure=True)
def not_(site: Site) -> None:
    """All bits inverted; or (cnot) whether none is set."""
    type_ = site.types(1)[0]
    if type_.kind == "pred":
        site.count(2)
        site.emit(
            lambda fiber, op, value: ~value if isinstance(value, np.ndarray) else not value,
            [site.read(1, type_)],
            [site.write(0, 1)],
        )
        return
    emit(site, (lambda value: value == 0) if site.family == "cnot" else (lambda value: ~value), [type_], type_.bits)


@instruction("lop3", is_pure=True)
def lop3(site: Site) -> None:
    """Any function of the bits of three operands, given as a table of eight bits.

    With `.and` or `.or` a second result is whether any bit is set, combined with a predicate.
    """
    combine = site.choice(("and", "or"), "")
    type_ = site.type("b", (32,))
    site.count(6 if combine else 5)
    table = site.number(4)

    def combined(fiber: Fiber, op: Instruction, a: Value, b: Value, c: Value) -> Value:
        result: Value = 0
        for place in range(8):
            if table >> place & 1:
                result = result | ((a if place & 4 else ~a) & (b if place & 2 else ~b) & (c if place & 1 else ~c))
        return result

    reads = [site.read(number, type_) for number in (1, 2, 3)]
    if not combine:
        site.emit(combined, reads, [site.write(0, 32)])
        return
    target = site.operands[0]
    if not isinstance(target, syntax.Pair):
        raise site.error("with one result")

    def and_whether(fiber: Fiber, op: Instruction, a: Value, b: Value, c: Value, predicate: Value) -> Value:
        result = combined(fiber, op, a, b, c)
        is_set = (np.asarray(result) != 0) & predicate if combine == "and" else (np.asarray(result) != 0) | predicate
        return result, is_set if np.ndim(is_set) else bool(is_set)

    results = [site.write(target.first, 32), site.write(target.second, 1)]
    site.emit(and_whether, [*reads, site.read(5, _PRED)], results)


@instruction("shl", "shr", is_pure=True)
def shift(site: Site) -> None:
    """Bits moved to the left or to the right; by more than there are, all of them."""
    type_ = site.type("sub", _WIDTHS)
    bits = type_.bits
    if site.family == "shr" and type_.kind == "b":
        type_ = PtxType(f"u{bits}", "u", bits)

    def shifted(value: Value, by: Value) -> Value:
        if not _is_array(value, by):
            by = min(by, bits)
            return value << by if site.family == "shl" else value >> by
        value, by = np.asarray(value, type_.dtype), np.asarray(by)
        safe = np.minimum(by, bits - 1).astype(value.dtype)
        if site.family == "shl":
            return np.where(by < bits, value << safe, 0)
        fill = value >> (bits - 1) if type_.kind == "s" else value.dtype.type(0)
        return np.where(by < bits, value >> safe, fill)

    emit(site, shifted, [type_, _U32], bits)


@instruction("shf", is_pure=True)
def funnel_shift(site: Site) -> None:
    """32 of the 64 bits of two operands, moved to the left or to the right."""
    site.type("b", (32,))
    is_left = site.choice(("l", "r")) == "l"
    wraps = site.choice(("wrap", "clamp")) == "wrap"

    def shifted(low: Value, high: Value, by: Value) -> Value:
        by = np.asarray(by).astype(np.uint64)
        by = by & np.uint64(31) if wraps else np.minimum(by, np.uint64(32))
        double_word = np.asarray(high).astype(np.uint64) << np.uint64(32) | np.asarray(low).astype(np.uint64)
        return types.plain(double_word >> (np.uint64(32) - by if is_left else by) & np.uint64(0xFFFFFFFF))

    emit(site, shifted, [_U32] * 3, 32)
