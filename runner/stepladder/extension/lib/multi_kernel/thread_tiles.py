"""The elements of an elementwise op that a thread computes."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import apply, digits, index, times
from stepladder.extension.lib.control_flow import create_if_below
from stepladder.extension.lib.element_bodies import VECTOR_BYTES, load, vector_bits, widest_vector
from stepladder.extension.lib.memory import load_vector
from stepladder.extension.lib.vectors import extract
from stepladder.mlir.bindings import arith, ir

Loops = Sequence[int | None]

_TRANSPOSED_BITS = 32  # of a load whose elements go to different rows of the results
_LEAST_BITS = 32  # of a vector that a thread loads or stores along a row of a result
# Neighbouring threads that store vectors to the same row, where operands are transposed. Of f16, four of them store 64
# bytes, and the eight groups of a warp load 32 bytes of a row: whole sectors of the L2 cache.
_GROUP = 4


@dataclass(frozen=True)
class ThreadTile:
    """Neighbouring elements of the results, which one thread computes.

    Attributes:
        sizes: iterations of the loops.
        order: the loops of the results, the outermost first.
        columns: neighbours along the innermost loop of the results.
        row: the innermost loop of the operands that are transposed; None where there are none.
        rows: neighbours along that; 1 without it.
    """

    sizes: Sequence[int]
    order: Sequence[int]
    columns: int
    row: int | None = None
    rows: int = 1

    @property
    def column(self) -> int:
        """The innermost loop of the results."""
        return self.order[-1]

    @property
    def threads(self) -> int:
        """How many threads compute all tiles; some of them may be outside (`create_place`)."""
        return math.prod(self._digits())

    def _outer(self) -> list[int]:
        """Returns the loops along which a tile has one element."""
        return [loop for loop in self.order if loop not in (self.row, self.column)]

    def _digits(self) -> list[int]:
        """Returns the sizes of the digits of a thread's number."""
        outer, across = [self.sizes[loop] for loop in self._outer()], self.sizes[self.column] // self.columns
        if self.row is None:
            return [*outer, across]
        group = min(_GROUP, across)
        return [*outer, -(-across // group), self.sizes[self.row] // self.rows, group]

    def create_place(self, number: ir.Value) -> tuple[dict[int, ir.Value], contextlib.AbstractContextManager[object]]:
        """Returns the first index of each loop in a thread's tile, and where it is computed: inside of an `scf.if`, if
        not all threads have one.

        Args:
            number: of the thread, less than `threads`.
        """
        sizes = self._digits()
        *outer, column = digits(number, sizes)
        is_inside: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        place: dict[int, ir.Value] = {}
        if self.row is not None:
            *outer, high, row = outer
            column = apply(lambda x, y: x * sizes[-1] + y, high, column)
            place[self.row] = times(row, self.rows)
        place |= {**dict(zip(self._outer(), outer)), self.column: times(column, self.columns)}
        across = self.sizes[self.column] // self.columns
        if across % sizes[-1]:
            is_inside = create_if_below(column, index(across))
        return place, is_inside

    def moved(self, place: Mapping[int, ir.Value], row: int, column: int) -> dict[int, ir.Value]:
        """Returns the indices of an element of a tile.

        Args:
            place: the first index of each loop.
            row, column: of the element in the tile.
        """
        indices = dict(place)
        for loop, offset in ((self.row, row), (self.column, column)):
            if loop is not None and offset:
                indices[loop] = arith.addi(indices[loop], index(offset))
        return indices


class LoadedTile:
    """What a thread has loaded of an operand, for a tile; loads are created at the insertion point.

    Args:
        buffer: the operand.
        loops: along its axes, that of the columns of the tile among them.
        tile: that is loaded.
        place: the first index of each loop.
    """

    def __init__(self, buffer: ir.Value, loops: Loops, tile: ThreadTile, place: Mapping[int, ir.Value]) -> None:
        self.is_transposed = loops[-1] == tile.row
        self.has_rows = tile.row in loops
        self.size = tile.rows if self.is_transposed else tile.columns
        if self.is_transposed:
            begins = [(0, column) for column in range(tile.columns)]
        else:
            begins = [(row, 0) for row in range(tile.rows if self.has_rows else 1)]
        addresses = [address_of(loops, tile.moved(place, *begin)) for begin in begins]
        type_ = ir.VectorType.get([self.size], ir.MemRefType(buffer.type).element_type)
        self.values = [
            load(buffer, address) if self.size == 1 else load_vector(type_, buffer, *address) for address in addresses
        ]

    def element(self, row: int, column: int) -> ir.Value:
        """Returns an element, extracted at the insertion point.

        Args:
            row, column: of the element in the tile.
        """
        number, position = (column, row) if self.is_transposed else (row if self.has_rows else 0, column)
        value = self.values[number]
        return value if self.size == 1 else extract(value, [position], ir.VectorType(value.type).element_type)


def address_of(loops: Loops, indices: Mapping[int, ir.Value]) -> list[ir.Value]:
    """Returns the indices of an element of a buffer, at the insertion point.

    Args:
        loops: along its axes; None for an axis of one element.
        indices: of the loops.
    """
    return [index(0) if loop is None else indices[loop] for loop in loops]


def find_thread_tile(
    operands: Sequence[ir.Value], maps: Sequence[Loops], results: int, sizes: Sequence[int]
) -> ThreadTile | None:
    """Returns the largest tile that vectors consist of; None where an operand has no vectors of 4 bytes at least.

    Along the innermost loop of the results, it has as many neighbours as are up to 16 bytes of the widest operand.
    Operands of which another loop is the innermost are transposed: a thread loads up to 4 bytes along that.

    Args:
        operands: the buffers of an op, its results last. The innermost loop of the results is none that it reduces.
        maps: the loops along the axes of each.
        results: how many of the operands are results.
        sizes: iterations of the loops.
    """
    order = [loop for loop in maps[-1] if loop is not None]
    if not order or maps[-1][-1] is None or any(map_[-1] != order[-1] for map_ in maps[-results:]):
        return None
    along: dict[int, list[ir.Value]] = {}  # operands that have the innermost loop of the results, by their own
    for operand, map_ in zip(operands, maps):
        inner = map_[-1] if map_ else None
        if order[-1] not in map_ and operand not in operands[-results:]:
            continue  # read once for all neighbours
        if inner is None or map_.count(inner) > 1 or not widest_vector(operand, 1):
            return None
        along.setdefault(inner, []).append(operand)
    transposed = [loop for loop in along if loop != order[-1]]
    widest = max(map(_bits, itertools.chain(*along.values())))
    columns = min(widest_vector(operand, VECTOR_BYTES * 8 // widest) for operand in along[order[-1]])
    if len(transposed) > 1 or columns * min(map(_bits, along[order[-1]])) < _LEAST_BITS:
        return None
    if not transposed:
        return ThreadTile(sizes, order, columns) if columns > 1 else None
    most = max(1, _TRANSPOSED_BITS // max(map(_bits, along[transposed[0]])))
    rows = min(widest_vector(operand, most) for operand in along[transposed[0]])
    return ThreadTile(sizes, order, columns, transposed[0], rows)


def _bits(buffer: ir.Value) -> int:
    return vector_bits(ir.MemRefType(buffer.type).element_type)
