"""Calls between functions of a payload: a function is compiled with the bodies of those that it calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.traverse import callee_of, symbol_of, walk
from stepladder.payload.refusal import refuse

# Nothing but calls changes.
_INLINES = "builtin.module(inline{default-pipeline=})"


def entries(functions: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Returns the functions that no other one calls; all if each is called.

    Args:
        functions: of one payload, with bodies.
    """
    callees = {callee for function in functions for callee in _callees(function) if callee != symbol_of(function)}
    return [function for function in functions if symbol_of(function) not in callees] or list(functions)


def inlined(module: ir.Module, functions: Sequence[ir.Operation]) -> ir.Operation | None:
    """Returns a copy of a payload in which functions have the bodies of those that they call in place of the calls.

    A call of a function without a body stays.

    Args:
        module: the payload, which stays as it is.
        functions: of it.

    Returns:
        The copy; None where they call none.

    Raises:
        StepladderError: a recursive call.
    """
    definitions = {symbol_of(op): op for op in walk(module, "func.func") if len(op.regions[0].blocks)}
    if not any(callee in definitions for function in functions for callee in _callees(function)):
        return None
    checked: set[str] = set()
    for function in functions:
        _check_calls(function, definitions, [], checked)
    names = [symbol_of(function) for function in functions]
    copy = module.operation.clone()
    for function in walk(copy, "func.func"):  # private ones would go
        if symbol_of(function) in names and "sym_visibility" in function.attributes:
            del function.attributes["sym_visibility"]
    passmanager.PassManager.parse(_INLINES).run(copy.operation)
    return copy.operation


def inline_calls(module: ir.Module, function: ir.Operation) -> ir.Operation:
    """Replaces a function of a payload by one with the bodies of those that it calls in place of the calls.

    Args:
        module: the payload, in which the function is replaced; functions that only it calls go.
        function: of it.

    Returns:
        The new function; the given one where it calls none.

    Raises:
        StepladderError: a recursive call.
    """
    copy = inlined(module, [function])
    if copy is None:
        return function
    name = symbol_of(function)
    (body,) = (op for op in walk(copy, "func.func") if symbol_of(op) == name)
    callees = set(_callees(function))
    with ir.InsertionPoint(function):
        clone = body.clone()
    function.erase()
    while callees:  # not called any more, they would be functions to compile
        others = walk(module, "func.func")
        called = {callee for other in others for callee in _callees(other) if callee != symbol_of(other)}
        gone = [op for op in others if symbol_of(op) in callees - called and len(op.regions[0].blocks)]
        callees = {callee for op in gone for callee in _callees(op)}
        for op in gone:
            op.erase()
    return clone.operation


def _check_calls(
    function: ir.Operation, definitions: Mapping[str, ir.Operation], outer: Sequence[str], checked: set[str]
) -> None:
    """Checks that no function that one calls, itself or by others, is among those around it.

    Args:
        function: whose calls are checked.
        definitions: the functions with bodies, by name.
        outer: the names of the functions that call it, the first one first.
        checked: the names of functions that are checked already; it is added to.
    """
    path = [*outer, symbol_of(function)]
    for call in walk(function, "func.call"):
        callee = callee_of(call)
        if callee in path:
            caller, *callees = (f"@{name}" for name in [*path[path.index(callee) :], callee])
            text = f"a recursive call: {caller} calls {', which calls '.join(callees)}"
            raise refuse(call, text, "accepted: calls without a cycle: the bodies of the functions replace them")
        if callee in definitions and callee not in checked:
            _check_calls(definitions[callee], definitions, path, checked)
    checked.add(path[-1])


def _callees(function: ir.Operation) -> list[str]:
    """Returns the names of the functions that a function calls."""
    return [callee_of(op) for op in walk(function, "func.call")]
