"""Constants that are globals of a module, as bufferization and front ends leave them: constants of the function that
reads them."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.refusal import refuse

_LOADS = ("ml_program.global_load", "ml_program.global_load_const")


def inline(function: ir.Operation) -> None:
    """Replaces each `memref.get_global` of a constant by an `arith.constant` and a `bufferization.to_buffer`, and each
    load of an `ml_program.global` that does not change by an `arith.constant`.

    Args:
        function: in its module; it is changed where there are such ops.

    Raises:
        StepladderError: a global that has no value yet, or that functions may change.
    """
    for op in walk(function, *_LOADS):
        _load(op)
    for op in walk(function, "memref.get_global"):
        if not list(op.results[0].uses):
            op.erase()
            continue
        name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
        global_ = _global(op, "memref.global", name)
        if global_ is None or "constant" not in global_.attributes or "initial_value" not in global_.attributes:
            raise refuse(
                op,
                f"'memref.get_global' of @{name}, whose values are not constant",
                "accepted: a memref.global with the keyword constant and its elements; arguments for others",
            )
        _replace(op, global_.attributes["initial_value"])


def _load(op: ir.Operation) -> None:
    """Replaces the load of a global by its constant; one that nothing reads is erased."""
    if not list(op.results[0].uses):
        op.erase()
        return
    name = str(op.attributes["global"]).removeprefix("@")
    global_ = _global(op, "ml_program.global", name)
    if global_ is None or "is_mutable" in global_.attributes or "value" not in global_.attributes:
        raise refuse(
            op,
            f"'{op.name}' of @{name}, whose values are not constant",
            "accepted: an ml_program.global that is not mutable, with its elements; arguments for others",
        )
    with ir.InsertionPoint(op), op.location:
        value = {"value": global_.attributes["value"]}
        constant = ir.Operation.create("arith.constant", results=[op.results[0].type], attributes=value)
    op.results[0].replace_all_uses_with(constant.results[0])
    op.erase()


def _global(op: ir.Operation, kind: str, name: str) -> ir.Operation | None:
    """Returns the global that a name means where an op is: of the innermost module around it that has one."""
    around = op.parent
    while around is not None:
        if around.name == "builtin.module":
            for item in around.regions[0].blocks[0].operations:
                if item.operation.name == kind and ir.StringAttr(item.attributes["sym_name"]).value == name:
                    return item.operation
        around = around.parent
    return None


def _replace(op: ir.Operation, numbers: ir.Attribute) -> None:
    buffer = ir.MemRefType(op.results[0].type)
    with ir.InsertionPoint(op), op.location:
        tensor = ir.RankedTensorType.get(buffer.shape, buffer.element_type)
        constant = ir.Operation.create("arith.constant", results=[tensor], attributes={"value": numbers})
        to_buffer = ir.Operation.create("bufferization.to_buffer", results=[buffer], operands=constant.results)
    op.results[0].replace_all_uses_with(to_buffer.results[0])
    op.erase()
