"""Donated arguments, whose memory a result reuses, and the part of one that an elementwise op replaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant_value
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer
from stepladder.payload.arguments import ALIAS, donated

_CASTS = ("arith.index_cast", "arith.index_castui")
_EQUAL, _BELOW = 0, 6  # `eq` and `ult` of arith.cmpi


def mark_donated(function: ir.Operation, argument: int, result: int | None) -> None:
    """Marks an argument, whose memory a result takes, or removes the mark.

    Args:
        function: a `func.func`.
        argument, result: their indices; None for no result.
    """
    marks = [ir.DictAttr(item) for item in ir.ArrayAttr(function.attributes["arg_attrs"])]
    own = {item.name: item.attr for item in marks[argument] if item.name != ALIAS}
    if result is not None:
        own[ALIAS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), result)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [*marks[:argument], ir.DictAttr.get(own), *marks[argument + 1 :]]
    )


def kept_operands(call: ir.Operation, stage: ir.Operation) -> list[ir.Value]:
    """Returns the operands of a call of a stage, but for those that give their memory to a result.

    Args:
        call: of the stage.
        stage: the private function.
    """
    marked = donated(stage)
    return [value for number, value in enumerate(call.operands) if number not in marked]


@dataclass(frozen=True)
class Part:
    """The part of a tensor that an elementwise op replaces.

    Attributes:
        value: of the op's body, that an element of the part becomes.
        ranges: by loop, the value in the body that the part begins at (None for 0), and how many iterations it has; all
            iterations of other loops.
    """

    value: ir.Value
    ranges: dict[int, tuple[ir.Value | None, int]]

    def extents(self, sizes: Sequence[int]) -> list[int]:
        """Returns the iterations of all loops in the part, where some may be outside of the tensor.

        Args:
            sizes: iterations of all loops.
        """
        counts = list(sizes)
        for loop, (begin, count) in self.ranges.items():
            counts[loop] = min(count, sizes[loop]) if begin is None else count
        return counts


def replaced_part(generic: ir.Operation, maps: Sequence[Sequence[int | None]], inputs: int) -> Part | None:
    """Returns the part that an op replaces of the operand whose memory its result takes, where it selects a new element
    within ranges of indices, and the old one elsewhere; None for another op.

    Args:
        generic: a `linalg.generic` on buffers, in the body of a function, whose arguments are marked.
        maps: the loops along the axes of its operands.
        inputs: how many operands it reads.

    Raises:
        Refusal: an argument gives its memory to a result that the op does not have.
    """
    function = generic.parent
    assert function is not None  # the op is in the body of one
    arguments = function.regions[0].blocks[0].arguments
    aliases, count = donated(function.operation), len(generic.operands) - inputs
    for number, result in aliases.items():
        if not 0 <= result < count:
            raise Refusal(
                generic, f"argument {number} gives its memory to result {result}; accepted: results below {count}"
            )
    aliased = {arguments[number] for number in aliases}
    body = generic.regions[0].blocks[0]
    end = operations_of(body)[-1]
    select = producer(end.operands[0])
    places = [place for place in range(inputs) if generic.operands[place] in aliased]
    if len(places) != 1 or len(end.operands) != 1 or select is None or select.name != "arith.select":
        return None
    if select.operands[2] != body.arguments[places[0]]:
        return None
    ranges: dict[int, tuple[ir.Value | None, int]] = {}
    for condition in _all_of(select.operands[0]):
        loop_range = _range(condition)
        if loop_range is None or loop_range[0] in ranges:
            return None
        ranges[loop_range[0]] = loop_range[1:]
    varying: set[ir.Value] = set(list(body.arguments)[inputs:])
    varying.update(argument for argument, map_ in zip(body.arguments, maps) if any(loop in ranges for loop in map_))
    if any(begin is not None and _depends_on(begin, varying) for begin, _ in ranges.values()):
        return None
    return Part(select.operands[1], ranges)


def _all_of(condition: ir.Value) -> Iterator[ir.Value]:
    """Yields the conditions that all have to hold."""
    op = producer(condition)
    if op is not None and op.name == "arith.andi":
        for operand in op.operands:
            yield from _all_of(operand)
    else:
        yield condition


def _range(condition: ir.Value) -> tuple[int, ir.Value | None, int] | None:
    """Returns the loop of a comparison of its index, where the indices begin that it holds for, and how many."""
    op = producer(condition)
    if op is None or op.name != "arith.cmpi":
        return None
    left, right = op.operands
    kind = ir.IntegerAttr(op.attributes["predicate"]).value
    if kind == _EQUAL:
        for index, begin in ((left, right), (right, left)):
            loop = _loop(index)
            if loop is not None:
                return loop, begin, 1
        return None
    size = constant_value(right)
    if kind != _BELOW or size is None:
        return None
    loop, source = _loop(left), producer(left)
    if loop is not None:
        return loop, None, size
    if source is None or source.name != "arith.subi":
        return None
    loop = _loop(source.operands[0])
    return None if loop is None else (loop, source.operands[1], size)


def _loop(value: ir.Value) -> int | None:
    """Returns the loop whose index a value is, or a cast of the index; None for another value."""
    op = producer(value)
    while op is not None and op.name in _CASTS:
        op = producer(op.operands[0])
    if op is None or op.name != "linalg.index":
        return None
    return ir.IntegerAttr(op.attributes["dim"]).value


def _depends_on(value: ir.Value, varying: set[ir.Value]) -> bool:
    """Returns whether a value depends on an index, or on one of some arguments."""
    op = producer(value)
    if op is None:
        return value in varying
    return op.name == "linalg.index" or any(_depends_on(operand, varying) for operand in op.operands)
