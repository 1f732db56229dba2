"""Copies of ops, with other operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


def clone_ops(
    ops: Iterable[ir.Operation], mapping: Mapping[ir.Value, ir.Value], point: ir.InsertionPoint
) -> dict[ir.Value, ir.Value]:
    """Clones ops at an insertion point, with their regions.

    Args:
        ops: in order.
        mapping: the values that clones take in place of those from outside; others stay as they are.
        point: where the clones are created.

    Returns:
        The results of the clones by those of the ops, and the known values.
    """
    values = dict(mapping)
    for op in ops:
        with op.location:
            clone = op.clone(point).operation
        for inner in walk(clone):
            for place, operand in enumerate(inner.operands):
                if operand in values:
                    inner.operands[place] = values[operand]
        values.update(zip(op.results, clone.results))
    return values
