"""Shift distances from a small constant, or from a small tensor of positions: arithmetic on indices in its place.

Exporters of weights with several values in an integer write the positions of their bits as a constant, `[0, 4, 8,
...]`, or as an `arange`. Only of such a tensor are the distances known; an argument may hold more than the number of
bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.linalg_ops import create_generic, create_loop_index, indexing_maps
from stepladder.mlir.traverse import users_of, walk
from stepladder.payload.consumers import SHIFTS
from stepladder.payload.rewrites import element_numbers

MOST = 16  # values that a chain of selections takes


def compute(function: ir.Operation) -> None:
    """Rewrites elementwise ops that shift by elements of a tensor of constants or positions: they compute these of the
    indices of their loops.

    Args:
        function: a `func.func` with a body; it is changed where there are any.
    """
    for op in walk(function, "linalg.generic"):
        for value in dict.fromkeys(list(op.operands)[:-1]):
            known = element_numbers.numbers_of(value, MOST) if _shifts_by(op, value) else None
            if known is not None and len(known[1]) > 1:
                _rewrite(op, value, *known)
                break


def _shifts_by(generic: ir.Operation, value: ir.Value) -> bool:
    """Returns whether an op on tensors shifts by elements of an input that it takes once, whose axes are loops."""
    places = [place for place, operand in enumerate(generic.operands) if operand == value]
    if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
        return False
    if len(places) != 1 or places[0] == len(generic.operands) - 1 or len(generic.results) != 1:
        return False
    axes = list(indexing_maps(generic)[places[0]].results)
    if not all(isinstance(axis, (ir.AffineDimExpr, ir.AffineConstantExpr)) for axis in axes):
        return False
    argument = generic.regions[0].blocks[0].arguments[places[0]]
    return any(user.name in SHIFTS and user.operands[1] == argument for user in users_of(argument))


def _rewrite(generic: ir.Operation, value: ir.Value, axes: Sequence[int], numbers: Sequence[int]) -> None:
    """Replaces an op by one that computes the elements of one input, which depend on some of its axes."""
    *inputs, output = generic.operands
    place = inputs.index(value)
    *maps, output_map = indexing_maps(generic)
    input_numbers = [number for number in range(len(inputs)) if number != place]
    old = generic.regions[0].blocks[0]
    with ir.InsertionPoint(generic), generic.location:
        new_generic, body = create_generic(
            [inputs[number] for number in input_numbers],
            [output],
            [*(maps[number] for number in input_numbers), output_map],
        )
        with ir.InsertionPoint(body):
            values: dict[ir.Value, ir.Value] = {
                old.arguments[place]: _element(numbers, maps[place].get_submap(list(axes)), value, axes)
            }
    arguments = [argument for number, argument in enumerate(old.arguments) if number != place]
    values.update(zip(arguments, body.arguments))
    _fold_bounds(old.arguments[place], numbers)
    clone_ops([op.operation for op in old.operations], values, ir.InsertionPoint(body))
    generic.results[0].replace_all_uses_with(new_generic.results[0])
    generic.erase()


def _fold_bounds(element: ir.Value, numbers: Sequence[int]) -> None:
    """Replaces comparisons of all numbers with a larger constant, such as the bits of a type."""
    for user in users_of(element):
        bound = constant_number(user.operands[1]) if user.name == "arith.cmpi" else None
        if not isinstance(bound, ir.IntegerAttr) or user.operands[0] != element:
            continue
        is_less = ir.IntegerAttr(user.attributes["predicate"]).value == arith.CmpIPredicate.ult
        if is_less and all(0 <= number < bound.value for number in numbers):
            with ir.InsertionPoint(user), user.location:
                true = ir.BoolAttr.get(True)
                user.results[0].replace_all_uses_with(arith.constant(user.results[0].type, true))


def _element(numbers: Sequence[int], map_: ir.AffineMap, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Returns the element of a constant for the indices of loops, at the insertion point."""
    type_ = ir.RankedTensorType(value.type)
    element = type_.element_type
    place = _constant(element, 0)
    for axis, size in zip(map_.results, [type_.shape[axis] for axis in axes]):
        place = arith.muli(place, _constant(element, size))
        if isinstance(axis, ir.AffineDimExpr):
            place = arith.addi(place, arith.index_cast(element, create_loop_index(axis.position)))
    return chosen(numbers, place)


def chosen(numbers: Sequence[int], place: ir.Value) -> ir.Value:
    """Returns the number at a place, at the insertion point.

    Args:
        numbers: several.
        place: in them, of the type of the result.
    """
    type_ = place.type
    step = numbers[1] - numbers[0]
    if list(numbers) == [numbers[0] + step * number for number in range(len(numbers))]:
        return arith.addi(arith.muli(place, _constant(type_, step)), _constant(type_, numbers[0]))
    value = _constant(type_, numbers[-1])
    for number, distance in enumerate(numbers[:-1]):
        is_here = arith.cmpi(arith.CmpIPredicate.eq, place, _constant(type_, number))
        value = arith.select(is_here, _constant(type_, distance), value)
    return value


def _constant(type_: ir.Type, value: int) -> ir.Value:
    return arith.constant(type_, ir.IntegerAttr.get(type_, value))
