"""Slices that are inserted into tensors: where an element of the result is in one of them."""

from __future__ import annotations

import itertools

from stepladder.extension.lib.arithmetic import boolean, index, less_than
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_loop_index
from stepladder.mlir.slices import numbers_of

INSERTION = "tensor.insert_slice"


def extracted(insertion: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """Returns whether an element of the result is one of the slice, and the element there: its own, or else the first
    one. Created in the body of an elementwise op that computes the result.

    Axes of one element of the result that the slice does not have are dropped.

    Args:
        insertion: a `tensor.insert_slice` at a static offset.
    """
    type_ = ir.RankedTensorType(insertion.operands[0].type)
    remaining_sizes = list(type_.shape)
    inside: ir.Value | None = None
    indices: list[ir.Value] = []
    extents = ir.RankedTensorType(insertion.operands[1].type).shape
    for axis, offset, size, stride in zip(itertools.count(), *numbers_of(insertion)):
        number = create_loop_index(axis)
        if (offset, size) == (0, extents[axis]) and remaining_sizes[:1] == [size]:  # each element is in the slice
            remaining_sizes.pop(0)
            indices.append(number)
            continue
        # Unsigned: an index before the slice is larger than any in it.
        place = arith.subi(number, index(offset)) if offset else number
        is_in = less_than(place, index(size * stride))
        if stride > 1:
            is_hit = arith.cmpi(arith.CmpIPredicate.eq, arith.remui(place, index(stride)), index(0))
            is_in, place = arith.andi(is_in, is_hit), arith.divui(place, index(stride))
        inside = is_in if inside is None else arith.andi(inside, is_in)
        if remaining_sizes and size == remaining_sizes[0]:
            remaining_sizes.pop(0)
            indices.append(arith.select(is_in, place, index(0)))
    if inside is None:
        inside = boolean(True)
    element = ir.Operation.create(
        "tensor.extract", results=[type_.element_type], operands=[insertion.operands[0], *indices]
    )
    return inside, element.results[0]
