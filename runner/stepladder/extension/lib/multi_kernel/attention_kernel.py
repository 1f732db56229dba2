"""The kernel of an attention: a block computes queries of a head, and reads keys and values tile by tile."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from stepladder.extension.lib import memory, tma, vectors, warpgroup_ops
from stepladder.extension.lib.arithmetic import apply, constant, equal, index, less_than
from stepladder.extension.lib.control_flow import create_if, create_if_below, operations_of
from stepladder.extension.lib.element_bodies import create_forall
from stepladder.extension.lib.multi_kernel.attention import COLUMN, ROW, Attention, Operand
from stepladder.extension.lib.multi_kernel.attention_logits import Logits, has_causal_mask
from stepladder.extension.lib.multi_kernel.attention_places import Places, Row, Tile
from stepladder.extension.lib.multi_kernel.attention_splits import Combination
from stepladder.extension.lib.multi_kernel.attention_weights import (
    correction,
    divided,
    folded,
    over_lanes,
    pair_of,
    powers,
    reciprocal,
)
from stepladder.extension.lib.threads import WARP, WARPGROUP
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, gpu, ir, memref, nvgpu, nvvm, scf

KEYS, VALUES = "keys", "values"  # the attributes of tiles that each iteration copies
SWIZZLE = 128  # bytes of a row of a box in shared memory
_CHUNK = 16  # bytes that cp.async copies
_MATRIX = 8  # columns of which a thread has two adjacent elements
_STEP = 16  # keys of one product with the values
_HALVES = 2  # rows of a thread: eight apart
_F16_EXPONENT = 15  # of the largest power of two in f16


class AttentionKernel:
    """Writes the loops over blocks and threads of an attention.

    The rows of a block, 64 for each warpgroup, are queries of a head, or of all heads that share keys and values, if a
    block has so many rows. A thread has two rows of each instruction's 64, and of a row of scores two adjacent elements
    of eight; four neighbouring lanes have a row. It keeps the maxima of its rows, its part of their sums, and its part
    of the result, which is multiplied by what the maxima have grown by, before the products of a tile with the values
    are added to it (online softmax). With splits, blocks of a cluster have a part of the tiles each.

    Args:
        attention: the attention.
        buffers: of the tensors it reads.
        result: the buffer that is written.
        keys: of a tile.
        warpgroups: of a block.
        splits: parts of the tiles.
        fast: whether exponentials are approximated, and tiles of keys left out that a mask hides from all queries.
    """

    def __init__(
        self,
        attention: Attention,
        buffers: Mapping[ir.Value, ir.Value],
        result: ir.Value,
        *,
        keys: int,
        warpgroups: int,
        splits: int,
        fast: bool,
    ) -> None:
        self.attention, self.buffers, self.result = attention, buffers, result
        self.keys, self.splits, self.fast = keys, splits, fast
        self.rows, self.threads = warpgroups * MMA_ROWS, warpgroups * WARPGROUP
        self.element = ir.MemRefType(result.type).element_type
        self.f32 = ir.F32Type.get()
        self.places = Places(attention, self.rows)
        self.row_count, self.key_count = self.places.row_count, attention.shape[-1]
        # Splits are of all tiles: of those that a mask leaves, some blocks would have none.
        self.is_causal = splits == self.places.heads == 1 and has_causal_mask(attention)
        self.logits = Logits(attention, buffers, fast=fast)
        self.has_edge = self.key_count % keys != 0
        # Weights, and so sums of them, are multiplied by a power of two for which the second terms of small ones are
        # no subnormal numbers: the largest one in f16.
        self.exponent = _F16_EXPONENT if attention.terms > 1 and isinstance(self.element, ir.F16Type) else 0

    def write(self) -> None:
        """Creates the loops at the insertion point."""
        count, blocks = self.places.groups, self.places.blocks
        number = create_forall(count * blocks * self.splits, "block")
        with ir.InsertionPoint(operations_of(number.owner)[-1]):
            self.split = apply(lambda b: ir.AffineExpr.get_mod(b, self.splits), number)
            block = apply(lambda b: ir.AffineExpr.get_floor_div(b, self.splits), number)
            # Queries that attend to most keys come first: the last blocks are short.
            self.first = apply(lambda b: (blocks - 1 - ir.AffineExpr.get_floor_div(b, count)) * self.rows, block)
            self.places.begin(apply(lambda b: ir.AffineExpr.get_mod(b, count), block))
            tiles = [
                self._tile(self.attention.queries, self.rows, ROW),
                self._tile(self.attention.keys, self.keys, COLUMN, KEYS),
                self._tile(self.attention.values, self.keys, COLUMN, VALUES),
            ]
            own = min(self.rows, self.row_count)
            self.combination = Combination(self.splits, own, tiles[-1].depth) if self.splits > 1 else None
            self.thread = create_forall(self.threads, "thread")
            with ir.InsertionPoint(operations_of(self.thread.owner)[-1]):
                self._compute(*tiles)

    def _tile(self, operand: Operand, rows: int, axis: int, name: str = "") -> Tile:
        """Returns a tile of a tensor, of which rows are in shared memory."""
        buffer = self.buffers[operand.value]
        type_ = ir.MemRefType(buffer.type)
        width = SWIZZLE // types.byte_width(type_.element_type)
        space = types.address_space(types.WORKGROUP)
        tile_type = ir.MemRefType.get([type_.shape[-1] // width, rows, width], type_.element_type, memory_space=space)
        tile = memref.alloc(tile_type, [], [])
        if name:
            tile.owner.attributes[name] = ir.UnitAttr.get()
        return Tile(operand, buffer, rows, axis, tile)

    def _compute(self, queries: Tile, keys: Tile, values: Tile) -> None:
        """Creates what a thread does."""
        floor, mod = ir.AffineExpr.get_floor_div, ir.AffineExpr.get_mod
        self.row = apply(
            lambda t: floor(t, WARP) * (MMA_ROWS // 4) + floor(mod(t, WARP), 4), self.thread
        )  # in the block, of the first of the thread's two
        self.column = apply(lambda t: mod(t, 4) * 2, self.thread)  # of eight
        first = apply(lambda t: floor(t, WARPGROUP) * MMA_ROWS, self.thread)
        self._copy(queries, self.first)
        with_values = types.accumulator(MMA_ROWS, values.depth, self.f32)
        lowest, zero = constant(self.f32, float("-inf")), constant(self.f32, 0.0)
        begin = [warpgroup_ops.init_accumulator(with_values), lowest, lowest, zero, zero]
        first_key, count = self._split()
        loop = scf.ForOp(index(0), count, index(self.keys), begin)
        with ir.InsertionPoint(loop.body):
            key = loop.induction_variable
            if self.splits > 1:
                key = arith.addi(first_key, key)
            for tile in (keys, values):
                self._copy(tile, key)
            nvvm.cp_async_commit_group()
            nvvm.cp_async_wait_group(0)
            tma.fence_async_proxy()
            gpu.barrier()
            result, *state = loop.inner_iter_args
            scores = self._scores(queries, first, keys)
            logits = self._logits(scores, key)
            weights, factors, largest, sums = self._softmax(logits, state[:_HALVES], state[_HALVES:])
            result = self._add(self._scaled(result, factors), weights, values)
            gpu.barrier()
            scf.yield_([result, *largest, *sums])
        result, *state = loop.results_
        totals = [over_lanes(total, arith.addf) for total in state[_HALVES:]]
        if self.combination is None:
            self._store(result, totals)
        else:
            self._combine(self.combination, result, state[:_HALVES], totals)

    def _split(self) -> tuple[ir.Value, ir.Value]:
        """Returns the first key of the block's tiles, and how many keys these have."""
        if self.splits == 1:
            return index(0), self._end()
        tiles = -(-self.key_count // self.keys)
        begin, stop = (
            apply(lambda s, n=number: ir.AffineExpr.get_floor_div((s + n) * tiles, self.splits) * self.keys, self.split)
            for number in (0, 1)
        )
        return begin, arith.subi(stop, begin)

    def _end(self) -> ir.Value:
        """Returns the end of the keys that queries of the block attend to."""
        if not (self.is_causal and self.fast):
            return index(self.key_count)
        end = apply(
            lambda q: ir.AffineExpr.get_floor_div(q + (self.rows + self.keys - 1), self.keys) * self.keys, self.first
        )
        return arith.minsi(end, index(self.key_count))

    def _copy(self, tile: Tile, begin: ir.Value) -> None:
        """Begins to copy a tile: 16 bytes a thread and copy, in the order of memory; rows beyond the tensor are 0."""
        width = _CHUNK // types.byte_width(self.element)
        per_row = tile.depth // width
        step = self.threads // per_row
        in_box = SWIZZLE // _CHUNK
        thread = self.thread
        row = apply(lambda t: ir.AffineExpr.get_floor_div(t, per_row), thread)
        column = apply(lambda t: ir.AffineExpr.get_mod(t, per_row) * width, thread)
        box = apply(lambda t: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(t, per_row), in_box), thread)
        chunk = apply(lambda t: ir.AffineExpr.get_mod(t, in_box), thread)
        # The swizzle exchanges the chunks of a row by its index among eight.
        swizzled_chunk = arith.xori(chunk, apply(lambda r: ir.AffineExpr.get_mod(r, in_box), row))
        to = apply(lambda c: c * width, swizzled_chunk)
        for number in range(tile.rows // step):
            place = apply(lambda r, n=number: r + n * step, row) if number else row
            source_row, filled = arith.addi(begin, place), None
            extent = {ROW: self.row_count, COLUMN: self.key_count}[tile.axis]
            if extent % tile.rows:
                inside = less_than(source_row, index(extent))
                source_row, filled = (
                    arith.minui(source_row, index(extent - 1)),
                    arith.select(inside, index(width), index(0)),
                )
            row_of_queries = self.places.row(source_row) if tile.axis == ROW else None
            source = self.places.address(tile.operand, column, row=row_of_queries, key=source_row)
            nvgpu.device_async_copy(
                tile.shared_buffer,
                [box, place, to],
                tile.buffer,
                source,
                width,
                src_elements=filled,
                bypass_l1=True,
            )

    def _descriptor(self, view: ir.Value, rows: int, columns: int) -> ir.Value:
        type_ = types.matrix_descriptor(rows, columns, self.element)
        return warpgroup_ops.describe_tile(type_, view, SWIZZLE)

    def _scores(self, queries: Tile, first: ir.Value, keys: Tile) -> list[list[list[ir.Value]]]:
        """Returns the products of a warpgroup's queries and the keys of a tile: by matrix, row and side."""
        boxes, _, width = ir.MemRefType(queries.shared_buffer.type).shape
        own = memory.subview(queries.shared_buffer, [0, first, 0], [boxes, MMA_ROWS, width])
        zeros = warpgroup_ops.init_accumulator(types.accumulator(MMA_ROWS, self.keys, self.f32))
        sums = warpgroup_ops.multiply_accumulate(
            self._descriptor(own, MMA_ROWS, queries.depth),
            self._descriptor(keys.shared_buffer, keys.depth, self.keys),
            zeros,
            transpose_a=False,
            transpose_b=False,
            in_flight=0,
        )
        return self._elements(sums, self.keys)

    def _elements(self, accumulator: ir.Value, columns: int) -> list[list[list[ir.Value]]]:
        """Returns a thread's elements of an accumulator: by matrix, row and side."""
        vector = warpgroup_ops.as_vector(accumulator)
        return [
            [[vectors.extract(vector, [0, matrix, half, side], self.f32) for side in (0, 1)] for half in range(_HALVES)]
            for matrix in range(columns // _MATRIX)
        ]

    def _logits(self, scores: list[list[list[ir.Value]]], key: ir.Value) -> list[list[list[ir.Value]]]:
        """Returns what elementwise ops make of scores; of keys beyond the last one minus infinity."""
        if not self.has_edge and not self.is_causal:
            return self._evaluated(scores, key, visible=False)
        last = apply(lambda k: k + (self.keys - 1), key)
        conditions = []
        if self.has_edge:
            conditions.append(less_than(last, index(self.key_count)))
        if self.is_causal:
            # Queries of the block attend to all keys before its first one.
            conditions.append(arith.cmpi(arith.CmpIPredicate.ule, last, self.first))
        count = len(scores) * _HALVES * 2
        branch = scf.IfOp(functools.reduce(arith.andi, conditions), [self.f32] * count, has_else=True)
        for block, is_whole in ((branch.then_block, True), (branch.else_block, False)):
            with ir.InsertionPoint(block):
                logits = self._evaluated(scores, key, visible=self.is_causal and is_whole, at_edge=not is_whole)
                scf.yield_([value for matrix in logits for half in matrix for value in half])
        values = iter(branch.results_)
        return [[[next(values) for _ in (0, 1)] for _ in range(_HALVES)] for _ in scores]

    def _evaluated(
        self, scores: list[list[list[ir.Value]]], key: ir.Value, *, visible: bool, at_edge: bool = False
    ) -> list[list[list[ir.Value]]]:
        rows = self._numbers()
        if self.row_count % self.rows:
            rows = [arith.minui(row, index(self.row_count - 1)) for row in rows]
        rows = [self.places.row(row) for row in rows]
        column = arith.addi(key, self.column)
        logits = []
        for matrix, halves in enumerate(scores):
            at = apply(lambda c, n=matrix * _MATRIX: c + n, column)
            if not (at_edge and self.has_edge):
                logits.append([self.logits.of(pair, row, at, visible=visible) for pair, row in zip(halves, rows)])
                continue
            # What hides keys reads no element beyond the last one.
            inside = [less_than(place, index(self.key_count)) for place in (at, apply(lambda c: c + 1, at))]
            last = arith.minui(at, index(self.key_count - 1 - (self.key_count + 1) % 2))
            pairs = [self.logits.of(pair, row, last, visible=visible) for pair, row in zip(halves, rows)]
            lowest = constant(self.f32, float("-inf"))
            logits.append(
                [[arith.select(is_in, value, lowest) for is_in, value in zip(inside, pair)] for pair in pairs]
            )
        return logits

    def _softmax(
        self, logits: list[list[list[ir.Value]]], largest: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> tuple[list[list[list[ir.Value]]], list[ir.Value], list[ir.Value], list[ir.Value]]:
        """Returns exponentials, what those of tiles before are multiplied by, and the maxima and sums of rows."""
        weights = [[[] for _ in range(_HALVES)] for _ in logits]
        factors, maxima, totals = [], [], []
        for half in range(_HALVES):
            own = [value for matrix in logits for value in matrix[half]]
            maximum = over_lanes(folded(own, arith.maxnumf), arith.maxnumf)
            maximum = arith.maxnumf(largest[half], maximum)
            # Of a row without keys so far, the exponentials are zero, and not those of a difference of infinities.
            is_empty = arith.cmpf(arith.CmpFPredicate.OEQ, maximum, constant(self.f32, float("-inf")))
            base = arith.select(is_empty, constant(self.f32, 0.0), maximum)
            row_powers = powers(own, base, factor=self.logits.factor, exponent=self.exponent, fast=self.fast)
            for matrix, row in enumerate(weights):
                row[half] = row_powers[2 * matrix : 2 * matrix + 2]
            factor = correction(largest[half], base, factor=self.logits.factor, fast=self.fast)
            factors.append(factor)
            maxima.append(maximum)
            totals.append(arith.addf(arith.mulf(sums[half], factor), folded(row_powers, arith.addf)))
        return weights, factors, maxima, totals

    def _scaled(self, result: ir.Value, factors: Sequence[ir.Value]) -> ir.Value:
        """Returns an accumulator whose rows are multiplied by a factor each."""
        columns = types.accumulator_vector(result.type).shape[1]
        elements = [
            arith.mulf(value, factor)
            for matrix in self._elements(result, columns)
            for half, factor in zip(matrix, factors)
            for value in half
        ]
        return warpgroup_ops.as_accumulator(elements, result.type)

    def _add(self, result: ir.Value, weights: list[list[list[ir.Value]]], values: Tile) -> ir.Value:
        """Returns the accumulator with the products of weights and values of a tile."""
        descriptor = self._descriptor(values.shared_buffer, self.keys, values.depth)
        pair = ir.VectorType.get([2], self.element)
        fragment_type = ir.VectorType.get([1, 4, 2], self.element)
        zeros = ir.DenseElementsAttr.get_splat(fragment_type, ir.FloatAttr.get(self.element, 0.0))
        fragments = []
        for step in range(self.keys // _STEP):
            terms = [arith.constant(fragment_type, zeros) for _ in range(self.attention.terms)]
            for number in range(4):
                matrix, half = 2 * step + number // 2, number % 2
                parts = divided(pair_of(weights[matrix][half]), pair, self.attention.terms)
                terms = [vectors.insert(part, term, [0, number]) for part, term in zip(parts, terms)]
            fragments += [(step, term) for term in terms]
        for step, fragment in fragments:
            result = warpgroup_ops.multiply_registers(fragment, descriptor, result, step=step, transpose_b=True)
        nvvm.wgmma_wait_group_sync_aligned(0)
        return result

    def _store(self, result: ir.Value, totals: Sequence[ir.Value]) -> None:
        """Divides the result by the sums of its rows, and stores it."""
        columns = types.accumulator_vector(result.type).shape[1]
        elements = self._elements(result, columns)
        for half, (number, total) in enumerate(zip(self._numbers(), totals)):
            factor = reciprocal(total, zeroes=self.attention.zeroes_hidden)
            with create_if_below(number, index(self.row_count) if self.row_count % self.rows else None):
                row = self.places.row(number)
                for matrix, halves in enumerate(elements):
                    column = apply(lambda c, n=matrix * _MATRIX: c + n, self.column)
                    wide = pair_of([arith.mulf(value, factor) for value in halves[half]])
                    self._write(wide, row, column)

    def _numbers(self) -> list[ir.Value]:
        """Returns the numbers of a thread's rows."""
        return [arith.addi(self.first, apply(lambda r, n=half: r + n * _MATRIX, self.row)) for half in range(_HALVES)]

    def _write(self, wide: ir.Value, row: Row, column: ir.Value) -> None:
        """Rounds neighbouring elements of the result, and stores them."""
        type_ = ir.VectorType.get(ir.VectorType(wide.type).shape, self.element)
        address = self.places.address(self.attention.result, column, row=row)
        memory.store_vector(arith.truncf(type_, wide), self.result, *address)

    def _combine(
        self, combination: Combination, result: ir.Value, largest: Sequence[ir.Value], totals: Sequence[ir.Value]
    ) -> None:
        """Exchanges what the blocks of the cluster have computed of their keys, and stores a part of the result."""
        columns = types.accumulator_vector(result.type).shape[1]
        elements = self._elements(result, columns)
        is_first = equal(self.column, index(0))
        for half in range(_HALVES):
            own = apply(lambda r, n=half: r + n * _MATRIX, self.row)
            with create_if_below(own, index(combination.rows) if combination.rows % self.rows else None):
                for matrix, halves in enumerate(elements):
                    column = apply(lambda c, n=matrix * _MATRIX: c + n, self.column)
                    combination.store(pair_of(halves[half]), own, column)
                with create_if(is_first):
                    combination.store_state(largest[half], totals[half], own)

        def write(own: ir.Value, column: ir.Value, wide: ir.Value) -> None:
            number = arith.addi(self.first, own)
            is_partial = self.row_count > self.rows and self.row_count % self.rows
            with create_if_below(number, index(self.row_count) if is_partial else None):
                self._write(wide, self.places.row(number), column)

        zeroes = self.attention.zeroes_hidden
        factor = self.logits.factor
        combination.create(self.split, self.thread, self.threads, write, factor=factor, zeroes=zeroes, fast=self.fast)
