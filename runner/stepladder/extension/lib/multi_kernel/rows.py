"""Chains of linalg ops over the same rows: reductions along rows, and elementwise ops that read their results.

A row is a point of the outer loops, which all ops of a chain have; loops of one iteration do not count. The same rules
hold for ops on tensors, of which a chain is found, and for those on buffers, of which it is computed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.element_bodies import VECTOR_BYTES, has_vectors, operand_loops, vector_bits
from stepladder.extension.lib.epilogues.folds import Fold, fold_of
from stepladder.extension.lib.threads import WARP
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps

_BYTE = 8  # bits
# Columns above which the threads of a block compute a row, and not those of a warp.
LONG = 512
# Rows of this length are a kernel for each op, unless there are enough of them to occupy a GPU.
_TOO_LONG, _ENOUGH = 65536, 64
# Threads of a block, by the least loads of 16 bytes in a row. Of f16 on an H200, rows of 8192 took 20% less time by 512
# threads than by 256, rows of 4096 45% more; rows of 131072 took 14% less by 1024 than by 512
# (docs/results/row_threads.json).
_THREADS = ((16384, 1024), (1024, 512), (0, 256))
# With as many results of a reduction along outer loops and more, threads that reduce one each have enough loads in
# flight: of f16 on an H200, 4096 sums of 4096 values took 89.5 us so, and 20.4 us by warps; 65536 sums of 512 took 23.1
# us, and 36.7 us by warps (docs/results/column_reductions.json).
MANY_RESULTS = 3 << 13
# Vectors of each operand that a thread of a block, or a lane, keeps in registers, where they are the whole row.
HELD, HELD_BY_LANES = 4, 8
# A warp computes a longer row, too, if it consists of at most as many vectors, and there are many rows.
_VECTORS_OF_WARP, _MANY_ROWS = 256, 1 << 11
# With fewer threads, a lane computes one vector of a row.
_FEW_THREADS = 1 << 15
# Elements from which on a reduction along short rows is a chain of its own: it loads vectors.
_MANY_ELEMENTS = 1 << 16
# Types that the lanes of a warp exchange.
_EXCHANGED = ("f32", "i32")


@dataclass(frozen=True)
class RowOp:
    """A `linalg.generic` whose indexing maps are projected permutations.

    Attributes:
        op: on tensors, or on buffers.
    """

    op: ir.Operation

    @cached_property
    def body(self) -> ir.Block:
        """The block of the op."""
        return self.op.regions[0].blocks[0]

    @cached_property
    def end(self) -> ir.Operation:
        """The op that yields the results."""
        return operations_of(self.body)[-1]

    @cached_property
    def outputs(self) -> int:
        """How many results the op has."""
        return len(self.end.operands)

    @cached_property
    def inputs(self) -> int:
        """How many operands the op reads."""
        return len(self.body.arguments) - self.outputs

    @cached_property
    def maps(self) -> list[list[int | None]]:
        """The loops along the axes of each operand; raises Refusal for other maps than projected permutations."""
        return [operand_loops(self.op, map_) for map_ in indexing_maps(self.op)]

    @cached_property
    def sizes(self) -> list[int]:
        """Iterations of each loop."""
        sizes = [1] * indexing_maps(self.op)[0].n_dims
        for operand, map_ in zip(self.op.operands, self.maps):
            for size, loop in zip(ir.ShapedType(operand.type).shape, map_):
                if loop is not None:
                    sizes[loop] = size
        return sizes

    def counted(self, loops: list[int | None]) -> list[int]:
        """Returns those of some loops that have more than one iteration.

        Args:
            loops: of the op.
        """
        return [loop for loop in loops if loop is not None and self.sizes[loop] > 1]

    @cached_property
    def kept(self) -> list[int]:
        """The loops of more than one iteration that the results have, in the order of their axes."""
        return self.counted(self.maps[-1])

    @cached_property
    def reduced(self) -> list[int]:
        """The loops of more than one iteration that the results do not have."""
        return [loop for loop in range(len(self.sizes)) if self.sizes[loop] > 1 and loop not in self.kept]

    @cached_property
    def folds(self) -> list[Fold] | None:
        """How the results are reduced by lanes; None where the body is no fold of a type that they exchange."""
        folds = [fold_of(self.op, number) for number in range(self.outputs)]
        lane_folds = [_exchanged(fold) for fold in folds if fold is not None]
        are_exchanged = all(str(fold.type) in _EXCHANGED for fold in lane_folds)
        return lane_folds if len(lane_folds) == len(folds) and are_exchanged else None

    @cached_property
    def is_reduction(self) -> bool:
        """Whether lanes can reduce the rows: along neighbours in memory."""
        if not self.reduced or self.folds is None:
            return False
        largest = self.counted(max(self.maps[: self.inputs], key=len, default=[]))
        return bool(largest) and largest[-1] == self.reduced[-1]

    def rows(self) -> list[int]:
        """Returns the sizes of the loops that the results have: of a reduction, those of the rows."""
        return [self.sizes[loop] for loop in self.kept]

    def columns(self, rank: int) -> list[int]:
        """Returns the loops of a row, without those of one iteration.

        Args:
            rank: how many loops the rows have.
        """
        return self.reduced if self.reduced else self.kept[rank:]

    def is_over(self, rows: list[int]) -> bool:
        """Returns whether the op is a reduction along these rows, or elementwise on them or on one number of each.

        Args:
            rows: sizes of the outer loops.
        """
        if any(self.counted(map_) != self.kept for map_ in self.maps[self.inputs :]):
            return False
        if self.kept != sorted(self.kept):
            return False
        if self.reduced:
            is_inner = not self.kept or self.kept[-1] < self.reduced[0]
            return self.is_reduction and is_inner and self.rows() == rows
        return self.rows()[: len(rows)] == rows

    def reads_row_by_row(self, number: int, rank: int, of_rows: bool) -> bool:
        """Returns whether an operand is read at the row that is computed.

        Args:
            number: of the operand.
            rank: how many loops the rows have.
            of_rows: whether the operand has one number of each row, and no columns.
        """
        loops = self.counted(self.maps[number])
        return (loops == self.kept[:rank]) if of_rows else (loops[:rank] == self.kept[:rank])


def _exchanged(fold: Fold) -> Fold:
    """Returns a fold in f32 of one of 16-bit floating-point numbers: an extremum has the same value."""
    is_narrow = isinstance(fold.type, (ir.F16Type, ir.BF16Type))
    return dataclasses.replace(fold, type=ir.F32Type.get()) if is_narrow else fold


def vector_width(op: RowOp, rank: int, lanes: int) -> int:
    """Returns how many neighbouring columns a thread computes at once: as many as are 16 bytes of the widest operand
    that has the columns; 1 where no operand has such vectors.

    Args:
        op: on buffers, over the rows.
        rank: how many loops the rows have.
        lanes: threads of a row.
    """
    columns = op.columns(rank)
    if len(columns) != 1:
        return 1
    elements = [
        ir.MemRefType(operand.type).element_type
        for operand, loops in zip(op.op.operands, op.maps)
        if loops[-1:] == columns and loops.count(columns[0]) == 1 and has_vectors(operand, 1)
    ]
    width = VECTOR_BYTES * 8 // max(map(vector_bits, elements)) if elements else 1
    while width > 1 and (op.sizes[columns[0]] % width or op.sizes[columns[0]] < lanes * width):
        width //= 2
    return width


def length_of(op: RowOp, rank: int) -> int:
    """Returns how many iterations an op has in a row.

    Args:
        op: over the rows.
        rank: how many loops the rows have.
    """
    return math.prod(op.sizes[loop] for loop in op.columns(rank))


def is_too_long(rows: Sequence[int], length: int) -> bool:
    """Returns whether rows are so long, and so few, that a block for each of them takes longer than several kernels.

    Args:
        rows: sizes of the loops over the rows.
        length: of a row.
    """
    return length > _TOO_LONG and math.prod(rows) < _ENOUGH


def is_chain(op: RowOp) -> bool:
    """Returns whether a reduction along rows is computed by rows even if no other op is.

    Args:
        op: the reduction.
    """
    length = length_of(op, len(op.kept))
    return length > LONG or length * math.prod(op.rows()) >= _MANY_ELEMENTS


def lanes_of_row(ops: Sequence[RowOp], rows: Sequence[int], threads: int) -> int:
    """Returns how many threads compute a row: a block where it is long, else lanes of a warp.

    Args:
        ops: of a chain, on buffers.
        rows: sizes of the loops over the rows. Those of a warp divide them, so that all of its lanes exchange values.
        threads: of a block.
    """
    rank, count = len(rows), math.prod(rows)
    vectors = max(-(-length_of(op, rank) // vector_width(op, rank, 1)) for op in ops)
    if max(length_of(op, rank) for op in ops) > LONG and (vectors > _VECTORS_OF_WARP or count < _MANY_ROWS):
        return threads
    lanes = math.gcd(vectors, WARP)
    if vectors > lanes * HELD or count * lanes < _FEW_THREADS:
        lanes = min(WARP, 1 << (vectors - 1).bit_length())
    return max(lanes, WARP // math.gcd(count, WARP))


def row_threads(length: int, width: int) -> int:
    """Returns the threads of a block that computes a row.

    Args:
        length: of the row.
        width: how many neighbouring columns a vector of 16 bytes has.
    """
    loads = length if length % width else length // width
    return next(threads for least, threads in _THREADS if loads >= least)


def block_threads(generics: Sequence[ir.Operation]) -> int:
    """Returns the threads of the blocks that compute a chain.

    Args:
        generics: the ops of the chain, on tensors.
    """
    ops = [RowOp(generic) for generic in generics]
    rank = len(next((op.kept for op in ops if op.reduced), []))
    return max(row_threads(length_of(op, rank), column_width(op, op.columns(rank))) for op in ops)


def column_width(op: RowOp, columns: Sequence[int]) -> int:
    """Returns how many neighbouring columns are 16 bytes of the widest operand that has some of the columns.

    Args:
        op: on tensors.
        columns: loops.
    """
    bits = [
        vector_bits(ir.ShapedType(operand.type).element_type)
        for operand, loops in zip(op.op.operands, op.maps)
        if set(loops) & set(columns)
    ]
    return VECTOR_BYTES * 8 // max([_BYTE, *bits])
