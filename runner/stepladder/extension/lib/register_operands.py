"""A of an MMA whose elements threads compute in registers: which each has, and what it loads to compute them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib import launches, memory, threads, tma
from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.control_flow import add_iter_args, body_of, extend_yield
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.extension.lib.mixed_radix import Index, digits, linear
from stepladder.extension.lib.outlined_producers import Numbers, Producer, producer_of
from stepladder.extension.lib.source_tiles import Source, SourceTile, together
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, memref
from stepladder.mlir.traverse import defining_op, producer, walk

STEP = 16  # of k, that an MMA takes, of 16-bit types
_HALVES = 2  # rows of a thread in 64, and of columns in a step: eight apart
_MATRIX = 8
_LANE, _K = "lane", "k"


@dataclass(frozen=True)
class Row:
    """A row of A's tile of which a thread has elements.

    Attributes:
        name: of its number in the matrix, in indices.
        in_tile: its number in the tile.
        in_matrix: in the matrix; the last one for rows beyond it.
    """

    name: str
    in_tile: ir.Value
    in_matrix: ir.Value


class Operand:
    """A of one MMA op: the tile, where it begins, and what makes it.

    Args:
        launch: with the MMA.
        mma: the op.
        module: around the launch.

    Attributes:
        generate: the op that makes the matrix descriptor of the tile.
        alloc: of the stages of tiles.
        create: the op that makes the TMA descriptor; `cast`, its operand.
        call, function: of the producer.
        m, k: of A; `tile_m`, `tile_k`: of the tile.
        row, first_k: where the tile begins.
        blocks: of 64 rows of a warpgroup.
    """

    def __init__(self, launch: ir.Operation, mma: ir.Operation, module: ir.Operation) -> None:
        self.mma = mma
        self.generate = defining_op(mma.operands[0])
        self.alloc = memory.shared_tile_of(self.generate, self.generate.operands[0])
        self.create = defining_op(self.generate.operands[1])
        self.cast = defining_op(self.create.operands[0])
        workspace = self.cast.operands[0]
        while (view := producer(workspace)) is not None and view.name != "memref.alloc":
            workspace = view.operands[0]
        self.call, self.function = producer_of(module, workspace)
        self.producer = Producer(self.function)
        extents = ir.MemRefType(self.cast.operands[0].type).shape
        self.m, self.k = self._by_row(extents)
        tiles = ir.MemRefType(self.alloc.results[0].type)
        self.stages, boxes, rows, columns = tiles.shape
        self.tile_m, self.tile_k = self._by_row([rows, boxes * columns])
        self.bytes = self.tile_m * self.tile_k * types.byte_width(tiles.element_type)
        self.loads = [load for load in walk(launch, tma.LOAD) if memory.alloc_of(load.operands[0]) == self.alloc]
        column, row = list(self.loads[0].operands)[3:5]
        self.row, self.first_k = self._by_row([row, column])
        self.slice = types.matrix_descriptor_tile(mma.operands[0].type).shape[0]
        self.blocks = self.slice // MMA_ROWS

    @property
    def is_transposed(self) -> bool:
        """Whether the matrix is stored as k x m."""
        return "transposeA" in self.mma.attributes

    @property
    def steps(self) -> int:
        """How many MMAs a tile takes along k."""
        return self.tile_k // STEP

    def _by_row(self, pair: Sequence) -> tuple:
        return (pair[1], pair[0]) if self.is_transposed else (pair[0], pair[1])

    def k_of(self, step: int, half: int) -> Index:
        """Returns the k of a thread's first element in half of a step.

        Args:
            step: of 16 of k.
            half: of the step.
        """
        return Index.of(_K, self.k // self.tile_k, self.tile_k) * self.tile_k + in_tile(step, half)

    def pair(self, row: str, step: int, half: int) -> Numbers:
        """Returns the numbers of a pair of adjacent elements, which a thread has.

        Args:
            row: name of the row.
            step: of 16 of k.
            half: of the step.
        """
        at, k = Index.of(row, self.m), self.k_of(step, half)
        if self.is_transposed:
            return tuple(linear([each, at], [self.k, self.m]) for each in (k, k + 1))
        return tuple(linear([at, each], [self.m, self.k]) for each in (k, k + 1))


def in_tile(step: int, half: int) -> Index:
    """Returns the k of a thread's first element in half of a step, from the beginning of the tile.

    Args:
        step: of 16 of k.
        half: of the step.
    """
    return Index.of(_LANE, 4) * 2 + (step * STEP + half * _MATRIX)


def source_of(operand: Operand) -> tuple[int, Source]:
    """Returns the largest argument that A is made from: its number, and how its numbers make elements.

    Args:
        operand: A.

    Raises:
        Refusal: it has another order than A.
    """
    reads = dict(operand.producer.reads(operand.pair("row 0", 0, 0)))
    if not reads:
        raise Refusal(operand.call, "an operand in registers is made from no buffer")
    buffers = operand.call.operands
    number = max(reads, key=lambda each: math.prod(ir.MemRefType(buffers[each].type).shape))
    source = Source(operand.call, buffers[number], (operand.m, operand.k))
    source.find_layout(Index.of("row 0", operand.m), operand.k_of(0, 0), reads[number][0])
    return number, source


class Fragments:
    """The elements of A that a thread has in a tile, and what it computes them from.

    Beside the source, which is in shared memory, a thread loads from global memory: what is the same in all steps of k
    before the loop, the rest a step of the loop ahead.

    Args:
        operand: A.
        source: number of the argument that the source is.
        launch: with the MMA.
        loop: over k, or None.
    """

    def __init__(self, operand: Operand, source: int, launch: ir.Operation, loop: ir.Operation | None) -> None:
        self.operand, self.source = operand, source
        with ir.InsertionPoint(loop or operand.mma), operand.mma.location:
            self.rows, lane = _rows(operand, launch)
        self.bases = {_LANE: lane, **{row.name: row.in_matrix for row in self.rows}}
        self.bases |= {f"{row.name} in tile": row.in_tile for row in self.rows}
        self._loaded: dict[tuple[int, Index], ir.Value] = {}
        self._read: dict[tuple[int, int, int], ir.Value] = {}

    @property
    def places(self) -> list[tuple[int, Row, int]]:
        """The registers of a fragment, two elements each: number of the row, the row, half of the step."""
        return [(number, row, half) for number, row in enumerate(self.rows) for half in range(_HALVES)]

    def load(self, loop: ir.Operation | None, rewriter: Rewriter) -> ir.Operation | None:
        """Creates the loads from global memory.

        Args:
            loop: over k, or None.
            rewriter: of the transform op.

        Returns:
            The loop, which carries what is loaded a step ahead.
        """
        reads = [
            (number, each)
            for step in range(self.operand.steps)
            for _, row, half in self.places
            for number, numbers in self.operand.producer.reads(self.operand.pair(row.name, step, half))
            for each in numbers
        ]
        wanted = dict.fromkeys(item for item in reads if item[0] != self.source)
        varying = [item for item in wanted if item[1].depends_on(_K)]
        first = self.operand.first_k if loop is None else loop.operands[0]
        with ir.InsertionPoint(loop or self.operand.mma), self.operand.mma.location:
            self._loaded = {item: self._element(item, first) for item in wanted}
        if loop is None or not varying:
            return loop
        loop, carried = add_iter_args(loop, [self._loaded[item] for item in varying], rewriter)
        self._loaded |= zip(varying, carried)
        with ir.InsertionPoint(body_of(loop).operations[0]), loop.location:
            last = index(self.operand.k - self.operand.tile_k)
            after = arith.minsi(apply(lambda k: k + self.operand.tile_k, body_of(loop).arguments[0]), last)
            ahead = [self._element(item, after) for item in varying]
        extend_yield(loop, ahead)
        return loop

    def _element(self, item: tuple[int, Index], k: ir.Value) -> ir.Value:
        """Returns an element of an argument, loaded at the insertion point."""
        number, element = item
        buffer = self.operand.call.operands[number]
        place = digits(element, list(ir.MemRefType(buffer.type).shape))
        return memref.load(buffer, [each.value({**self.bases, _K: k}) for each in place])

    def read(self, tile: SourceTile, stage: ir.Value, step: int) -> None:
        """Creates the reads of the source for the fragment of a step.

        Args:
            tile: of the source.
            stage: of the pipeline.
            step: of 16 of k.
        """
        for number, row, half in self.places:
            first = in_tile(step, half)
            at = Index.of(f"{row.name} in tile", self.operand.tile_m)
            self._read[step, number, half] = tile.read(stage, at, (first, first + 1), self.bases)

    def fragment(self, step: int) -> ir.Value:
        """Returns the elements of a step, computed at the insertion point: rows / 64 x 4 x 2.

        Args:
            step: of 16 of k, whose source has been read.
        """
        element = ir.MemRefType(self.operand.producer.result.type).element_type
        type_ = ir.VectorType.get([self.operand.blocks, 2 * _HALVES, 2], element)
        zeros = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 0.0))
        fragment = arith.constant(type_, zeros)
        for number, row, half in self.places:

            def read(
                argument: int | None, numbers: Numbers, held: ir.Value = self._read[step, number, half]
            ) -> ir.Value:
                if argument == self.source:
                    return held
                known = dict.fromkeys(numbers)
                if argument is None:
                    return together([each.value({**self.bases, _K: self.operand.first_k}) for each in known])
                return together([self._loaded[argument, each] for each in known])

            pair = self.operand.producer.value(self.operand.pair(row.name, step, half), read)
            block, below = divmod(number, _HALVES)
            fragment = memory.insert(pair, fragment, [block, _HALVES * half + below])
        return fragment


def _rows(operand: Operand, launch: ir.Operation) -> tuple[list[Row], ir.Value]:
    """Returns the rows of a thread, and which of four threads with them it is, at the insertion point."""
    floor, mod = ir.AffineExpr.get_floor_div, ir.AffineExpr.get_mod
    warpgroups = launches.launch_sizes(launch, launches.BLOCK)[0] // threads.WARPGROUP
    thread = threads.thread_id()

    def first(number: ir.AffineExpr) -> ir.AffineExpr:
        inside = mod(number, threads.WARPGROUP)
        row = floor(inside, threads.WARP) * (MMA_ROWS // 4) + floor(mod(inside, threads.WARP), 4)
        return row + floor(number, threads.WARPGROUP) * operand.slice if warpgroups > 1 else row

    rows = []
    for block in range(operand.blocks):
        for half in range(_HALVES):
            in_tile_ = apply(lambda x, below=block * MMA_ROWS + half * _MATRIX: first(x) + below, thread)
            in_matrix = arith.addi(operand.row, in_tile_)
            if operand.m % operand.tile_m:
                in_matrix = arith.minsi(in_matrix, index(operand.m - 1))
            rows.append(Row(f"row {len(rows)}", in_tile_, in_matrix))
    return rows, apply(lambda x: mod(x, 4), thread)
