"""The type of a function whose arguments or results have changed."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir


def result_types(function: ir.Operation) -> list[ir.Type]:
    """Returns the types of a function's results.

    Args:
        function: a `func.func`.
    """
    return list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)


def set_signature(function: ir.Operation, results: Sequence[ir.Type] | None = None) -> None:
    """Gives a function the type of its block's arguments, the last of which may have been added or erased.

    Arguments keep their attributes; new ones have none.

    Args:
        function: a `func.func` of one block; it is changed.
        results: types of its results, which lose their attributes; None where they are the same as before.
    """
    types = [argument.type for argument in function.regions[0].blocks[0].arguments]
    if "arg_attrs" in function.attributes:
        attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))[: len(types)]
        new_attributes = [ir.DictAttr.get({})] * (len(types) - len(attributes))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes + new_attributes)
    if results is None:
        results = result_types(function)
    elif "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, list(results)))
