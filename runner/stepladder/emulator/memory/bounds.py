"""Bounds: which of the touched elements are outside of a view or of its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepladder.emulator.core.values import MemRef, Value


def is_inside(coordinate: Value, size: Value) -> bool:
    """Whether coordinates are elements of a dimension.

    Args:
        coordinate: int, or an array.
        size: of the dimension, int, or an array that broadcasts with the coordinates.
    """
    if isinstance(size, np.ndarray) or (isinstance(coordinate, np.ndarray) and not coordinate.size):
        return not np.any((coordinate < 0) | (coordinate >= size))
    if isinstance(coordinate, np.ndarray):
        unsigned = coordinate.astype(np.int64, copy=False).view(np.uint64)  # what is below 0 is above all
        return not np.count_nonzero(unsigned >= size)
    return 0 <= coordinate < size


def is_within_memory(view: MemRef, item: int) -> bool:
    """Whether all elements of a view are known to be within one copy of its memory, without a look at the lanes.

    Args:
        view: of memory.
        item: bytes of an element.
    """
    first = last = view.offset
    if type(first) is not int:
        return False
    for size, stride in zip(view.sizes, view.strides):
        if type(size) is not int or type(stride) is not int:
            return False
        extent = (size - 1) * stride
        first, last = first + min(extent, 0), last + max(extent, 0)
    start = view.start // item
    return start + first >= 0 and start + last < view.memory.size // item


def without(
    outside: np.ndarray, valid: np.ndarray | None, shape: tuple[int, ...], report: Callable[[np.ndarray], None]
) -> np.ndarray:
    """Reports the touched elements that are outside of a view, and returns which of the others are touched.

    Args:
        outside: bool array.
        valid: bool array of what is touched at all; None for all.
        shape: of the access.
        report: called with the touched elements outside, if there are any.
    """
    is_wrong = outside if valid is None else outside & valid
    if np.any(is_wrong):
        report(np.broadcast_to(is_wrong, np.broadcast_shapes(np.shape(is_wrong), shape)))
    return ~outside if valid is None else valid & ~outside
