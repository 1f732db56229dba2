"""Integers: arithmetic, bits, and bytes.

Source: PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_U32 = PtxType("u32", "u", 32)
_B32 = PtxType("b32", "b", 32)
_WIDTHS = (16, 32, 64)


def _is_array(*operands: Value) -> bool:
    return any(isinstance(operand, np.ndarray) for operand in operands)


def emit(site: Site, function: Callable, reads: list[PtxType], width: int) -> None:
    """Emits what computes integers from integers, given as Python's or as arrays of the types' NumPy types.

    Args:
        site: the instruction, whose first operand is written and whose others are read.
        function: of the numbers.
        reads: types of the operands that are read.
        width: of the result.
    """
    site.count(1 + len(reads))

    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        return types.stored(function(*map(types.number, operands, reads)), width)

    site.emit(execute, [site.read(1 + number, type_) for number, type_ in enumerate(reads)], [site.write(0, width)])


def add(site: Site, type_: PtxType) -> None:
    """Emits a sum or a difference of integers."""
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
    """Emits a product of integers: its lower or its upper half, or all of it; for `mad` with a number added."""
    part = site.choice(("lo", "hi", "wide"))
    width = 2 * type_.bits if part == "wide" else type_.bits
    if part == "wide" and type_.bits == 64:
        raise site.error("with these types")
    product = _low if part == "lo" else _high(type_) if part == "hi" else _wide(type_)
    if site.family != "mad":
        emit(site, product, [type_, type_], width)
        return
    whole = PtxType(f"{type_.kind}{width}", type_.kind, width)

    def total(left: Value, right: Value, more: Value) -> Value:
        found = product(left, right)
        if not _is_array(found):
            found = types.number(types.stored(found, width), whole)
        return types.number(types.stored(found, width), whole) + more

    emit(site, total, [type_, type_, whole], width)


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

    def low(value: Value) -> Value:
        cut = np.asarray(value).astype(np.int64) & 0xFFFFFF
        return np.where(cut & 0x800000, cut - 0x1000000, cut) if type_.kind == "s" else cut

    def product(left: Value, right: Value, *more: Value) -> Value:
        return types.plain((low(left) * low(right) >> shift) + (np.asarray(more[0]).astype(np.int64) if more else 0))

    emit(site, product, [type_] * (3 if site.family == "mad24" else 2), 32)


def divide(site: Site, type_: PtxType) -> None:
    """Emits a quotient or a remainder of integers, rounded to zero; what is divided by zero is all bits set."""
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
    """Emits the smaller or the larger of two integers."""
    uniform, arrays = (min, np.minimum) if site.family == "min" else (max, np.maximum)
    emit(
        site,
        lambda left, right: arrays(left, right) if _is_array(left, right) else uniform(left, right),
        [type_, type_],
        type_.bits,
    )


def unary(site: Site, type_: PtxType) -> None:
    """Emits the negative or the absolute value of an integer."""
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
    type_ = site.types()[0]
    if type_.kind == "pred":
        site.count(3)
        function = _LOGIC[site.family]
        site.emit(
            lambda fiber, op, left, right: function(left, right),
            [site.read(1, type_), site.read(2, type_)],
            [site.write(0, 1)],
        )
        return
    if type_.kind != "b":
        raise site.error("with these types")
    emit(site, _LOGIC[site.family], [type_, type_], type_.bits)


@instruction("not", "cnot", is_pure=True)
def not_(site: Site) -> None:
    """All bits inverted; or (cnot) whether none is set."""
    type_ = site.types()[0]
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
    """Any function of the bits of three operands, given as a table of eight bits."""
    type_ = site.type("b", (32,))
    site.count(5)
    table = site.number(4)

    def combined(fiber: Fiber, op: Instruction, a: Value, b: Value, c: Value) -> Value:
        result: Value = 0
        for place in range(8):
            if table >> place & 1:
                result = result | ((a if place & 4 else ~a) & (b if place & 2 else ~b) & (c if place & 1 else ~c))
        return result

    site.emit(combined, [site.read(number, type_) for number in (1, 2, 3)], [site.write(0, 32)])


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
    left = site.choice(("l", "r")) == "l"
    wraps = site.choice(("wrap", "clamp")) == "wrap"

    def shifted(low: Value, high: Value, by: Value) -> Value:
        by = np.asarray(by).astype(np.uint64)
        by = by & np.uint64(31) if wraps else np.minimum(by, np.uint64(32))
        both = np.asarray(high).astype(np.uint64) << np.uint64(32) | np.asarray(low).astype(np.uint64)
        return types.plain(both >> (np.uint64(32) - by if left else by) & np.uint64(0xFFFFFFFF))

    emit(site, shifted, [_U32] * 3, 32)


# Bits.


def _bits_of(value: Value, width: int) -> np.ndarray:
    """Returns the bits of integers, the lowest first: (width,) or (T, width)."""
    array = np.asarray(value)
    if not array.ndim:
        array = np.array(int(value) & ((1 << width) - 1), f"u{width // 8}")
    raw = np.ascontiguousarray(array)[..., None].view(np.uint8)
    return np.unpackbits(raw, axis=-1, bitorder="little")


@instruction("popc", "clz", "brev", is_pure=True)
def count_bits(site: Site) -> None:
    """How many bits are set, how many zeros are in front, or the bits in reverse."""
    type_ = site.type("b", (32, 64))
    width = type_.bits

    def count(value: Value) -> Value:
        bits = _bits_of(value, width)
        if site.family == "popc":
            return types.plain(bits.sum(axis=-1, dtype=np.int64))
        if site.family == "clz":
            found = np.where(bits.any(axis=-1), bits[..., ::-1].argmax(axis=-1), width)
            return types.plain(found)
        packed = np.packbits(np.ascontiguousarray(bits[..., ::-1]), axis=-1, bitorder="little")
        return types.plain(packed.view(f"i{width // 8}")[..., 0])

    emit(site, count, [type_], width if site.family == "brev" else 32)


@instruction("bfind", is_pure=True)
def bfind(site: Site) -> None:
    """The place of the highest bit that is set (for a negative number: not set), all bits set where there is none."""
    type_ = site.type("su", (32, 64))
    shifts = site.flag("shiftamt")

    def found(value: Value) -> Value:
        bits = _bits_of(value, type_.bits)
        if type_.kind == "s":
            bits = bits ^ bits[..., -1:]
        place = type_.bits - 1 - bits[..., ::-1].argmax(axis=-1)
        place = type_.bits - 1 - place if shifts else place
        return types.plain(np.where(bits.any(axis=-1), place, -1))

    emit(site, found, [type_], 32)


@instruction("bfe", is_pure=True)
def bfe(site: Site) -> None:
    """Some bits from the middle, moved to the lowest; with the sign of the highest of them."""
    type_ = site.type("su", (32, 64))

    def field(value: Value, start: Value, length: Value) -> Value:
        bits = _bits_of(value, type_.bits).astype(np.int64)
        start, length = (np.asarray(number).astype(np.int64) & 0xFF for number in (start, length))
        place = start[..., None] + np.arange(type_.bits)
        last = np.minimum(start + length - 1, type_.bits - 1)
        sign = np.take_along_axis(*_aligned(bits, last[..., None]), axis=-1)
        sign = np.where((length == 0)[..., None] | (type_.kind == "u"), 0, sign)
        chosen = np.take_along_axis(*_aligned(bits, np.minimum(place, type_.bits - 1)), axis=-1)
        inside = (np.arange(type_.bits) < length[..., None]) & (place < type_.bits)
        packed = np.packbits(np.where(inside, chosen, sign).astype(np.uint8), axis=-1, bitorder="little")
        return types.plain(packed.view(f"i{type_.bits // 8}")[..., 0])

    emit(site, field, [type_, _U32, _U32], type_.bits)


def _aligned(bits: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns bits and places in them with the same dimensions in front."""
    front = np.broadcast_shapes(bits.shape[:-1], places.shape[:-1])
    return (
        np.broadcast_to(bits, (*front, bits.shape[-1])),
        np.broadcast_to(places, (*front, places.shape[-1])),
    )


