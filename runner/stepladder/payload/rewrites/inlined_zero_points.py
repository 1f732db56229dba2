"""Zero points from the caller that an elementwise op before a contraction subtracts, as ops of its body."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import producer
from stepladder.payload.front import bodies
from stepladder.payload.rewrites.shifted_numbers import SUMS, ShiftedNumber, elementwise, factors_of, number_of

_Input = tuple[ir.Value, tuple[int | None, ...]]
# The op that makes a factor of a contraction, and the loops of this along the axes of its result.
_Subtraction = tuple[bodies.Structured, tuple[int | None, ...]]


def inlined(item: bodies.Structured) -> bodies.Structured | None:
    """Replaces a contraction by one whose body computes what elementwise ops of i32 before it do.

    Args:
        item: a linalg op on tensors, whose factors are not known.

    Returns:
        The new op, whose factors are i8 values less zero points; None where it would be another, and for an op that
        no elementwise op of i32 makes the factors of: then nothing is changed.
    """
    if len(item.outputs) != 1 or len(item.op.results) != 1 or not bodies.reduces(item):
        return None
    subtractions = [_subtraction(value, loops) for value, loops in zip(item.inputs, item.maps)]
    if not any(subtractions):
        return None
    op = item.op
    with ir.InsertionPoint(op), op.location:
        inlined_op = _with_bodies(item, subtractions)
    structured_op = bodies.structured(inlined_op)
    if factors_of(structured_op) is None:
        inlined_op.erase()
        return None
    op.results[0].replace_all_uses_with(inlined_op.results[0])
    op.erase()
    for value in item.inputs:
        _erase_unread(value)
    return structured_op


def _erase_unread(value: ir.Value) -> None:
    """Erases the op that makes a factor that nothing reads any more, and the transposes behind it."""
    op = producer(value)
    if op is not None and op.name.startswith("linalg.") and not list(value.uses):
        source = op.operands[0]
        op.erase()
        _erase_unread(source)


def _subtraction(value: ir.Value, loops: Sequence[int | None]) -> _Subtraction | None:
    """Returns the elementwise op that makes a factor of i32 from i8 values and other integers, and maybe a transpose
    of it; None for another factor."""
    op = producer(value)
    if op is None or None in loops or not isinstance(value.type, ir.RankedTensorType) or number_of(value) is not None:
        return None
    structured_op = elementwise(op) if str(value.type.element_type) == SUMS else None
    if structured_op is None or len(op.results) != 1:
        return None
    if structured_op.yields[0] == structured_op.block.arguments[0]:
        axes, result_axes = structured_op.maps[0], structured_op.maps[-1]
        if None in axes or None in result_axes:
            return None
        return _subtraction(structured_op.inputs[0], [loops[result_axes.index(axis)] for axis in axes])
    has_numbers = any(isinstance(number_of(input_), ShiftedNumber) for input_ in structured_op.inputs)
    return (structured_op, tuple(loops)) if has_numbers else None


def _with_bodies(item: bodies.Structured, subtractions: Sequence[_Subtraction | None]) -> ir.Operation:
    """Creates the contraction with the bodies of ops before it in its own, at the insertion point."""
    inputs: list[_Input] = []
    for value, loops_of_value, subtraction in zip(item.inputs, item.maps, subtractions):
        if subtraction is None:
            inputs.append((value, tuple(loops_of_value)))
            continue
        inner, loops = subtraction
        for source, axes in zip(inner.inputs, inner.maps):
            places = [None if axis is None else inner.maps[-1].index(axis) for axis in axes]
            inputs.append((source, tuple(None if place is None else loops[place] for place in places)))
    (output,) = item.outputs
    maps = [_map(len(item.sizes), axes) for axes in [*(axes for _, axes in inputs), item.maps[-1]]]
    generic, body = create_generic([value for value, _ in inputs], [output], maps)
    arguments = list(body.arguments)
    values: dict[ir.Value, ir.Value] = {}
    for argument, subtraction in zip(item.block.arguments, subtractions):
        if subtraction is None:
            values[argument] = arguments.pop(0)
            continue
        inner, _ = subtraction
        inner_arguments = [arguments.pop(0) for _ in inner.inputs]
        *ops, last = [op.operation for op in inner.block.operations]
        clones = clone_ops(ops, dict(zip(inner.block.arguments, inner_arguments)), ir.InsertionPoint(body))
        values[argument] = clones.get(last.operands[0], last.operands[0])
    values[list(item.block.arguments)[-1]] = arguments.pop(0)
    clone_ops([op.operation for op in item.block.operations], values, ir.InsertionPoint(body))
    return generic


def _map(count: int, axes: Sequence[int | None]) -> ir.AffineMap:
    zero = ir.AffineExpr.get_constant(0)
    return ir.AffineMap.get(count, 0, [zero if axis is None else ir.AffineExpr.get_dim(axis) for axis in axes])
