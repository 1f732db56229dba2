"""Names of function arguments, which MLIR's parser drops and its printer can show.

A name survives as a location (`loc("A")`), which the printer turns back into `%A` on request. Only the names of
arguments are kept, and TMA descriptors are named after the argument that they describe (`%A_map`): a reader follows
them through a pipeline, from the payload into the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk

_FUNCTIONS = ("func.func", "gpu.func", "llvm.func")
_MODULES = ("builtin.module", "gpu.module")
_SIGNATURE = re.compile(r"(?:func\.func|gpu\.func|llvm\.func)\s[^@\n]*@(\w+)\(")
_ARGUMENT = re.compile(r"%([A-Za-z_$][\w$.-]*)\s*:")
_UNNAMED = re.compile(r"arg\d+")


def _in_modules(module: ir.Operation) -> Iterator[ir.Operation]:
    """Yields the ops of a module and of the modules in it, such as functions and kernels, not those in functions."""
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name in _MODULES:
            yield from _in_modules(op.operation)
        else:
            yield op.operation


def _is_kernel(op: ir.Operation) -> bool:
    return op.parent is not None and op.parent.name == "gpu.module"


def _arguments(function: ir.Operation) -> list[ir.BlockArgument]:
    """Returns the arguments of a function; none where it has no body."""
    blocks = function.regions[0].blocks
    return list(blocks[0].arguments) if len(blocks) else []


def _give(argument: ir.BlockArgument, name: str) -> None:
    argument.set_location(ir.Location.name(name, argument.location))


def name_of(value: ir.Value) -> str | None:
    """Returns the name of a value, None for one without a name.

    Args:
        value: an argument of a function, or a TMA descriptor.
    """
    match = re.match(r'loc\("([A-Za-z_$][\w$.-]*)"\(', str(value.location))
    return match.group(1) if match else None


def _in_parentheses(text: str, start: int) -> str:
    """Returns the text between an opening parenthesis, which ends at `start`, and the one that closes it."""
    depth = 1
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    return text[start:]


def restore(module: ir.Module, text: str) -> None:
    """Gives the functions' arguments in a parsed module the names that they have in its text.

    Args:
        module: parsed from `text`.
        text: MLIR.
    """
    names_by_function = {
        match[1]: _ARGUMENT.findall(_in_parentheses(text, match.end())) for match in _SIGNATURE.finditer(text)
    }
    for function in _in_modules(module.operation):
        if function.name not in _FUNCTIONS:
            continue
        names = names_by_function.get(function.attributes["sym_name"].value, [])
        for argument, name in zip(_arguments(function), names):
            if not _UNNAMED.fullmatch(name):
                _give(argument, name)


def hand_on_to_kernels(module: ir.Module) -> None:
    """Gives a kernel's arguments the names of what a launch passes for them.

    Args:
        module: with kernels and their launches; it is changed.
    """
    ops = list(_in_modules(module.operation))
    kernels = {op.attributes["sym_name"].value: op for op in ops if op.name in ("gpu.func", "llvm.func")}
    hosts = [op for op in ops if not _is_kernel(op)] if kernels else []
    for launch in (launch for host in hosts for launch in walk(host, "gpu.launch_func")):
        kernel = kernels.get(ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1])
        arguments = _arguments(kernel) if kernel is not None else []
        operands = list(launch.operands)[-len(arguments) :] if arguments else []
        for argument, operand in zip(arguments, operands):
            name = name_of(operand)
            if name is not None and name_of(argument) is None:
                _give(argument, name)