@instruction("bfi", "bmsk", "szext", is_pure=True)
def bfi(site: Site) -> None:
    """Some bits of one operand put into another; a mask of some bits; or the lowest bits with their sign."""
    if site.family == "bfi":
        type_ = site.type("b", (32, 64))
        unsigned = PtxType(f"u{type_.bits}", "u", type_.bits)

        def insert(source: Value, target: Value, start: Value, length: Value) -> Value:
            mask = _mask(start, length, type_.bits)
            moved = np.asarray(source).astype(np.uint64) << np.minimum(_byte(start), 63)
            whole = moved & mask | np.asarray(target).astype(np.uint64) & ~mask
            return _signed(whole)

        emit(site, insert, [unsigned, unsigned, _U32, _U32], type_.bits)
        return
    type_ = site.type("sub", (32,))
    if site.choice(("clamp", "wrap")) == "wrap":
        raise site.error("with .wrap")
    if site.family == "bmsk":
        emit(site, lambda start, length: _signed(_mask(start, length, 32)), [_U32, _U32], 32)
        return

    def extend(value: Value, length: Value) -> Value:
        cut = np.asarray(value).astype(np.uint64) & _mask(0, length, 32)
        length = np.minimum(np.asarray(length), 32).astype(np.int64)
        sign = cut >> np.maximum(length - 1, 0).astype(np.uint64) & np.uint64(1)
        filled = cut | np.where((sign == 1) & (type_.kind == "s"), ~_mask(0, length, 32), np.uint64(0))
        return _signed(np.where(length == 0, np.uint64(0), filled))

    emit(site, extend, [_U32, _U32], 32)


