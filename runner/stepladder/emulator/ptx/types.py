"""PTX's types, and conversions between the bits of registers and values.

A register holds bits: a signed integer of its width, uniform or (T,) as in `core.values`, whatever type an
instruction reads it as; a predicate is a bool. The functions below convert these bits to values of a type, and back.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from stepladder.emulator.core.types import BOOL, Scalar

if TYPE_CHECKING:
    from stepladder.emulator.core.values import Value

_TYPE = re.compile(r"(?:([sub])(8|16|32|64)|f(16|32|64)|(bf16|tf32|e4m3|e5m2|pred))(x[24])?")
_SIGNED = {8: np.dtype(np.int8), 16: np.dtype(np.int16), 32: np.dtype(np.int32), 64: np.dtype(np.int64)}
_UNSIGNED = {8: np.dtype(np.uint8), 16: np.dtype(np.uint16), 32: np.dtype(np.uint32), 64: np.dtype(np.uint64)}
_FLOATS = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
_SPECIAL_BITS = {"bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "pred": 1}


@dataclass(frozen=True)
class PtxType:
    """A type.

    Attributes:
        name: of an element, as PTX has it.
        kind: "s" and "u" for integers, "b" for bits, "f" for floating-point numbers, "pred".
        bits: of an element; `count`: elements in a register.
    """

    name: str
    kind: str
    bits: int
    count: int = 1

    @property
    def width(self) -> int:
        """Bits of a register."""
        return self.bits * self.count

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return self.width // 8

    @property
    def dtype(self) -> np.dtype:
        """NumPy's type of an element, as arithmetic reads it."""
        if self.kind == "f":
            return _FLOATS[self.name]
        return (_UNSIGNED if self.kind == "u" else _SIGNED)[self.bits]

    @property
    def scalar(self) -> Scalar:
        """An element's type, as arithmetic of other dialects takes it."""
        if self.kind == "f":
            name = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}.get(self.name, self.name)
            return Scalar(name, self.dtype, self.bits)
        return register(self.bits)

    def __str__(self) -> str:
        return f"{self.name}{f'x{self.count}' if self.count > 1 else ''}"


@functools.cache
def find(name: str) -> PtxType | None:
    """Returns the type with a name, None where there is none.

    Args:
        name: without its dot.
    """
    match = _TYPE.fullmatch(name)
    if match is None:
        return None
    integer, size, float_size, special, count_text = match.groups()
    count = int(count_text[1:]) if count_text else 1
    base = name.removesuffix(count_text or "")
    if integer:
        return PtxType(base, integer, int(size), count)
    if float_size:
        return PtxType(base, "f", int(float_size), count)
    return PtxType(base, "pred" if special == "pred" else "f", _SPECIAL_BITS[special], count)


@functools.cache
def register(width: int) -> Scalar:
    """Returns the type of the bits of a register.

    Args:
        width: 1 for a predicate, else 8 to 64.
    """
    return BOOL if width == 1 else Scalar(f"i{width}", _SIGNED[width], width)


# Integers.


def wrap(value: int, bits: int) -> int:
    """Returns an integer wrapped to a signed one.

    Args:
        value: a Python integer.
        bits: width.
    """
    half = 1 << (bits - 1)
    return value if -half <= value < half else ((value + half) & ((1 << bits) - 1)) - half


def stored(value: Value, bits: int) -> Value:
    """Returns integers as the bits of a register; higher bits are dropped.

    Args:
        value: an integer of any type, uniform or (T,).
        bits: width of the register.
    """
    if isinstance(value, np.ndarray):
        return value.astype(_SIGNED[bits], copy=False) if bits > 1 else value.astype(bool)
    return wrap(int(value), bits) if bits > 1 else bool(value)


