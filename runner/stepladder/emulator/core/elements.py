"""Values of MLIR's element types: wrapped to a width, rounded once to a format, or reinterpreted with another sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.types import Scalar
from stepladder.mlir.types import OF_BF16

if TYPE_CHECKING:
    from stepladder.emulator.core.values import Value

# A float32 with these bits cleared has tf32's ten bits of mantissa.
_TF32_DROPPED = 13


def plain(value: Value) -> Value:
    """Returns a value that all lanes share as int, bool or NumPy's scalar; others are unchanged.

    Args:
        value: a scalar, or an array of any shape; an array without dimensions is a scalar.
    """
    if isinstance(value, np.ndarray):
        if value.ndim:
            return value
        value = value[()]
    return value.item() if isinstance(value, (np.integer, np.bool_)) else value


def wrapped(value: Value, element: Scalar) -> Value:
    """Returns an integer, or an array of them, as one of a type: wrapped to its width, in its NumPy type.

    Args:
        value: int, or an integer array of any shape.
        element: an integer type or index.
    """
    if not isinstance(value, np.ndarray):
        return values.wrap(value, element.width)
    if element.width == 1:
        return (value & 1).astype(bool)
    if value.dtype != element.dtype:
        value = value.astype(element.dtype)
    unused_bits = element.bytes * 8 - element.width
    return value << unused_bits >> unused_bits if unused_bits else value


def signed(value: Value, width: int) -> Value:
    """Returns an integer as arithmetic reads it with a sign: i1's true is -1.

    Args:
        value: an integer, uniform or with lanes.
        width: its bits.
    """
    if width > 1:
        return value
    return -value.astype(np.int8) if isinstance(value, np.ndarray) else -int(value)


def unsigned(value: Value, width: int) -> Value:
    """Returns an integer read without a sign, as int or as an array of an unsigned type.

    Args:
        value: an integer, uniform or with lanes, as values are held: signed.
        width: its bits.
    """
    value = values.unsigned(value, width)
    return value & ((1 << width) - 1) if isinstance(value, np.ndarray) and width < value.dtype.itemsize * 8 else value


def number(value: Value, element: Scalar) -> Value:
    """Returns a Python scalar as a uniform value of a type.

    Args:
        value: a Python scalar.
        element: the type; an integer is wrapped to its width.
    """
    return element.dtype.type(value) if element.is_float else wrapped(value, element)


def rounded(value: Value, element: Scalar) -> Value:
    """Returns floating-point numbers rounded once, to the nearest of a type and to even where two are near.

    Args:
        value: float64 or narrower, a scalar or an array of any shape.
        element: the floating-point type to round to.

    Returns:
        An array of `value`'s shape in the type's NumPy type, or a NumPy scalar for a scalar.
    """
    value = np.asarray(value)
    if value.dtype == np.float64 and element.name not in ("f16", "f32", "f64"):
        # NumPy has no direct cast: it converts by way of float32, and would round twice.
        value = _to_odd(value)
    if element.name == "tf32":
        return plain(_to_tf32(value.astype(np.float32)))
    return plain(value.astype(element.dtype))


def rounded_sum(left: Value, right: Value, element: Scalar) -> Value:
    """Returns the sum of two float64 rounded once to a narrower type.

    Args:
        left, right: float64, scalars or arrays that broadcast.
        element: the floating-point type to round to.
    """
    left, right = np.asarray(left), np.asarray(right)
    total = np.asarray(left + right)
    # The exact rounding error (Knuth's two-sum); rounded to odd, it is not lost in the next rounding.
    back = total - left
    error = (left - (total - back)) + (right - back)
    return rounded(_made_odd(total, error), element)


def factor(value: Value, element: Scalar, dtype: np.dtype) -> np.ndarray:
    """Returns values in the type that they are multiplied in; tf32's have their lower bits dropped.

    Args:
        value: values of type `element`, of any shape.
        element: their type.
        dtype: NumPy type that has products of two such values exactly.
    """
    value = np.asarray(value).astype(dtype, copy=False)
    if element.name == "tf32":
        bits = value.astype(np.float32).view(np.int32) >> _TF32_DROPPED << _TF32_DROPPED
        return bits.view(np.float32).astype(dtype)
    return value


def multiplied(value: Value, attributes: Mapping[str, object]) -> np.ndarray:
    """Returns what a product multiplies: the elements, or their bits as bf16 where it is marked so.

    Args:
        value: elements of an operand, of any shape.
        attributes: of the product.
    """
    elements = np.asarray(value)
    return elements.view(ml_dtypes.bfloat16) if attributes.get(OF_BF16) else elements


def _to_odd(value: np.ndarray) -> np.ndarray:
    """Returns float64 as float32, rounded to odd: what is then rounded to fewer bits is as if rounded once."""
    near = np.asarray(value.astype(np.float32))
    return _made_odd(near, value - near.astype(np.float64))


def _made_odd(near: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Returns rounded values as if rounded to odd, where `error` is what the rounding took away."""
    bits = near.view(np.dtype(f"i{near.dtype.itemsize}"))
    toward = np.copysign(near.dtype.type(np.inf), error).astype(near.dtype)
    inexact = np.isfinite(near) & (error != 0) & np.isfinite(error) & (bits & 1 == 0)
    return np.where(inexact, np.nextafter(near, toward), near)


def _to_tf32(value: np.ndarray) -> np.ndarray:
    bits = value.view(np.int32)
    half = (1 << (_TF32_DROPPED - 1)) - 1 + ((bits >> _TF32_DROPPED) & 1)
    near = ((bits + half) >> _TF32_DROPPED << _TF32_DROPPED).view(np.float32)
    return np.where(np.isfinite(value), near, value)


def reinterpreted(value: Value, source: Scalar, target: Scalar) -> Value:
    """Returns the bits of values as another type's; where the sizes differ, the last dimension changes.

    Args:
        value: values of type `source`, of any shape.
        source, target: types; where their widths differ, the last dimension has as many bits after as before.
    """
    array = np.asarray(value, source.dtype)
    if source.width == target.width == 1:
        return plain(array.astype(target.dtype))
    if source.width != 8 * source.bytes or target.width != 8 * target.bytes:
        return plain(_regrouped(array, source, target))
    result = np.ascontiguousarray(array).view(target.dtype)
    return plain(result.reshape(array.shape)) if source.bytes == target.bytes else result


def _regrouped(array: np.ndarray, source: Scalar, target: Scalar) -> np.ndarray:
    """Returns the bits of values of odd widths as values of another: they follow each other without gaps."""
    raw = np.ascontiguousarray(array).view(np.uint8).reshape(*array.shape, source.bytes)
    bits = np.unpackbits(raw, axis=-1, bitorder="little")[..., : source.width]
    if source.width == target.width:
        groups = bits
    else:
        groups = bits.reshape(*array.shape[:-1], -1, target.width)
    padded_bits = np.zeros((*groups.shape[:-1], 8 * target.bytes), np.uint8)
    padded_bits[..., : target.width] = groups
    numbers = np.packbits(padded_bits, axis=-1, bitorder="little").view(target.dtype)[..., 0]
    return wrapped(numbers, target) if target.is_integer else numbers
