"""Computes a chain of linalg ops on buffers row by row: a warp or a block for each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from stepladder.extension.lib.arithmetic import apply, digits, equal, index, less_than
from stepladder.extension.lib.control_flow import create_if, operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.element_bodies import (
    LANES,
    compute_body,
    converted,
    create_forall,
    has_vectors,
    load,
)
from stepladder.extension.lib.epilogues.folds import Fold
from stepladder.extension.lib.epilogues.partial_results import over_lanes
from stepladder.extension.lib.memory import create_global, load_vector, store_vector
from stepladder.extension.lib.multi_kernel.row_threads import HELD, HELD_BY_LANES, lanes_of_row, vector_width
from stepladder.extension.lib.multi_kernel.rows import RowOp, length_of
from stepladder.extension.lib.threads import WARP
from stepladder.extension.lib.vectors import extract
from stepladder.mlir import types
from stepladder.mlir.bindings import gpu, ir, memref, scf
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import origin, producer

# Elements, or vectors of them, that a thread loads before it computes, so that their loads overlap.
_AT_ONCE = (4, 2, 1)

# An index, or None for that of an axis of one element.
Coordinate = ir.Value | None


class _Vector(NamedTuple):
    """A column in a vector: the first column of the vector, which position it has there, and how many there are."""

    begin: ir.Value
    place: int
    width: int


class RowKernel:
    """The kernel of a chain of ops over the same rows.

    The results of elementwise ops are computed again wherever they are read: no buffer between the ops is written, and
    a row that is read again is in the cache. Results of reductions are in registers of all threads of the row.

    Args:
        ops: in order; each result is a buffer that no other op writes.
        starts: value that each output of a reduction begins from, by buffer.

    Raises:
        Refusal: an op is not over the rows of the first reduction.
    """

    def __init__(self, ops: Sequence[RowOp], starts: dict[ir.Value, ir.Value]) -> None:
        self.ops, self.starts = ops, starts
        reductions = [op for op in ops if op.reduced]
        if not reductions:
            raise Refusal(ops[0].op, "no reduction along rows")
        self.rows = reductions[0].rows()
        for op in ops:
            if not op.is_over(self.rows):
                raise Refusal(op.op, f"an op that is not over rows of {self.rows}")
        self.writers: dict[ir.Value, tuple[RowOp, int]] = {}
        for op in ops:
            for number in range(op.outputs):
                self.writers[origin(op.op.operands[op.inputs + number], BUFFER_VIEWS)] = (op, number)
        self.row: list[ir.Value] = []
        self.scalars: dict[tuple[ir.Operation, int], ir.Value] = {}
        # Elements of the chain that the ops of one block of IR read, by op, result and coordinates.
        self._elements: dict[tuple[object, ...], ir.Value] = {}
        # The vector that a column is in.
        self._vectors: dict[ir.Value, _Vector] = {}
        # Columns of a thread where they are the whole row, by columns and width, and the loaded vectors of them.
        self._places_by_size: dict[tuple[int, int], list[ir.Value]] = {}
        self._loaded_elements: dict[tuple[object, ...], ir.Value] = {}

    def write(self, threads: int) -> None:
        """Creates the loops over blocks and threads.

        Args:
            threads: of a block.
        """
        self.threads, self.lanes = threads, lanes_of_row(self.ops, self.rows, threads)
        rows, per_block = math.prod(self.rows), threads // self.lanes
        block = create_forall(-(-rows // per_block), "block")
        with ir.InsertionPoint(operations_of(block.owner)[-1]):
            thread = create_forall(threads, "thread")
            with ir.InsertionPoint(operations_of(thread.owner)[-1]):
                if per_block == 1:
                    self._compute(block, thread)
                    return
                lane = apply(lambda t: t % self.lanes, thread)
                row = apply(lambda b, t: b * per_block + ir.AffineExpr.get_floor_div(t, self.lanes), block, thread)
                with create_if(less_than(row, index(rows))):
                    self._compute(row, lane)

    def _compute(self, row: ir.Value, lane: ir.Value) -> None:
        """Computes a row by its threads."""
        self.lane = lane
        self.row = digits(row, self.rows) if self.rows else []
        stored_results = {
            op: [number for number in range(op.outputs) if self._is_result(op, number)] for op in self.ops
        }
        for op in self.ops:
            if stored_results[op] and not op.reduced:
                self._load_whole(op)
        for op in self.ops:
            if op.reduced:
                self._reduce(op, stored_results[op])
            elif stored_results[op]:
                self._store(op, stored_results[op])

    def _is_result(self, op: RowOp, number: int) -> bool:
        return producer(origin(op.op.operands[op.inputs + number], BUFFER_VIEWS)) is None

    def _loops(self, op: RowOp, column: ir.Value | None) -> dict[int, Coordinate]:
        """Returns the indices of the loops of an op in a column of the row."""
        loops: dict[int, Coordinate] = dict.fromkeys(range(len(op.sizes)))
        loops |= dict(zip(op.kept, self.row))
        columns = op.columns(len(self.rows))
        if columns and column is not None:
            several = len(columns) > 1
            loops |= dict(zip(columns, digits(column, [op.sizes[loop] for loop in columns]) if several else [column]))
        return loops

    def _load_whole(self, op: RowOp) -> None:
        """Loads what an elementwise op reads of arguments before the threads of the row wait for each other, if they
        keep whole rows in registers."""
        for column in self._whole_of(op):
            loops = self._loops(op, column)
            for number in range(op.inputs):
                buffer = op.op.operands[number]
                if origin(buffer, BUFFER_VIEWS) not in self.writers and list(op.body.arguments[number].uses):
                    coordinates = [None if loop is None else loops[loop] for loop in op.maps[number]]
                    last = coordinates[-1] if coordinates else None
                    if last is not None and last == column:
                        self._loaded_element(buffer, coordinates)

    def _reduce(self, op: RowOp, stored_results: Sequence[int]) -> None:
        """Folds the columns of the row, each thread some of them, and then the threads' results; stores some."""
        folds = op.folds
        assert folds is not None
        begin = [fold.neutral() for fold in folds]
        values = self._over_columns(op, begin, lambda columns, so_far: self._folded(op, columns, so_far))
        distances = [distance for distance in LANES if distance < self.lanes]
        values = [over_lanes(fold, value, distances) for fold, value in zip(folds, values)]
        if self.lanes > WARP:
            values = [self._over_warps(fold, value) for fold, value in zip(folds, values)]
        for number, (fold, value) in enumerate(zip(folds, values)):
            place = op.inputs + number
            start = self.starts[origin(op.op.operands[place], BUFFER_VIEWS)]
            total = fold.folded(converted(start, fold.type), value)
            self.scalars[op.op, number] = converted(total, fold.op.results[0].type)
        if stored_results:
            with create_if(equal(self.lane, index(0))):
                for number in stored_results:
                    self._write(op, number, [self.scalars[op.op, number]], self._loops(op, None))

    def _over_columns(
        self,
        op: RowOp,
        begin: Sequence[ir.Value],
        compute: Callable[[list[ir.Value], list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """Creates the loops of a thread over its columns, several in an iteration as long as there are as many: single
        ones, or vectors of neighbours. A row that is a few vectors of each thread takes no loop.

        Args:
            op: whose columns they are.
            begin: values that the loops carry.
            compute: creates what an iteration does in some columns, and returns the values that it passes on.

        Returns:
            The values after the loops.
        """
        if columns := self._whole_of(op):
            return list(compute(columns, list(begin)))
        count, values = length_of(op, len(self.rows)), list(begin)
        width = vector_width(self.ops, op, len(self.rows), self.lanes)
        lane = apply(lambda t: t * width, self.lane)
        step = self.lanes * width
        first = 0
        for at_once in _AT_ONCE:
            end = count if at_once == 1 else first + (count - first) // (step * at_once) * (step * at_once)
            if first == end:
                continue
            begins = apply(lambda t, n=first: t + n, lane) if first else lane
            loop = scf.ForOp(begins, index(end), index(step * at_once), values)
            with ir.InsertionPoint(loop.body):
                columns = self._places(loop.induction_variable, at_once, width)
                scf.yield_(compute(columns, list(loop.inner_iter_args)))
            first, values = end, list(loop.results_)
        return values

    def _whole_of(self, op: RowOp) -> list[ir.Value]:
        """Returns the columns of a thread where they are the whole row and few vectors; else none."""
        count, width = length_of(op, len(self.rows)), vector_width(self.ops, op, len(self.rows), self.lanes)
        step = self.lanes * width
        if width == 1 or count % step or count // step > (HELD if self.lanes > WARP else HELD_BY_LANES):
            return []
        if (count, width) not in self._places_by_size:
            lane = apply(lambda t: t * width, self.lane)
            self._places_by_size[count, width] = self._places(lane, count // step, width)
        return self._places_by_size[count, width]

    def _places(self, first: ir.Value, count: int, width: int) -> list[ir.Value]:
        """Returns the columns that a thread computes in an iteration: vectors of some width, or single ones."""
        step = self.lanes * width
        begins = [first, *(apply(lambda x, n=number: x + n * step, first) for number in range(1, count))]
        if width == 1:
            return begins
        columns = []
        for begin in begins:
            own = [begin, *(apply(lambda x, n=number: x + n, begin) for number in range(1, width))]
            self._vectors |= {column: _Vector(begin, place, width) for place, column in enumerate(own)}
            columns += own
        return columns

    def _folded(self, op: RowOp, columns: Sequence[ir.Value], so_far: list[ir.Value]) -> list[ir.Value]:
        """Returns results so far with the terms of some columns."""
        assert op.folds is not None
        self._elements.clear()
        for values in [self._values(op, self._loops(op, column)) for column in columns]:
            terms = [converted(fold.term_in(values), fold.type) for fold in op.folds]
            so_far = [fold.folded(value_so_far, term) for fold, value_so_far, term in zip(op.folds, so_far, terms)]
        return so_far

    def _over_warps(self, fold: Fold, value: ir.Value) -> ir.Value:
        """Returns the values of the warps of a block folded: all threads have the result."""
        warps = self.threads // WARP
        space = types.address_space(types.WORKGROUP)
        type_ = ir.MemRefType.get([warps], fold.type, memory_space=space)
        buffer = memref.get_global(type_, create_global(self.ops[0].op, "row_parts", type_))
        warp = apply(lambda t: ir.AffineExpr.get_floor_div(t, WARP), self.lane)
        with create_if(equal(apply(lambda t: t % WARP, self.lane), index(0))):
            memref.store(value, buffer, [warp])
        gpu.barrier()
        parts = [memref.load(buffer, [index(number)]) for number in range(warps)]
        while len(parts) > 1:
            parts = [fold.folded(left, right) for left, right in zip(parts[::2], parts[1::2])]
        return parts[0]

    def _store(self, op: RowOp, numbers: Sequence[int]) -> None:
        """Stores results of an elementwise op, each thread some columns of the row."""

        def compute(columns: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
            self._store_columns(op, numbers, columns)
            return []

        self._over_columns(op, [], compute)

    def _store_columns(self, op: RowOp, numbers: Sequence[int], columns: Sequence[ir.Value]) -> None:
        """Computes results in some columns, and then stores them."""
        self._elements.clear()
        places = [self._loops(op, column) for column in columns]
        values_by_column = [self._values(op, loops) for loops in places]
        for number in numbers:
            result = op.end.operands[number]
            results = [values.get(result, result) for values in values_by_column]
            vector = self._vectors.get(columns[0])
            has_whole = vector is not None and has_vectors(op.op.operands[op.inputs + number], vector.width)
            width = vector.width if vector is not None and has_whole else 1
            for place in range(0, len(columns), width):
                self._write(op, number, results[place : place + width], places[place])

    def _write(self, op: RowOp, number: int, values: Sequence[ir.Value], loops: dict[int, Coordinate]) -> None:
        """Stores an element of a result, or neighbours, of which the first one's indices are given."""
        place = op.inputs + number
        address = [_materialized(None if loop is None else loops[loop]) for loop in op.maps[place]]
        if len(values) == 1:
            memref.store(values[0], op.op.operands[place], address)
            return
        type_ = ir.VectorType.get([len(values)], values[0].type)
        vector = ir.Operation.create("vector.from_elements", results=[type_], operands=list(values)).results[0]
        store_vector(vector, op.op.operands[place], *address)

    def _values(self, op: RowOp, loops: dict[int, Coordinate]) -> dict[ir.Value, ir.Value]:
        """Returns the values of the body of an op in an iteration, but for those that depend on a result so far."""
        values: dict[ir.Value, ir.Value] = {}
        for number in range(op.inputs):
            if list(op.body.arguments[number].uses):
                coordinates = [None if loop is None else loops[loop] for loop in op.maps[number]]
                values[op.body.arguments[number]] = self._read(op.op.operands[number], coordinates)
        compute_body(op.body, values, {loop: _materialized(place) for loop, place in loops.items()})
        return values

    def _read(self, buffer: ir.Value, coordinates: list[Coordinate]) -> ir.Value:
        """Returns an element: of an argument, or of what an op of the chain computes."""
        root = origin(buffer, BUFFER_VIEWS)
        if root not in self.writers:
            return self._loaded_element(buffer, coordinates)
        op, number = self.writers[root]
        coordinates = _in_view(op.op, op.op.operands[op.inputs + number], buffer, coordinates)
        loops: dict[int, Coordinate] = dict.fromkeys(range(len(op.sizes)))
        loops |= {loop: place for loop, place in zip(op.maps[op.inputs + number], coordinates) if loop is not None}
        if not op.reduced:
            result = op.end.operands[number]
            key = (op.op, number, *coordinates)
            if key not in self._elements:
                self._elements[key] = self._values(op, loops).get(result, result)
            return self._elements[key]
        if (op.op, number) not in self.scalars or [loops[loop] for loop in op.kept] != self.row:
            raise Refusal(op.op, "a result of another row, or that is read before it is computed")
        return self.scalars[op.op, number]

    def _loaded_element(self, buffer: ir.Value, coordinates: list[Coordinate]) -> ir.Value:
        """Returns an element of an argument: of a vector, where it is in one that a thread computes with."""
        address = [_materialized(place) for place in coordinates]
        vector = self._vectors.get(address[-1]) if address else None
        if vector is None or not has_vectors(buffer, vector.width) or any(i in self._vectors for i in address[:-1]):
            return load(buffer, address)
        key = (buffer, *coordinates[:-1], vector.begin)
        is_whole = any(vector.begin in columns for columns in self._places_by_size.values())
        cache = self._loaded_elements if is_whole else self._elements
        element = ir.MemRefType(buffer.type).element_type
        if key not in cache:
            cache[key] = load_vector(ir.VectorType.get([vector.width], element), buffer, *address[:-1], vector.begin)
        return extract(cache[key], [vector.place], element)


def _materialized(place: Coordinate) -> ir.Value:
    return index(0) if place is None else place


def _in_view(op: ir.Operation, written: ir.Value, read: ir.Value, coordinates: list[Coordinate]) -> list[Coordinate]:
    """Returns the coordinates in one view of a buffer of an element that is read through another one, where the views
    differ in axes of one element alone."""
    shapes = [ir.MemRefType(view.type).shape for view in (written, read)]
    extents, extents_read = ([size for size in shape if size > 1] for shape in shapes)
    if extents != extents_read:
        raise Refusal(op, "a view that divides an axis of what is computed by rows")
    long = iter([place for place, size in zip(coordinates, shapes[1]) if size > 1])
    return [next(long) if size > 1 else None for size in shapes[0]]
