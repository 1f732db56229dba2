"""Register operand A of an MMA, computed by threads: the elements of each thread, and the loads that they need."""

from __future__ import annotations

import math

from stepladder.extension.lib import vectors
from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.control_flow import add_iter_args, body_of, extend_yield
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.extension.lib.mixed_radix import Index, digits, linear
from stepladder.extension.lib.outlined_producers import Numbers, Producer, producer_of
from stepladder.extension.lib.register_stages import LANE, MATRIX, Row, StagedOperand, rows_of
from stepladder.extension.lib.source_tiles import Source, SourceTile, together
from stepladder.mlir.bindings import arith, ir, memref
from stepladder.mlir.traverse import producer

STEP = 16  # of k, that an MMA takes, of 16-bit types
_HALVES = 2  # rows of a thread in 64, and of columns in a step: eight apart
_K = "k"


class Operand(StagedOperand):
    """A of one MMA op, which elementwise ops make.

    Args:
        launch: with the MMA.
        mma: the op.
        module: around the launch.

    Attributes:
        call, function: of the producer.
    """

    def __init__(self, launch: ir.Operation, mma: ir.Operation, module: ir.Operation) -> None:
        super().__init__(launch, mma)
        workspace = self.cast.operands[0]
        while (view := producer(workspace)) is not None and view.name != "memref.alloc":
            workspace = view.operands[0]
        self.call, self.function = producer_of(module, workspace)
        self.producer = Producer(self.function)

    @property
    def steps(self) -> int:
        """How many MMAs a tile takes along k."""
        return self.tile_k // STEP

    def k_of(self, step: int, half: int) -> Index:
        """Returns the k of a thread's first element in half of a step.

        Args:
            step: of 16 of k.
            half: of the step.
        """
        return Index.of(_K, self.k // self.tile_k, self.tile_k) * self.tile_k + in_tile(step, half)

    def pair(self, row: str, step: int, half: int) -> Numbers:
        """Returns the indices of a pair of adjacent elements, which a thread has.

        Args:
            row: name of the row.
            step: of 16 of k.
            half: of the step.
        """
        at, k = Index.of(row, self.m), self.k_of(step, half)
        if self.is_transposed:
            return tuple(linear([k_index, at], [self.k, self.m]) for k_index in (k, k + 1))
        return tuple(linear([at, k_index], [self.m, self.k]) for k_index in (k, k + 1))


def in_tile(step: int, half: int) -> Index:
    """Returns the k of a thread's first element in half of a step, from the beginning of the tile.

    Args:
        step: of 16 of k.
        half: of the step.
    """
    return Index.of(LANE, 4) * 2 + (step * STEP + half * MATRIX)


def source_of(operand: Operand) -> tuple[int, Source]:
    """Returns the largest argument that A is made from: its index, and how its values make elements.

    Args:
        operand: A.

    Raises:
        Refusal: it has another order than A.
    """
    reads = dict(operand.producer.reads(operand.pair("row 0", 0, 0)))
    if not reads:
        raise Refusal(operand.call, "a register operand has no source buffer")
    buffers = operand.call.operands
    number = max(reads, key=lambda argument: math.prod(ir.MemRefType(buffers[argument].type).shape))
    source = Source(operand.call, buffers[number], (operand.m, operand.k))
    source.find_layout(Index.of("row 0", operand.m), operand.k_of(0, 0), reads[number][0])
    return number, source


class Fragments:
    """The elements of A that a thread has in a tile, and what it computes them from.

    Beside the source, which is in shared memory, a thread loads from global memory: what is the same in all steps of k
    before the loop, the rest a step of the loop ahead.

    Args:
        operand: A.
        source: index of the argument that the source is.
        launch: with the MMA.
        loop: over k, or None.
    """

    def __init__(self, operand: Operand, source: int, launch: ir.Operation, loop: ir.Operation | None) -> None:
        self.operand, self.source = operand, source
        with ir.InsertionPoint(loop or operand.mma), operand.mma.location:
            self.rows, lane = rows_of(operand, launch)
        self.bases = {LANE: lane, **{row.name: row.in_matrix for row in self.rows}}
        self.bases |= {f"{row.name} in tile": row.in_tile for row in self.rows}
        self._loaded_elements: dict[tuple[int, Index], ir.Value] = {}
        self._pairs: dict[tuple[int, int, int], ir.Value] = {}

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
            (number, element)
            for step in range(self.operand.steps)
            for _, row, half in self.places
            for number, numbers in self.operand.producer.reads(self.operand.pair(row.name, step, half))
            for element in numbers
        ]
        items = dict.fromkeys(item for item in reads if item[0] != self.source)
        varying = [item for item in items if item[1].depends_on(_K)]
        first = self.operand.first_k if loop is None else loop.operands[0]
        with ir.InsertionPoint(loop or self.operand.mma), self.operand.mma.location:
            self._loaded_elements = {item: self._element(item, first) for item in items}
        if loop is None or not varying:
            return loop
        loop, arguments = add_iter_args(loop, [self._loaded_elements[item] for item in varying], rewriter)
        self._loaded_elements |= zip(varying, arguments)
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
        return memref.load(buffer, [coordinate.value({**self.bases, _K: k}) for coordinate in place])

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
            self._pairs[step, number, half] = tile.read(stage, at, (first, first + 1), self.bases)

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
                argument: int | None, numbers: Numbers, source_pair: ir.Value = self._pairs[step, number, half]
            ) -> ir.Value:
                if argument == self.source:
                    return source_pair
                distinct = dict.fromkeys(numbers)
                if argument is None:
                    return together(
                        [element_index.value({**self.bases, _K: self.operand.first_k}) for element_index in distinct]
                    )
                return together([self._loaded_elements[argument, element_index] for element_index in distinct])

            pair = self.operand.producer.value(self.operand.pair(row.name, step, half), read)
            block, below = divmod(number, _HALVES)
            fragment = vectors.insert(pair, fragment, [block, _HALVES * half + below])
        return fragment
