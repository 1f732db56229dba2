"""Types of MLIR as the emulator needs them: shapes, NumPy element types, memory spaces."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import ml_dtypes
import numpy as np

from stepladder.mlir.bindings import ir

if TYPE_CHECKING:
    from stepladder.emulator.core.types import Type

_FLOATS = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    # 19 bits of tf32 live in 32: what multiplies them drops the others.
    "tf32": np.float32,
    **{
        name: getattr(ml_dtypes, numpy)
        for name, numpy in {
            "f8E3M4": "float8_e3m4",
            "f8E4M3": "float8_e4m3",
            "f8E4M3FN": "float8_e4m3fn",
            "f8E4M3FNUZ": "float8_e4m3fnuz",
            "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
            "f8E5M2": "float8_e5m2",
            "f8E5M2FNUZ": "float8_e5m2fnuz",
            "f8E8M0FNU": "float8_e8m0fnu",
            "f6E2M3FN": "float6_e2m3fn",
            "f6E3M2FN": "float6_e3m2fn",
            "f4E2M1FN": "float4_e2m1fn",
        }.items()
        if hasattr(ml_dtypes, numpy)
    },
}
_COMPLEX = {"f32": np.complex64, "f64": np.complex128}
_INTEGERS = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


@dataclass(frozen=True)
class Scalar:
    """A number: `name` as MLIR has it, NumPy's type for it, and its width in bits (64 for index)."""

    name: str
    dtype: np.dtype
    width: int

    rank = 0
    shape = ()

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.name in _FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer or an index."""
        return self.dtype.kind in "iub" and not self.is_float

    @property
    def element(self) -> Scalar:
        """Itself, as vectors have elements."""
        return self


BOOL = Scalar("i1", np.dtype(bool), 1)
INDEX = Scalar("index", np.dtype(np.int64), 64)


@dataclass(frozen=True)
class Shaped:
    """A vector or a tensor: None stands for a dynamic size."""

    shape: tuple[int | None, ...]
    element: Scalar

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """Number of elements of a static shape."""
        return math.prod(self.shape)


class Vector(Shaped):
    """A vector: one in every thread, in registers."""


class Tensor(Shaped):
    """A tensor: a value, as a NumPy array."""


@dataclass(frozen=True)
class Buffer(Shaped):
    """A memref: None stands for what is dynamic; an unranked one has the shape ()."""

    strides: tuple[int | None, ...]
    offset: int | None
    space: str

    rank = property(lambda self: len(self.shape))

    @property
    def is_static(self) -> bool:
        """Whether the shape and the layout are known."""
        return None not in (*self.shape, *self.strides, self.offset)

    @property
    def extent(self) -> int:
        """Number of elements that a static layout reaches over, those in between included."""
        return (
            0
            if 0 in self.shape
            else self.offset + 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides))
        )


@dataclass(frozen=True)
class Opaque:
    """Any other type, by its text."""

    text: str

    rank = 0
    shape = ()


# A decoded type.
Type: TypeAlias = Scalar | Shaped | Opaque


def _scalar(type_: ir.Type) -> Scalar | None:
    name = str(type_)
    if name in ("index", "i1"):
        return INDEX if name == "index" else BOOL
    if name in _FLOATS:
        dtype = np.dtype(_FLOATS[name])
        narrow = re.match(r"f([46])E", name)
        return Scalar(name, dtype, int(narrow[1]) if narrow else dtype.itemsize * 8)
    if isinstance(type_, ir.IntegerType) and type_.width <= 64:
        # An odd width lives in the next larger one.
        width = next(width for width in _INTEGERS if type_.width <= width)
        return Scalar(name, np.dtype(_INTEGERS[width]), type_.width)
    if isinstance(type_, ir.ComplexType):
        part = str(type_.element_type)
        if part in _COMPLEX:
            dtype = np.dtype(_COMPLEX[part])
            return Scalar(name, dtype, dtype.itemsize * 8)
    return None


def _sizes(type_: ir.Type) -> tuple[int | None, ...]:
    return tuple(None if type_.is_dynamic_dim(axis) else type_.get_dim_size(axis) for axis in range(type_.rank))


def memory_space(attribute: ir.Attribute | None) -> str:
    """Returns "global", "shared" or "private" for a memory space: a number, a `#gpu.address_space`, or none."""
    text = "" if attribute is None else str(attribute)
    if "workgroup" in text or text.startswith("3"):
        return "shared"
    if "private" in text or text.startswith("5"):
        return "private"
    return "global"


def _buffer_of_shaped(type_: ir.Type) -> Buffer | Opaque:
    """Returns the type of a memref of vectors, whose elements are rows of bytes, or of memrefs, which are numbers."""
    inner = type_.element_type
    if isinstance(inner, ir.VectorType):
        vector = _decode(inner)
        size = vector.count * vector.element.bytes
        element = Scalar(str(inner), np.dtype(f"V{size}"), 8 * size)
    elif isinstance(inner, (ir.MemRefType, ir.UnrankedMemRefType)):
        element = Scalar(str(inner), np.dtype(np.int64), 64)
    else:
        return Opaque(str(type_))
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides, offset = type_.get_strides_and_offset()
    return Buffer(
        _sizes(type_),
        element,
        tuple(None if s == unknown else s for s in strides),
        None if offset == unknown else offset,
        memory_space(type_.memory_space),
    )


@functools.lru_cache(maxsize=4096)
def _decode(type_: ir.Type) -> Type:
    scalar = _scalar(type_)
    if scalar is not None:
        return scalar
    if isinstance(type_, ir.VectorType):
        return Vector(_sizes(type_), _scalar(type_.element_type))
    if isinstance(type_, ir.RankedTensorType):
        return Tensor(_sizes(type_), _scalar(type_.element_type))
    if isinstance(type_, ir.UnrankedTensorType):
        return Tensor((), _scalar(type_.element_type))
    if isinstance(type_, ir.MemRefType) and _scalar(type_.element_type) is None:
        return _buffer_of_shaped(type_)
    if isinstance(type_, ir.MemRefType):
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        strides, offset = type_.get_strides_and_offset()
        return Buffer(
            _sizes(type_),
            _scalar(type_.element_type),
            tuple(None if s == unknown else s for s in strides),
            None if offset == unknown else offset,
            memory_space(type_.memory_space),
        )
    if isinstance(type_, ir.UnrankedMemRefType):
        return Buffer((), _scalar(type_.element_type), (), 0, memory_space(type_.memory_space))
    return Opaque(str(type_))


def decode(type_: ir.Type) -> Type:
    """Returns the Scalar, Vector, Tensor, Buffer or Opaque for a type of MLIR.

    Needs the context of the type to be alive; `forget` before another one takes its place.
    """
    return _decode(type_)


def forget() -> None:
    """Drops what is remembered of types: they live in a context that is about to go."""
    _decode.cache_clear()
