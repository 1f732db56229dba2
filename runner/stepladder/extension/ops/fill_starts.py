"""`tc.fill_starts`: has reductions that start from a constant tensor start from a `linalg.fill` with its number."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import producer, walk


class FillStarts(Tc.Operation, name="fill_starts"):
    """Replaces constant tensors whose elements are one number, and that a `linalg.generic` or a `linalg.reduce` begins
    from, by fills.

    A kernel begins from the number in a register; from a constant it would begin from a copy in memory.

    Operands: a handle to functions on tensors. Other constants stay.
    """

    target: Handle


@transform_op(FillStarts)
def fill_starts(payload: ir.Operation, op: FillStarts, rewriter: Rewriter) -> None:
    """Rewrites the ops below `payload`; see the op."""
    for reduction in walk(payload, "linalg.generic", "linalg.reduce"):
        first = len(reduction.operands) - len(reduction.results)
        for place in range(first, len(reduction.operands)):
            number = _number_of(reduction.operands[place])
            if number is None or not list(reduction.regions[0].blocks[0].arguments[place].uses):
                continue
            type_ = reduction.operands[place].type
            with ir.InsertionPoint(reduction), reduction.location:
                empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
                fill = create_named_op("linalg.fill", [arith.constant(number.type, number)], empty)
            reduction.operands[place] = fill.results[0]


def _number_of(start: ir.Value) -> ir.Attribute | None:
    """Returns the number that all elements of a constant tensor are; None for another value."""
    source = producer(start)
    value = source.attributes["value"] if source is not None and source.name == "arith.constant" else None
    return value.get_splat_value() if isinstance(value, ir.DenseElementsAttr) and value.is_splat else None
