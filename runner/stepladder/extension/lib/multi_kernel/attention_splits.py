"""The blocks of a cluster that compute an attention: exchange of what each has of its keys."""

from __future__ import annotations

import functools
from collections.abc import Callable

from stepladder.extension.lib import memory, remote_memory
from stepladder.extension.lib.arithmetic import apply, constant, index
from stepladder.extension.lib.multi_kernel.attention_weights import correction, pair_of, reciprocal
from stepladder.extension.lib.vectors import extract
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, memref, scf, vector

_WIDTH = 4  # elements of a row that a thread combines at once
_STATE = 2  # numbers of a row: the largest logit, and the sum of the weights
# Elements between rows: the eight rows that a warp stores to at once begin in other banks of shared memory.
_PAD = 8


class Combination:
    """Partial results in the shared memory of each block of a cluster, and their sum.

    A block has sums of products with its values, relative to the largest logit of its keys. The sums of all blocks are
    multiplied by the exponential of the difference to the largest one of all, and added. Each block combines some of
    the elements, which it reads from all blocks.

    Args:
        splits: blocks of the cluster.
        rows: of scores that a block has.
        depth: elements of a row.
    """

    def __init__(self, splits: int, rows: int, depth: int) -> None:
        self.splits, self.rows, self.depth = splits, rows, depth
        f32, space = ir.F32Type.get(), types.address_space(types.WORKGROUP)
        self._sums, self._states = (
            memref.alloc(ir.MemRefType.get([rows, count], f32, memory_space=space), [], [])
            for count in (depth + _PAD, _STATE)
        )

    def store(self, sums: ir.Value, row: ir.Value, column: ir.Value) -> None:
        """Stores neighbouring sums of the own block.

        Args:
            sums: a vector of f32.
            row, column: of its first element.
        """
        memory.store_vector(sums, self._sums, row, column)

    def store_state(self, largest: ir.Value, total: ir.Value, row: ir.Value) -> None:
        """Stores what the sums of a row are relative to.

        Args:
            largest: the largest logit of the block's keys.
            total: the sum of their weights.
            row: its index.
        """
        memory.store_vector(pair_of([largest, total]), self._states, row, index(0))

    def create(
        self,
        rank: ir.Value,
        thread: ir.Value,
        threads: int,
        write: Callable[[ir.Value, ir.Value, ir.Value], None],
        *,
        factor: float,
        zeroes: bool,
        fast: bool,
    ) -> None:
        """Creates the loop over a thread's elements of the result. Before it, all blocks have stored their sums, and
        none ends before all have read them.

        Args:
            rank: of the block in the cluster.
            thread: its index.
            threads: of a block.
            write: creates what is done with neighbouring elements, given a row of the block, a column, and a vector.
            factor: that logits are to be multiplied by.
            zeroes: whether rows without keys are zero; else they are NaN.
            fast: whether exponentials are approximated.
        """
        remote_memory.cluster_barrier()
        sums, states = (
            remote_memory.addresses_in_cluster(buffer, self.splits) for buffer in (self._sums, self._states)
        )
        per_row = self.depth // _WIDTH
        begin = apply(lambda r, t: r * threads + t, rank, thread)
        loop = scf.ForOp(begin, index(self.rows * per_row), index(self.splits * threads))
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            row = apply(lambda n: ir.AffineExpr.get_floor_div(n, per_row), number)
            column = apply(lambda n: ir.AffineExpr.get_mod(n, per_row) * _WIDTH, number)
            write(row, column, self._combined(row, column, sums, states, factor=factor, zeroes=zeroes, fast=fast))
            scf.yield_([])
        remote_memory.cluster_barrier()

    def _combined(
        self,
        row: ir.Value,
        column: ir.Value,
        sums: list[ir.Value],
        states: list[ir.Value],
        *,
        factor: float,
        zeroes: bool,
        fast: bool,
    ) -> ir.Value:
        """Returns the elements of the result at a place, not rounded."""
        f32 = ir.F32Type.get()
        of_state, of_sums = (ir.VectorType.get([count], f32) for count in (_STATE, _WIDTH))
        place = apply(lambda r: r * _STATE, row)
        loaded = [remote_memory.load(address, place, of_state) for address in states]
        largest, totals = ([extract(state, [item], f32) for state in loaded] for item in range(_STATE))
        maximum = functools.reduce(arith.maxnumf, largest)
        # Of a row without keys, the exponentials are zero, and not those of a difference of infinities.
        is_empty = arith.cmpf(arith.CmpFPredicate.OEQ, maximum, constant(f32, float("-inf")))
        base = arith.select(is_empty, constant(f32, 0.0), maximum)
        factors = [correction(value, base, factor=factor, fast=fast) for value in largest]
        total = functools.reduce(arith.addf, [arith.mulf(value, factor) for value, factor in zip(totals, factors)])
        at = apply(lambda r, c: r * (self.depth + _PAD) + c, row, column)
        parts = [remote_memory.load(address, at, of_sums) for address in sums]
        scaled = [arith.mulf(part, vector.broadcast(of_sums, factor)) for part, factor in zip(parts, factors)]
        scale = vector.broadcast(of_sums, reciprocal(total, zeroes=zeroes))
        return arith.mulf(functools.reduce(arith.addf, scaled), scale)
