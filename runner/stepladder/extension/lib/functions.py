"""Functions that transform ops add to a module."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir


def create_private_function(
    name: str, types: Sequence[ir.Type], results: Sequence[ir.Type], location: ir.Location, *marks: str
) -> ir.Operation:
    """Returns a new private `func.func` with an empty block, at the insertion point.

    Args:
        name: of the function; no other op of the module has it.
        types: of its arguments.
        results: types of its results.
        location: of the function and its arguments.
        marks: names of its unit attributes.

    Returns:
        The function, whose block has no terminator yet.
    """
    function = ir.Operation.create(
        "func.func",
        attributes={
            "sym_name": ir.StringAttr.get(name),
            "sym_visibility": ir.StringAttr.get("private"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), list(results))),
            **{mark: ir.UnitAttr.get() for mark in marks},
        },
        regions=1,
        loc=location,
    )
    function.regions[0].blocks.append(*types, arg_locs=[location] * len(types))
    return function
