"""Reductions of reference programs that keep which value is the extremum: the largest or smallest, and its index."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.runtime.reference import Generic

# The op that folds the values, and the predicates by which a new value replaces the extremum so far: where it
# exceeds that, and where it is equal too.
_PREDICATES = {
    "arith.maximumf": ("arith.cmpf", (2, 3)),
    "arith.maxnumf": ("arith.cmpf", (2, 3)),
    "arith.minimumf": ("arith.cmpf", (4, 5)),
    "arith.minnumf": ("arith.cmpf", (4, 5)),
    "arith.maxsi": ("arith.cmpi", (4, 5)),
    "arith.minsi": ("arith.cmpi", (2, 3)),
    "arith.maxui": ("arith.cmpi", (8, 9)),
    "arith.minui": ("arith.cmpi", (6, 7)),
}
# MLIR's names of the predicates, by their indices.
_NAMES = {
    "arith.cmpf": (
        *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
        *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
    ),
    "arith.cmpi": ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"),
}

ACCEPTED_CHOICES = (
    "accepted: where a value exceeds the extremum so far (ogt, olt, sgt, slt, ugt, ult of integers), or is equal to it "
    "too (oge, ole, sge, sle, uge, ule of integers), beside arith.maxnumf or the like of the same two values, or the "
    "same selection of the value, where it begins with a constant that is no NaN, or with integers"
)


@dataclass(frozen=True)
class IndexedExtremum:
    """An output of a reduction that holds a value of the iteration in which another output got its extremum.

    Attributes:
        largest: whether the extremum is the largest value, not the smallest.
        last: whether it is the last of equal ones, not the first.
        bits: of integers without a sign; 0 of other values.
        skips_nan: whether a NaN is no extremum, as to `arith.maxnumf`; else nothing replaces one.
        extremum: index of the output that holds the extremum.
        term: the value that is compared; `kept`: the value, such as an index, that is kept. Both of the body.
    """

    largest: bool
    last: bool
    bits: int
    skips_nan: bool
    extremum: int
    term: int
    kept: int


def indexed_extremum(generic: Generic, output: int) -> IndexedExtremum | None:
    """Returns how an output follows an extremum; None where it does not.

    The body is `x > largest ? index : index_so_far`, beside `largest = max(x, largest)`; or the same with `>=`, so
    that the last of equal values is kept.

    Args:
        generic: op of a reference program.
        output: index of the output.
    """
    inputs = len(generic.inputs)
    so_far = generic.arguments[inputs:]
    definitions = {op.result: op for op in generic.body}
    choice = definitions.get(generic.yields[output])
    if choice is None or choice.name != "arith.select" or choice.operands[2] != so_far[output]:
        return None
    condition = definitions.get(choice.operands[0])
    if condition is None or len(condition.operands) != 2 or condition.operands[1] not in so_far:
        return None
    term, extremum = condition.operands[0], so_far.index(condition.operands[1])
    fold = definitions.get(generic.yields[extremum])
    if fold is None or sorted(fold.operands) != sorted(condition.operands):
        return None
    comparison, predicates = _PREDICATES.get(fold.name, ("", (-1, -1)))
    if condition.name != comparison or condition.attribute not in predicates:
        return None
    free = {term, choice.operands[1]}
    is_reduction = any(loop not in generic.maps[inputs + output] for loop, _ in enumerate(generic.sizes))
    are_alike = generic.maps[inputs + extremum] == generic.maps[inputs + output]
    if not is_reduction or not are_alike or _reads(generic, free) & set(so_far):
        return None
    return IndexedExtremum(
        largest="max" in fold.name,
        last=condition.attribute == predicates[1],
        bits=int(fold.type[1:]) if fold.name.endswith("ui") else 0,
        skips_nan="num" in fold.name,
        extremum=extremum,
        term=term,
        kept=choice.operands[1],
    )


def unknown_choice(generic: Generic) -> str | None:
    """Returns what a reduction is of which a comparison selects a result that does not follow an extremum; None of
    another one.

    Args:
        generic: op of a reference program.
    """
    definitions = {op.result: op for op in generic.body}
    so_far = generic.arguments[len(generic.inputs) :]
    for output, yielded in enumerate(generic.yields):
        choice = definitions.get(yielded)
        if choice is None or choice.name != "arith.select" or choice.operands[2] not in so_far:
            continue
        condition = definitions.get(choice.operands[0])
        if condition is None or condition.name not in _NAMES or not isinstance(condition.attribute, int):
            continue
        if indexed_extremum(generic, output) is None:
            name = _NAMES[condition.name][condition.attribute]
            return f"a reduction that selects a result by '{condition.name} {name}'"
    return None


def _reads(generic: Generic, values: set[int]) -> set[int]:
    """Returns the values of a body that some values are computed from, and these."""
    dependencies = set(values)
    for op in reversed(generic.body):
        if op.result in dependencies:
            dependencies.update(op.operands)
    return dependencies
