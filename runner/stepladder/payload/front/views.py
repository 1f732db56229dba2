"""Views: each tensor or buffer of a payload in terms of an argument, zeros, or the product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from stepladder.mlir.bindings import ir
from stepladder.mlir.types import row_major_strides
from stepladder.payload.front.digits import Digit, Digits, axis, extent, flat

# Bits that the widest loads and stores have.
_VECTOR_BITS = 128


class Origin(Enum):
    """Where the elements of a view come from."""

    ARGUMENT = "an argument"
    EMPTY = "an empty tensor"
    ZEROS = "zeros"
    CONSTANT = "copies of a constant"
    PRODUCT = "the product"
    REDUCED = "a reduction of the product"
    OTHER = "the result of another op"


@dataclass(frozen=True)
class Place:
    """An argument that a tensor is in place of: its index, and the digits of its buffer, outermost first."""

    argument: int
    storage: Digits


@dataclass(frozen=True)
class Part:
    """A part of a buffer.

    Attributes:
        offset: of its first element, in elements.
        strides: digits, and the elements from one value of each to the next.
    """

    offset: int
    strides: tuple[tuple[Digit, int], ...]

    def flat(self) -> dict[Digit, int]:
        """Returns the strides of the digits as they are now."""
        strides: dict[Digit, int] = {}
        for digit, stride in self.strides:
            for part in reversed(flat((digit,))):
                strides[part] = stride
                stride *= part.size
        return strides

    def copied(self, copies: dict[Digit, Digit]) -> Part:
        """Returns the same part in terms of other digits.

        Args:
            copies: by digit.
        """
        return Part(self.offset, tuple((copies[digit], stride) for digit, stride in self.flat().items()))

    def repeated(self, digits: Sequence[Digit]) -> Part:
        """Returns the same part for each value of further digits.

        Args:
            digits: none of the part.
        """
        return Part(self.offset, (*self.strides, *((digit, 0) for digit in digits)))

    def laid_out(self, groups: Sequence[Sequence[Digit]]) -> tuple[int, tuple[int, ...]] | None:
        """Returns the offset, and a stride for each group of digits; None where a group's digits are not adjacent in
        memory, or the elements of the last group.

        Args:
            groups: all digits of the part, in the order of memory.
        """
        stride_of = self.flat()
        strides: list[int] = []
        span = 1
        for group in reversed(groups):
            for outer, inner in zip(group, list(group)[1:]):
                if stride_of[outer] != stride_of[inner] * inner.size:
                    return None
            stride = stride_of[group[-1]] if group else span
            strides.insert(0, stride)
            span = stride * extent(group)
        return (self.offset, tuple(strides)) if strides and strides[-1] == 1 else None

    def runs(self, digits: Sequence[Digit]) -> list[list[Digit]]:
        """Returns digits in as few groups as have one stride each.

        Args:
            digits: of the part, outermost first.
        """
        strides = self.flat()
        runs: list[list[Digit]] = []
        for digit in digits:
            if runs and strides[runs[-1][-1]] == strides[digit] * digit.size:
                runs[-1].append(digit)
            else:
                runs.append([digit])
        return runs

    def has_rows(self, groups: Sequence[Sequence[Digit]], bits: int) -> bool:
        """Returns whether the part is matrices whose rows vectors of 16 bytes store.

        Args:
            groups: the digits of each dimension of the batch, of the rows and of the columns.
            bits: of an element.
        """
        layout = self.laid_out(groups)
        if layout is None:
            return False
        offset, strides = layout
        return math.gcd(offset, *strides[:-1], extent(groups[-1])) * bits % _VECTOR_BITS == 0


def whole_of(digits: Sequence[Digit]) -> Part:
    """Returns all of a buffer.

    Args:
        digits: of the buffer, outermost first.
    """
    return Part(0, tuple(zip(digits, row_major_strides([digit.size for digit in digits]))))


@dataclass(frozen=True)
class View:
    """Elements of one origin, indexed by axes that are digits of it.

    Attributes:
        origin: what they are.
        axes: the digits of each axis. Digits of an argument's view that are not in `storage` repeat elements.
        storage: the digits of the origin's buffer, outermost first.
        stored: MLIR's name of the element type in the buffer.
        place: the argument that it is, or that zeros or the product are in place of.
        buffer: index of the buffer that a memref is a view of: an argument's, or that of an allocation.
        op: the op that made it; None for an argument.
        element: the element type after extensions of an argument, and of the product after elementwise ops.
        stage: of the product: 0 for the sums, else the number of the elementwise op or reduction that made it, from 1
            on.
        read_only: the `bufferization.to_tensor` without `writable` that it came through, if any.
        window: where in the argument's buffer the elements are, where they are a part of it.
    """

    origin: Origin
    axes: tuple[Digits, ...]
    storage: Digits
    stored: str
    place: Place | None = None
    buffer: int = -1
    op: ir.Operation | None = None
    element: str = ""
    stage: int = 0
    read_only: ir.Operation | None = None
    window: Part | None = None

    def fresh(self) -> View:
        """Returns the same view with digits of its own: an argument may be read twice, by different loops."""
        copies: dict[Digit, Digit] = {}
        for digit in (*flat(self.storage), *self.digits(), *flat(self.place.storage if self.place else ())):
            copies.setdefault(digit, Digit(digit.size))

        def copied(digits: Digits) -> Digits:
            return tuple(copies[digit] for digit in flat(digits))

        place = None if self.place is None else Place(self.place.argument, copied(self.place.storage))
        window = None if self.window is None else self.window.copied(copies)
        return replace(
            self, axes=tuple(map(copied, self.axes)), storage=copied(self.storage), place=place, window=window
        )

    def digits(self) -> list[Digit]:
        """Returns the digits of all axes, outermost first."""
        return [digit for axis in self.axes for digit in flat(axis)]


def new_view(origin: Origin, shape: list[int], element: str, op: ir.Operation | None = None) -> View:
    """Returns a view of elements that are stored as they are indexed.

    Args:
        origin: the argument, zeros, or the product that is viewed.
        shape: extents of the axes, outermost first.
        element: MLIR name of the element type, such as "f16".
        op: the one that made it; None for an argument.
    """
    axes = tuple(axis(size) for size in shape)
    return View(origin, axes, tuple(digit for part in axes for digit in part), element, op=op, element=element)
