"""Scalars that ops insert into tensors one by one, and paddings with computed values or by negative amounts."""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_loop_index, create_named_op
from stepladder.mlir.slices import static_numbers
from stepladder.mlir.traverse import producer, walk

_MAX_ELEMENTS = 16  # of a list, of which a kernel selects one


def lower(function: ir.Operation) -> None:
    """Replaces `tensor.insert` and `tensor.from_elements` of up to 16 scalars by linalg ops, and each `tensor.pad` with
    a computed scalar, or by a negative amount, by slices.

    Args:
        function: a function; it is changed where there are such ops on static tensors.
    """
    for op in walk(function, "tensor.insert"):
        if ir.RankedTensorType(op.results[0].type).has_static_shape:
            _replace_insertion(op)
    for op in walk(function, "tensor.from_elements"):
        type_ = ir.RankedTensorType(op.results[0].type)
        is_constant = all((source := producer(value)) and source.name == "arith.constant" for value in op.operands)
        is_shape = isinstance(type_.element_type, ir.IndexType)  # of `tensor.reshape`
        is_list = type_.rank == 1 or len(op.operands) == 1
        if is_list and 0 < len(op.operands) <= _MAX_ELEMENTS and not is_constant and not is_shape:
            _replace_list(op)
    for op in walk(function, "tensor.pad"):
        _replace_padding(op)


def _generic(inputs: list[ir.Value], type_: ir.RankedTensorType) -> tuple[ir.Operation, ir.Block]:
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    return create_generic(inputs, [empty], [ir.AffineMap.get_identity(type_.rank)] * (len(inputs) + 1))


def _finish(generic: ir.Operation, value: ir.Value, op: ir.Operation) -> None:
    """Yields a value in the body of a linalg op, at the insertion point, and replaces another op by the linalg op."""
    ir.Operation.create("linalg.yield", operands=[value])
    op.results[0].replace_all_uses_with(generic.results[0])


def _replace_insertion(op: ir.Operation) -> None:
    number, tensor, *indices = op.operands
    with ir.InsertionPoint(op), op.location:
        generic, body = _generic([tensor], ir.RankedTensorType(tensor.type))
        with ir.InsertionPoint(body):
            value = number
            for dimension, index in enumerate(indices):
                is_there = arith.cmpi(arith.CmpIPredicate.eq, create_loop_index(dimension), index)
                value = arith.select(is_there, value, body.arguments[0])
            _finish(generic, value, op)
    op.erase()


def _replace_list(op: ir.Operation) -> None:
    with ir.InsertionPoint(op), op.location:
        generic, body = _generic([], ir.RankedTensorType(op.results[0].type))
        with ir.InsertionPoint(body):
            value, *others = op.operands
            place = create_loop_index(0) if others else None
            for number, element in enumerate(others, 1):
                is_there = arith.cmpi(arith.CmpIPredicate.eq, place, arith.constant(ir.IndexType.get(), number))
                value = arith.select(is_there, element, value)
            _finish(generic, value, op)
    op.erase()


def _replace_padding(op: ir.Operation) -> None:
    """Replaces a padding by the insertion of a slice, of what negative amounts leave, into a splat of the scalar."""
    low, high = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{side}"])) for side in ("low", "high"))
    block = op.regions[0].blocks[0]
    number = block.operations[len(block.operations) - 1].operands[0]
    source = producer(number)
    is_inside = number in list(block.arguments) or (source is not None and source.block == block)
    is_constant = source is not None and source.name == "arith.constant"
    source_type, result_type = ir.RankedTensorType(op.operands[0].type), ir.RankedTensorType(op.results[0].type)
    is_static = source_type.has_static_shape and result_type.has_static_shape and len(op.operands) == 1
    if is_inside or not is_static or (is_constant and min(*low, *high) >= 0):
        return
    sizes = [size + min(low_pad, 0) + min(high_pad, 0) for size, low_pad, high_pad in zip(source_type.shape, low, high)]
    if min(sizes) < 1:
        return
    with ir.InsertionPoint(op), op.location:
        part = _slice("tensor.extract_slice", [op.operands[0]], [max(-item, 0) for item in low], sizes)
        empty = ir.Operation.create("tensor.empty", results=[result_type]).results[0]
        filled = create_named_op("linalg.fill", [number], empty).results[0]
        padded = _slice("tensor.insert_slice", [part, filled], [max(item, 0) for item in low], sizes)
    op.results[0].replace_all_uses_with(padded)
    op.erase()


def _slice(name: str, operands: list[ir.Value], offsets: list[int], sizes: list[int]) -> ir.Value:
    """Creates an op on a part of a tensor with these offsets and sizes."""
    is_inserted = name == "tensor.insert_slice"
    element = ir.RankedTensorType(operands[0].type).element_type
    type_ = operands[1].type if is_inserted else ir.RankedTensorType.get(sizes, element)
    attributes = static_numbers(offsets, sizes)
    if is_inserted:
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0])
    return ir.Operation.create(name, results=[type_], operands=operands, attributes=attributes).results[0]
