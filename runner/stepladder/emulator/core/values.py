"""The representation of values during execution.

All threads of a block, or of a cluster of blocks, are lanes. A value is either *uniform*, one for all lanes, or has one
element a lane in its first dimension:

    index, iN          int                      or  int array (T,)
    i1                 bool                     or  bool array (T,)
    floats             NumPy scalar             or  array (T,), of the type's NumPy type
    vector<4x8xf16>    array (4, 8)             or  array (T, 4, 8)
    tensor<4x8xf16>    array (4, 8), which is never modified
    memref             MemRef, with an offset, sizes and strides that are each uniform or (T,)
    others             an object of the dialect, with a method `merged` if lanes can reconverge

T is the number of lanes, including inactive ones, whose elements are undefined. Integers are signed; a width of n bits
wraps. NumPy broadcasts operands of equal rank; `lanes` adds the dimension of lanes where ranks differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.types import Scalar
    from stepladder.emulator.memory.memory import Allocation

# The content of a slot: any of the forms above, by the type of the SSA value.
Value = Any

# What no `MemRef` is.
OF_SEVERAL = "a memref that is of different memory in different threads"

_SMALL = 1 << 13  # elements that are copied in less time than NumPy takes to make a view that repeats them


def is_uniform(value: Value, rank: int = 0) -> bool:
    """Whether a value is the same for all lanes.

    Args:
        value: a scalar or an array, with or without leading lanes.
        rank: dimensions of the value without lanes.
    """
    return not isinstance(value, np.ndarray) or value.ndim == rank


def lanes(value: Value, count: int, rank: int = 0) -> np.ndarray:
    """Returns a value as an array with leading lanes.

    Args:
        value: a scalar or an array, with or without lanes.
        count: T, the number of lanes.
        rank: dimensions of the value without lanes.
    """
    value = np.asarray(value)
    return value if value.ndim > rank else broadcast(value, (count, *value.shape))


def broadcast(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns an array in a shape that it broadcasts to, as `np.broadcast_to`; it must not be written to.

    Args:
        array: of any type.
        shape: of the result.

    Raises:
        ValueError: the array does not broadcast to the shape.
    """
    if array.shape == shape:
        return array
    if array.ndim > len(shape) or math.prod(shape) > _SMALL:
        return np.broadcast_to(array, shape)
    result = np.empty(shape, array.dtype)
    result[...] = array
    return result


def same(left: Value, right: Value, rank: int = 0) -> tuple:
    """Returns two vectors of the same rank, or one and a scalar per lane, such that they broadcast lane by lane.

    Args:
        left: a scalar or a vector of `rank` dimensions, uniform or with leading lanes.
        right: the same, or a scalar, uniform or (T,).
        rank: dimensions of the vector.
    """
    if is_uniform(left, rank) or is_uniform(right, 0):
        return left, right
    return left, np.asarray(right).reshape(np.shape(right) + (1,) * (rank + 1 - np.ndim(right)))


def wrap(value: Value, width: int) -> Value:
    """Returns an integer wrapped to a signed one of `width` bits; arrays of NumPy's widths wrap themselves.

    Args:
        value: an integer, or an array of integers, which is unchanged.
        width: bits; 1 yields a bool.
    """
    if isinstance(value, np.ndarray):
        return value
    if width == 1:
        return bool(value & 1)
    half, value = 1 << (width - 1), int(value)
    return value if -half <= value < half else ((value + half) & ((1 << width) - 1)) - half


def unsigned(value: Value, width: int) -> Value:
    """Returns an integer read as an unsigned one of `width` bits, as int or as an array of a wide enough type.

    Args:
        value: an integer or an array of signed integers or bools.
        width: bits of an integer; that of an array is in its element type.
    """
    if not isinstance(value, np.ndarray):
        return int(value) & ((1 << width) - 1)
    if value.dtype == bool:
        return value.astype(np.uint8)
    return value.view(value.dtype.str.replace("i", "u"))


