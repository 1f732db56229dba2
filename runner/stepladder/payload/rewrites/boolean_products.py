"""Contractions of booleans as products of integers: two factors are both true where their count is not 0."""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_named_op, indexing_maps, loops_of
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import name_of

_TRUTH = "i1"


def count(function: ir.Operation) -> None:
    """Replaces contractions whose body is `arith.andi` and `arith.ori` of booleans by sums in i32, and comparisons.

    Args:
        function: a function on static tensors; it is changed where there are such ops, as of `linalg.matmul` of i1.
    """
    for op in [op for op in walk(function) if op.name.startswith("linalg.") and _is_contraction(op)]:
        _replace(op)


def _is_contraction(op: ir.Operation) -> bool:
    """Returns whether an op has the loops and the body of a contraction of two matrices of booleans: each has a loop
    that the other one does not have, and they share one that is reduced."""
    types = [value.type for value in op.operands]
    is_of_tensors = len(types) == 3 and len(op.results) == 1 and all(isinstance(t, ir.RankedTensorType) for t in types)
    if not is_of_tensors or any(name_of(ir.ShapedType(t).element_type) != _TRUTH for t in types):
        return False
    left_loops, right_loops, kept_loops = ({*loops_of(map_)} for map_ in indexing_maps(op))
    if not (left_loops - right_loops and right_loops - left_loops and left_loops & right_loops - kept_loops):
        return False
    body = op.regions[0].blocks[0]
    inner = [item.operation for item in body.operations]
    if [item.name for item in inner] != ["arith.andi", "arith.ori", "linalg.yield"]:
        return False
    (left, right, so_far), (product, total, end) = body.arguments, inner
    return (
        set(product.operands) == {left, right}
        and set(total.operands) == {so_far, product.results[0]}
        and end.operands[0] == total.results[0]
    )


def _replace(op: ir.Operation) -> None:
    left, right, start = op.operands
    i32 = ir.IntegerType.get_signless(32)
    shape = ir.RankedTensorType(start.type).shape
    identity = ir.AffineMap.get_identity(len(shape))
    with ir.InsertionPoint(op), op.location:
        empty = _empty(shape, i32)
        zeros = create_named_op("linalg.fill", [arith.constant(i32, 0)], empty).results[0]
        counts, body = create_generic([left, right], [zeros], indexing_maps(op))
        with ir.InsertionPoint(body):
            left_number, right_number = (arith.extui(i32, value) for value in list(body.arguments)[:2])
            ir.Operation.create(
                "linalg.yield", operands=[arith.addi(body.arguments[2], arith.muli(left_number, right_number))]
            )
        # With what the sums start from.
        contraction, body = create_generic(
            [counts.results[0], start], [_empty(shape, ir.IntegerType.get_signless(1))], [identity] * 3
        )
        with ir.InsertionPoint(body):
            is_any = arith.cmpi(arith.CmpIPredicate.ne, body.arguments[0], arith.constant(i32, 0))
            ir.Operation.create("linalg.yield", operands=[arith.ori(is_any, body.arguments[1])])
    op.results[0].replace_all_uses_with(contraction.results[0])
    op.erase()


def _empty(shape: list[int], element: ir.Type) -> ir.Value:
    return ir.Operation.create("tensor.empty", results=[ir.RankedTensorType.get(shape, element)]).results[0]
