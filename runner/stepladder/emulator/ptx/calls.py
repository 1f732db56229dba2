"""Calls of functions with a body, which replaces the call; by an address, of one of several functions.

Functions of NVIDIA's library of elementary functions that LLVM does not inline are such: the reduction of large
arguments of sines of f64, and the power of f64.
Source: PTX ISA, "Control Flow Instructions: call".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from stepladder.emulator.ptx import syntax
from stepladder.emulator.ptx.scopes import Scope
from stepladder.runtime.errors import StepladderError

ASSERTFAIL = "__assertfail"
_RETURN = "ret"
_END = "behind the function"
# Addresses of functions: where no memory is, and apart from each other.
_FIRST_FUNCTION, _APART = 0x7F00_0000_0000_0000, 16


def addresses(module: syntax.Module) -> dict[str, int]:
    """Returns the addresses of those functions with a body whose address is used, by name.

    Args:
        module: that has them.
    """
    used_names = {
        value.name for variable in module.variables for value in variable.values if isinstance(value, syntax.Place)
    }
    for function in module.functions:
        used_names |= _named(function.body) if function.body is not None else set()
    names = [
        function.name for function in module.functions if function.body is not None and function.name in used_names
    ]
    return {name: _FIRST_FUNCTION + _APART * number for number, name in enumerate(names)}


def _named(block: syntax.Block) -> set[str]:
    """Returns the names of all operands, without the functions that calls name."""
    names: set[str] = set()
    for item in block.body:
        if isinstance(item, syntax.Block):
            names |= _named(item)
        elif isinstance(item, syntax.Statement) and item.opcode[0] != "call":
            names = names.union(*map(syntax.names_in, item.operands))
    return names


def callee_of(statement: syntax.Statement) -> str:
    """Returns the name of the function that a statement calls, an empty text where it calls none by name.

    Args:
        statement: of any opcode.
    """
    if statement.opcode[0] != "call":
        return ""
    return next((operand.text for operand in statement.operands if isinstance(operand, syntax.Name)), "")


def failing(blocks: Sequence[Sequence[syntax.Statement]]) -> frozenset[int]:
    """Returns the numbers of the blocks in which threads end because an assertion does not hold.

    Args:
        blocks: the statements of each.
    """
    return frozenset(
        number for number, block in enumerate(blocks) if any(callee_of(statement) == ASSERTFAIL for statement in block)
    )


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
    """Returns what replaces a call: statements, their scope, and the label after them.

    Args:
        statement: the call.
        function: that it calls, with a body.
        scope: of the call.
        outer: a new scope for the names of the function's parameters and of what it returns.

    Raises:
        StepladderError: another number of variables than the function has, or what is no variable in memory.
    """
    results, arguments = _lists(statement)
    for kind, variables, names in (("returns", function.returned, results), ("takes", function.parameters, arguments)):
        if len(variables) != len(names):
            raise StepladderError(f"{function.name} {kind} {len(variables)} variables, and the call names {len(names)}")
        for variable, name in zip(variables, names):
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
    """Returns a block with branches after the function in place of its returns."""
    body: list[syntax.Item] = []
    for item in block.body:
        if isinstance(item, syntax.Block):
            body.append(_with_branches(item))
        elif isinstance(item, syntax.Statement) and item.opcode[0] == _RETURN:
            body.append(replace(item, opcode=("bra",), operands=(syntax.Name(_END),)))
        else:
            body.append(item)
    return syntax.Block(tuple(body))


def by_address(
    statement: syntax.Statement, functions: Mapping[str, syntax.Function], outer: Scope, inside: Sequence[str]
) -> Iterator[syntax.Item]:
    """Yields what replaces a call by an address: comparisons with those of functions, and their calls.

    Only functions that take and return as many variables are meant; another address is a finding.

    Args:
        statement: the call.
        functions: by name.
        outer: the scope that has their addresses.
        inside: those that replace calls around it, which it cannot call.
    """

    def made(opcode: str, *operands: syntax.Operand, guard: syntax.Guard | None = None) -> syntax.Statement:
        return syntax.Statement(tuple(opcode.split(".")), operands, guard, statement.line, statement.column)

    place = next(place for place, operand in enumerate(statement.operands) if isinstance(operand, syntax.Name))
    results, arguments = _lists(statement)
    known_addresses = {name: address for name in functions if isinstance(address := outer.variables.get(name), int)}
    candidates = {
        name: function
        for name, function in functions.items()
        if name in known_addresses
        and (len(function.returned), len(function.parameters)) == (len(results), len(arguments))
        and name not in inside
    }
    if not candidates:
        yield made("trap")
        return
    predicate, number = syntax.Name("%is_function"), syntax.Name("%function")
    table, labels = "$functions", [syntax.Name(f"$call {name}") for name in candidates]
    yield syntax.Registers("pred", ((predicate.text, 0),))
    yield syntax.Registers("b32", ((number.text, 0),))
    yield made("mov.b32", number, syntax.Number(len(candidates)))
    for count, name in enumerate(candidates):
        yield made("setp.eq.u64", predicate, statement.operands[place], syntax.Number(known_addresses[name]))
        yield made("mov.b32", number, syntax.Number(count), guard=syntax.Guard(predicate))
    yield syntax.Label(table)
    yield syntax.BranchTargets(tuple(labels))
    yield made("brx.idx", number, syntax.Name(table))
    for name, label in zip(candidates, labels):
        yield syntax.Label(label.text)
        after = statement.operands[place + 1 : place + 2] if arguments else ()
        yield made(".".join(statement.opcode), *statement.operands[:place], syntax.Name(name), *after)
        yield made("bra", syntax.Name("$called"))
    yield syntax.Label("$called")
