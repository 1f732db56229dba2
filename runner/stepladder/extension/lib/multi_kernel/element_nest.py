"""The loops of a `linalg.generic` on buffers, distributed to threads."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence

from stepladder.extension.lib.arithmetic import apply, digits, equal, index, integer, less_than
from stepladder.extension.lib.control_flow import create_if, operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.element_bodies import LANES, as_float, compute_body, create_forall, load, operand_loops
from stepladder.extension.lib.epilogues.first_extrema import first_extremum_of
from stepladder.extension.lib.epilogues.folds import Fold, fold_of
from stepladder.extension.lib.epilogues.partial_results import over_lanes
from stepladder.extension.lib.memory import store_vector
from stepladder.extension.lib.multi_kernel.donation import Part, replaced_part
from stepladder.extension.lib.multi_kernel.initial_values import initial_of
from stepladder.extension.lib.multi_kernel.rows import MANY_RESULTS
from stepladder.extension.lib.multi_kernel.thread_tiles import LoadedTile, ThreadTile, address_of, find_thread_tile
from stepladder.extension.lib.threads import WARP
from stepladder.mlir.bindings import arith, ir, scf
from stepladder.mlir.linalg_ops import indexing_maps

# With fewer threads, multiprocessors are idle: threads of ops that are more than a copy compute an element each.
_FEWEST_THREADS = 1 << 15
# With fewer results of a reduction along outer loops, a warp reduces each, even if its lanes load no neighbours.
_FEW_RESULTS = 1 << 11
_FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)  # which lanes exchange, as f32


def _is_i32(type_: ir.Type) -> bool:
    return str(type_) == "i32"


class ElementNest:
    """The loops of a `linalg.generic`, and what they compute; ops are created at the current insertion point.

    Attributes:
        initializing: fills and copies that initialize the results, which the loops replace.

    Args:
        generic: on buffers.

    Raises:
        Refusal: as `tc.distribute_elements`.
    """

    def __init__(self, generic: ir.Operation) -> None:
        self.generic = generic
        self.body = generic.regions[0].blocks[0]
        self.end = operations_of(self.body)[-1]
        self.outputs = len(self.end.operands)
        self.inputs = len(self.body.arguments) - self.outputs
        self.maps = [operand_loops(generic, map_) for map_ in indexing_maps(generic)]
        self.sizes = self._sizes(indexing_maps(generic)[0].n_dims)
        parallel_loops = {tuple(sorted(loop for loop in map_ if loop is not None)) for map_ in self.maps[self.inputs :]}
        if len(parallel_loops) != 1:
            raise Refusal(generic, "results of different loops; accepted: results of one shape")
        (self.parallel,) = parallel_loops
        self.reduced = [loop for loop in range(len(self.sizes)) if loop not in self.parallel]
        self.initial = [
            initial_of(generic, self.inputs + number, self.body.arguments[self.inputs + number])
            for number in range(self.outputs)
        ]
        self.initializing = [op for initial in self.initial for op in initial.ops]
        self.folds = self._folds()
        self.extremum = first_extremum_of(generic) if self.reduced and self.folds is None else None
        self.part = replaced_part(generic, self.maps, self.inputs) if not self.reduced else None
        # Iterations of each loop that are computed.
        self.extents = self.sizes if self.part is None else self.part.extents(self.sizes)

    def _sizes(self, loops: int) -> list[int]:
        sizes = [1] * loops
        for operand, map_ in zip(self.generic.operands, self.maps):
            for size, loop in zip(ir.MemRefType(operand.type).shape, map_):
                if loop is not None:
                    sizes[loop] = size
        return sizes

    def _folds(self) -> list[Fold] | None:
        """Returns how all outputs are reduced; None where none is, or by another body than a fold."""
        folds = [fold_of(self.generic, number) for number in range(self.outputs)]
        all_folds = [fold for fold in folds if fold is not None]
        return all_folds if self.reduced and len(all_folds) == len(folds) else None

    def _lanes_reduce(self) -> bool:
        """Returns whether the lanes of a warp may reduce an element: there are as many values as lanes, of types that
        lanes exchange.
        """
        if math.prod(self.sizes[loop] for loop in self.reduced) < WARP:
            return False
        if self.extremum is not None:
            return isinstance(self.extremum.term.type, _FLOATS)
        types = [fold.type for fold in self.folds or () if isinstance(fold.type, ir.F32Type) or _is_i32(fold.type)]
        return len(types) == self.outputs

    def _is_along_rows(self) -> bool:
        """Returns whether the op reduces along neighbours in memory."""
        largest = max(self.maps[: self.inputs], key=len, default=[])
        return bool(largest) and bool(self.reduced) and largest[-1] == self.reduced[-1]

    def _elements(self) -> int:
        """Returns how many elements a result has."""
        return math.prod(self.sizes[loop] for loop in self.parallel)

    def _column_tile(self) -> ThreadTile | None:
        """Returns the neighbouring elements of a result that a warp reduces along columns of the operands; None where
        there are so many elements that each thread reduces one, or an operand has no such neighbours.
        """
        is_large = self._elements() >= MANY_RESULTS
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
            for row in range(tile.rows):
                results: list[list[ir.Value]] = []
                for column in range(tile.columns):
                    loops = tile.moved(place, row, column)
                    own = {operand: loaded.element(row, column) for operand, loaded in tiles.items()}
                    starts = [self._start(output, loops) for output in range(self.outputs)]
                    results.append(self._iteration(loops, starts, len(self.end.operands), own))
                self._store_row(results, tile.moved(place, row, 0))

    def _store_row(self, results: Sequence[Sequence[ir.Value]], loops: dict[int, ir.Value]) -> None:
        """Stores neighbours along the innermost loop, of which each is a value for each result."""
        if len(results) == 1:
            self._store(results[0], loops)
            return
        for output, values in enumerate(zip(*results)):
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
        is_for_warps = column_tile is not None or (
            self._lanes_reduce() and (self._is_along_rows() or self._elements() < _FEW_RESULTS)
        )
        tile = column_tile or self._tile()
        elements = math.prod(self.extents[loop] for loop in self.parallel) if tile is None else tile.threads
        per_block = threads // WARP if is_for_warps else threads
        block = create_forall(-(-elements // per_block), "block")
        with ir.InsertionPoint(operations_of(block.owner)[-1]):
            thread = create_forall(threads, "thread")
            with ir.InsertionPoint(operations_of(thread.owner)[-1]):
                lane = apply(lambda t: t % WARP, thread) if is_for_warps else None
                place = apply(lambda t: ir.AffineExpr.get_floor_div(t, WARP), thread) if is_for_warps else thread
                element = apply(lambda b, t: b * per_block + t, block, place)
                with create_if(less_than(element, index(elements))):
                    if tile is None:
                        self._element(element, lane)
                    elif lane is None:
                        self._compute_tile(element, tile)
                    else:
                        self._reduce_tile(element, tile, lane)

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
        count = math.prod(self.sizes[loop] for loop in self.reduced)
        begins = [fold.neutral() for _ in columns for fold in self.folds]
        loop = scf.ForOp(lane, index(count), index(WARP), begins)
        with ir.InsertionPoint(loop.body):
            inner = {**place, **self._indices(loop.induction_variable, self.reduced)}
            tiles, so_far = self._tiles(tile, inner), list(loop.inner_iter_args)
            values: list[ir.Value] = []
            for column in columns:
                own = {operand: loaded.element(0, column) for operand, loaded in tiles.items()}
                before = so_far[column * self.outputs : (column + 1) * self.outputs]
                values += self._folded(tile.moved(inner, 0, column), before, own)
            scf.yield_(values)
        results = [over_lanes(fold, value, LANES) for fold, value in zip([*self.folds] * len(columns), loop.results_)]
        with create_if(equal(lane, index(0))):
            rows = []
            for column in columns:
                starts = [self._start(output, tile.moved(place, 0, column)) for output in range(self.outputs)]
                rows.append(self._finished(starts, results[column * self.outputs : (column + 1) * self.outputs]))
            self._store_row(rows, place)

    def _finished(self, starts: Sequence[ir.Value | None], folded: Sequence[ir.Value]) -> list[ir.Value]:
        """Returns the results of an element, of what the outputs hold before and the folded values."""
        assert self.folds is not None
        return [
            as_float(fold.folded(as_float(start, fold.type), value), fold.op.results[0].type)
            for fold, start, value in zip(self.folds, starts, folded)
        ]

    def _element(self, element: ir.Value, lane: ir.Value | None) -> None:
        """Computes an element of each result."""
        loops: dict[int, ir.Value] = self._indices(element, self.parallel)
        if self.part is not None:
            self._replace(self.part, loops)
            return
        if not self.reduced:
            starts = [self._start(number, loops) for number in range(self.outputs)]
            self._store(self._iteration(loops, starts, len(self.end.operands)), loops)
            return
        folds = self.folds
        starts = [self._start(number, loops) for number in range(self.outputs)]
        assert all(start is not None for start in starts)  # a reduction reads what it begins from
        begin = [fold.neutral() for fold in folds] if folds is not None else [item for item in starts if item]
        count = math.prod(self.sizes[loop] for loop in self.reduced)
        if lane is not None and self.extremum is not None:
            self._extremum(lane, loops, [start for start in starts if start], count)
            return
        loop = scf.ForOp(lane or index(0), index(count), index(1 if lane is None else WARP), begin)
        with ir.InsertionPoint(loop.body):
            inner = {**loops, **self._indices(loop.induction_variable, self.reduced)}
            so_far = list(loop.inner_iter_args)
            scf.yield_(self._folded(inner, so_far) if folds is not None else self._iteration(inner, so_far))
        results: list[ir.Value] = list(loop.results_)
        if folds is None:
            self._store(results, loops)
            return
        if lane is not None:
            results = [over_lanes(fold, value, LANES) for fold, value in zip(folds, results)]
        results = self._finished(starts, results)
        if lane is None:
            self._store(results, loops)
            return
        with create_if(equal(lane, index(0))):
            self._store(results, loops)

    def _replace(self, part: Part, loops: dict[int, ir.Value]) -> None:
        """Computes an element of a part of the result; the others keep what they are.

        Args:
            part: of the result.
            loops: indices of the element in the part.
        """
        is_in: ir.Value | None = None
        # The start of the part depends on none of the indices that it is added to.
        begins = self._computed(loops, [None] * self.outputs, {})
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
            values = self._values(loops)
            self._store([values.get(part.value, part.value)], loops)

    def _extremum(self, lane: ir.Value, loops: dict[int, ir.Value], starts: Sequence[ir.Value], count: int) -> None:
        """Computes an extremum and where it is, by the lanes of a warp, each of neighbouring iterations.

        Args:
            lane: of the thread.
            loops: indices of the element.
            starts: what the outputs hold before.
            count: of iterations.
        """
        extremum = self.extremum
        assert extremum is not None
        per_lane, f32 = -(-count // WARP), ir.F32Type.get()
        begin, end = apply(lambda x: x * per_lane, lane), apply(lambda x: x * per_lane + per_lane, lane)
        best = as_float(starts[extremum.value], f32)
        loop = scf.ForOp(begin, arith.minui(end, index(count)), index(1), [best, integer(-1, 32)])
        with ir.InsertionPoint(loop.body):
            values = self._values({**loops, **self._indices(loop.induction_variable, self.reduced)})
            term = as_float(values.get(extremum.term, extremum.term), f32)
            so_far, number = loop.inner_iter_args
            own = arith.index_cast(number.type, loop.induction_variable)
            number = arith.select(extremum.exceeds(term, so_far), own, number)
            scf.yield_([extremum.folded(so_far, term), number])
        best, number = extremum.over_lanes(*loop.results_)
        with create_if(equal(lane, index(0))):
            branch = scf.IfOp(arith.cmpf(arith.CmpFPredicate.UNO, best, best), has_else=True)
            with ir.InsertionPoint(branch.then_block):
                again = scf.ForOp(index(0), index(count), index(1), list(starts))
                with ir.InsertionPoint(again.body):
                    inner = {**loops, **self._indices(again.induction_variable, self.reduced)}
                    scf.yield_(self._iteration(inner, list(again.inner_iter_args)))
                self._store(list(again.results_), loops)
                scf.yield_([])
            with ir.InsertionPoint(branch.else_block):
                exceeds = arith.cmpi(arith.CmpIPredicate.sge, number, integer(0, 32))
                place = arith.index_cast(ir.IndexType.get(), arith.maxsi(number, integer(0, 32)))
                values = self._values({**loops, **self._indices(place, self.reduced)})
                results = list(starts)
                selected_value = values.get(extremum.selected, extremum.selected)
                results[extremum.place] = arith.select(exceeds, selected_value, starts[extremum.place])
                results[extremum.value] = as_float(best, starts[extremum.value].type)
                self._store(results, loops)
                scf.yield_([])

    def _values(self, loops: dict[int, ir.Value]) -> dict[ir.Value, ir.Value]:
        """Returns the values of the body that do not depend on the results so far, by those of the body."""
        return self._computed(loops, [None] * self.outputs, {})

    def _indices(self, number: ir.Value, loops: Sequence[int]) -> dict[int, ir.Value]:
        """Returns the indices of loops in an iteration of the one loop that they are flattened to, row-major."""
        return dict(zip(loops, digits(number, [self.extents[loop] for loop in loops])))

    def _start(self, number: int, loops: dict[int, ir.Value]) -> ir.Value | None:
        """Returns what an element of an output holds before the op."""
        initial = self.initial[number]
        if initial.buffer is not None:
            return load(initial.buffer, address_of(self.maps[self.inputs + number], loops))
        return initial.number

    def _iteration(
        self,
        loops: dict[int, ir.Value],
        so_far: Sequence[ir.Value | None],
        count: int | None = None,
        loaded: Mapping[int, ir.Value] | None = None,
    ) -> list[ir.Value]:
        """Returns what the body yields in an iteration; `loaded` has elements of operands by their index."""
        values = self._computed(loops, so_far, loaded or {})
        return [values.get(value, value) for value in self.end.operands][:count]

    def _folded(
        self, loops: dict[int, ir.Value], so_far: Sequence[ir.Value], loaded: Mapping[int, ir.Value] | None = None
    ) -> list[ir.Value]:
        """Returns the results so far with the terms of an iteration; `loaded` as for `_iteration`."""
        assert self.folds is not None
        values = self._computed(loops, [None] * self.outputs, loaded or {})
        return [
            fold.folded(value, as_float(values.get(fold.term, fold.term), fold.type))
            for fold, value in zip(self.folds, so_far)
        ]

    def _computed(
        self, loops: dict[int, ir.Value], so_far: Sequence[ir.Value | None], loaded: Mapping[int, ir.Value]
    ) -> dict[ir.Value, ir.Value]:
        """Returns the values of the body in an iteration, by those of the body; without `so_far`, not those that depend
        on it. Elements that are not `loaded` are."""
        values: dict[ir.Value, ir.Value] = {}
        for number, argument in enumerate(self.body.arguments):
            if number >= self.inputs:
                start = so_far[number - self.inputs]
                if start is not None:
                    values[argument] = start
            elif number in loaded:
                values[argument] = loaded[number]
            elif list(argument.uses):
                values[argument] = load(self.generic.operands[number], address_of(self.maps[number], loops))
        compute_body(self.body, values, loops)
        return values

    def _store(self, results: Sequence[ir.Value], loops: dict[int, ir.Value]) -> None:
        for number, value in enumerate(results):
            place = self.inputs + number
            operands = [value, self.generic.operands[place], *address_of(self.maps[place], loops)]
            ir.Operation.create("memref.store", operands=operands)
