"""Reductions that select the larger or smaller value by a comparison, as by `arith.maxnumf` or `arith.maxsi`.

TOSA's argmax is written so, beside the index that the same comparison selects.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.traverse import producer, walk

# Predicates by those with exchanged operands: ogt and olt, oge and ole, ugt and ult, uge and ule; of integers slt and
# sgt, sle and sge, ult and ugt, ule and uge.
_EXCHANGED = {
    "arith.cmpf": {2: 4, 4: 2, 3: 5, 5: 3, 9: 11, 11: 9, 10: 12, 12: 10},
    "arith.cmpi": {2: 4, 4: 2, 3: 5, 5: 3, 6: 8, 8: 6, 7: 9, 9: 7},
}
# Predicates by those that hold where they do not: oeq and une, ogt and ule, oge and ult, olt and uge, ole and ugt, one
# and ueq, ord and uno; of integers eq and ne, slt and sge, sle and sgt, ult and uge, ule and ugt.
_NEGATED = {
    name: {**pairs, **{other: one for one, other in pairs.items()}}
    for name, pairs in (
        ("arith.cmpf", {1: 13, 2: 12, 3: 11, 4: 10, 5: 9, 6: 8, 7: 14}),
        ("arith.cmpi", {0: 1, 2: 5, 3: 4, 6: 9, 7: 8}),
    )
}
# By the encoding of the predicates: ogt and oge, olt and ole; sgt and sge, slt and sle; ugt and uge, ult and ule.
_FOLDS = {
    "arith.cmpf": {2: "arith.maxnumf", 3: "arith.maxnumf", 4: "arith.minnumf", 5: "arith.minnumf"},
    "arith.cmpi": {
        4: "arith.maxsi",
        5: "arith.maxsi",
        2: "arith.minsi",
        3: "arith.minsi",
        8: "arith.maxui",
        9: "arith.maxui",
        6: "arith.minui",
        7: "arith.minui",
    },
}


def fold(function: ir.Operation) -> None:
    """Replaces each selection of a value of a reduction where it exceeds the one so far.

    Comparisons of the one so far with a value become those of the value with it, which later expansions, kernels and
    references know. The first one so far is an integer, or a constant and no NaN: then none is, and a NaN among the
    values is left out by both.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for generic in walk(function, "linalg.generic"):
        block = generic.regions[0].blocks[0]
        *_, end = (item.operation for item in block.operations)
        arguments, outputs = list(block.arguments), len(end.operands)
        if "reduction" in str(generic.attributes["iterator_types"]):
            _compare_values_first(block, arguments[len(arguments) - outputs :])
            _select_values_first(end, arguments[len(arguments) - outputs :])
        for number, value in enumerate(end.operands):
            so_far = arguments[len(arguments) - outputs + number]
            choice, name = producer(value), _selected_by(value, so_far)
            first = generic.operands[len(generic.operands) - outputs + number]
            is_integer = isinstance(value.type, ir.IntegerType)
            if choice is not None and name is not None and (is_integer or starts_from_a_number(first)):
                with ir.InsertionPoint(choice), choice.location:
                    new = ir.Operation.create(name, results=[value.type], operands=list(choice.operands)[1:])
                value.replace_all_uses_with(new.results[0])
                choice.erase()


def _compare_values_first(block: ir.Block, so_far: Sequence[ir.Value]) -> None:
    """Exchanges the operands of comparisons that have a result so far on the left alone."""
    for op in (item.operation for item in block.operations):
        predicates = _EXCHANGED.get(op.name)
        if predicates is None or op.operands[0] not in so_far or op.operands[1] in so_far:
            continue
        predicate = ir.IntegerAttr(op.attributes["predicate"])
        if predicate.value in predicates:
            op.attributes["predicate"] = ir.IntegerAttr.get(predicate.type, predicates[predicate.value])
            op.operands[0], op.operands[1] = op.operands[1], op.operands[0]


def _select_values_first(end: ir.Operation, so_far: Sequence[ir.Value]) -> None:
    """Exchanges the operands of selections that keep a result so far where a comparison holds: they select the other
    value where it does not hold."""
    negations: dict[ir.Operation, ir.Value] = {}
    for value, result in zip(end.operands, so_far):
        choice = producer(value)
        if choice is None or choice.name != "arith.select" or choice.operands[1] != result:
            continue
        condition = producer(choice.operands[0])
        predicates = _NEGATED.get(condition.name, {}) if condition is not None else {}
        if condition is None or choice.operands[2] == result:
            continue
        predicate = ir.IntegerAttr(condition.attributes["predicate"]) if predicates else None
        if predicate is None or predicate.value not in predicates:
            continue
        if condition not in negations:
            negation = condition.clone(ir.InsertionPoint(condition)).operation
            negation.attributes["predicate"] = ir.IntegerAttr.get(predicate.type, predicates[predicate.value])
            negations[condition] = negation.results[0]
        choice.operands[0], choice.operands[1], choice.operands[2] = negations[condition], choice.operands[2], result
    for condition in negations:
        if not list(condition.results[0].uses):
            condition.erase()


def _selected_by(value: ir.Value, so_far: ir.Value) -> str | None:
    """Returns the op that selects the same value; None for others."""
    choice = producer(value)
    if choice is None or choice.name != "arith.select" or choice.operands[2] != so_far:
        return None
    condition = producer(choice.operands[0])
    if condition is None or condition.name not in _FOLDS or list(condition.operands) != list(choice.operands)[1:]:
        return None
    return _FOLDS[condition.name].get(ir.IntegerAttr(condition.attributes["predicate"]).value)


def starts_from_a_number(tensor: ir.Value) -> bool:
    """Returns whether a tensor repeats one constant of floating point that is no NaN.

    Args:
        tensor: that a reduction starts from.
    """
    number = repeated_number(tensor)
    return isinstance(number, ir.FloatAttr) and not math.isnan(number.value)
