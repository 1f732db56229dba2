"""Reductions that select the larger or smaller number by a comparison, as by `arith.maxnumf` or `arith.minnumf`.

TOSA's argmax is written so, beside the index that the same comparison selects.
"""

from __future__ import annotations

import math

from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.traverse import producer, walk

# By the numbers of the predicates of arith.cmpf: ogt, olt.
_FOLDS = {2: "arith.maxnumf", 4: "arith.minnumf"}


def fold(function: ir.Operation) -> None:
    """Replaces each selection of a value of a reduction where it exceeds the one so far.

    The first one so far is a constant and no NaN: then none is, and a NaN among the values is left out by both.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for generic in walk(function, "linalg.generic"):
        block = generic.regions[0].blocks[0]
        *_, end = (item.operation for item in block.operations)
        arguments, outputs = list(block.arguments), len(end.operands)
        for number, value in enumerate(end.operands):
            so_far = arguments[len(arguments) - outputs + number]
            choice, name = producer(value), _selected_by(value, so_far)
            first = generic.operands[len(generic.operands) - outputs + number]
            if choice is not None and name is not None and _starts_from_a_number(first):
                with ir.InsertionPoint(choice), choice.location:
                    new = ir.Operation.create(name, results=[value.type], operands=list(choice.operands)[1:])
                value.replace_all_uses_with(new.results[0])
                choice.erase()


def _selected_by(value: ir.Value, so_far: ir.Value) -> str | None:
    """Returns the op that selects the same value; None for others."""
    choice = producer(value)
    if choice is None or choice.name != "arith.select" or choice.operands[2] != so_far:
        return None
    condition = producer(choice.operands[0])
    if condition is None or condition.name != "arith.cmpf" or list(condition.operands) != list(choice.operands)[1:]:
        return None
    return _FOLDS.get(ir.IntegerAttr(condition.attributes["predicate"]).value)


def _starts_from_a_number(tensor: ir.Value) -> bool:
    number = repeated_number(tensor)
    return isinstance(number, ir.FloatAttr) and not math.isnan(number.value)
