"""The loops of a `linalg.generic` on buffers, distributed to threads."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import apply, constant, equal, index, less_than
from stepladder.extension.lib.control_flow import create_if, operations_of
from stepladder.extension.lib.element_bodies import LANES, converted, create_forall
from stepladder.extension.lib.epilogues.partial_results import over_lanes
from stepladder.extension.lib.memory import store_vector
from stepladder.extension.lib.multi_kernel.donation import Part, replaced_part
from stepladder.extension.lib.multi_kernel.element_values import ElementValues
from stepladder.extension.lib.multi_kernel.extremum_elements import store_extremum
from stepladder.extension.lib.multi_kernel.neighbours import find_neighbours
from stepladder.extension.lib.multi_kernel.thread_tiles import LoadedTile, ThreadTile, address_of, find_thread_tile
from stepladder.extension.lib.threads import WARP
from stepladder.mlir.bindings import arith, ir, scf
from stepladder.mlir.constant_numbers import constant_number

# With fewer threads, multiprocessors are idle: threads of ops that are more than a copy compute an element each.
_FEWEST_THREADS = 1 << 15
# A thread that loads and stores no vectors computes as many elements of short bodies, if as many threads are left.
_AT_ONCE, _SHORT_BODY, _ENOUGH_THREADS = 4, 24, 1 << 17
# With as many results of a reduction along outer loops and more, threads that reduce one each have enough loads in
# flight: of f16 on an H200, 4096 sums of 4096 values took 89.5 us so, and 20.4 us by warps; 65536 sums of 512 took 23.1
# us, and 36.7 us by warps (docs/results/column_reductions.json).
_MANY_RESULTS = 3 << 13
# With fewer results of a reduction along outer loops, a warp reduces each, even if its lanes load no neighbours.
_FEW_RESULTS = 1 << 11
# Values of each thread from which on those of a block look for an extremum.
_MANY_TERMS = 8
_FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)  # which lanes exchange, as f32


def _is_i32(type_: ir.Type) -> bool:
    return str(type_) == "i32"


class ElementNest(ElementValues):
    """The loops of a `linalg.generic`, and what they compute; ops are created at the current insertion point.

    Args:
        generic: on buffers.

    Raises:
        Refusal: as `tc.distribute_elements`.
    """

    def __init__(self, generic: ir.Operation) -> None:
        super().__init__(generic)
        self.part = replaced_part(generic, self.maps, self.inputs) if not self.reduced else None
        if self.part is not None:
            self.extents = self.part.extents(self.sizes)

    def _lanes_reduce(self) -> bool:
        """Returns whether the lanes of a warp may reduce an element: there are as many values as lanes, of types that
        lanes exchange.
        """
        if self.terms() < WARP:
            return False
        if self.extremum is not None:
            start = self.initial[self.extremum.value].number
            number = None if start is None else constant_number(start)
            known_start = number if isinstance(number, float) else None
            return isinstance(self.extremum.term.type, _FLOATS) and self.extremum.may_begin_apart(known_start)
        types = [fold.type for fold in self.folds or () if isinstance(fold.type, ir.F32Type) or _is_i32(fold.type)]
        return len(types) == self.outputs

    def _lanes(self, threads: int) -> int:
        """Returns how many threads compute an element: one, a warp, or those of a block for an extremum with its index
        of many values."""
        if not self._lanes_reduce() or not (self._is_along_rows() or self.elements() < _FEW_RESULTS):
            return 1
        return threads if self.extremum is not None and self.terms() >= threads * _MANY_TERMS else WARP

    def _is_along_rows(self) -> bool:
        """Returns whether the op reduces along neighbours in memory."""
        arguments = list(self.body.arguments)[: self.inputs]
        read = [map_ for map_, argument in zip(self.maps, arguments) if list(argument.uses)]
        largest = max(read, key=len, default=[])
        return bool(largest) and bool(self.reduced) and largest[-1] == self.reduced[-1]

    def _column_tile(self) -> ThreadTile | None:
        """Returns the neighbouring elements of a result that a warp reduces along columns of the operands; None where
        there are so many elements that each thread reduces one, or an operand has no such neighbours.
        """
        is_large = self.elements() >= _MANY_RESULTS
        if self.folds is None or not self._lanes_reduce() or self._is_along_rows() or is_large:
            return None
        tile = find_thread_tile(list(self.generic.operands), self.maps, self.outputs, self.sizes)
        return tile if tile is not None and tile.row is None else None

    def _tile(self) -> ThreadTile | None:
        """Returns the neighbours that a thread computes; None for one element, where the op reduces or replaces a part,
        an operand has no vectors, or too few threads would be left. Of transposed operands, fewer are faster, too.
        """
        if self.reduced or self.part is not None:
            return None
        tile = find_thread_tile(list(self.generic.operands), self.maps, self.outputs, self.sizes)
        if tile is None or tile.row is not None or len(operations_of(self.body)) == 1:
            return tile
        return tile if tile.threads >= _FEWEST_THREADS else None

    def _compute_tile(self, number: ir.Value, tile: ThreadTile) -> None:
        """Computes a tile of each result: operands are loaded before the first element."""
        place, inside = tile.create_place(number)
        with inside:
            tiles = self._tiles(tile, place)
            neighbours = find_neighbours(self.body, tile.column, tile.columns)
            for row in range(tile.rows):
                known: list[dict[ir.Value, ir.Value]] = []
                if neighbours is not None:
                    for begin in range(0, tile.columns, neighbours.width):
                        known += neighbours.values(tile.moved(place, row, begin))
                results: list[list[ir.Value]] = []
                for column in range(tile.columns):
                    loops = tile.moved(place, row, column)
                    own = {operand: loaded.element(row, column) for operand, loaded in tiles.items()}
                    starts = [self.start(output, loops) for output in range(self.outputs)]
                    of_body = known[column] if known else None
                    results.append(self.iteration(loops, starts, len(self.end.operands), own, of_body))
                self._store_row(results, tile.moved(place, row, 0))

    def _store_row(self, results: Sequence[Sequence[ir.Value]], loops: dict[int, ir.Value]) -> None:
        """Stores neighbours along the innermost loop, of which each is a value for each result."""
        if len(results) == 1:
            self.store(results[0], loops)
            return
        for output, values in enumerate(zip(*results)):
            if not self.is_read[output]:
                continue
            place = self.inputs + output
            type_ = ir.VectorType.get([len(values)], values[0].type)
            vector = ir.Operation.create("vector.from_elements", results=[type_], operands=list(values)).results[0]
            store_vector(vector, self.generic.operands[place], *address_of(self.maps[place], loops))

    def write(self, threads: int) -> None:
        """Creates the loops in place of the op.

        Args:
            threads: of a block, a multiple of 32.
        """
        column_tile = self._column_tile()
        tile = column_tile or self._tile()
        lanes = WARP if column_tile is not None else self._lanes(threads)
        elements = math.prod(self.extents[loop] for loop in self.parallel) if tile is None else tile.threads
        each = self._elements_of_thread() if tile is None and lanes == 1 else 1
        per_block = threads // lanes
        block = create_forall(-(-elements // (per_block * each)), "block")
        with ir.InsertionPoint(operations_of(block.owner)[-1]):
            thread = create_forall(threads, "thread")
            with ir.InsertionPoint(operations_of(thread.owner)[-1]):
                lane = apply(lambda t: t % lanes, thread) if lanes > 1 else None
                place = apply(lambda t: ir.AffineExpr.get_floor_div(t, lanes), thread) if lanes > 1 else thread
                element = apply(lambda b, t: b * (per_block * each) + t, block, place)
                if each > 1:
                    self._compute_several(element, each, threads, elements)
                    return
                with create_if(less_than(element, index(elements))):
                    if tile is None:
                        self._element(element, lane, lanes)
                    elif lane is None:
                        self._compute_tile(element, tile)
                    else:
                        self._reduce_tile(element, tile, lane)

    def _elements_of_thread(self) -> int:
        """Returns how many elements a thread computes that loads and stores no vectors: several of short bodies, whose
        loads overlap, as long as there are enough threads."""
        is_short = len(operations_of(self.body)) <= _SHORT_BODY
        if self.reduced or self.part is not None or not is_short or self.elements() < _AT_ONCE * _ENOUGH_THREADS:
            return 1
        return _AT_ONCE

    def _compute_several(self, first: ir.Value, count: int, threads: int, elements: int) -> None:
        """Computes elements of each result and then stores them; those of a thread are as far apart as a block has
        threads, so that neighbouring threads access neighbours.

        Args:
            first: number of the element.
            count: of elements.
            threads: of a block.
            elements: of a result; the last threads have fewer than `count`.
        """
        numbers = [first, *(apply(lambda x, n=place: x + n * threads, first) for place in range(1, count))]
        is_whole = less_than(numbers[-1], index(elements))
        branch = scf.IfOp(is_whole, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            places = [self.indices(number, self.parallel) for number in numbers]
            values = [self._elementwise(loops) for loops in places]
            for results, loops in zip(values, places):
                self.store(results, loops)
            scf.yield_([])
        with ir.InsertionPoint(branch.else_block):
            rest = scf.ForOp(first, index(elements), index(threads))
            with ir.InsertionPoint(rest.body):
                loops = self.indices(rest.induction_variable, self.parallel)
                self.store(self._elementwise(loops), loops)
                scf.yield_([])
            scf.yield_([])

    def _elementwise(self, loops: dict[int, ir.Value]) -> list[ir.Value]:
        """Returns an element of each result of an op without reductions."""
        starts = [self.start(number, loops) for number in range(self.outputs)]
        return self.iteration(loops, starts, len(self.end.operands))

    def _tiles(self, tile: ThreadTile, place: dict[int, ir.Value]) -> dict[int, LoadedTile]:
        """Loads a tile of each operand that has its columns; returns them by the operand."""
        return {
            operand: LoadedTile(self.generic.operands[operand], self.maps[operand], tile, place)
            for operand, argument in enumerate(list(self.body.arguments)[: self.inputs])
            if list(argument.uses) and tile.column in self.maps[operand]
        }

    def _reduce_tile(self, number: ir.Value, tile: ThreadTile, lane: ir.Value) -> None:
        """Computes neighbours of each result: each lane folds every 32nd row of them, and then the lanes their results.

        Args:
            number: of the tile.
            tile: one row of the results.
            lane: of the thread.
        """
        assert self.folds is not None
        place, _ = tile.create_place(number)
        columns = range(tile.columns)
        count = self.terms()
        begins = [fold.neutral() for _ in columns for fold in self.folds]
        loop = scf.ForOp(lane, index(count), index(WARP), begins)
        with ir.InsertionPoint(loop.body):
            inner = {**place, **self.indices(loop.induction_variable, self.reduced)}
            tiles, so_far = self._tiles(tile, inner), list(loop.inner_iter_args)
            values: list[ir.Value] = []
            for column in columns:
                own = {operand: loaded.element(0, column) for operand, loaded in tiles.items()}
                before = so_far[column * self.outputs : (column + 1) * self.outputs]
                values += self.folded(tile.moved(inner, 0, column), before, own)
            scf.yield_(values)
        results = [over_lanes(fold, value, LANES) for fold, value in zip([*self.folds] * len(columns), loop.results_)]
        with create_if(equal(lane, index(0))):
            rows = []
            for column in columns:
                starts = [self.start(output, tile.moved(place, 0, column)) for output in range(self.outputs)]
                rows.append(self._finished(starts, results[column * self.outputs : (column + 1) * self.outputs]))
            self._store_row(rows, place)

    def _finished(self, starts: Sequence[ir.Value | None], folded: Sequence[ir.Value]) -> list[ir.Value]:
        """Returns the results of an element, of what the outputs hold before and the folded values."""
        assert self.folds is not None
        return [
            converted(fold.folded(converted(start, fold.type), value), fold.op.results[0].type)
            for fold, start, value in zip(self.folds, starts, folded)
        ]

    def _element(self, element: ir.Value, lane: ir.Value | None, lanes: int) -> None:
        """Computes an element of each result, by a thread, or as many as there are lanes."""
        loops: dict[int, ir.Value] = self.indices(element, self.parallel)
        if self.part is not None:
            self._replace(self.part, loops)
            return
        if not self.reduced:
            self.store(self._elementwise(loops), loops)
            return
        folds = self.folds
        starts = [self.start(number, loops) for number in range(self.outputs)]
        # What no iteration reads may be any number: one of them writes it.
        begin = [constant(value.type, 0) if start is None else start for start, value in zip(starts, self.end.operands)]
        if folds is not None:
            begin = [fold.neutral() for fold in folds]
        count = self.terms()
        if lane is not None and self.extremum is not None:
            store_extremum(self, self.extremum, loops, lane, lanes)
            return
        loop = scf.ForOp(lane or index(0), index(count), index(1 if lane is None else WARP), begin)
        with ir.InsertionPoint(loop.body):
            inner = {**loops, **self.indices(loop.induction_variable, self.reduced)}
            so_far = list(loop.inner_iter_args)
            scf.yield_(self.folded(inner, so_far) if folds is not None else self.iteration(inner, so_far))
        results: list[ir.Value] = list(loop.results_)
        if folds is None:
            self.store(results, loops)
            return
        if lane is not None:
            results = [over_lanes(fold, value, LANES) for fold, value in zip(folds, results)]
        results = self._finished(starts, results)
        if lane is None:
            self.store(results, loops)
            return
        with create_if(equal(lane, index(0))):
            self.store(results, loops)

    def _replace(self, part: Part, loops: dict[int, ir.Value]) -> None:
        """Computes an element of a part of the result; the others keep what they are.

        Args:
            part: of the result.
            loops: indices of the element in the part.
        """
        is_in: ir.Value | None = None
        # The start of the part depends on none of the indices that it is added to.
        begins = self.computed(loops, [None] * self.outputs, {})
        for loop, (begin, _) in part.ranges.items():
            if begin is None:
                continue
            place = begins.get(begin, begin)
            if not isinstance(place.type, ir.IndexType):
                place = arith.index_cast(ir.IndexType.get(), place)
            loops = {**loops, loop: arith.addi(loops[loop], place)}
            # Unsigned: a position before the first element is not in the result either.
            inside = less_than(loops[loop], index(self.sizes[loop]))
            is_in = inside if is_in is None else arith.andi(is_in, inside)
        with create_if(is_in) if is_in is not None else contextlib.nullcontext():
            values = self.values_of(loops)
            self.store([values.get(part.value, part.value)], loops)
