"""Where the rows of an attention are in memory: which head's, and which query of it; tiles in shared memory."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from stepladder.extension.lib.arithmetic import apply, digits, index
from stepladder.extension.lib.multi_kernel.attention import COLUMN, DEPTH, ROW, Attention, Operand, heads_of_keys
from stepladder.mlir.bindings import arith, ir


class Row(NamedTuple):
    """A row of scores: the number of the head, and that of the query."""

    head: ir.Value
    query: ir.Value


@dataclass(frozen=True)
class Tile:
    """Rows of a tensor in shared memory: boxes x rows x elements of 128 bytes, swizzled.

    Attributes:
        operand: the tensor; `buffer`, where it is in memory.
        rows: how many; `axis`, which axis they are.
        shared_buffer: the buffer in shared memory.
    """

    operand: Operand
    buffer: ir.Value
    rows: int
    axis: int
    shared_buffer: ir.Value

    @property
    def depth(self) -> int:
        """Elements of a row."""
        return ir.MemRefType(self.buffer.type).shape[-1]


class Places:
    """The rows that blocks compute, in the order of heads, and then of queries.

    Args:
        attention: the attention.
        rows: of a block, at most.

    Attributes:
        heads: whose queries are rows of one block: all that share keys and values, if a block has so many rows.
        row_count: rows of these heads.
        groups: of so many heads.
        blocks: of a group.
    """

    def __init__(self, attention: Attention, rows: int) -> None:
        *outer, self._queries, _ = attention.shape
        heads = heads_of_keys(attention)
        self.heads = heads if heads * self._queries <= rows else 1
        self.row_count = self.heads * self._queries
        self.groups, self.blocks = math.prod(outer) // self.heads, -(-self.row_count // rows)

    def begin(self, group: ir.Value) -> None:
        """Notes which heads are those of the block.

        Args:
            group: its number.
        """
        self._head = apply(lambda g: g * self.heads, group)

    def row(self, number: ir.Value) -> Row:
        """Returns a row of the block's heads.

        Args:
            number: of the row.
        """
        if self.heads == 1:
            return Row(self._head, number)
        if self._queries == 1:
            return Row(arith.addi(self._head, number), index(0))
        head = apply(lambda h, r: h + ir.AffineExpr.get_floor_div(r, self._queries), self._head, number)
        return Row(head, apply(lambda r: ir.AffineExpr.get_mod(r, self._queries), number))

    def address(
        self, operand: Operand, column: ir.Value, *, row: Row | None = None, key: ir.Value | None = None
    ) -> list[ir.Value]:
        """Returns the indices of an element of a tensor.

        Args:
            operand: the tensor.
            column: of a row or of a key.
            row: which one; None for what the block's heads share.
            key: which one.
        """
        head = self._head if row is None else row.head
        outer = digits(head, operand.outer) if operand.outer else []
        inner = {DEPTH: column, COLUMN: key, ROW: row and row.query}
        places = [inner[axis] if axis in inner else outer[axis] for axis in operand.axes]
        return [place for place in places if place is not None]
