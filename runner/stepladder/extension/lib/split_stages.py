"""Stages of tiles of f32 in shared memory, which threads split into parts of tf32 and may transpose."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from stepladder.extension.lib import memory, threads, tma, vectors
from stepladder.extension.lib.arithmetic import apply, digits, index, integer, less_than, times, zero_of
from stepladder.extension.lib.control_flow import create_if
from stepladder.extension.lib.source_tiles import SourceTile, together
from stepladder.extension.lib.tf32_parts import split
from stepladder.mlir.bindings import arith, ir, memref, nvvm, scf

WIDTH = 4  # elements of a vector
AT_ONCE = 8  # vectors that a thread loads before it splits the first of them: the loads overlap
_BARRIER = 8  # its number, after those of the epilogue and of the schedules


class Stage:
    """A stage of both parts of a tile, which TMA has loaded to the place of the large part.

    Both parts have one layout and the split is elementwise, so that a thread takes vectors in the order of their
    addresses, whatever the swizzle is.

    Args:
        buffers: of the large and of the small part: boxes x rows x columns, or stages of these.
        thread_count: how many threads share the work.
        stage: of the buffers; None where they are of one.
    """

    def __init__(self, buffers: Sequence[ir.Value], thread_count: int, stage: ir.Value | None = None) -> None:
        self.buffers = buffers
        self.thread_count = thread_count
        self._first = [] if stage is None else [stage]
        type_ = ir.MemRefType(buffers[0].type)
        self.vector = ir.VectorType.get([WIDTH], type_.element_type)
        self.boxes, self.rows, self.columns = type_.shape[-3:]
        self.count = self.boxes * self.rows * self.columns // WIDTH

    def split(self) -> None:
        """Splits all vectors at the insertion point, after which an MMA may read both parts."""
        thread = threads.thread_id()
        for first in range(0, self.count, AT_ONCE * self.thread_count):
            self._split(thread, first)
        tma.fence_async_proxy()
        self._wait()

    def _place(self, number: ir.Value) -> list[ir.Value]:
        """Returns the indices of a vector in both buffers."""
        inner = [self.rows, self.columns // WIDTH]
        box, row, unit = digits(number, [self.boxes, *inner]) if self.boxes > 1 else [index(0), *digits(number, inner)]
        return [*self._first, box, row, apply(lambda x: x * WIDTH, unit)]

    def _read(self, number: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
        """Returns a vector as TMA has loaded it."""
        return memory.load_vector(self.vector, self.buffers[0], *place)

    def _finish_reads(self) -> None:
        """Orders the reads of all threads before their stores; here, each replaces what it has read itself."""

    def _split(self, thread: ir.Value, first: int) -> None:
        """Splits AT_ONCE vectors of each thread, or what there is.

        Args:
            thread: its index.
            first: the vector of the first thread.
        """
        end = min(first + AT_ONCE * self.thread_count, self.count)
        below = range(first, end, self.thread_count)
        numbers = [apply(lambda x, below=number: x + below, thread) for number in below]
        places = [self._place(number) for number in numbers]
        conditions = [
            None if number + self.thread_count <= self.count else less_than(thread, index(self.count - number))
            for number in below
        ]
        loaded_vectors = [self._read_if(*read_arguments) for read_arguments in zip(conditions, numbers, places)]
        self._finish_reads()
        stack = vectors.stack(
            {(number,): vector for number, vector in enumerate(loaded_vectors)}, [len(loaded_vectors)]
        )
        parts = split(stack, keeps_infinities=True)
        for number, (condition, place) in enumerate(zip(conditions, places)):
            pair = [vectors.extract(part, [number], self.vector) for part in parts]
            with contextlib.nullcontext() if condition is None else create_if(condition):
                for vector, buffer in zip(pair, self.buffers):
                    memory.store_vector(vector, buffer, *place)

    def _read_if(self, condition: ir.Value | None, number: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
        """Returns a vector, or zeros where a condition is false."""
        if condition is None:
            return self._read(number, place)
        branch = scf.IfOp(condition, [self.vector], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_([self._read(number, place)])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([arith.constant(self.vector, zero_of(self.vector))])
        return branch.results[0]

    def _wait(self) -> None:
        """Makes the threads wait for each other."""
        nvvm.barrier(barrier_id=integer(_BARRIER, 32), number_of_threads=integer(self.thread_count, 32))


class TransposedStage(Stage):
    """A stage in whose place TMA has loaded an N-major tile; the threads store its parts K-major.

    All elements are read before one is stored. Neighbouring threads have vectors along k of neighbouring columns n, so
    that their loads, and the stores of eight of them, access different banks of shared memory.

    Args:
        buffers: of the parts of this stage: boxes x rows x columns.
        thread_count: how many threads share the work; each has AT_ONCE vectors at most.
        tile: that TMA loads.
        stage: of the tile.
    """

    def __init__(self, buffers: Sequence[ir.Value], thread_count: int, tile: SourceTile, stage: ir.Value) -> None:
        super().__init__(buffers, thread_count)
        self._tile, self._stage = tile, stage

    def _unit_and_column(self, number: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Returns which vector along k, and which column n, a number is of."""
        unit, column = digits(number, [self.count // self.rows, self.rows])
        return unit, column

    def _place(self, number: ir.Value) -> list[ir.Value]:
        unit, column = self._unit_and_column(number)
        box, within = _divided(unit, self.columns // WIDTH)
        return [box, column, times(self._swizzled(within, column, self.columns), WIDTH)]

    def _read(self, number: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
        unit, column = self._unit_and_column(number)
        box, inside = _divided(column, self._tile.columns)
        within, remainder = _divided(inside, WIDTH)
        elements = []
        for step in range(WIDTH):
            row = apply(lambda x, step=step: x * WIDTH + step, unit)
            unit_at = self._swizzled(within, row, self._tile.columns)
            at = apply(lambda x, y: x * WIDTH + y, unit_at, remainder)
            elements.append(memref.load(self._tile.buffer, [self._stage, box, row, at]))
        return together(elements)

    def _finish_reads(self) -> None:
        self._wait()

    def _swizzled(self, unit: ir.Value, row: ir.Value, columns: int) -> ir.Value:
        """Returns the place of a unit in a row of a box of `columns` columns."""
        return arith.xori(unit, tma.permutation(row, columns * self._tile.source.bytes))


def _divided(number: ir.Value, size: int) -> tuple[ir.Value, ir.Value]:
    """Returns the quotient and the remainder of an index by a constant."""
    quotient = apply(lambda x: ir.AffineExpr.get_floor_div(x, size), number)
    return quotient, apply(lambda x: ir.AffineExpr.get_mod(x, size), number)
