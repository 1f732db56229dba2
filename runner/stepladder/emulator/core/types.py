"""Types of MLIR as the emulator needs them: shapes, NumPy element types, memory spaces."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TypeAlias

import ml_dtypes
import numpy as np

from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import memory_space
from stepladder.mlir.types import name_of, offset_of, strides_of
from stepladder.runtime.errors import StepladderError

_FLOATS = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    # tf32 has 19 bits in a register of 32: products ignore the others.
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
    """A scalar type: `name` as MLIR has it, NumPy's type for it, and its width in bits (64 for index)."""

    name: str
    dtype: np.dtype
    width: int

    rank = 0
    shape = static_shape = ()

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
    """A vector or a tensor: None represents a dynamic size."""

    shape: tuple[int | None, ...]
    element: Scalar

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @functools.cached_property
    def static_shape(self) -> tuple[int, ...]:
        """The shape, all of which is static.

        Raises:
            ValueError: a size is dynamic.
        """
        sizes = tuple(size for size in self.shape if size is not None)
        if len(sizes) != len(self.shape):
            raise ValueError("the shape is not static")
        return sizes

    @functools.cached_property
    def count(self) -> int:
        """Number of elements of a static shape."""
        return math.prod(self.static_shape)


class Vector(Shaped):
    """A vector: one in every thread, in registers."""


class Tensor(Shaped):
    """A tensor: a value, as a NumPy array."""


@dataclass(frozen=True)
class Buffer(Shaped):
    """A memref: None represents dynamic values; an unranked one has the shape ()."""

    strides: tuple[int | None, ...]
    offset: int | None
    space: str

    @property
    def is_static(self) -> bool:
        """Whether the shape and the layout are known."""
        return None not in (*self.shape, *self.strides, self.offset)

    @property
    def extent(self) -> int:
        """Number of elements that a static layout reaches over, those in between included.

        Raises:
            ValueError: the shape or the layout is dynamic.
        """
        if 0 in self.shape:
            return 0
        strides = [stride for stride in self.strides if stride is not None]
        if self.offset is None or len(strides) != len(self.strides):
            raise ValueError("the layout is not static")
        return self.offset + 1 + sum((size - 1) * stride for size, stride in zip(self.static_shape, strides))


@dataclass(frozen=True)
class Opaque:
    """Any other type, by its text."""

    text: str

    rank = 0
    shape = ()


# A decoded type.
Type: TypeAlias = Scalar | Shaped | Opaque


def _scalar(type_: ir.Type) -> Scalar | None:
    name = name_of(type_)
    if name in ("index", "i1"):
        return INDEX if name == "index" else BOOL
    if name in _FLOATS:
        dtype = np.dtype(_FLOATS[name])
        width = dtype.itemsize * 8
        # Each of fewer bits fills a byte of memory.
        return Scalar(name, dtype, type_.width if isinstance(type_, ir.FloatType) and type_.width < 8 else width)
    if isinstance(type_, ir.IntegerType) and type_.width <= 64:
        # An odd width is stored in the next larger one.
        width = next(width for width in _INTEGERS if type_.width <= width)
        return Scalar(name, np.dtype(_INTEGERS[width]), type_.width)
    if isinstance(type_, ir.ComplexType):
        part = name_of(type_.element_type)
        if part in _COMPLEX:
            dtype = np.dtype(_COMPLEX[part])
            return Scalar(name, dtype, dtype.itemsize * 8)
    return None


def _sizes(type_: ir.ShapedType) -> tuple[int | None, ...]:
    return tuple(None if type_.is_dynamic_dim(axis) else type_.get_dim_size(axis) for axis in range(type_.rank))


def _held(type_: ir.Type) -> Scalar | None:
    """Returns the elements of a memref: vectors are rows of bytes, and memrefs are integers; None for unknown ones."""
    if isinstance(type_, ir.VectorType):
        vector = _decode(type_)
        if not isinstance(vector, Vector):
            return None
        size = vector.count * vector.element.bytes
        return Scalar(name_of(type_), np.dtype(f"V{size}"), 8 * size)
    if isinstance(type_, (ir.MemRefType, ir.UnrankedMemRefType)):
        return Scalar(name_of(type_), np.dtype(np.int64), 64)
    return _scalar(type_)


def _buffer(type_: ir.MemRefType, element: Scalar) -> Buffer:
    strides = strides_of(type_)
    if strides is None:
        raise ValueError(f"{type_} has a layout without strides")
    return Buffer(
        _sizes(type_),
        element,
        tuple(strides),
        offset_of(type_),
        memory_space(type_.memory_space),
    )


@functools.lru_cache(maxsize=4096)
def _decode(type_: ir.Type) -> Type:
    decoded = _scalar(type_) or _shaped(type_)
    return Opaque(name_of(type_)) if decoded is None else decoded


def _pointer(type_: ir.Type) -> Scalar | None:
    """Returns a pointer as an element of a vector: an address, under the pointer's name."""
    name = name_of(type_)
    return Scalar(name, np.dtype(np.int64), 64) if name.startswith("!llvm.ptr") else None


def _shaped(type_: ir.Type) -> Shaped | None:
    """Returns a vector, tensor or memref; None for another type, and for elements that are unknown."""
    if isinstance(type_, ir.MemRefType):
        element = _held(type_.element_type)
        return None if element is None else _buffer(type_, element)
    if not isinstance(type_, (ir.VectorType, ir.RankedTensorType, ir.UnrankedTensorType, ir.UnrankedMemRefType)):
        return None
    element = _scalar(type_.element_type) or _pointer(type_.element_type)
    if element is None:
        return None
    if isinstance(type_, ir.VectorType):
        return Vector(_sizes(type_), element)
    if isinstance(type_, ir.RankedTensorType):
        return Tensor(_sizes(type_), element)
    if isinstance(type_, ir.UnrankedTensorType):
        return Tensor((), element)
    return Buffer((), element, (), 0, memory_space(type_.memory_space))


def decode(type_: ir.Type) -> Type:
    """Returns the Scalar, Vector, Tensor, Buffer or Opaque for an MLIR type.

    The context of the type must be alive; `forget` is called before another context replaces it.

    Args:
        type_: any MLIR type.
    """
    return _decode(type_)


def text_of(type_: Type) -> str:
    """Returns the text of a decoded type.

    Args:
        type_: a Scalar, a Vector or an Opaque.
    """
    if isinstance(type_, Opaque):
        return type_.text
    if isinstance(type_, Vector):
        return f"vector<{'x'.join(map(str, type_.shape))}x{type_.element.name}>"
    assert isinstance(type_, Scalar)
    return type_.name


def forget() -> None:
    """Drops the cache of types, whose context is about to end."""
    _decode.cache_clear()


_WIDE_FLOATS = ("f80", "f128")


def check_opaque(type_: ir.Type, location: str) -> None:
    """Refuses element types that NumPy does not have, such as i128 and f128, alone or as elements.

    Args:
        type_: that `decode` gives as an Opaque.
        location: of the op that has a value of the type.

    Raises:
        StepladderError: such a type.
        ValueError: a vector or a tensor of other elements that are not known.
    """
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    if isinstance(element, ir.IntegerType) or name_of(element) in _WIDE_FLOATS:
        raise StepladderError(f"the emulator does not support values of type {type_}", location=location)
    if isinstance(type_, (ir.VectorType, ir.RankedTensorType)):
        raise ValueError(f"{type_} has elements of an unknown type")