def number(value: Value, type_: PtxType) -> Value:
    """Returns the bits of a register as integers of a type.

    Args:
        value: bits, uniform or (T,), at least as wide as the type.
        type_: signed, unsigned or of bits.
    """
    if isinstance(value, np.ndarray):
        if value.dtype.itemsize * 8 != type_.bits:
            value = value.astype(_SIGNED[type_.bits])
        return value.view(_UNSIGNED[type_.bits]) if type_.kind == "u" else value
    value = int(value)
    return value & ((1 << type_.bits) - 1) if type_.kind == "u" else wrap(value, type_.bits)


def extended(value: Value, type_: PtxType, width: int) -> Value:
    """Returns integers of a type as the bits of a wider register.

    Args:
        value: bits, uniform or (T,).
        type_: that decides on sign or zero extension: bits without a sign have zeros in front.
        width: bits of the register.
    """
    if type_.kind == "b":
        type_ = PtxType(f"u{type_.bits}", "u", type_.bits)
    return stored(number(value, type_), width)


# Floating-point numbers: arrays or NumPy's scalars; packed ones have a last dimension.


def floats(value: Value, type_: PtxType) -> Value:
    """Returns the bits of a register as floating-point numbers.

    Args:
        value: bits, uniform or (T,).
        type_: floating-point, packed or not.

    Returns:
        (), (T,), or with another dimension for the elements of a packed type.
    """
    if isinstance(value, np.ndarray):
        if value.dtype.itemsize * 8 != type_.width:
            value = value.astype(_SIGNED[type_.width])
        if type_.count == 1:
            return value.view(type_.dtype)
        return np.ascontiguousarray(value)[:, None].view(type_.dtype)
    bits = np.array([wrap(int(value), type_.width)], _SIGNED[type_.width]).view(type_.dtype)
    return bits[0] if type_.count == 1 else bits


def flushed(value: Value) -> Value:
    """Returns floating-point numbers with zeros of their sign for those that are subnormal in f32.

    Args:
        value: as `floats` returns it.
    """
    tiny = np.finfo(np.float32).tiny
    return np.where(np.abs(value) < tiny, np.copysign(0, value), value).astype(np.asarray(value).dtype)


_CANONICAL_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "tf32": 0x7FFFFFFF, "e4m3": 0x7F, "e5m2": 0x7F}


@functools.cache
def _canonical_nan(type_: PtxType) -> np.ndarray | None:
    bits = _CANONICAL_NAN.get(type_.name)
    return None if bits is None else np.array(bits, f"u{type_.bits // 8}").view(type_.dtype)


def with_canonical_nan(value: np.ndarray, type_: PtxType) -> np.ndarray:
    """Returns floating-point numbers with the canonical NaN for any other one, where the type has one: f64 has none.

    Args:
        value: an array of the type.
        type_: floating-point, packed or not.
    """
    is_nan = value != value  # as isnan, which takes longer
    if not is_nan.any():
        return value
    canonical = _canonical_nan(type_)
    return value if canonical is None else np.where(is_nan, canonical, value)


def within_one(value: Value) -> Value:
    """Returns floating-point numbers limited to 0 to 1, as `.sat` does it: NaN and -0 become 0.

    Args:
        value: as `floats` returns it.
    """
    return np.where(np.isnan(value), 0, np.clip(value, 0, 1) + 0.0)


def from_floats(value: Value, type_: PtxType) -> Value:
    """Returns floating-point numbers as the bits of a register.

    Args:
        value: as `floats` returns it.
        type_: floating-point, packed or not.
    """
    array = np.asarray(value, type_.dtype)
    if type_.count == 1:
        bits = array.view(_SIGNED[type_.width])
        return bits if bits.ndim else int(bits)
    bits = np.ascontiguousarray(array).view(_SIGNED[type_.width])[..., 0]
    return bits if bits.ndim else int(bits)


def plain(value: Value) -> Value:
    """Returns a NumPy integer without dimensions as Python's; arrays are unchanged.

    Args:
        value: an integer or an array.
    """
    return value if isinstance(value, np.ndarray) and value.ndim else int(value)
