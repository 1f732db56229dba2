"""Loops that run while a counter is below a constant, as loops with bounds."""

from __future__ import annotations

import operator
from typing import NamedTuple

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import producer, walk

# By the encoding of the predicates of arith.cmpi.
_COMPARED = {
    1: operator.ne,
    2: operator.lt,
    3: operator.le,
    4: operator.gt,
    5: operator.ge,
    6: operator.lt,
    7: operator.le,
    8: operator.gt,
    9: operator.ge,
}
_MAX = 1024  # iterations, as of the loops that a reference program writes out


class _Count(NamedTuple):
    """The counter of a loop: which of the loop's values it is, its first value, its step, and how often it runs."""

    place: int
    first: int
    step: int
    iterations: int


def make_bounded(function: ir.Operation) -> None:
    """Replaces each `scf.while` that a counter ends, an `index` or an integer, by a `scf.for`.

    The counter begins at a constant, and each iteration adds a positive constant. The condition compares it with a
    constant, and nothing else is computed before it. Other loops stay.

    Args:
        function: a function; it is changed where there are such loops.
    """
    for loop in reversed(walk(function, "scf.while")):
        count = _count(loop)
        if count is not None:
            _replace(loop, count)


def _number(value: ir.Value) -> int | None:
    op = producer(value)
    is_number = isinstance(value.type, (ir.IndexType, ir.IntegerType))
    is_constant = op is not None and op.name == "arith.constant" and is_number
    return ir.IntegerAttr(op.attributes["value"]).value if op is not None and is_constant else None


def _count(loop: ir.Operation) -> _Count | None:
    """Returns how a loop counts; None for one that ends otherwise, or not after 1024 iterations."""
    condition_block, body = (region.blocks[0] for region in loop.regions)
    *ops, condition = [item.operation for item in condition_block.operations if item.operation.name != "arith.constant"]
    comparison = producer(condition.operands[0])
    forwarded = list(condition.operands)[1:]
    arguments: list[ir.Value] = list(condition_block.arguments)
    if comparison is None or ops != [comparison] or comparison.name != "arith.cmpi":
        return None
    if any(value not in arguments for value in forwarded):
        return None
    left, right = comparison.operands
    counter = next((value for value in (left, right) if value in arguments), None)
    bound = _number(right if counter == left else left)
    if counter is None or bound is None:
        return None
    place = arguments.index(counter)
    first = _number(loop.operands[place])
    end = [item.operation for item in body.operations][-1]
    step = _step(
        end.operands[place], [body.arguments[number] for number, value in enumerate(forwarded) if value == counter]
    )
    compare = _COMPARED.get(ir.IntegerAttr(comparison.attributes["predicate"]).value)
    if first is None or step is None or compare is None or min(first, bound) < 0:
        return None
    number, iterations = first, 0
    while compare(*((number, bound) if counter == left else (bound, number))):
        number, iterations = number + step, iterations + 1
        if iterations > _MAX or (isinstance(counter.type, ir.IntegerType) and number >> counter.type.width - 1):
            return None
    return _Count(place, first, step, iterations)


def _step(next_value: ir.Value, counters: list[ir.Value]) -> int | None:
    """Returns the positive constant that an iteration adds to the counter; None if it does something else."""
    op = producer(next_value)
    if op is None or op.name != "arith.addi":
        return None
    left, right = op.operands
    step = _number(right) if left in counters else _number(left) if right in counters else None
    return step if step is not None and step > 0 else None


def _replace(loop: ir.Operation, count: _Count) -> None:
    condition_block, body_block = (region.blocks[0] for region in loop.regions)
    *_, condition = [item.operation for item in condition_block.operations]
    *ops, end = [item.operation for item in body_block.operations]
    arguments: list[ir.Value] = list(condition_block.arguments)
    places = [arguments.index(value) for value in list(condition.operands)[1:]]
    carried = [place for place in range(len(arguments)) if place != count.place]
    last = count.first + count.iterations * count.step
    index = ir.IndexType.get(loop.context)
    with ir.InsertionPoint(loop), loop.location:
        bounds = [
            ir.Operation.create(
                "arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, number)}
            ).results[0]
            for number in (count.first, last, count.step)
        ]
        initial = [loop.operands[place] for place in carried]
        types = [value.type for value in initial]
        for_loop = ir.Operation.create("scf.for", results=types, operands=[*bounds, *initial], regions=1)
        body = for_loop.regions[0].blocks.append(index, *types, arg_locs=[loop.location] * (1 + len(types)))
    counter, *inner = body.arguments
    type_ = condition_block.arguments[count.place].type
    end_number = bounds[1]
    if type_ != index:
        with ir.InsertionPoint(body), loop.location:
            counter = ir.Operation.create("arith.index_cast", results=[type_], operands=[counter]).results[0]
        with ir.InsertionPoint(loop), loop.location:
            end_number = ir.Operation.create(
                "arith.constant", results=[type_], attributes={"value": ir.IntegerAttr.get(type_, last)}
            ).results[0]
    values = dict(zip(carried, inner)) | {count.place: counter}
    clones = clone_ops(
        ops, dict(zip(body_block.arguments, (values[place] for place in places))), ir.InsertionPoint(body)
    )
    with ir.InsertionPoint(body), loop.location:
        yields = [clones.get(end.operands[place], end.operands[place]) for place in carried]
        ir.Operation.create("scf.yield", operands=yields)
    increment = producer(clones[end.operands[count.place]])
    if increment is not None and not list(increment.results[0].uses):
        increment.erase()
    source = producer(counter)
    if source is not None and source.name == "arith.index_cast" and not list(counter.uses):
        source.erase()
    results = dict(zip(carried, for_loop.results)) | {count.place: end_number}
    for result, place in zip(loop.results, places):
        result.replace_all_uses_with(results[place])
    loop.erase()
