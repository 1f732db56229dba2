"""Views: what a tensor or a buffer of a payload is, in terms of an argument, zeros, or the product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from stepladder.mlir.bindings import ir
from stepladder.payload.front.digits import Digit, Digits, axis, flat


class Origin(Enum):
    """Where the elements of a view come from."""

    ARGUMENT = "an argument"
    EMPTY = "an empty tensor"
    ZEROS = "zeros"
    PRODUCT = "the product"
    OTHER = "the result of another op"


@dataclass(frozen=True)
class Place:
    """An argument that a tensor is in the place of: its number, and the digits of its buffer, outermost first."""

    argument: int
    storage: Digits


@dataclass(frozen=True)
class View:
    """Elements of one origin, indexed by axes that are digits of it.

    Attributes:
        origin: what they are.
        axes: the digits of each axis. Digits of an argument's view that are not in `storage` repeat elements.
        storage: the digits of the origin's buffer, outermost first.
        stored: MLIR's name of the element type in the buffer.
        place: the argument that it is, or that zeros or the product are in the place of.
        buffer: number of the buffer that a memref is a view of: an argument's, or that of an allocation.
        op: the op that made it; None for an argument.
        element: the element type after extensions of an argument, and of the product after elementwise ops.
        stage: of the product: 0 for the sums, else the number of the elementwise op on them that made it, from 1 on.
        read_only: the `bufferization.to_tensor` without `writable` that it came through, if any.
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

    def fresh(self) -> View:
        """Returns the same view with digits of its own: an argument may be read twice, by different loops."""
        copies: dict[Digit, Digit] = {}
        for digit in (*flat(self.storage), *self.digits(), *flat(self.place.storage if self.place else ())):
            copies.setdefault(digit, Digit(digit.size))

        def copied(digits: Digits) -> Digits:
            return tuple(copies[digit] for digit in flat(digits))

        place = None if self.place is None else Place(self.place.argument, copied(self.place.storage))
        return replace(self, axes=tuple(map(copied, self.axes)), storage=copied(self.storage), place=place)

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
