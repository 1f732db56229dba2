"""Inputs of elementwise ops that are the same value, or integers that are all the same: bodies read each once.

Bodies such as `x - y` of one tensor, or `x * y` where all of y is 0, then fold (`dead_code`), as those of one input do.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import walk

_GENERIC = "linalg.generic"
# Named ops whose bodies upstream folds, where they are of integers.
_NAMED = ("linalg.sub", "linalg.mul", "linalg.max", "linalg.min", "linalg.map", "linalg.select")


def unify(function: ir.Operation) -> None:
    """Has bodies of elementwise ops on tensors read one input of several that are the same value, and constants instead
    of integers that are all the same. Named ops become `linalg.generic`.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, _GENERIC, *_NAMED):
        if len(op.results) != 1 or not _is_elementwise(op):
            continue
        if op.name == _GENERIC:
            _read_once(op)
        elif _first_alike(op) != list(range(len(op.operands) - 1)) or any(
            _integer(op, number) is not None for number in range(len(op.operands) - 1)
        ):
            _read_once(_as_generic(op))


def _is_elementwise(op: ir.Operation) -> bool:
    """Returns whether each iteration of a linalg op writes an element of its own."""
    output = indexing_maps(op)[-1]
    return output.is_permutation


def _first_alike(op: ir.Operation) -> list[int]:
    """Returns for each input the first one that is the same value, accessed in the same way."""
    maps = indexing_maps(op)
    inputs = [(op.operands[number], maps[number]) for number in range(len(op.operands) - 1)]
    return [inputs.index(item) for item in inputs]


def _integer(op: ir.Operation, number: int) -> ir.Attribute | None:
    """Returns the integer that all elements of an input are; None for others."""
    value = repeated_number(op.operands[number])
    return value if isinstance(value, ir.IntegerAttr) and isinstance(value.type, ir.IntegerType) else None


def _read_once(op: ir.Operation) -> None:
    """Replaces the arguments of the body that are the same as others, or known integers."""
    body = op.regions[0].blocks[0]
    for number, first in enumerate(_first_alike(op)):
        argument, integer = body.arguments[number], _integer(op, number)
        if not list(argument.uses):
            continue
        if first != number:
            argument.replace_all_uses_with(body.arguments[first])
        elif integer is not None:
            with ir.InsertionPoint.at_block_begin(body), op.location:
                constant = ir.Operation.create("arith.constant", [argument.type], attributes={"value": integer})
            argument.replace_all_uses_with(constant.results[0])


def _as_generic(op: ir.Operation) -> ir.Operation:
    """Replaces a named op by a `linalg.generic` of the same body."""
    body = op.regions[0].blocks[0]
    with ir.InsertionPoint(op), op.location:
        generic, block = create_generic(list(op.operands)[:-1], [op.operands[len(op.operands) - 1]], indexing_maps(op))
    mapping: dict[ir.Value, ir.Value] = dict(zip(body.arguments, block.arguments))
    clone_ops([item.operation for item in body.operations], mapping, ir.InsertionPoint(block))
    op.results[0].replace_all_uses_with(generic.results[0])
    op.erase()
    return generic
