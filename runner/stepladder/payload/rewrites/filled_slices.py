"""Slices and elements of filled tensors become fills of their size, and the scalar.

Front ends write them for zeros that they join with a tensor.

Upstream folds those of constants, and elements of a fill. A kernel that extracts elements takes arguments alone.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.linalg_ops import create_named_op, indexing_maps
from stepladder.mlir.traverse import producer, walk

_COPYING = ("linalg.broadcast", "linalg.generic")
_SLICE, _ELEMENT = "tensor.extract_slice", "tensor.extract"


def forward(function: ir.Operation) -> None:
    """Replaces each `tensor.extract_slice` of static sizes, and each `tensor.extract`, of what a `linalg.fill` makes.

    Ops that repeat the number of a constant, as `stablehlo.broadcast_in_dim` is lowered, become fills first.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, *_COPYING):
        _fill(op)
    for op in walk(function, _SLICE, _ELEMENT):
        fill = producer(op.operands[0])
        if fill is None or fill.name != "linalg.fill" or not fill.results:
            continue
        value = fill.operands[0]
        if op.name == _SLICE:
            type_ = ir.RankedTensorType(op.results[0].type)
            if not type_.has_static_shape:
                continue
            with ir.InsertionPoint(op), op.location:
                empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
                value = create_named_op("linalg.fill", [value], empty).results[0]
        op.results[0].replace_all_uses_with(value)
        op.erase()


def _fill(op: ir.Operation) -> None:
    """Replaces an op on tensors that copies a constant of one number by a `linalg.fill`."""
    if len(op.operands) != 2 or len(op.results) != 1 or not indexing_maps(op)[1].is_permutation:
        return
    number, body = constant_number(op.operands[0]), op.regions[0].blocks[0]
    if number is None or len(body.operations) != 1 or body.operations[0].operands[0] != body.arguments[0]:
        return
    with ir.InsertionPoint(op), op.location:
        element = ir.RankedTensorType(op.results[0].type).element_type
        value = ir.Operation.create("arith.constant", results=[element], attributes={"value": number}).results[0]
        filled = create_named_op("linalg.fill", [value], op.operands[1]).results[0]
    op.results[0].replace_all_uses_with(filled)
    op.erase()
