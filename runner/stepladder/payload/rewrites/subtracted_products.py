"""Rewrites contractions that subtract products from their output: to a sum of products, and a difference after it."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_generic, create_named_op
from stepladder.mlir.traverse import producer, walk

# The op that adds, by the one that subtracts.
_ADDITIONS = {"arith.subf": "arith.addf", "arith.subi": "arith.addi"}
_PRODUCTS = ("arith.mulf", "arith.muli")


def separate(function: ir.Operation) -> None:
    """Replaces C - AB by AB, accumulated from zeros, and the difference of C and AB, which an epilogue computes.

    Args:
        function: a function on static tensors or buffers; it is changed where a `linalg.generic` subtracts.
    """
    for op in walk(function, "linalg.generic"):
        _subtract_negated(op)
        subtraction = _subtraction(op)
        if subtraction is not None:
            _separate(op, subtraction)


def _subtract_negated(op: ir.Operation) -> None:
    """Replaces the sum of an output and a negated product by the difference of the two, which is the same number."""
    body = op.regions[0].blocks[0]
    end = body.operations[len(body.operations) - 1].operation
    last = producer(end.operands[0]) if len(end.operands) == 1 else None
    if last is None or last.name != "arith.addf" or last.block != body:
        return
    for sums, term in (list(last.operands), list(reversed(list(last.operands)))):
        negation = producer(term)
        if sums != body.arguments[len(body.arguments) - 1] or negation is None or negation.name != "arith.negf":
            continue
        product = producer(negation.operands[0])
        if product is None or product.name not in _PRODUCTS or product.block != body:
            continue
        with ir.InsertionPoint(last), last.location:
            difference = ir.Operation.create("arith.subf", results=[sums.type], operands=[sums, negation.operands[0]])
        last.results[0].replace_all_uses_with(difference.results[0])
        last.erase()
        if not list(negation.results[0].uses):
            negation.erase()
        return


def _subtraction(op: ir.Operation) -> ir.Operation | None:
    """Returns the op by which a contraction subtracts from its one output; None for another linalg op."""
    body = op.regions[0].blocks[0]
    end = body.operations[len(body.operations) - 1].operation
    if "reduction" not in str(op.attributes["iterator_types"]) or len(end.operands) != 1:
        return None
    so_far, last = body.arguments[len(body.arguments) - 1], producer(end.operands[0])
    if last is None or last.name not in _ADDITIONS or last.block != body:
        return None
    product = producer(last.operands[1])
    if product is None or product.name not in _PRODUCTS or product.block != body:
        return None
    is_static = ir.ShapedType(op.operands[len(op.operands) - 1].type).has_static_shape
    return last if last.operands[0] == so_far and len(list(so_far.uses)) == 1 and is_static else None


def _separate(op: ir.Operation, subtraction: ir.Operation) -> None:
    output = op.operands[len(op.operands) - 1]
    type_ = ir.ShapedType(output.type)
    addition = _ADDITIONS[subtraction.name]
    with ir.InsertionPoint(op), op.location:
        is_buffer = isinstance(output.type, ir.MemRefType)
        sums = _zeros(list(type_.shape), type_.element_type, is_buffer=is_buffer)
        empty = output
        if not is_buffer:
            empty = ir.Operation.create("tensor.empty", results=[output.type]).results[0]
    op.operands[len(op.operands) - 1] = sums
    with ir.InsertionPoint(subtraction), subtraction.location:
        total = ir.Operation.create(addition, results=[type_.element_type], operands=list(subtraction.operands))
    subtraction.results[0].replace_all_uses_with(total.results[0])
    with ir.InsertionPoint.after(op), op.location:
        identity = ir.AffineMap.get_identity(type_.rank)
        start = producer(output)
        # The scalar of a splat tensor, or None; a buffer is read as the output.
        number = start.operands[0] if start is not None and start.name == "linalg.fill" else None
        inputs = [sums if is_buffer else op.results[0], *([] if is_buffer or number is not None else [output])]
        difference, body = create_generic(inputs, [empty], [identity] * (len(inputs) + 1))
        right, initial, *_ = body.arguments
        left = initial if number is None else number
        with ir.InsertionPoint(body):
            scalar = ir.Operation.create(subtraction.name, results=[type_.element_type], operands=[left, right])
            ir.Operation.create("linalg.yield", operands=scalar.results)
    if not is_buffer:
        op.results[0].replace_all_uses_except(difference.results[0], [difference])
    subtraction.erase()


def _zeros(shape: list[int], element: ir.Type, *, is_buffer: bool) -> ir.Value:
    """Creates a tensor, or a buffer, of zeros, at the insertion point."""
    number = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    zero = ir.Operation.create("arith.constant", results=[element], attributes={"value": number}).results[0]
    if not is_buffer:
        empty = ir.Operation.create("tensor.empty", results=[ir.RankedTensorType.get(shape, element)]).results[0]
        return create_named_op("linalg.fill", [zero], empty).results[0]
    segments: dict[str, ir.Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
    buffer = ir.Operation.create("memref.alloc", results=[ir.MemRefType.get(shape, element)], attributes=segments)
    create_named_op("linalg.fill", [zero], buffer.results[0])
    return buffer.results[0]
