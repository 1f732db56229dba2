"""Whether two views of one buffer share elements, or have the same ones, by their static offsets, sizes and strides."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.mlir.types import offset_of, strides_of


@dataclass(frozen=True)
class _Places:
    """Offsets in a buffer: those of `offset` plus a number below the size times the stride of each dimension.

    Attributes:
        offset: of the first element, in elements.
        dimensions: size and stride of each dimension of more than one element; strides are above 0.
    """

    offset: int
    dimensions: tuple[tuple[int, int], ...]

    @property
    def last(self) -> int:
        """The largest offset."""
        return self.offset + sum((size - 1) * stride for size, stride in self.dimensions)

    def split(self, pitch: int) -> tuple[_Places, _Places] | None:
        """Returns the quotients and the remainders by a pitch, if the offsets are all combinations of them."""
        outer = tuple((size, stride // pitch) for size, stride in self.dimensions if stride % pitch == 0)
        inner = tuple(item for item in self.dimensions if item[1] % pitch)
        remainders = _Places(self.offset % pitch, inner)
        return (_Places(self.offset // pitch, outer), remainders) if remainders.last < pitch else None


def are_apart(first: ir.Type, second: ir.Type) -> bool:
    """Returns whether two views of one buffer are known to share no element.

    Args:
        first: type of a view.
        second: type of another view, whose offset counts from the same element.
    """
    places = _places(first), _places(second)
    return places[0] is not None and places[1] is not None and _are_apart(places[0], places[1])


def are_same(first: ir.Type, second: ir.Type) -> bool:
    """Returns whether two views of one buffer are known to have the same elements at the same indices.

    Args:
        first: type of a view.
        second: type of another view, whose offset counts from the same element.
    """
    types = ir.MemRefType(first), ir.MemRefType(second)
    layouts = [(list(type_.shape), strides_of(type_), offset_of(type_)) for type_ in types]
    return _places(first) is not None and layouts[0] == layouts[1]


def _places(type_: ir.Type) -> _Places | None:
    """Returns the offsets of a view; None where its layout is not static, or goes backwards."""
    buffer = ir.MemRefType(type_)
    strides, offset = strides_of(buffer), offset_of(buffer)
    if not buffer.has_static_shape or strides is None or offset is None or 0 in buffer.shape:
        return None
    dimensions = [item for item in zip(buffer.shape, strides) if item[0] > 1]
    if any(stride is None or stride < 0 for _, stride in dimensions):
        return None
    return _Places(offset, tuple((size, stride) for size, stride in dimensions if stride))


def _are_apart(first: _Places, second: _Places) -> bool:
    if first.last < second.offset or second.last < first.offset:
        return True
    pitches = {stride for _, stride in (*first.dimensions, *second.dimensions) if stride > 1}
    for pitch in sorted(pitches, reverse=True):
        parts = first.split(pitch), second.split(pitch)
        if parts[0] is not None and parts[1] is not None and any(map(_are_apart, parts[0], parts[1])):
            return True
    return False