def _byte(value: Value) -> np.ndarray:
    return np.asarray(value).astype(np.uint64) & np.uint64(0xFF)


def _mask(start: Value, length: Value, bits: int) -> np.ndarray:
    """Returns the bits from a place on, as many as `length`, of at most 64."""
    start, end = _byte(start), np.minimum(_byte(start) + _byte(length), np.uint64(bits))
    everything = np.uint64(0xFFFFFFFFFFFFFFFF)
    below_end = np.where(end >= 64, everything, (np.uint64(1) << np.minimum(end, np.uint64(63))) - np.uint64(1))
    below_start = np.where(start >= 64, everything, (np.uint64(1) << np.minimum(start, np.uint64(63))) - np.uint64(1))
    return below_end & ~below_start


def _signed(value: Value) -> Value:
    return types.plain(np.asarray(value, np.uint64).view(np.int64))


@instruction("dp4a", "dp2a", is_pure=True)
def dot(site: Site) -> None:
    """The products of bytes (or of halves and bytes), added to a number."""
    left, right = site.types()
    upper = site.family == "dp2a" and site.choice(("lo", "hi")) == "hi"
    site.count(4)
    per = 4 if site.family == "dp4a" else 2

    def products(fiber: Fiber, op: Instruction, a: Value, b: Value, c: Value) -> Value:
        first = _split(a, left.kind, 8 if per == 4 else 16)
        second = _split(b, right.kind, 8)[..., 2 * upper : 2 * upper + per]
        return types.stored(types.plain((first * second).sum(axis=-1) + np.asarray(c).astype(np.int64)), 32)

    site.emit(products, [site.read(number, _B32) for number in (1, 2, 3)], [site.write(0, 32)])


def _split(value: Value, kind: str, bits: int) -> np.ndarray:
    array = np.asarray(value, np.int32)[..., None] if np.ndim(value) else np.array([value], np.int32)
    return np.ascontiguousarray(array).view(f"{'u' if kind == 'u' else 'i'}{bits // 8}").astype(np.int64)


@instruction("prmt", is_pure=True)
def prmt(site: Site) -> None:
    """Bytes of two operands, each chosen by four bits; the highest of the four repeats the byte's sign."""
    site.type("b", (32,))

    def chosen(low: Value, high: Value, selector: Value) -> Value:
        word = np.asarray(low).astype(np.uint64) | np.asarray(high).astype(np.uint64) << np.uint64(32)
        word, selector = word.view(np.int64), np.asarray(selector).astype(np.int64)
        result = np.zeros(np.broadcast_shapes(word.shape, selector.shape), np.int64)
        for number in range(4):
            nibble = selector >> (4 * number) & 15
            byte = word >> (8 * (nibble & 7)) & 0xFF
            result = result | np.where(nibble & 8, np.where(byte & 0x80, 0xFF, 0), byte) << (8 * number)
        return types.plain(result)

    emit(site, chosen, [_U32] * 3, 32)
