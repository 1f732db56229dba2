"""Bits and bytes of integers.

Source: PTX ISA, "Integer Arithmetic Instructions", "prmt".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.instructions.integers import emit
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_U32 = PtxType("u32", "u", 32)
_B32 = PtxType("b32", "b", 32)


def _bits_of(value: Value, width: int) -> np.ndarray:
    """Returns the bits of integers, the lowest first: (width,) or (T, width)."""
    array = np.asarray(value)
    if not array.ndim:
        array = np.array(int(value) & ((1 << width) - 1), f"u{width // 8}")
    raw = np.ascontiguousarray(array)[..., None].view(np.uint8)
    return np.unpackbits(raw, axis=-1, bitorder="little").reshape(*np.shape(value), width)


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
            position = np.where(bits.any(axis=-1), bits[..., ::-1].argmax(axis=-1), width)
            return types.plain(position)
        result_bytes = np.packbits(np.ascontiguousarray(bits[..., ::-1]), axis=-1, bitorder="little")
        return types.plain(result_bytes.view(f"i{width // 8}")[..., 0])

    emit(site, count, [type_], width if site.family == "brev" else 32)


@instruction("bfind", is_pure=True)
def bfind(site: Site) -> None:
    """The position of the highest bit that is set (for a negative value: not set), all bits set where there is none."""
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
        field_bits = np.take_along_axis(*_aligned(bits, np.minimum(place, type_.bits - 1)), axis=-1)
        inside = (np.arange(type_.bits) < length[..., None]) & (place < type_.bits)
        result_bytes = np.packbits(np.where(inside, field_bits, sign).astype(np.uint8), axis=-1, bitorder="little")
        return types.plain(result_bytes.view(f"i{type_.bits // 8}")[..., 0])

    emit(site, field, [type_, _U32, _U32], type_.bits)


def _aligned(bits: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns bits and positions in them with the same leading dimensions."""
    front = np.broadcast_shapes(bits.shape[:-1], places.shape[:-1])
    return (
        np.broadcast_to(bits, (*front, bits.shape[-1])),
        np.broadcast_to(places, (*front, places.shape[-1])),
    )


@instruction("bfi", "bmsk", "szext", is_pure=True)
def bfi(site: Site) -> None:
    """Some bits of one operand inserted into another; a mask of some bits; or the lowest bits with their sign."""
    if site.family == "bfi":
        type_ = site.type("b", (32, 64))
        unsigned = PtxType(f"u{type_.bits}", "u", type_.bits)

        def insert(source: Value, target: Value, start: Value, length: Value) -> Value:
            mask = _mask(start, length, type_.bits)
            shifted = np.asarray(source).astype(np.uint64) << np.minimum(_byte(start), 63)
            result = shifted & mask | np.asarray(target).astype(np.uint64) & ~mask
            return _signed(result)

        emit(site, insert, [unsigned, unsigned, _U32, _U32], type_.bits)
        return
    type_ = site.type("sub", (32,))
    wraps = site.choice(("clamp", "wrap")) == "wrap"

    def within(value: Value) -> Value:
        return np.asarray(value) & 31 if wraps else value

    if site.family == "bmsk":
        emit(site, lambda start, length: _clamped_mask(within(start), within(length)), [_U32, _U32], 32)
        return

    def extend(value: Value, length: Value) -> Value:
        length = within(length)
        field = np.asarray(value).astype(np.uint64) & _mask(0, length, 32)
        length = np.minimum(np.asarray(length), 32).astype(np.int64)
        sign = field >> np.maximum(length - 1, 0).astype(np.uint64) & np.uint64(1)
        extended = field | np.where((sign == 1) & (type_.kind == "s"), ~_mask(0, length, 32), np.uint64(0))
        return _signed(np.where(length == 0, np.uint64(0), extended))

    emit(site, extend, [_U32, _U32], 32)


def _byte(value: Value) -> np.ndarray:
    return np.asarray(value).astype(np.uint64) & np.uint64(0xFF)


