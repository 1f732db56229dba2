"""`tc.fill_starts`: has ops that start from a constant tensor start from a `linalg.fill` with its number."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import producer, walk


class FillStarts(Tc.Operation, name="fill_starts"):
    """Replaces constant tensors whose elements are one number, and that a matmul or a reduction begins from, by fills.

    A kernel begins from the number in a register; from a constant a reduction would begin from a copy in memory, and a
    matmul would be one that only the front of payloads recognizes, with one result.

    Operands: a handle to functions on tensors. Other constants stay.
    """

    target: Handle


@transform_op(FillStarts)
def fill_starts(payload: ir.Operation, op: FillStarts, rewriter: Rewriter) -> None:
    """Rewrites the ops below `payload`; see the op."""
    for item in walk(payload):
        if not item.name.startswith("linalg.") or not len(item.regions):
            continue
        arguments = item.regions[0].blocks[0].arguments
        for place in range(len(arguments) - len(item.results), len(arguments)):
            number = _number_of(item.operands[place])
            if number is None or not list(arguments[place].uses):
                continue
            type_ = ir.RankedTensorType(item.operands[place].type)
            with ir.InsertionPoint(item), item.location:
                empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
                fill = create_named_op("linalg.fill", [arith.constant(type_.element_type, number)], empty)
            item.operands[place] = fill.results[0]


def _number_of(start: ir.Value) -> ir.Attribute | None:
    """Returns the number that all elements of a constant tensor are; None for another value."""
    source = producer(start)
    value = source.attributes["value"] if source is not None and source.name == "arith.constant" else None
    return value.get_splat_value() if isinstance(value, ir.DenseElementsAttr) and value.is_splat else None
