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
from stepladder.extension.lib.element_bodies import operand_loops
from stepladder.extension.lib.epilogues.folds import Fold, fold_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps

# Columns above which the threads of a block compute a row, and not those of a warp.
LONG = 512
# Rows of this length are a kernel for each op, unless there are enough of them to occupy a GPU.
_TOO_LONG, _ENOUGH = 65536, 64
# Elements from which on a reduction along short rows is a chain of its own: it loads vectors.
_MANY_ELEMENTS = 1 << 16
# Types that the lanes of a warp exchange.
_EXCHANGED = ("f32", "i32", "f64", "i64")


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
        """The loops of more than one iteration that the results have: of a reduction in the order of their axes."""
        loops = self.counted(self.maps[-1])
        return loops if self.reduced else sorted(loops)

    @cached_property
    def reduced(self) -> list[int]:
        """The loops of more than one iteration that the results do not have."""
        result_loops = self.counted(self.maps[-1])
        return [loop for loop in range(len(self.sizes)) if self.sizes[loop] > 1 and loop not in result_loops]

    @cached_property
    def is_turned(self) -> bool:
        """Whether the results have the rows in another order than the loops."""
        return self.counted(self.maps[-1]) != self.kept

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
        arguments = list(self.body.arguments)[: self.inputs]
        # Axes of one element do not count: the loops along them are dropped later.
        read = [self.counted(map_) for map_, argument in zip(self.maps, arguments) if list(argument.uses)]
        largest = max(read, key=len, default=[])
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
        result_loops = [self.counted(map_) for map_ in self.maps[self.inputs :]]
        if self.kept != sorted(self.kept) or any(sorted(loops) != self.kept for loops in result_loops):
            return False
        # The columns of a result are those of the op; the rows of an elementwise op may be in any order.
        if any(
            loops[0 if self.reduced else len(rows) :] != self.kept[0 if self.reduced else len(rows) :]
            for loops in result_loops
        ):
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
