"""Indices of extrema that a NaN takes, as TOSA's argmax: two reductions, to the extremum and to its first index."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_loop_index, create_named_op, indexing_maps, loops_of
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.rewrites.selected_extrema import starts_from_a_number

# By the encoding of the predicates of arith.cmpf: ugt, ult; with ogt and olt.
_FOLDS = {9: (arith.maximumf, 2), 11: (arith.minimumf, 4)}
_OEQ, _ORD, _UNO = 1, 7, 14


@dataclass(frozen=True)
class _Extremum:
    """A reduction to an extremum and its index.

    Attributes:
        value, place: indices of its outputs.
        predicate: by which a new value replaces the one so far.
        loop: whose iterations are the indices.
    """

    value: int
    place: int
    predicate: int
    loop: int


def separate(function: ir.Operation) -> None:
    """Replaces each reduction that selects a value that exceeds the one so far, or is the first NaN, and its index.

    Args:
        function: a function on static tensors; it is changed where there are such ops.
    """
    for op in walk(function, "linalg.generic"):
        extremum = _extremum(op)
        if extremum is not None:
            _separate(op, extremum)


def _extremum(op: ir.Operation) -> _Extremum | None:
    """Returns what a reduction of one tensor to two selects; None for other ops."""
    block = op.regions[0].blocks[0]
    *inner, end = [item.operation for item in block.operations]
    names = sorted(item.name for item in inner)
    op_names = ["arith.andi", "arith.cmpf", "arith.cmpf", "arith.index_cast", "arith.select", "arith.select"]
    if names != [*op_names, "linalg.index"] or len(op.results) != 2 or len(op.operands) != 3:
        return None
    value_argument, *so_far = block.arguments
    choices = [producer(value) for value in end.operands]
    if any(choice is None or choice.name != "arith.select" for choice in choices):
        return None
    conditions = {choice.operands[0] for choice in choices if choice is not None}
    places = [
        number for number, choice in enumerate(choices) if choice is not None and choice.operands[1] == value_argument
    ]
    if len(conditions) != 1 or len(places) != 1:
        return None
    value, place = places[0], 1 - places[0]
    if any(choice is None or choice.operands[2] != so_far[number] for number, choice in enumerate(choices)):
        return None
    cast = next(item for item in inner if item.name == "arith.index_cast")
    index = next(item for item in inner if item.name == "linalg.index")
    index_choice = choices[place]
    if index_choice is None or index_choice.operands[1] != cast.results[0] or cast.operands[0] != index.results[0]:
        return None
    conjunction = producer(conditions.pop())
    tests = {
        ir.IntegerAttr(item.attributes["predicate"]).value: list(item.operands)
        for item in inner
        if item.name == "arith.cmpf"
    }
    predicate = next((number for number in _FOLDS if number in tests), None)
    if conjunction is None or conjunction.name != "arith.andi" or predicate is None:
        return None
    if tests != {predicate: [value_argument, so_far[value]], _ORD: [so_far[value]] * 2}:
        return None
    if {item.name for item in map(producer, conjunction.operands) if item is not None} != {"arith.cmpf"}:
        return None
    if len(set(conjunction.operands)) != 2 or not starts_from_a_number(op.operands[1 + value]):
        return None
    loop = ir.IntegerAttr(index.attributes["dim"]).value
    maps = indexing_maps(op)
    is_one = maps[1] == maps[2] and {*range(maps[0].n_dims)} - {*loops_of(maps[1])} == {loop}
    extents = dict(zip(maps[0].results, ir.RankedTensorType(op.operands[0].type).shape))
    size = extents.get(ir.AffineExpr.get_dim(loop))
    # In a type that does not represent all indices, they wrap, and the largest value represents none.
    has_all = size is not None and size <= _largest(ir.RankedTensorType(op.operands[1 + place].type).element_type)
    return _Extremum(value, place, predicate, loop) if is_one and has_all else None


def _largest(type_: ir.Type) -> int:
    """Returns the largest number of an integer type."""
    return (1 << ir.IntegerType(type_).width - 1) - 1


def _separate(op: ir.Operation, form: _Extremum) -> None:
    """Creates the extremum, and the first index of what is equal to it and exceeds what the reduction starts from."""
    source, *starts = op.operands
    maps = indexing_maps(op)
    fold, exceeds = _FOLDS[form.predicate]
    type_ = ir.RankedTensorType(starts[form.place].type)
    none = _largest(type_.element_type)
    identity = ir.AffineMap.get_identity(type_.rank)
    with ir.InsertionPoint(op), op.location:
        extremum, body = create_generic([source], [starts[form.value]], maps[:2])
        with ir.InsertionPoint(body):
            ir.Operation.create("linalg.yield", operands=[fold(body.arguments[0], body.arguments[1])])
        number = arith.constant(type_.element_type, none)
        filled = create_named_op("linalg.fill", [number], _empty(type_)).results[0]
        inputs = [source, extremum.results[0], starts[form.value]]
        first, body = create_generic(inputs, [filled], [maps[0], *maps[1:2] * 3])
        with ir.InsertionPoint(body):
            value, largest, start, so_far = body.arguments
            is_it = arith.andi(arith.cmpf(_OEQ, value, largest), arith.cmpf(exceeds, value, start))
            is_it = arith.ori(is_it, arith.cmpf(_UNO, value, value))
            place = arith.index_cast(type_.element_type, create_loop_index(form.loop))
            ir.Operation.create("linalg.yield", operands=[arith.minsi(so_far, arith.select(is_it, place, number))])
        selection, body = create_generic([first.results[0], starts[form.place]], [_empty(type_)], [identity] * 3)
        with ir.InsertionPoint(body):
            is_none = arith.cmpi(arith.CmpIPredicate.eq, body.arguments[0], number)
            ir.Operation.create("linalg.yield", operands=[arith.select(is_none, body.arguments[1], body.arguments[0])])
    op.results[form.value].replace_all_uses_with(extremum.results[0])
    op.results[form.place].replace_all_uses_with(selection.results[0])
    op.erase()


def _empty(type_: ir.Type) -> ir.Value:
    return ir.Operation.create("tensor.empty", results=[type_]).results[0]
