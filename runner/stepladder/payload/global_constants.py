"""Constants that are globals of a module, as bufferization leaves them: constants of the function that reads them."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.refusal import refuse


def inline(function: ir.Operation) -> None:
    """Replaces each `memref.get_global` of a constant by an `arith.constant` and a `bufferization.to_buffer`.

    Args:
        function: in its module; it is changed where there are such ops.

    Raises:
        StepladderError: a global that has no number yet, or that functions may change.
    """
    for op in walk(function, "memref.get_global"):
        if not list(op.results[0].uses):
            op.erase()
            continue
        name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
        found = _global(op, name)
        if found is None or "constant" not in found.attributes or "initial_value" not in found.attributes:
            raise refuse(
                op,
                f"'memref.get_global' of @{name}, whose numbers are not constant",
                "accepted: a memref.global with the keyword constant and its numbers; arguments for others",
            )
        _replace(op, found.attributes["initial_value"])


def _global(op: ir.Operation, name: str) -> ir.Operation | None:
    """Returns the global that a name means where an op is: of the innermost module around it that has one."""
    around = op.parent
    while around is not None:
        if around.name == "builtin.module":
            for item in around.regions[0].blocks[0].operations:
                if item.operation.name == "memref.global" and ir.StringAttr(item.attributes["sym_name"]).value == name:
                    return item.operation
        around = around.parent
    return None


def _replace(op: ir.Operation, numbers: ir.Attribute) -> None:
    buffer = ir.MemRefType(op.results[0].type)
    with ir.InsertionPoint(op), op.location:
        tensor = ir.RankedTensorType.get(buffer.shape, buffer.element_type)
        constant = ir.Operation.create("arith.constant", results=[tensor], attributes={"value": numbers})
        made = ir.Operation.create("bufferization.to_buffer", results=[buffer], operands=constant.results)
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()