def _mask(start: Value, length: Value, bits: int) -> np.ndarray:
    """Returns the bits from a position on, as many as `length`, of at most 64."""
    start, end = _byte(start), np.minimum(_byte(start) + _byte(length), np.uint64(bits))
    everything = np.uint64(0xFFFFFFFFFFFFFFFF)
    below_end = np.where(end >= 64, everything, (np.uint64(1) << np.minimum(end, np.uint64(63))) - np.uint64(1))
    below_start = np.where(start >= 64, everything, (np.uint64(1) << np.minimum(start, np.uint64(63))) - np.uint64(1))
    return below_end & ~below_start


def _clamped_mask(start: Value, length: Value) -> Value:
    """Returns the bits from a position on, all of them where their number is beyond the word; none from beyond it."""
    start, length = (np.minimum(np.asarray(value).astype(np.uint64), np.uint64(32)) for value in (start, length))
    return _signed(_mask(start, length, 32))


def _signed(value: Value) -> Value:
    return types.plain(np.asarray(value, np.uint64).view(np.int64))


@instruction("fns", is_pure=True)
def fns(site: Site) -> None:
    """The position of the n-th bit that is set from a base, upwards or downwards; all bits set if there is none."""
    site.type("b", (32,))

    def place(mask: Value, base: Value, offset: Value) -> Value:
        bits = _bits_of(mask, 32)
        base, offset = (np.asarray(value).astype(np.int64)[..., None] for value in (base, offset))
        places = np.arange(32)
        # The n-th at or above the base, or at or below it; at the base itself where n is 0.
        above = np.cumsum(bits & (places >= base), axis=-1)
        below = np.cumsum((bits & (places <= base))[..., ::-1], axis=-1)[..., ::-1]
        is_place = np.where(
            offset > 0,
            bits & (places >= base) & (above == offset),
            np.where(offset < 0, bits & (places <= base) & (below == -offset), bits & (places == base)),
        )
        return types.plain(np.where(is_place.any(axis=-1), is_place.argmax(axis=-1), -1))

    emit(site, place, [_B32, _U32, PtxType("s32", "s", 32)], 32)


@instruction("dp4a", "dp2a", is_pure=True)
def dot(site: Site) -> None:
    """The products of bytes (or of halves and bytes), added to an accumulator."""
    left, right = site.types(2)
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


# The bytes of `prmt` with a mode, the lowest first, by the two bits that select their position.
_PATTERNS: dict[str, Callable[[int], list[int]]] = {
    "f4e": lambda start: [start + place for place in range(4)],
    "b4e": lambda start: [(start - place) % 8 for place in range(4)],
    "rc8": lambda start: [start] * 4,
    "ecl": lambda start: [max(start, place) for place in range(4)],
    "ecr": lambda start: [min(start, place) for place in range(4)],
    "rc16": lambda start: [start % 2 * 2, start % 2 * 2 + 1] * 2,
}


@instruction("prmt", is_pure=True)
def prmt(site: Site) -> None:
    """Bytes of two operands, each chosen by four bits; the highest of the four repeats the byte's sign.

    With a mode the two lowest bits select where a pattern of bytes begins.
    """
    site.type("b", (32,))
    mode = site.choice(tuple(_PATTERNS), "")
    if mode:
        patterns = np.array([_PATTERNS[mode](start) for start in range(4)])
        selectors = (patterns << 4 * np.arange(4)).sum(axis=1)

    def chosen(low: Value, high: Value, selector: Value) -> Value:
        word = np.asarray(low).astype(np.uint64) | np.asarray(high).astype(np.uint64) << np.uint64(32)
        word, selector = word.view(np.int64), np.asarray(selector).astype(np.int64)
        if mode:
            selector = selectors[selector & 3]
        result = np.zeros(np.broadcast_shapes(word.shape, selector.shape), np.int64)
        for number in range(4):
            nibble = selector >> (4 * number) & 15
            byte = word >> (8 * (nibble & 7)) & 0xFF
            result = result | np.where(nibble & 8, np.where(byte & 0x80, 0xFF, 0), byte) << (8 * number)
        return types.plain(result)

    emit(site, chosen, [_U32] * 3, 32)
