"""A loop over the tiles of a dimension and one over the elements of a tile, as one loop over all elements."""

from __future__ import annotations

from typing import NamedTuple

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.traverse import producer, users_of, walk

_LOOP = "scf.for"
_BOUNDS = 3


class _Line(NamedTuple):
    """A number that is `factor` times the counter of a loop, and `offset`."""

    factor: int
    offset: int


def merge(nest: ir.Operation) -> None:
    """Merges each loop whose counter is read by the bounds of one other loop inside it, which runs along the tile that
    begins there, with this loop.

    Where loops are between the two, the order of iterations changes: the caller drops the nest if that matters.

    Args:
        nest: an outermost loop; it is changed.
    """
    while any(map(_merge_into, walk(nest, _LOOP))):  # a merge erases loops
        pass


def _merge_into(loop: ir.Operation) -> bool:
    """Makes a loop over tiles one over their elements; returns whether it was a loop over tiles."""
    numbers = [_constant(value) for value in loop.operands]
    counter = loop.regions[0].blocks[0].arguments[0]
    inner = _loop_that_reads(counter, loop)
    if len(numbers) > _BOUNDS or None in numbers or inner is None or len(inner.operands) > _BOUNDS:
        return False
    low, high, step = (number for number in numbers if number is not None)
    first, last, inner_step = inner.operands
    end, limit = _least(last, counter)
    begin, elements = _line(first, counter), _constant(inner_step)
    if low != 0 or min(step, high) < 1 or begin is None or end is None or not elements or elements < 1:
        return False
    tile = end.offset
    is_tile = begin.offset == 0 and begin.factor == end.factor and begin.factor * step == tile and tile % elements == 0
    if not is_tile or tile < 1:
        return False
    extent = -(-high // step) * tile
    with ir.InsertionPoint(loop), loop.location:
        index = loop.operands[0].type
        loop.operands[1] = arith.constant(index, extent if limit is None else min(extent, limit))
        loop.operands[2] = arith.constant(index, elements)
    _inline(inner, counter)
    for op in reversed(walk(loop)):
        if op.name.startswith("arith.") and not any(users_of(result) for result in op.results):
            op.erase()
    return True


def _inline(inner: ir.Operation, counter: ir.Value) -> None:
    """Moves what a loop runs in front of it, where it runs once, for one value of its counter, and erases the loop."""
    block = inner.regions[0].blocks[0]
    *ops, _ = [item.operation for item in block.operations]
    block.arguments[0].replace_all_uses_with(counter)
    for op in ops:
        op.move_before(inner)
    inner.erase()


def _loop_that_reads(counter: ir.Value, loop: ir.Operation) -> ir.Operation | None:
    """Returns the one loop whose bounds read a counter, which nothing else reads; None where there is none."""
    found: set[ir.Operation] = set()
    pending = list(users_of(counter))
    while pending:
        user = pending.pop()
        if user.name == _LOOP and user != loop:
            found.add(user)
        elif user.name.startswith("arith.") and len(user.results) == 1:
            pending += users_of(user.results[0])
        else:
            return None
    return found.pop() if len(found) == 1 else None


def _constant(value: ir.Value) -> int | None:
    number = constant_number(value)
    return None if number is None else int(number.value)


def _least(value: ir.Value, counter: ir.Value) -> tuple[_Line | None, int | None]:
    """Returns a number on a line, and the constant that it is at most, or None."""
    source = producer(value)
    if source is not None and source.name == "arith.minsi":
        left, right = source.operands
        for bounded, limit in ((left, _constant(right)), (right, _constant(left))):
            if limit is not None and limit > 0:
                return _line(bounded, counter), limit
    return _line(value, counter), None


def _line(value: ir.Value, counter: ir.Value) -> _Line | None:
    """Returns how a number depends on a counter; None for another dependence than by a factor and an offset."""
    if value == counter:
        return _Line(1, 0)
    number = _constant(value)
    if number is not None:
        return _Line(0, number)
    source = producer(value)
    if source is None or source.name not in ("arith.addi", "arith.muli"):
        return None
    left, right = (_line(operand, counter) for operand in source.operands)
    if left is None or right is None:
        return None
    if source.name == "arith.addi":
        return _Line(left.factor + right.factor, left.offset + right.offset)
    if left.factor and right.factor:
        return None
    return _Line(left.factor * right.offset + right.factor * left.offset, left.offset * right.offset)
