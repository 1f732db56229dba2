"""Calls between functions of a payload: a function is compiled with the bodies of those that it calls."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.traverse import symbol_of, walk

# Nothing but calls changes.
_INLINES = "builtin.module(inline{default-pipeline=})"


def entries(functions: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Returns the functions that no other one calls; all if each is called.

    Args:
        functions: of one payload, with bodies.
    """
    called = {callee for function in functions for callee in _callees(function) if callee != symbol_of(function)}
    return [function for function in functions if symbol_of(function) not in called] or list(functions)


def inlined(module: ir.Module, functions: Sequence[ir.Operation]) -> ir.Operation | None:
    """Returns a copy of a payload in which functions have the bodies of those that they call in the place of the calls.

    A recursive call stays, and so does one of a function without a body.

    Args:
        module: the payload, which stays as it is.
        functions: of it.

    Returns:
        The copy; None where they call none.
    """
    known = {symbol_of(op) for op in walk(module, "func.func") if len(op.regions[0].blocks)}
    if not any(callee in known for function in functions for callee in _callees(function)):
        return None
    wanted = [symbol_of(function) for function in functions]
    copy = module.operation.clone()
    for function in walk(copy, "func.func"):  # private ones would go
        if symbol_of(function) in wanted and "sym_visibility" in function.attributes:
            del function.attributes["sym_visibility"]
    passmanager.PassManager.parse(_INLINES).run(copy.operation)
    return copy.operation


def _callees(function: ir.Operation) -> list[str]:
    """Returns the names of the functions that a function calls."""
    return [ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in walk(function, "func.call")]
