"""Sums of integers in 64 bits of which only the low bits are read: matmuls in i32.

torch-mlir sums products of integers of all types in i64, and truncates the sums. Sums in i32 wrap, and have the same
low bits; matrix units compute them.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_generic, create_named_op, indexing_maps
from stepladder.mlir.traverse import users_of, walk

_MATMULS = ("linalg.matmul", "linalg.batch_matmul")
_BITS = 32


def narrow(function: ir.Operation) -> None:
    """Replaces matmuls in i64 that start from zeros, and whose results are all truncated to at most 32 bits.

    Args:
        function: a function on tensors; it is changed where there are such matmuls.
    """
    for op in walk(function, *_MATMULS):
        if not len(op.results) or not _may_be_narrow(op):
            continue
        casts = users_of(op.results[0])
        if casts and all(map(_is_truncation, casts)):
            _replace(op, casts)


def _width(type_: ir.Type) -> int | None:
    """Returns the bits of the integers of a tensor; None for other types."""
    element = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
    return element.width if isinstance(element, ir.IntegerType) else None


def _may_be_narrow(op: ir.Operation) -> bool:
    widths = [_width(operand.type) for operand in op.operands]
    start = repeated_number(op.operands[2])
    return (
        start is not None
        and start.value == 0
        and widths[2] == 2 * _BITS
        and all(width is not None and width <= _BITS for width in widths[:2])
    )


def _is_truncation(op: ir.Operation) -> bool:
    """Returns whether an op truncates all elements of a tensor to at most 32 bits."""
    width = _width(op.results[0].type) if len(op.results) == 1 else None
    if width is None or width > _BITS:
        return False
    if op.name == "arith.trunci":
        return True
    if op.name != "linalg.generic" or len(op.operands) != len("xy"):
        return False
    body = [item.operation for item in op.regions[0].blocks[0].operations]
    is_of_same_place = all(map_ == ir.AffineMap.get_identity(map_.n_dims) for map_ in indexing_maps(op))
    return is_of_same_place and [item.name for item in body] == ["arith.trunci", "linalg.yield"]


def _replace(op: ir.Operation, casts: list[ir.Operation]) -> None:
    """Replaces a matmul by one in i32, and truncations to i32 by its result."""
    shape = ir.RankedTensorType(op.results[0].type).shape
    sums = ir.IntegerType.get_signless(_BITS)
    attributes = {name: op.attributes[name] for name in ("indexing_maps", "cast") if name in op.attributes}
    with ir.InsertionPoint(op), op.location:
        zero = ir.Operation.create("arith.constant", results=[sums], attributes={"value": ir.IntegerAttr.get(sums, 0)})
        type_ = ir.RankedTensorType.get(shape, sums)
        empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        start = create_named_op("linalg.fill", [zero.results[0]], empty).results[0]
        product = create_named_op(op.name, list(op.operands)[:2], start, attributes).results[0]
    for cast in casts:
        result = cast.results[0]
        if _width(result.type) == _BITS:
            result.replace_all_uses_with(product)
        else:
            with ir.InsertionPoint(cast), cast.location:
                result.replace_all_uses_with(_truncated(product, ir.RankedTensorType(result.type)))
        cast.erase()
    op.erase()


def _truncated(value: ir.Value, type_: ir.RankedTensorType) -> ir.Value:
    """Returns integers in a narrower type."""
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic([value], [empty], [ir.AffineMap.get_identity(type_.rank)] * 2)
    with ir.InsertionPoint(body):
        cast = ir.Operation.create("arith.trunci", results=[type_.element_type], operands=[body.arguments[0]])
        ir.Operation.create("linalg.yield", operands=[cast.results[0]])
    return generic.results[0]
