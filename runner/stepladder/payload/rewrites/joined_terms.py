"""Reductions that fold several values into the result so far, one after the other: they fold one value of these.

A product of complex numbers written by hand has two such sums, and so has a loop that is unrolled by its author.
"""

from __future__ import annotations

from collections.abc import Iterable

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer
from stepladder.payload.rewrites.fold_bodies import DIFFERENCES, FUSED, fold_of, results_so_far

_ADD = "arith.addf"


def join(function: ir.Operation) -> None:
    """Replaces the folds of each result of a reduction that has several, all by one op, or by sums and differences.

    Args:
        function: a function; it is changed where there are such reductions.
    """
    for end, place, so_far in results_so_far(function):
        folds = _folds(end, end.operands[place], so_far)
        if len(folds) > 1:
            _join(end, place, so_far, folds)


def _dependent(ops: Iterable[ir.Operation], so_far: ir.Value) -> set[ir.Value]:
    """Returns the values that depend on a result so far."""
    values = {so_far}
    for op in ops:
        if any(operand in values for operand in op.operands):
            values.update(op.results)
    return values


def _folds(end: ir.Operation, value: ir.Value, so_far: ir.Value) -> list[ir.Operation]:
    """Returns the chain of ops from the accumulated value to the new one, in order; nothing if they are not folds of
    one kind, or if other ops read a value between them."""
    dependent = _dependent((item.operation for item in end.block.operations), so_far)
    folds: list[ir.Operation] = []
    names = set()
    while value != so_far:
        op = producer(value)
        if op is None or op.block != end.block or len(list(value.uses)) != 1:
            return []
        places = [place for place, operand in enumerate(op.operands) if operand in dependent]
        name = fold_of(op, places[0]) if len(places) == 1 else None
        if name is None:
            return []
        names.add(name)
        folds.insert(0, op)
        value = op.operands[places[0]]
    return folds if len(names) == 1 and len(list(so_far.uses)) == 1 else []


def _join(end: ir.Operation, place: int, so_far: ir.Value, folds: list[ir.Operation]) -> None:
    """Creates one fold of the values of several, at the end of the body."""
    type_ = so_far.type
    total, is_negative = None, False
    before = so_far
    with ir.InsertionPoint(end), folds[-1].location:
        for op in folds:
            number = list(op.operands).index(before)
            term = arith.mulf(*list(op.operands)[:2]) if op.name == FUSED else op.operands[1 - number]
            name = _ADD if op.name == FUSED else op.name
            before = op.results[0]
            if total is None:
                total, is_negative = term, name in DIFFERENCES
                continue
            if is_negative and name in DIFFERENCES:  # of a negative total, the other sign
                name = DIFFERENCES[name]
            elif is_negative:
                name = next(difference for difference, fold in DIFFERENCES.items() if fold == name)
            total = ir.Operation.create(name, results=[type_], operands=[total, term]).results[0]
        assert total is not None
        name = _ADD if folds[0].name == FUSED else folds[0].name
        new = ir.Operation.create(name, results=[type_], operands=[so_far, total])
    end.operands[place] = new.results[0]
    for op in reversed(folds):
        op.erase()