class MemRef:
    """A view of memory, as a memref's descriptor has it.

    Attributes:
        memory: the allocation (`memory.Allocation`) that it shows.
        element: the Scalar type of an element.
        start: byte in the allocation from where offsets count.
        offset: elements from there to the view's first, uniform or (T,).
        sizes, strides: of each dimension in elements, each uniform or (T,).
    """

    __slots__ = ("element", "memory", "offset", "sizes", "start", "strides")

    def __init__(
        self,
        memory: Allocation,
        element: Scalar,
        start: int,
        offset: Value,
        sizes: Iterable[Value],
        strides: Iterable[Value],
    ) -> None:
        self.memory = memory
        self.element = element
        self.start = start
        self.offset = offset
        self.sizes = tuple(sizes)
        self.strides = tuple(strides)

    def view(self, offset: Value, sizes: Iterable[Value], strides: Iterable[Value]) -> MemRef:
        """Returns another view of the same memory with elements of the same type.

        Args:
            offset: elements from `start` to the first one, uniform or (T,).
            sizes, strides: of each dimension in elements, each uniform or (T,).
        """
        return MemRef(self.memory, self.element, self.start, offset, sizes, strides)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

    @staticmethod
    def merged(parts: list, masks: list, count: int) -> MemRef:
        """Returns the view whose offset, sizes and strides are, in the lanes of each mask, those of the part.

        Args:
            parts: views of the same memory.
            masks: a bool array (T,) for each part.
            count: T, the number of lanes.

        Raises:
            StepladderError: views of different memory.
        """
        first = parts[0]
        if not all(part.memory is first.memory and part.start == first.start for part in parts):
            raise StepladderError(f"the emulator does not support {OF_SEVERAL}")
        numbers = [
            merge([get(part) for part in parts], masks, count)
            for get in (
                lambda part: part.offset,
                *(lambda part, i=i: part.sizes[i] for i in range(first.rank)),
                *(lambda part, i=i: part.strides[i] for i in range(first.rank)),
            )
        ]
        return first.view(numbers[0], numbers[1 : 1 + first.rank], numbers[1 + first.rank :])


def merge(parts: list, masks: list, count: int, rank: int = 0) -> Value:
    """Returns the value that has, in the lanes of each mask, what that part has there.

    Args:
        parts: values of one type.
        masks: bool arrays (T,), without overlap.
        count: number of lanes, T.
        rank: dimensions of the type.
    """
    first = parts[0]
    if all(part is first for part in parts):
        return first
    # A register may hold a value in one part and an object of a dialect in another.
    others = parts if isinstance(first, (np.ndarray, int)) else parts[:1]
    for other in others:
        if hasattr(other, "merged"):
            return other.merged(parts, masks, count)
    if all(is_uniform(part, rank) for part in parts) and all(np.array_equal(part, first) for part in parts):
        return first
    arrays = [lanes(part, count, rank) for part in parts]
    result = np.zeros(arrays[0].shape, arrays[0].dtype)
    for array, mask in zip(arrays, masks):
        result[mask] = array[mask]
    return result


def leading(value: Value, rank: int) -> tuple[int, ...]:
    """Returns the dimensions before a vector's own: () or (T,).

    Args:
        value: an array.
        rank: dimensions of the vector.
    """
    shape = np.shape(value)
    return shape[: len(shape) - rank]


def with_rank(value: Value, rank: int, to: int) -> np.ndarray:
    """Returns a vector with dimensions of size 1 inserted before its own.

    Args:
        value: with or without lanes.
        rank: dimensions of the vector.
        to: dimensions of the vector that is returned, at least `rank`.
    """
    value = np.asarray(value)
    front = leading(value, rank)
    return value.reshape((*front, *(1,) * (to - rank), *value.shape[len(front) :]))


def in_lanes(values: Sequence[Value], ranks: Sequence[int], count: int) -> list[np.ndarray]:
    """Returns vectors as arrays that all have leading lanes, or none of which has.

    Args:
        values: scalars or vectors, each uniform or with leading lanes.
        ranks: dimensions of each without lanes.
        count: number of lanes, T.
    """
    if all(is_uniform(value, rank) for value, rank in zip(values, ranks)):
        return [np.asarray(value) for value in values]
    return [lanes(value, count, rank) for value, rank in zip(values, ranks)]
