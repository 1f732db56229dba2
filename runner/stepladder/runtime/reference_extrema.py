"""Reductions of reference programs that keep which value is the extremum: the largest or smallest, and its index."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.runtime.reference import Generic

# The op that folds the values, and the predicate by which a new value takes the place of the extremum so far.
_STRICT = {
    "arith.maximumf": ("arith.cmpf", 2),
    "arith.maxnumf": ("arith.cmpf", 2),
    "arith.minimumf": ("arith.cmpf", 4),
    "arith.minnumf": ("arith.cmpf", 4),
    "arith.maxsi": ("arith.cmpi", 4),
    "arith.minsi": ("arith.cmpi", 2),
}


@dataclass(frozen=True)
class IndexedExtremum:
    """An output of a reduction that holds a value of the iteration in which another output got its extremum, the first
    of equal ones.

    Attributes:
        largest: whether the extremum is the largest value, not the smallest.
        skips_nan: whether a NaN is no extremum, as to `arith.maxnumf`; else nothing takes the place of one.
        extremum: number of the output that holds the extremum.
        term: the value that is compared; `kept`: the value, such as an index, that is kept. Both of the body.
    """

    largest: bool
    skips_nan: bool
    extremum: int
    term: int
    kept: int


def indexed_extremum(generic: Generic, output: int) -> IndexedExtremum | None:
    """Returns how an output follows an extremum; None where it does not.

    The body is `x > largest ? index : index_so_far`, beside `largest = max(x, largest)`, with one reduction loop.

    Args:
        generic: op of a reference program.
        output: number of the output.
    """
    inputs = len(generic.inputs)
    so_far = generic.arguments[inputs:]
    made = {op.result: op for op in generic.body}
    choice = made.get(generic.yields[output])
    if choice is None or choice.name != "arith.select" or choice.operands[2] != so_far[output]:
        return None
    condition = made.get(choice.operands[0])
    if condition is None or len(condition.operands) != 2 or condition.operands[1] not in so_far:
        return None
    term, extremum = condition.operands[0], so_far.index(condition.operands[1])
    fold = made.get(generic.yields[extremum])
    if fold is None or sorted(fold.operands) != sorted(condition.operands):
        return None
    if _STRICT.get(fold.name) != (condition.name, condition.attribute):
        return None
    free = {term, choice.operands[1]}
    reduced = [loop for loop, _ in enumerate(generic.sizes) if loop not in generic.maps[inputs + output]]
    if (
        len(reduced) != 1
        or _reads(generic, free) & set(so_far)
        or generic.maps[inputs + extremum] != generic.maps[inputs + output]
    ):
        return None
    return IndexedExtremum("max" in fold.name, "num" in fold.name, extremum, term, choice.operands[1])


def _reads(generic: Generic, values: set[int]) -> set[int]:
    """Returns the values of a body that some values are computed from, and these."""
    found = set(values)
    for op in reversed(generic.body):
        if op.result in found:
            found.update(op.operands)
    return found
