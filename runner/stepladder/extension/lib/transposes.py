"""Transposed views of matrices, and of the matrices of a batch, by `memref.transpose`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer

_T = TypeVar("_T")


def _transpose_of(view: ir.Value) -> ir.Operation | None:
    """Returns the `memref.transpose` that a value is a view of; None where it is of none."""
    op = producer(view)
    while op is not None and op.name == "memref.subview":
        op = producer(op.operands[0])
    return op if op is not None and op.name == "memref.transpose" else None


def is_transposed(view: ir.Value) -> bool:
    """Returns whether a value is a view of a `memref.transpose`.

    Args:
        view: a buffer, or a view of one; slices are looked through.
    """
    return _transpose_of(view) is not None


def has_odd_rows(view: ir.Value) -> bool:
    """Returns whether a value is a view of a `memref.transpose` whose rows have an odd number of elements.

    Args:
        view: a buffer, or a view of one; slices are looked through.
    """
    op = _transpose_of(view)
    return op is not None and ir.MemRefType(op.results[0].type).shape[-1] % 2 == 1


def _transposed(values: Sequence[_T]) -> list[_T]:
    """Returns what belongs to each dimension of a transposed matrix, or of the transposed matrices of a batch."""
    return [*values[:-2], values[-1], values[-2]]


def source_of_transpose(view: ir.Value) -> ir.Value | None:
    """Returns the view of a matrix whose transpose a value is, or None where it is no view of a `memref.transpose`.

    A slice of a transposed matrix becomes a slice of the matrix, created at the current insertion point, and a slice of
    one of the transposed matrices of a batch a slice of one of the matrices; a slice of several is none.

    Args:
        view: a buffer, or a view of one.
    """
    op = producer(view)
    if op is not None and op.name == "memref.transpose":
        return op.operands[0]
    if op is None or op.name != "memref.subview" or ir.MemRefType(view.type).rank > 2:
        return None
    source = source_of_transpose(op.operands[0])
    if source is None:
        return None
    type_ = ir.MemRefType(view.type)
    strides, offset = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    attributes, operands, counts = {}, [], []
    dynamic = list(op.operands)[1:]
    for name in ("static_offsets", "static_sizes", "static_strides"):
        numbers = list(ir.DenseI64ArrayAttr(op.attributes[name]))
        values = [dynamic.pop(0) if number == unknown else None for number in numbers]
        dynamic_values = [value for value in _transposed(values) if value is not None]
        attributes[name] = ir.DenseI64ArrayAttr.get(_transposed(numbers))
        operands += dynamic_values
        counts.append(len(dynamic_values))
    layout = ir.StridedLayoutAttr.get(offset, _transposed(strides))
    result = ir.MemRefType.get(
        _transposed(type_.shape), type_.element_type, layout=layout, memory_space=type_.memory_space
    )
    return ir.Operation.create(
        "memref.subview",
        results=[result],
        operands=[source, *operands],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, *counts]), **attributes},
    ).results[0]


def transpose(buffer: ir.Value) -> ir.Value:
    """Returns the transposed view of a matrix, or of the matrices of a batch, at the current insertion point.

    Args:
        buffer: of two dimensions, or of three for a batch, with strides.
    """
    type_ = ir.MemRefType(buffer.type)
    strides, offset = type_.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, _transposed(strides))
    shape = _transposed(type_.shape)
    view = ir.MemRefType.get(shape, type_.element_type, layout=layout, memory_space=type_.memory_space)
    order = _transposed([ir.AffineExpr.get_dim(number) for number in range(type_.rank)])
    return ir.Operation.create(
        "memref.transpose",
        results=[view],
        operands=[buffer],
        attributes={"permutation": ir.AffineMapAttr.get(ir.AffineMap.get(type_.rank, 0, order))},
    ).results[0]
