"""Reductions that keep where the largest or smallest value is, the first or the last of equal ones, as argmax and
argmin: by several threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import integer
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.threads import WARP
from stepladder.mlir.bindings import arith, gpu, ir
from stepladder.mlir.traverse import producer, users_of

_MORE = {
    "arith.maximumf": arith.CmpFPredicate.OGT,
    "arith.maxnumf": arith.CmpFPredicate.OGT,
    "arith.minimumf": arith.CmpFPredicate.OLT,
    "arith.minnumf": arith.CmpFPredicate.OLT,
}
_EXTREMA = tuple(_MORE)
_PROPAGATING = ("arith.maximumf", "arith.minimumf")  # NaN
_OR_EQUAL = {arith.CmpFPredicate.OGT: arith.CmpFPredicate.OGE, arith.CmpFPredicate.OLT: arith.CmpFPredicate.OLE}
_REVERSED = {
    arith.CmpFPredicate.OGT: arith.CmpFPredicate.OLT,
    arith.CmpFPredicate.OLT: arith.CmpFPredicate.OGT,
    arith.CmpFPredicate.OGE: arith.CmpFPredicate.OLE,
    arith.CmpFPredicate.OLE: arith.CmpFPredicate.OGE,
}


@dataclass(frozen=True)
class FirstExtremum:
    """An extremum and what a body selects where a value exceeds the one so far, or is equal to it.

    Attributes:
        value, place: the indices of the outputs.
        name: of the op that folds values.
        term: the value of an iteration; `selected`: what becomes the other output.
        predicate: by which a value replaces the one so far.
    """

    value: int
    place: int
    name: str
    term: ir.Value
    selected: ir.Value
    predicate: int

    def may_begin_apart(self, start: float | None) -> bool:
        """Returns whether threads may begin from the start each: one that is NaN, which no value exceeds, gives way to
        the first value of each thread, if the op ignores NaN.

        Args:
            start: that the extremum begins with; None for one that is not known.
        """
        return self.name in _PROPAGATING or (start is not None and not math.isnan(start))

    def exceeds(self, value: ir.Value, so_far: ir.Value) -> ir.Value:
        """Returns whether a value replaces the extremum so far, as i1; NaN does not, nor any value that of
        NaN.

        Args:
            value, so_far: of f32.
        """
        return arith.cmpf(arith.CmpFPredicate(self.predicate), value, so_far)

    def folded(self, so_far: ir.Value, value: ir.Value) -> ir.Value:
        """Returns the extremum of two values.

        Args:
            so_far, value: of f32.
        """
        return ir.Operation.create(self.name, results=[so_far.type], operands=[so_far, value]).results[0]

    def merged(self, best: ir.Value, number: ir.Value, other: ir.Value, further: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Returns the extremum of the values of two threads, and the number of the first one, or the last, that has it.
        Where the extremum is NaN, the number is any.

        Args:
            best, other: extrema, of f32.
            number, further: of the values that have them, of i32; -1 where no value replaced what the thread began
                with.
        """
        is_first = self.predicate == int(_MORE[self.name])
        exceeds = arith.cmpf(_MORE[self.name], other, best)
        are_equal = arith.cmpf(arith.CmpFPredicate.OEQ, other, best)
        # As an unsigned number, -1 is the last one.
        precedes = arith.CmpIPredicate.ult if is_first else arith.CmpIPredicate.sgt
        exceeds = arith.ori(exceeds, arith.andi(are_equal, arith.cmpi(precedes, further, number)))
        return self.folded(best, other), arith.select(exceeds, further, number)

    def over_lanes(self, best: ir.Value, number: ir.Value, distances: Sequence[int]) -> tuple[ir.Value, ir.Value]:
        """Returns the extremum of lanes whose indices differ in some bits, and the number of the first value, or the
        last, that is equal to it: all of them have both.

        Args:
            best, number: as for `merged`.
            distances: powers of two, below the size of a warp.
        """
        for distance in distances:
            other, further = (
                gpu.shuffle(value, integer(distance, 32), integer(WARP, 32), gpu.ShuffleMode.XOR)[0]
                for value in (best, number)
            )
            best, number = self.merged(best, number, other, further)
        return best, number


def first_extremum_of(generic: ir.Operation) -> FirstExtremum | None:
    """Returns how the two outputs of an op are reduced; None for another body.

    Args:
        generic: a `linalg.generic`.
    """
    body = generic.regions[0].blocks[0]
    end = operations_of(body)[-1]
    if len(end.operands) != 2:
        return None
    so_far = list(body.arguments)[-2:]
    for value, place in ((0, 1), (1, 0)):
        fold, choice = producer(end.operands[value]), producer(end.operands[place])
        if fold is None or fold.name not in _EXTREMA or choice is None or choice.name != "arith.select":
            continue
        terms = [operand for operand in fold.operands if operand != so_far[value]]
        condition = producer(choice.operands[0])
        if len(terms) != 1 or condition is None or condition.name != "arith.cmpf":
            continue
        predicate = arith.CmpFPredicate(ir.IntegerAttr(condition.attributes["predicate"]).value)
        comparands = list(condition.operands)
        if comparands == [so_far[value], terms[0]]:
            predicate, comparands = _REVERSED.get(predicate), comparands[::-1]
        if (
            predicate is not None
            and predicate in (_MORE[fold.name], _OR_EQUAL[_MORE[fold.name]])
            and comparands == [terms[0], so_far[value]]
            and choice.operands[2] == so_far[place]
            and set(users_of(so_far[value])) == {fold, condition}
            and users_of(so_far[place]) == [choice]
        ):
            return FirstExtremum(value, place, fold.name, terms[0], choice.operands[1], int(predicate))
    return None
