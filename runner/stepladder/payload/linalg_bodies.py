"""Bodies of linalg ops: recognizes the forms that pipelines compile."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.rounding import rounds_to_nearest

# Casts of A's and B's elements that linalg.matmul has, of signed integers.
_SIGNED_CASTS = ("arith.extf", "arith.truncf", "arith.extsi", "arith.trunci", "arith.sitofp", "arith.fptosi")


def _inner(op: ir.Operation) -> list[ir.Operation]:
    """Returns the ops in the body of a structured op."""
    return [inner.operation for inner in op.regions[0].blocks[0].operations]


def multiplies_and_adds(matmul: ir.Operation) -> bool:
    """Returns whether a matmul's body is the one that its name says: casts of the inputs, a product, a sum.

    Args:
        matmul: a linalg op of two inputs and one output, with its body.
    """
    block = matmul.regions[0].blocks[0]
    if len(block.operations) < 3:
        return False
    *casts, product, total, end = _inner(matmul)
    if any(cast.name not in _SIGNED_CASTS for cast in casts):
        return False
    factors = [operand.owner.operands[0] if operand.owner in casts else operand for operand in product.operands]
    kind = "f" if product.name == "arith.mulf" else "i"
    return (
        (product.name, total.name, end.name) == (f"arith.mul{kind}", f"arith.add{kind}", "linalg.yield")
        and set(factors) == set(list(block.arguments)[:2])
        and set(total.operands) == {block.arguments[2], product.results[0]}
        and end.operands[0] == total.results[0]
    )


def adds_and_rounds(generic: ir.Operation) -> bool:
    """Returns whether an op adds to each element of one output, extended, that of one input, and rounds the sum once.

    Args:
        generic: any op; one other than `linalg.generic` does not.
    """
    if not _is_elementwise(generic, "arith.extf", "arith.addf", "arith.truncf"):
        return False
    product, sums = generic.regions[0].blocks[0].arguments
    extension, total, *last = _inner(generic)
    return (
        extension.operands[0] == sums
        and set(total.operands) == {product, extension.results[0]}
        and _rounds(total.results[0], *last)
    )


def rounds(generic: ir.Operation) -> bool:
    """Returns whether an op writes each element of one input, rounded to nearest, to the same position of one output.

    Args:
        generic: any op; one other than `linalg.generic` does not.
    """
    return _is_elementwise(generic, "arith.truncf") and _rounds(
        generic.regions[0].blocks[0].arguments[0], *_inner(generic)
    )


def _is_elementwise(generic: ir.Operation, *names: str) -> bool:
    """Returns whether an op maps each element of an input to the same position of one output, by ops of these names."""
    if generic.name != "linalg.generic" or len(generic.operands) != 2:
        return False
    maps = [ir.AffineMapAttr(attribute).value for attribute in generic.attributes["indexing_maps"]]
    return [op.name for op in _inner(generic)] == [*names, "linalg.yield"] and all(
        map_ == ir.AffineMap.get_identity(map_.n_dims) for map_ in maps
    )


def _rounds(value: ir.Value, rounding: ir.Operation, end: ir.Operation) -> bool:
    """Returns whether a body ends by rounding a value to nearest, and yields it."""
    return rounding.operands[0] == value and end.operands[0] == rounding.results[0] and rounds_to_nearest(rounding)


def dependent(
    ops: Sequence[ir.Operation], yields: Sequence[ir.Value], so_far: Sequence[ir.Value], places: Sequence[int]
) -> tuple[list[int], list[ir.Operation]]:
    """Returns the outputs of a body that some of them depend on.

    Args:
        ops: of the body, in order.
        yields: what it yields for each output.
        so_far: its arguments for the outputs.
        places: indices of the outputs that are wanted.

    Returns:
        The indices of these and of those that they read, and the ops that compute all of them, in order.
    """
    kept = set(places)
    while True:
        needed, needed_ops = {yields[place] for place in kept}, []
        for op in reversed(ops):
            if needed.intersection(op.results):
                needed.update(op.operands)
                needed_ops.append(op)
        more = {place for place, value in enumerate(so_far) if value in needed} - kept
        if not more:
            return sorted(kept), needed_ops[::-1]
        kept |= more
