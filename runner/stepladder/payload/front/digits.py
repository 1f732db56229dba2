"""Digits: how the axes of a tensor follow each other in a buffer, through reshapes and transposes.

The coordinate of a row-major buffer is an index whose digits are the axes, outermost first. A reshape joins digits to
one axis or splits one, a transpose permutes them, and a loop of a contraction makes those of its operands the same. A
digit is split where a later reshape needs a part of it, so digits are resolved (`flat`) when they are read. Extents of
1 have no digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


class Digit:
    """A digit of a coordinate.

    Attributes:
        size: its extent, above 1.
        parts: its digits, outermost first: those it was split into, or the one it was equated with;
            None if it is neither.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: tuple[Digit, ...] | None = None


Digits = tuple[Digit, ...]


def axis(size: int) -> Digits:
    """Returns the digits of a new axis: one, or none for an extent of 1.

    Args:
        size: of the axis, at least 1.
    """
    return () if size == 1 else (Digit(size),)


def flat(digits: Iterable[Digit]) -> list[Digit]:
    """Returns digits as they are now, split and equated ones replaced by their digits.

    Args:
        digits: of one axis or several, outermost first.
    """
    flat_digits: list[Digit] = []
    for digit in digits:
        if digit.parts is None:
            flat_digits.append(digit)
        else:
            flat_digits += flat(digit.parts)
    return flat_digits


def extent(digits: Iterable[Digit]) -> int:
    """Returns how many coordinates an axis of these digits has.

    Args:
        digits: of the axis; none for an axis of 1.
    """
    return math.prod(digit.size for digit in digits)


def equate(left: Sequence[Digit], right: Sequence[Digit]) -> bool:
    """Makes two axes the same, splitting digits where needed.

    Args:
        left: the digits of an axis, outermost first.
        right: those of the axis that becomes the same; the digits of both change.

    Returns:
        Whether that was possible: an axis of 4 x 6 is not one of 6 x 4, whose digits do not nest.
    """
    if extent(left) != extent(right):
        return False
    first, second = flat(left), flat(right)
    while first and second:
        x, y = first.pop(), second.pop()
        if x.parts is not None or y.parts is not None:  # split or equated a moment ago
            first += flat((x,))
            second += flat((y,))
            continue
        if x is y:
            continue
        if x.size == y.size:
            y.parts = (x,)
        elif x.size % y.size == 0:
            x.parts = (Digit(x.size // y.size), y)
            first.append(x.parts[0])
        elif y.size % x.size == 0:
            y.parts = (Digit(y.size // x.size), x)
            second.append(y.parts[0])
        else:
            return False
    return not first and not second


def split(digits: Sequence[Digit], sizes: Sequence[int]) -> list[Digits] | None:
    """Returns axes of the given extents that an axis is split into; None where its digits do not nest so.

    Args:
        digits: of the axis, outermost first; they change where one is split.
        sizes: extents of the new axes, outermost first; their product is the extent of the axis.
    """
    axes = [axis(size) for size in sizes]
    return axes if equate(digits, [digit for part in axes for digit in part]) else None
