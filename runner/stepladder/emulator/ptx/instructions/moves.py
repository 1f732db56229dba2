"""Moves and conversions.

Source: PTX ISA, "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.elements import rounded
from stepladder.emulator.memory.memory import RANK_SHIFT
from stepladder.emulator.ptx import syntax, types
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_SPACES = ("const", "global", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry")
_SHARED_END = 17 << RANK_SHIFT  # addresses below are in shared memory
_PRIVATE = range(0x10_0000_0000, 0x7F00_0000_0000)  # addresses of threads' own memory
_B64 = PtxType("b64", "b", 64)
_DIRECTED = ("rm", "rp", "rz")
_WIDE = ("f32", "f64")
_TO_INTEGER: dict[str, Callable] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@instruction("mov", is_pure=True)
def mov(site: Site) -> None:
    """A register, an immediate, an address or a special register to a register; or parts of one to and from others."""
    if site.flag("b128"):
        _move_halves(site)
        return
    (type_,) = site.types(1)
    site.count(2)
    target, source = site.operands
    if isinstance(target, syntax.Vector):
        _unpack(site, type_, target, source)
    elif isinstance(source, syntax.Vector):
        _pack(site, type_, target, source)
    else:
        # Sums of wgmma in flight may be renamed: no instruction of the hardware does so.
        site.emit(_same, [site.read(source, type_)], [site.write(target, type_.width)], holds=True)


def _move_halves(site: Site) -> None:
    site.count(2)
    targets, sources = site.elements(0), site.elements(1)
    if len(targets) != 2 or len(sources) != 2:
        raise site.error("of these operands: expected registers of .b128, or two of .b64")
    reads = [site.read(source, _B64) for source in sources]
    site.emit(lambda fiber, op, *halves: halves, reads, [site.write(target, 64) for target in targets])


def _same(fiber: Fiber, op: Instruction, value: Value) -> Value:
    return value


def _unpack(site: Site, type_: PtxType, target: syntax.Vector, source: syntax.Operand) -> None:
    count = len(target.elements)
    width = type_.width // count
    part = PtxType(f"b{width}", "b", width)

    def execute(fiber: Fiber, op: Instruction, value: Value) -> Value:
        parts = tuple(types.stored(value >> (width * place), width) if width > 1 else value for place in range(count))
        return parts if count > 1 else parts[0]

    if width not in (8, 16, 32) or count * width != type_.width:
        raise site.error(f"with {count} parts: expected parts of 8, 16 or 32 bits, {type_.width} in all")
    site.emit(execute, [site.read(source, type_)], [site.write(element, part.width) for element in target.elements])


def _pack(site: Site, type_: PtxType, target: syntax.Operand, source: syntax.Vector) -> None:
    count = len(source.elements)
    width = type_.width // count
    part = PtxType(f"u{width}", "u", width)

    def execute(fiber: Fiber, op: Instruction, *parts: Value) -> Value:
        packed: Value = 0
        for place, value in enumerate(parts):
            number = types.number(value, part)
            if isinstance(number, np.ndarray):
                number = number.astype(f"u{type_.bits // 8}")
            packed = packed | (number << (width * place))
        return types.stored(packed, type_.width)

    if width not in (8, 16, 32) or count * width != type_.width:
        raise site.error(f"with {count} parts: expected parts of 8, 16 or 32 bits, {type_.width} in all")
    site.emit(execute, [site.read(element, part) for element in source.elements], [site.write(target, type_.width)])


@instruction("cvta", is_pure=True)
def cvta(site: Site) -> None:
    """An address of a space as a generic one, or back: here they are the same."""
    site.flag("to")
    site.choice(_SPACES)
    type_ = site.type("u", (32, 64))
    site.count(2)
    site.emit(_same, [site.read(1, type_)], [site.write(0, type_.width)])


@instruction("isspacep", is_pure=True)
def isspacep(site: Site) -> None:
    """Whether a generic address is in a space."""
    space = site.choice(_SPACES)
    site.count(2)

    def execute(fiber: Fiber, op: Instruction, address: Value) -> Value:
        address = np.asarray(address)
        is_shared = (address >= 0) & (address < _SHARED_END)
        private = (address >= _PRIVATE.start) & (address < _PRIVATE.stop)
        own = (address >> RANK_SHIFT) - 1 == fiber.group.block_of_lane if address.ndim else False
        is_in_space = {
            "shared": is_shared & ((address < 1 << RANK_SHIFT) | own),
            "shared::cluster": is_shared,
            "local": private,
            "global": ~is_shared & ~private,
        }.get(space.removesuffix("::cta"), np.zeros_like(is_shared))
        return is_in_space if is_in_space.ndim else bool(is_in_space)

    site.emit(execute, [site.read(1, PtxType("u64", "u", 64))], [site.write(0, 1)])


# Conversions.


@instruction("cvt", is_pure=True)
def cvt(site: Site) -> None:
    """A number of one type as one of another."""
    rounding = site.match(r"r[nzmp]i?|rna|rs")
    mode = rounding[0] if rounding else ""
    flushes, saturates, clamps = site.flag("ftz"), site.flag("sat"), site.flag("relu")
    finite = site.flag("satfinite")
    target, *sources = site.types(2)
    source = sources[0]
    site.count(2 + (target.count == 2 and source.count == 1))
    if target.kind in "su" and source.kind in "su":
        convert = _integers(source, target, saturates=saturates)
    elif target.kind in "su":
        convert = _to_integers(source, target, mode, flushes=flushes and source.name == "f32")
    elif source.kind in "su":
        convert = _from_integers(source, target, mode, saturates=saturates)
    else:
        convert = _floats(source, target, mode, saturates=saturates or finite, clamps=clamps, finite=finite)
        if flushes:
            convert = _flushing(convert, source, target)
    width = target.width
    if len(site.operands) == 3:  # the first operand is the upper half
        _packed(site, source, target, convert)
        return

    def execute(fiber: Fiber, op: Instruction, value: Value) -> Value:
        return convert(value)

    wide = site.width(0) if target.kind in "su" else width

    def widened(fiber: Fiber, op: Instruction, value: Value) -> Value:
        return types.extended(convert(value), target, wide)

    source_slot = site.read(1, PtxType(f"b{source.width}", "b", source.width), wider=True)
    site.emit(widened if wide != width else execute, [source_slot], [site.write(0, width, wider=True)])


def _integers(source: PtxType, target: PtxType, *, saturates: bool) -> Callable:
    if not saturates:
        return lambda value: types.stored(types.number(value, source), target.bits)
    signed = target.kind == "s"
    low = -(1 << (target.bits - 1)) if signed else 0
    high = (1 << (target.bits - signed)) - 1

    def convert(value: Value) -> Value:
        number = types.number(value, source)
        if not isinstance(number, np.ndarray):
            return types.stored(min(max(number, low), high), target.bits)
        limits = np.iinfo(number.dtype)
        return types.stored(np.clip(number, max(low, limits.min), min(high, limits.max)), target.bits)

    return convert


def _flushing(convert: Callable, source: PtxType, target: PtxType) -> Callable:
    """Returns a conversion with zeros for subnormal f32 values, read or written."""

    def flushed(value: Value) -> Value:
        if source.name == "f32":
            value = types.from_floats(types.flushed(types.floats(value, source)), source)
        result = convert(value)
        if target.name == "f32":
            result = types.from_floats(types.flushed(types.floats(result, target)), target)
        return result

    return flushed


def _to_integers(source: PtxType, target: PtxType, mode: str, *, flushes: bool) -> Callable:
    signed = target.kind == "s"
    low = -(1 << (target.bits - 1)) if signed else 0
    high = (1 << (target.bits - signed)) - 1
    dtype = np.dtype(f"{'i' if signed else 'u'}{target.bits // 8}")
    # Zero, but where f64 or integers of 64 bits take part: the highest bit alone.
    is_long = 64 in (source.bits, target.bits)
    of_nan = dtype.type((low if signed else high // 2 + 1) if is_long else 0)

    def convert(value: Value) -> Value:
        source_number = types.floats(value, source)
        number = _TO_INTEGER[mode](
            np.asarray(types.flushed(source_number) if flushes else source_number).astype(np.float64)
        )
        inside = np.where((number > low) & (number < high), number, 0).astype(dtype)
        result = np.where(number >= high, dtype.type(high), np.where(number <= low, dtype.type(low), inside))
        result = np.where(np.isnan(number), of_nan, result)
        return types.stored(result if result.ndim else int(result), target.bits)

    return convert


def _from_integers(source: PtxType, target: PtxType, mode: str, *, saturates: bool) -> Callable:
    def convert(value: Value) -> Value:
        number = _rounded(mode, np.asarray(types.number(value, source)).astype(np.longdouble), target)
        return types.from_floats(types.within_one(number).astype(target.dtype) if saturates else number, target)

    return convert


def _floats(source: PtxType, target: PtxType, mode: str, *, saturates: bool, clamps: bool, finite: bool) -> Callable:
    element = PtxType(target.name, "f", target.bits).scalar

    def convert(value: Value) -> Value:
        number = np.asarray(types.floats(value, source))
        if mode in _TO_INTEGER:
            number = _TO_INTEGER[mode](number.astype(np.float64))
        elif mode == "rna":
            bits = np.ascontiguousarray(number).view(np.int32) + (1 << 12)
            number = (bits >> 13 << 13).view(np.float32).reshape(number.shape)
        elif mode == "rz" and target.name == "tf32":
            number = (np.ascontiguousarray(number).view(np.int32) & -(1 << 13)).view(np.float32).reshape(number.shape)
        elif mode in _DIRECTED:
            number = _in_direction(mode, number.astype(np.longdouble), target)
        if saturates and not finite:
            number = types.within_one(number)
        if clamps:
            number = np.where(number < 0, 0, number)
        if finite and target.bits <= 16 and target.name != "tf32":
            largest = float(_largest(target))
            number = np.where(np.isnan(number), number, np.clip(number.astype(np.float64), -largest, largest))
        result = np.asarray(rounded(number.astype(np.float64), element)).astype(target.dtype, copy=False)
        if target.bits < source.bits or target.name == "tf32":
            result = types.with_canonical_nan(result, target)
        return types.from_floats(result, target)

    return convert


def _largest(type_: PtxType) -> float:
    import ml_dtypes

    return float((np.finfo if type_.name in ("f16", "f32", "f64") else ml_dtypes.finfo)(type_.dtype).max)


def _in_direction(mode: str, number: np.ndarray, target: PtxType) -> np.ndarray:
    """Returns values as the adjacent ones of f32 or f64: below (`rm`), above (`rp`), nearer to 0 (`rz`).

    Args:
        mode: one of `_DIRECTED`.
        number: a value, of a type that represents all of them.
        target: the type of the result.
    """
    near = number.astype(target.dtype)
    wide = near.astype(number.dtype)
    down, up = (np.nextafter(near, target.dtype.type(limit)) for limit in (-np.inf, np.inf))
    lowers = (wide > number) & ((mode == "rm") | ((mode == "rz") & (number > 0)))
    raises = (wide < number) & ((mode == "rp") | ((mode == "rz") & (number < 0)))
    return np.where(lowers, down, np.where(raises, up, near)).astype(target.dtype)


def _rounded(mode: str, number: np.ndarray, target: PtxType) -> np.ndarray:
    """Returns integers as numbers of a type, rounded once; those of 64 bits have more of them than f64."""
    if mode in _DIRECTED:
        return _in_direction(mode, number, target)
    if target.name in _WIDE:
        return number.astype(target.dtype)
    # An odd last bit keeps what f64 loses.
    wide = number.astype(np.float64)
    inexact = wide.astype(np.longdouble) != number
    toward = np.nextafter(wide, np.where(wide.astype(np.longdouble) < number, np.inf, -np.inf))
    is_odd = np.asarray(wide).view(np.int64) % 2 == 1
    return np.asarray(rounded(np.where(inexact & ~is_odd, toward, wide), target.scalar)).astype(target.dtype)


def _packed(site: Site, source: PtxType, target: PtxType, convert: Callable) -> None:
    """Emits a conversion of two values to one register; the first operand is its upper half."""
    half = target.bits
    single = PtxType(target.name, "f", half)

    def execute(fiber: Fiber, op: Instruction, high: Value, low: Value) -> Value:
        pair = [values.lanes(np.asarray(types.floats(value, source)), fiber.count) for value in (low, high)]
        pairs = np.ascontiguousarray(np.stack(pair, axis=-1))
        flat = pairs.reshape(-1).view(np.int32)
        converted = np.asarray(convert_single(flat)).reshape(pairs.shape)
        return np.ascontiguousarray(converted).view(f"i{half // 4}")[..., 0]

    mode = re.search(r"rz", site.statement.mnemonic)
    finite = "satfinite" in site.statement.opcode
    convert_single = _floats(
        source,
        single,
        "rz" if mode else "rn",
        saturates=finite,
        clamps="relu" in site.statement.opcode,
        finite=finite,
    )
    site.emit(execute, [site.read(1, source), site.read(2, source)], [site.write(0, target.width)])


@instruction("cvt.pack", is_pure=True)
def cvt_pack(site: Site) -> None:
    """Two integers, saturated to fewer bits and packed, above the bits of a third operand."""
    site.choice(("sat",))
    narrow = site.match("([su])([0-9]+)")
    source, *kept_types = site.types(1, 2)
    site.count(4 if kept_types else 3)
    assert narrow is not None  # `forms`
    bits = int(narrow[2])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if narrow[1] == "s" else (0, (1 << bits) - 1)

    def execute(fiber: Fiber, op: Instruction, first: Value, second: Value, *more: Value) -> Value:
        upper, lower = (
            np.clip(np.asarray(value).astype(np.int64), low, high) & high - low for value in (first, second)
        )
        packed = lower | upper << bits
        if more:
            packed = packed | np.asarray(more[0]).astype(np.int64) << 2 * bits
        return types.stored(types.plain(packed), 32)

    reads = [site.read(1, source), site.read(2, source), *(site.read(3, type_) for type_ in kept_types)]
    site.emit(execute, reads, [site.write(0, 32)])


@instruction("createpolicy", is_pure=True)
def createpolicy(site: Site) -> None:
    """A cache policy, which has no effect: there are no caches."""
    site.rest.clear()
    site.emit(lambda fiber, op: 0, (), [site.write(0, 64)])
