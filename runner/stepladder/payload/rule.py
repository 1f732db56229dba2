"""The rule of accepted payloads: the ops of one matmul, and the data flow that pipelines compute.

Steps match the ops that they know and do not change others, so that an op beside the matmul would be lost. The rule
therefore visits every op of a payload and follows every value and buffer from the arguments to the result (`flow`). It
refuses all else, whatever the knobs: `matmul.find_matmul` applies it, and every command calls that.
"""

from __future__ import annotations

import re

from stepladder.mlir.bindings import ir
from stepladder.payload.flow import Flow
from stepladder.payload.form import Form
from stepladder.payload.refusal import refuse

# Ops that run their regions under a condition.
_CONDITIONS = ("scf.if", "scf.index_switch", "scf.while")
_UNCONDITIONAL = (
    "launches do not depend on values of arguments; accepted: constant conditions, and arith.select of elements of "
    "both results"
)
# Names that PTX takes for an entry point, to which "_kernel" is added.
_ENTRY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def check_form(module: ir.Module | ir.Operation | ir.OpView, matmul: ir.Operation) -> Form:
    """Checks a module against the rule.

    Args:
        module: the payload.
        matmul: its one matmul or batch of them, of static shapes.

    Returns:
        How the payload is written: which argument is A, B and C, the results, and what elementwise ops read.

    Raises:
        StepladderError: an op, an argument or a data flow that no pipeline computes; names it and what is accepted.
    """
    function = _the_function(module, matmul)
    return Flow(function, matmul).form()


def check_unconditional(matmul: ir.Operation) -> None:
    """Checks that a matmul of a function with several is under no condition.

    Args:
        matmul: any op.

    Raises:
        StepladderError: a condition around it.
    """
    parent = matmul.parent
    if parent is not None and parent.name in _CONDITIONS:
        raise refuse(matmul, f"{matmul.name} is inside '{parent.name}'", _UNCONDITIONAL)


def _the_function(module: ir.Module | ir.Operation | ir.OpView, matmul: ir.Operation) -> ir.Operation:
    """Returns the one function of a module, whose body's top level the matmul must be at."""
    body = module.operation.regions[0].blocks[0]
    functions = [op.operation for op in body.operations if op.operation.name == "func.func"]
    function = matmul.parent
    assert function is not None  # a module is around it
    check_unconditional(matmul)
    for op in matmul.block.operations:
        if op.operation.name in _CONDITIONS:
            raise refuse(op, f"'{op.operation.name}' with a non-constant condition", _UNCONDITIONAL)
    if function.name != "func.func" and function.name != "builtin.module":
        raise refuse(matmul, f"{matmul.name} is inside '{function.name}'; it must be at the top level of the function")
    for op in (op.operation for op in body.operations):
        is_unused_global = op.name == "ml_program.global"  # a reader of it would be refused where it is
        if op.name != "func.func" and not is_unused_global:
            raise refuse(op, f"'{op.name}' beside the function; accepted: one function")
    names = [_symbol(candidate) for candidate in functions if candidate != function]
    if names:
        raise refuse(
            function,
            f"{len(functions)} functions in the payload; a pipeline accepts one: beside @{_symbol(function)} there is "
            f"{', '.join(f'@{name}' for name in names)}",
        )
    name = _symbol(function)
    if not _ENTRY.fullmatch(name):
        raise refuse(
            function,
            f"the function's name '{name}' is not an identifier in PTX",
            "accepted: letters, digits, _ and $, not beginning with a digit",
        )
    return function


def _symbol(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value
