"""Reductions that keep where the largest or smallest value is, the first or the last of equal ones, as argmax and
argmin: by the lanes of a warp."""

from __future__ import annotations

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

    def over_lanes(self, best: ir.Value, number: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Returns for the first lane of a warp the extremum of all lanes, and the number of the first one, or the last,
        that has it.

        Each lane has those of values after the ones of lower lanes. Where the extremum is NaN, the index is any.

        Args:
            best: of f32; number: of i32, -1 where no value of the lane replaced what it began with.
        """
        distance = 1
        while distance < WARP:
            other, further = (
                gpu.shuffle(value, integer(distance, 32), integer(WARP, 32), gpu.ShuffleMode.DOWN)[0]
                for value in (best, number)
            )
            exceeds = self.exceeds(other, best)
            if self.predicate != int(_MORE[self.name]):
                # Equal to what both lanes began with.
                exceeds = arith.andi(exceeds, arith.cmpi(arith.CmpIPredicate.sge, further, integer(0, 32)))
            number = arith.select(exceeds, further, number)
            best = self.folded(best, other)
            distance *= 2
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
