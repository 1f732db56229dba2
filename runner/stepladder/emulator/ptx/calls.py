"""Calls of functions with a body, which takes the place of the call.

Functions of NVIDIA's library of elementary functions that LLVM does not inline are such: the reduction of large
arguments of sines of f64, and the power of f64.
Source: PTX ISA, "Control Flow Instructions: call".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stepladder.emulator.ptx import syntax
from stepladder.emulator.ptx.scopes import Scope
from stepladder.runtime.errors import StepladderError

_RETURN = "ret"
_END = "behind the function"


def callee_of(statement: syntax.Statement) -> str:
    """Returns the name of the function that a statement calls, an empty text where it calls none by name.

    Args:
        statement: of any opcode.
    """
    if statement.opcode[0] != "call":
        return ""
    return next((operand.text for operand in statement.operands if isinstance(operand, syntax.Name)), "")


def _lists(statement: syntax.Statement) -> tuple[Sequence[syntax.Operand], Sequence[syntax.Operand]]:
    """Returns what a call names in parentheses before the function, and after it."""
    place = next(place for place, operand in enumerate(statement.operands) if isinstance(operand, syntax.Name))
    before, behind = statement.operands[:place], statement.operands[place + 1 :]
    first, second = ((part[0] if part else None) for part in (before, behind))
    return (
        first.elements if isinstance(first, syntax.Vector) else (),
        second.elements if isinstance(second, syntax.Vector) else (),
    )


def in_place(
    statement: syntax.Statement, function: syntax.Function, scope: Scope, outer: Scope
) -> tuple[syntax.Block, Scope, object]:
    """Returns what takes the place of a call: statements, their scope, and the label after them.

    Args:
        statement: the call.
        function: that it calls, with a body.
        scope: of the call.
        outer: a new scope for the names of the function's parameters and of what it returns.

    Raises:
        StepladderError: another number of variables than the function has, or what is no variable in memory.
    """
    returned, given = _lists(statement)
    for kind, wanted, names in (("returns", function.returned, returned), ("takes", function.parameters, given)):
        if len(wanted) != len(names):
            raise StepladderError(f"{function.name} {kind} {len(wanted)} variables, and the call names {len(names)}")
        for variable, name in zip(wanted, names):
            place = scope.variable(str(name))
            if variable.space != "param" or place is None:
                raise StepladderError(
                    f"{variable.declaration()} of {function.name} is not a variable of the call, {name}"
                )
            outer.variables[variable.name] = place
    end = outer.labels[_END] = object()
    assert function.body is not None
    return _with_branches(function.body), Scope(outer.slots, outer), end


def _with_branches(block: syntax.Block) -> syntax.Block:
    """Returns a block with branches after the function in the place of its returns."""
    body: list[syntax.Item] = []
    for item in block.body:
        if isinstance(item, syntax.Block):
            body.append(_with_branches(item))
        elif isinstance(item, syntax.Statement) and item.opcode[0] == _RETURN:
            body.append(replace(item, opcode=("bra",), operands=(syntax.Name(_END),)))
        else:
            body.append(item)
    return syntax.Block(tuple(body))
