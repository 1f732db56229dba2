"""The elements of the product that a reduction folds, where a tile may extend beyond C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib import memory, vectors
from stepladder.extension.lib.arithmetic import index, less_than
from stepladder.extension.lib.epilogues.elementwise import Elementwise, Position
from stepladder.extension.lib.epilogues.reduced_results import ReducedResult
from stepladder.mlir.bindings import arith, ir, scf
from stepladder.mlir.traverse import producer


@dataclass(frozen=True)
class Extents:
    """Rows and columns of the tile that are inside of C; None where all are.

    Attributes:
        rows, columns: the extents.
        are_vectors_whole: whether all elements of a vector that a lane has are inside of C, or none.
        rounds_pairs: whether one instruction rounds two elements (`paired_roundings`).
    """

    rows: ir.Value | None
    columns: ir.Value | None
    are_vectors_whole: bool
    rounds_pairs: bool = False


def elements_of(
    sums: Sequence[ir.Value], position: Position, elementwise: Elementwise, reduced: ReducedResult, extents: Extents
) -> list[ir.Value]:
    """Returns what is folded of a vector of the product, at the insertion point.

    Args:
        sums: the vector; of a pair of products, one of each.
        position: of its first element in the tile.
        elementwise: what is folded is computed by.
        reduced: the reduction.
        extents: what is inside of C; elements outside count as the neutral element.
    """
    type_ = ir.VectorType(sums[0].type)
    sides = range(type_.shape[0])
    if extents.are_vectors_whole or extents.columns is None:
        values = _inside(sums, position, elementwise, reduced, extents)
        return [vectors.extract(values, [side], reduced.type) for side in sides]
    elements: list[ir.Value] = []
    for side in sides:
        of_side = [vectors.extract(vector, [side], type_.element_type) for vector in sums]
        column = arith.addi(position.column, index(side)) if side else position.column
        elements.append(_inside(of_side, Position(position.row, column), elementwise, reduced, extents))
    return elements


def _inside(
    sums: Sequence[ir.Value], position: Position, elementwise: Elementwise, reduced: ReducedResult, extents: Extents
) -> ir.Value:
    """Returns what is folded of a vector of the product, or of one element; neutral elements outside of C."""
    conditions = [
        less_than(place, extent)
        for place, extent in ((position.row, extents.rows), (position.column, extents.columns))
        if extent is not None
    ]

    def computed() -> ir.Value:
        return elementwise.compute(sums, position, [reduced.output], rounds_pairs=extents.rounds_pairs)[0]

    if not conditions:
        return computed()
    condition = conditions[0] if len(conditions) == 1 else arith.andi(*conditions)
    type_ = reduced.type
    if isinstance(sums[0].type, ir.VectorType):
        type_ = ir.VectorType.get(ir.VectorType(sums[0].type).shape, reduced.type)
    branch = scf.IfOp(condition, [type_], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.yield_([computed()])
    with ir.InsertionPoint(branch.else_block):
        neutral = reduced.neutral()
        scf.yield_([vectors.repeated(neutral, type_.shape[0]) if isinstance(type_, ir.VectorType) else neutral])
    return branch.results[0]


def offsets_in(workspace: ir.Operation, view: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns the row and the column of a workspace at which a view of it begins, at the insertion point.

    Args:
        workspace: the `memref.alloc`.
        view: of it, through subviews.
    """
    row, column = index(0), index(0)
    op = producer(view)
    while op is not None and op != workspace:
        if op.name == "memref.subview":
            own = memory.offsets_of(op)
            row, column = arith.addi(row, own[0]), arith.addi(column, own[1])
        op = producer(op.operands[0])
    return row, column
