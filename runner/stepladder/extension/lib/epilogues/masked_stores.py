"""Writes of a warp's product to C, where the tile of its block may extend beyond C."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stepladder.extension.lib import memory, vectors
from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import create_if_below
from stepladder.extension.lib.epilogues import epilogue
from stepladder.extension.lib.epilogues.elementwise import Outlined, Position
from stepladder.mlir.bindings import arith, ir, memref, scf


class MaskedStores:
    """How a warp writes its part of a block's product to C.

    Args:
        outlined: the op that writes C, on the operands of the block.
        width: elements that a thread would write at a time, where rows of C are a multiple of them.

    Attributes:
        width: elements that it writes at a time: they are aligned, and all inside of C or none.
    """

    def __init__(self, outlined: Outlined, width: int) -> None:
        self.outlined = outlined
        shape = ir.MemRefType(outlined.tile.results[0].type).shape
        self.rows, self.columns = epilogue.extents_of(outlined.outputs[0], shape)
        pitches = [ir.MemRefType(output.type).get_strides_and_offset()[0][0] for output in outlined.outputs]
        self.width = math.gcd(width, *pitches)

    def create(self, writes: Callable[[bool], None]) -> None:
        """Creates the writes of a warp at the insertion point: without a predicate where its part is inside of C.

        Args:
            writes: creates the writes by `write`; takes whether they are to be predicated.
        """
        is_whole = self._is_whole()
        if is_whole is None:
            writes(False)
            return
        branch = scf.IfOp(is_whole, has_else=True)
        for block, is_masked in ((branch.then_block, False), (branch.else_block, True)):
            with ir.InsertionPoint(block):
                writes(is_masked)
                scf.yield_([])

    def write(self, sums: Sequence[ir.Value], row: ir.Value, column: ir.Value, *, is_masked: bool) -> None:
        """Writes what is made of adjacent elements of the product, from a row and a column of the block's tile on.

        Args:
            sums: `width` elements or a multiple, of each product.
            row, column: of the first.
            is_masked: whether elements outside of C are left out.
        """
        (count,) = ir.VectorType(sums[0].type).shape
        with create_if_below(row, self.rows if is_masked else None):
            for first in range(0, count, self.width):
                place = arith.addi(column, index(first)) if first else column
                with create_if_below(place, self.columns if is_masked else None):
                    self._write([self._part(vector, first) for vector in sums], row, place)

    def _is_whole(self) -> ir.Value | None:
        """Returns whether all of the warp's part is inside of C, at the insertion point; None where it always is."""
        conditions = [
            arith.cmpi(arith.CmpIPredicate.sle, arith.addi(begin, index(size)), extent)
            for begin, size, extent in (
                (self.outlined.row, self.outlined.rows, self.rows),
                (self.outlined.column, self.outlined.columns, self.columns),
            )
            if extent is not None
        ]
        if len(conditions) == 2:
            return arith.andi(*conditions)
        return conditions[0] if conditions else None

    def _part(self, sums: ir.Value, first: int) -> ir.Value:
        """Returns `width` elements of a vector; one element as a scalar."""
        type_ = ir.VectorType(sums.type)
        if self.width == 1:
            return vectors.extract(sums, [first], type_.element_type)
        if self.width == type_.shape[0]:
            return sums
        slice_ = ir.VectorType.get([self.width], type_.element_type)
        numbers = {"offsets": [first], "sizes": [self.width], "strides": [1]}
        i64 = ir.IntegerType.get_signless(64)
        attributes = {
            name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, number) for number in values])
            for name, values in numbers.items()
        }
        return ir.Operation.create(
            "vector.extract_strided_slice", results=[slice_], operands=[sums], attributes=attributes
        ).results[0]

    def _write(self, sums: Sequence[ir.Value], row: ir.Value, column: ir.Value) -> None:
        for value, output in self.outlined.elementwise.stores(sums, Position(row, column)):
            if isinstance(value.type, ir.VectorType):
                memory.store_vector(value, output, row, column)
            else:
                memref.store(value, output, [row, column])
