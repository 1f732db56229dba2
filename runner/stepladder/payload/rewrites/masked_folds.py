"""Reductions that fold a value where a condition holds: they fold it, or the neutral element of the fold.

A causal sum written by hand is one, and so is the sum of what is scattered to an element.
"""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.neutral_elements import neutral_number
from stepladder.mlir.traverse import producer
from stepladder.payload.rewrites.fold_bodies import DIFFERENCES, FUSED, fold_of, results_so_far


def separate(function: ir.Operation) -> None:
    """Replaces selections of a result so far or of that with a value folded into it, also one in another.

    Args:
        function: a function; it is changed where there are such reductions.
    """
    for end, place, so_far in results_so_far(function):
        _separate(end, end.operands[place], so_far)


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
    place = list(fold.operands).index(so_far)
    name = fold_of(fold, place)
    if name is None:
        return
    with ir.InsertionPoint(choices[0]), choices[0].location:
        if fold.name == FUSED:
            term = arith.mulf(*list(fold.operands)[:2])
        else:
            term = fold.operands[1 - place]
        number = neutral_number(name, so_far.type)
        neutral = arith.constant(so_far.type, -number if fold.name in DIFFERENCES else number)
        for choice in reversed(choices):
            is_kept_where_true = choice.operands[1] == so_far
            first, second = (neutral, term) if is_kept_where_true else (term, neutral)
            term = arith.select(choice.operands[0], first, second)
        last = fold.name if fold.name in DIFFERENCES else name
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
