"""Tiles of the sources of `wgmma`'s register operand: loaded by TMA, and read by threads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stepladder.extension.lib import memory, tma
from stepladder.extension.lib.arithmetic import apply
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.mixed_radix import Index, NoDigits, linear
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, memref, nvgpu
from stepladder.mlir.traverse import defining_op
from stepladder.payload.front.rewrite import reshaped

# Of the tiles of a source: their rows are not those of the operand, but steps of k, or what several of them share.
OTHER_ROWS = "other_rows"
_OPERANDS = ("operand_a", "operand_b")  # marks of stages
_PERIOD = 8  # rows, after which the permutation of any swizzle begins anew


def together(numbers: Sequence[ir.Value]) -> ir.Value:
    """Returns scalars as a vector, at the insertion point; one scalar as it is.

    Args:
        numbers: the scalars, one at least.
    """
    if len(numbers) == 1:
        return numbers[0]
    type_ = ir.VectorType.get([len(numbers)], numbers[0].type)
    return ir.Operation.create("vector.from_elements", results=[type_], operands=list(numbers)).results[0]


class Source:
    """A buffer that holds what the elements of an operand, m x k, are made from.

    Args:
        op: which messages name.
        buffer: in global memory: one matrix, in as many dimensions as may be, or the matrices of a batch.
        extents: m and k.
        is_batch: whether the buffer has a matrix for each index of its outermost dimension.

    Attributes:
        rows, steps: how many rows, or steps of k, share a source element; one of both is 1.
        along_k: whether the neighbours of a source element are of the same row.

    Raises:
        Refusal: source elements for parts of several rows.
    """

    def __init__(self, op: ir.Operation, buffer: ir.Value, extents: tuple[int, int], *, is_batch: bool = False) -> None:
        self.op = op
        self.is_batch = is_batch
        self.buffer = buffer
        self.extents = extents
        self.type = ir.MemRefType(buffer.type).element_type
        self.bytes = types.byte_width(self.type)
        self.rows = self.steps = 1
        self.along_k = True

    def find_layout(self, row: Index, k: Index, number: Index) -> None:
        """Finds which elements share a source element, and the order of these.

        Args:
            row, k: of an element.
            number: that the element is made from.

        Raises:
            Refusal: source elements neither by rows nor by columns.
        """
        count = math.prod(ir.MemRefType(self.buffer.type).shape)
        share = max(1, math.prod(self.extents) // count)
        for self.rows, self.steps in ((1, share), (share, 1)):
            if self.extents[0] % self.rows or self.extents[1] % self.steps:
                continue
            place = [_quotient(row, self.rows), _quotient(k, self.steps)]
            for self.along_k in (True, False):
                if None not in place and number == linear(self._in_order(place), self.shape):
                    return
        raise Refusal(
            self.op, "a register operand is computed from a source in an order other than its rows or columns"
        )

    def _in_order(self, pair: Sequence) -> list:
        return list(pair) if self.along_k else [pair[1], pair[0]]

    @property
    def shape(self) -> list[int]:
        """Rows and columns of the buffer as a matrix."""
        return self._in_order([self.extents[0] // self.rows, self.extents[1] // self.steps])


def _shared(place: ir.Value, share: int) -> ir.Value:
    """Returns the index of the source element for a position."""
    return apply(lambda x: ir.AffineExpr.get_floor_div(x, share), place) if share > 1 else place


def _quotient(number: Index, divisor: int) -> Index | None:
    try:
        return number.divided(divisor)[0]
    except NoDigits:
        return None


class SourceTile:
    """The stages of tiles of a source in shared memory, as TMA writes them.

    Args:
        source: what is loaded.
        tile: rows and k of the operand's tile.
        first: at whose multiples the rows of the operand's tiles begin.
        stages: of the pipeline.
        alloc: of the tiles of the operand, which these replace.
        replaces: whether they do; else they are the tiles of the operand, whose loads stay.

    Raises:
        Refusal: rows that TMA does not swizzle, or parts of source elements.
    """

    def __init__(
        self,
        source: Source,
        tile: tuple[int, int],
        first: int,
        stages: int,
        alloc: ir.Operation,
        *,
        replaces: bool = True,
    ) -> None:
        self.source = source
        rows, steps = tile[0] // source.rows, tile[1] // source.steps
        self.rows, columns = (rows, steps) if source.along_k else (steps, rows)
        swizzle = tma.row_swizzle(columns * source.bytes)
        if first % source.rows:
            raise Refusal(
                source.op,
                f"block_m must be a multiple of {source.rows}, the rows of a register operand that share a source "
                f"element, but block_m = {first}",
            )
        if tile[1] % source.steps or tile[0] % source.rows or swizzle is None:
            raise Refusal(
                source.op,
                f"rows of the tile of {source.type} are {columns * source.bytes} bytes; TMA swizzles require "
                "multiples of 32: choose another block_k or block_m",
            )
        self.swizzle = swizzle
        self.columns = swizzle // source.bytes
        self.boxes = columns // self.columns
        self.bytes = self.rows * columns * source.bytes
        if not replaces:
            self.buffer: ir.Value = alloc.results[0]
            return
        space = ir.MemRefType(alloc.results[0].type).memory_space
        with ir.InsertionPoint(alloc), alloc.location:
            # The permutation depends on the address: boxes begin where it does, at multiples of its period.
            shape = [stages, self.boxes, -(-self.rows // _PERIOD) * _PERIOD, self.columns]
            self.buffer = memref.alloc(ir.MemRefType.get(shape, source.type, memory_space=space), [], [])
            marks = defining_op(self.buffer).attributes
            for mark in alloc.attributes:
                if mark in _OPERANDS:
                    marks[mark] = ir.UnitAttr.get()
            if not source.along_k or source.rows > 1:
                marks[OTHER_ROWS] = ir.UnitAttr.get()

    def describe(self, name: str = "the source of the register operand") -> ir.Value:
        """Returns the TMA descriptor, created at the insertion point on the host.

        Args:
            name: of the source, in messages.
        """
        source = self.source
        matrix = source.buffer if source.is_batch else reshaped(source.buffer, source.shape)
        tma.check_buffer(source.op, matrix, name)
        rank = ir.MemRefType(matrix.type).rank
        type_ = types.tensor_map(self.rows, self.columns, source.type, self.swizzle, rank=rank)
        return tma.create_descriptor(matrix, type_, self.rows, self.columns)

    def load(self, like: ir.Operation, descriptor: ir.Value, row: ir.Value, k: ir.Value) -> None:
        """Creates the loads of a stage, before one of the operand's.

        Args:
            like: a load of the operand's tile.
            descriptor: of the source.
            row, k: where the operand's tile begins.
        """
        _, full, _, _, _, *outer, stage = like.operands
        with ir.InsertionPoint(like), like.location:
            numbers = [_shared(row, self.source.rows), _shared(k, self.source.steps)]
            row, column = numbers if self.source.along_k else numbers[::-1]
            for box in range(self.boxes):
                sizes = [1, 1, self.rows, self.columns]
                destination = memory.subview(self.buffer, [stage, box, 0, 0], sizes, drop=2 - len(outer))
                begin = apply(lambda x, box=box: x + box * self.columns, column) if box else column
                nvgpu.tma_async_load(destination, full, descriptor, [begin, row, *outer], stage)

    def read(self, stage: ir.Value, row: Index, steps: Sequence[Index], bases: Mapping[str, ir.Value]) -> ir.Value:
        """Returns the source elements that elements of a row are made from, at the insertion point: one where they
        share it.

        Args:
            stage: of the pipeline.
            row: in the tile.
            steps: of k for each of two elements, in the tile.
            bases: what the row and the steps depend on.
        """
        row = row.divided(self.source.rows)[0]
        first, *others = dict.fromkeys(step.divided(self.source.steps)[0] for step in steps)
        if self.source.along_k and others == [first + 1] and self.source.bytes * 2 <= tma.SWIZZLE_UNIT:
            type_ = ir.VectorType.get([2], self.source.type)
            return memory.load_vector(type_, self.buffer, *self._place(stage, row, first, bases))
        return together(
            [memref.load(self.buffer, self._place(stage, row, element, bases)) for element in (first, *others)]
        )

    def element(self, stage: ir.Value, row: Index, step: Index, bases: Mapping[str, ir.Value]) -> ir.Value:
        """Returns the source element of one element, at the insertion point, where no two share one.

        Args:
            stage: of the pipeline.
            row: in the tile.
            step: of k, in the tile.
            bases: what the row and the step depend on.
        """
        return memref.load(self.buffer, self._place(stage, row, step, bases))

    def _place(self, stage: ir.Value, row: Index, step: Index, bases: Mapping[str, ir.Value]) -> list[ir.Value]:
        """Returns the indices of a source element in the stages: TMA permutes 16-byte units within a row of a box."""
        row, column = (row, step) if self.source.along_k else (step, row)
        box, inside = column.divided(self.columns)
        per_unit = tma.SWIZZLE_UNIT // self.source.bytes
        unit, within = inside.divided(per_unit)
        _, permutation = row.divided(tma.WAVEFRONT // self.swizzle)[0].divided(self.swizzle // tma.SWIZZLE_UNIT)
        permuted_unit = arith.xori(unit.value(bases), permutation.value(bases))
        place = apply(lambda u, w: u * per_unit + w, permuted_unit, within.value(bases))
        return [stage, box.value(bases), row.value(bases), place]
