"""Ops on buffers that read a buffer that they write."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.overlaps import are_apart, are_same
from stepladder.mlir.traverse import origin
from stepladder.payload.raised_views import VIEWS

# It has no maps: it writes each row where it reads it.
_SOFTMAX = "linalg.softmax"


def reads_what_it_writes(op: ir.Operation, outputs: Sequence[int]) -> bool:
    """Returns whether the order of an op's iterations matters: it reads a buffer that it writes, other than each
    element where it is written, once, and parts of the buffer that share no element with what it writes.

    Args:
        op: a linalg op.
        outputs: numbers of the operands that it writes.
    """
    return any(
        _is_shared(op, number, output) for output in outputs for number in range(len(op.operands)) if number != output
    )


def _is_shared(op: ir.Operation, number: int, output: int) -> bool:
    value, target = op.operands[number], op.operands[output]
    if not all(isinstance(item.type, ir.MemRefType) for item in (value, target)):
        return False
    if origin(value, VIEWS) != origin(target, VIEWS) or are_apart(value.type, target.type):
        return False
    if value != target and not are_same(value.type, target.type):
        return True
    if op.name == _SOFTMAX:
        return False
    maps = indexing_maps(op)
    # An element that several iterations write is read after some of them.
    return maps[number] != maps[output] or (number < output and not maps[output].is_permutation)
