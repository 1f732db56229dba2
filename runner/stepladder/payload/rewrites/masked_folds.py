"""Reductions that fold a value where a condition holds: they fold it, or the neutral element of the fold.

A causal sum written by hand is one, and so is the sum of what is scattered to an element.
"""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.neutral_elements import FOLDS, neutral_number
from stepladder.mlir.traverse import producer, walk

# Folds of negated terms, and the folds that they are.
_DIFFERENCES = {"arith.subf": "arith.addf", "arith.subi": "arith.addi"}
_FUSED = "math.fma"


def separate(function: ir.Operation) -> None:
    """Replaces selections of a result so far or of that with a value folded into it, also one in another.

    Args:
        function: a function; it is changed where there are such reductions.
    """
    for generic in walk(function, "linalg.generic"):
        if "reduction" not in str(generic.attributes["iterator_types"]):
            continue
        block = generic.regions[0].blocks[0]
        *_, end = (item.operation for item in block.operations)
        arguments = list(block.arguments)
        for value, so_far in zip(end.operands, arguments[len(arguments) - len(end.operands) :]):
            _separate(end, value, so_far)


def _separate(end: ir.Operation, value: ir.Value, so_far: ir.Value) -> None:
    """Replaces the selections that end in a result of a reduction, if they are those of one fold."""
    choices, folded = [], value
    while (choice := _choice_of(folded, so_far)) is not None:
        choices.append(choice)
        folded = choice.operands[2 if choice.operands[1] == so_far else 1]
    fold = producer(folded)
    if not choices or fold is None or fold.block != end.block or len(list(folded.uses)) != 1:
        return
    reads = len(choices) + 1  # of the fold, and of each selection
    if len(list(so_far.uses)) != reads or list(fold.operands).count(so_far) != 1:
        return
    name = "arith.addf" if fold.name == _FUSED else _DIFFERENCES.get(fold.name, fold.name)
    place = list(fold.operands).index(so_far)
    is_placed = {_FUSED: place == 2}.get(fold.name, fold.name not in _DIFFERENCES or place == 0)
    if name not in FOLDS or not is_placed:
        return
    with ir.InsertionPoint(choices[0]), choices[0].location:
        if fold.name == _FUSED:
            term = arith.mulf(*list(fold.operands)[:2])
        else:
            term = fold.operands[1 - place]
        number = neutral_number(name, so_far.type)
        neutral = arith.constant(so_far.type, -number if fold.name in _DIFFERENCES else number)
        for choice in reversed(choices):
            is_kept_where_true = choice.operands[1] == so_far
            first, second = (neutral, term) if is_kept_where_true else (term, neutral)
            term = arith.select(choice.operands[0], first, second)
        last = fold.name if fold.name in _DIFFERENCES else name
        new = ir.Operation.create(last, results=[so_far.type], operands=[so_far, term])
    value.replace_all_uses_with(new.results[0])
    for op in (*choices, fold):
        op.erase()


def _choice_of(value: ir.Value, so_far: ir.Value) -> ir.Operation | None:
    """Returns the op that selects a result so far or another value, and whose value one op reads; None for others."""
    op = producer(value)
    if op is None or op.name != "arith.select" or len(list(value.uses)) != 1:
        return None
    condition, *chosen = op.operands
    return op if condition != so_far and chosen.count(so_far) == 1 else None
