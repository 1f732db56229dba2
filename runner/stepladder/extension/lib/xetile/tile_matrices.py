"""The matrices that tiles of XeTile programs are parts of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stepladder.extension.lib.arithmetic import constant_value
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer
from stepladder.mlir.types import row_major_strides
from stepladder.mlir.xetile.tile_type import read_tile, segments

_ACCEPTED = "accepted: a block tile of a static two-dimensional memref without gaps, or of its transpose"


@dataclass(frozen=True)
class Matrix:
    """A buffer with a row-major matrix without gaps.

    Attributes:
        buffer: the buffer.
        is_transposed: whether the program indexes it as its transpose.
    """

    buffer: ir.Value
    is_transposed: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as the program indexes them."""
        rows, columns = ir.MemRefType(self.buffer.type).shape
        return (columns, rows) if self.is_transposed else (rows, columns)

    @property
    def element_type(self) -> ir.Type:
        """Type of its elements."""
        return ir.MemRefType(self.buffer.type).element_type

    def turned(self) -> Matrix:
        """Returns the transpose."""
        return replace(self, is_transposed=not self.is_transposed)

    def is_in(self, op: ir.Operation) -> bool:
        """Returns whether the buffer is made in an op.

        Args:
            op: with regions.
        """
        source = producer(self.buffer)
        while source is not None and source != op:
            source = source.parent.operation if source.parent is not None else None
        return source is not None


@dataclass(frozen=True)
class Start:
    """Where a tile begins along a dimension: at 0 for `axis` None, else at `factor` times the number of the block."""

    axis: int | None = None
    factor: int = 0


@dataclass(frozen=True)
class Operand:
    """A matrix of a product, and where the tile of a block begins in it.

    Attributes:
        matrix: the buffer, and whether the program indexes it as its transpose.
        starts: row and column of the first tile, as the program indexes the matrix.
    """

    matrix: Matrix
    starts: tuple[Start, Start]


def matrix_of(op: ir.Operation, tile: ir.Value) -> tuple[Matrix, list[ir.Value]]:
    """Returns the matrix that a tile is a part of, and the tile's offsets in it.

    Args:
        op: which uses the tile, for the message.
        tile: a value of a tile type.

    Raises:
        Refusal: the tile is no result of an `init_tile`, or its base is no such matrix.
    """
    init = producer(tile)
    if init is None or init.name != "xetile.init_tile":
        raise Refusal(op, "the tile must be one of an xetile.init_tile of the launch")
    (base,), offsets, shape, strides = segments(init)
    type_ = read_tile(tile.type)
    if type_.scatter or type_.space != "global" or len(offsets) != 2:
        raise Refusal(init, _ACCEPTED)
    buffer = _addressed(base, shape, strides) if shape else base
    if type_.is_transposed and buffer is not None:
        view = producer(buffer)
        buffer = view.operands[0] if view is not None and view.name == "memref.transpose" else None
    if buffer is None or not _is_plain(buffer.type):
        raise Refusal(init, f"the base is {base.type}; {_ACCEPTED}")
    return Matrix(buffer, type_.is_transposed), offsets


def _is_plain(type_: ir.Type) -> bool:
    """Returns whether a type is that of a static row-major matrix without gaps, which begins at its address."""
    if not isinstance(type_, ir.MemRefType) or type_.rank != 2 or not type_.has_static_shape:
        return False
    strides, offset = type_.get_strides_and_offset()
    return offset == 0 and strides == row_major_strides(list(type_.shape))


def _addressed(base: ir.Value, shape: list[ir.Value], strides: list[ir.Value]) -> ir.Value | None:
    """Returns the buffer whose address a base is, where shape and strides are those of the buffer; else None."""
    number = producer(base)
    if number is None or number.name != "arith.index_cast":
        return None
    address = producer(number.operands[0])
    if address is None or address.name != "memref.extract_aligned_pointer_as_index":
        return None
    buffer = address.operands[0]
    if not _is_plain(buffer.type):
        return None
    sizes = list(ir.MemRefType(buffer.type).shape)
    constants = [constant_value(value) for value in (*shape, *strides)]
    return buffer if constants == [*sizes, *row_major_strides(sizes)] else None
