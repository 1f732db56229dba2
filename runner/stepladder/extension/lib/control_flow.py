"""`scf.for` and `scf.if`: reading them, and creating them with other values."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import constant_value, less_than
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.mlir.bindings import ir, scf
from stepladder.mlir.traverse import attributes_of

# Operands of an `scf.for` before its iter_args: lower bound, upper bound and step.
BOUNDS = 3


def create_if(condition: ir.Value) -> ir.InsertionPoint:
    """Returns the insertion point inside a new `scf.if` without results and without an else region.

    Args:
        condition: an i1.
    """
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        end = scf.yield_([])
    return ir.InsertionPoint(end.operation)


def create_if_below(
    value: ir.Value, extent: ir.Value | None
) -> contextlib.AbstractContextManager[ir.InsertionPoint | None]:
    """Returns the insertion point inside a new `scf.if` of `value` less than `extent`.

    Without an extent (None), the insertion point does not change.

    Args:
        value: an index.
        extent: an index; None for no condition.
    """
    return contextlib.nullcontext() if extent is None else create_if(less_than(value, extent))


def behind(value: ir.Value) -> ir.InsertionPoint:
    """Returns the insertion point where a value is first known: after its op, or at the beginning of its block.

    Args:
        value: the result of an op, or an argument of a block.
    """
    owner = value.owner
    return ir.InsertionPoint.at_block_begin(owner) if isinstance(owner, ir.Block) else ir.InsertionPoint.after(owner)


def body_of(loop: ir.Operation) -> ir.Block:
    """Returns the only block of an `scf.for`, or of another op with one region of one block.

    Args:
        loop: with one region of one block.
    """
    return loop.regions[0].blocks[0]


def operations_of(block: ir.Block) -> list[ir.Operation]:
    """Returns the ops of a block, its terminator included.

    Args:
        block: of any number of ops.
    """
    return [op.operation for op in block.operations]


def terminator_of(block: ir.Block) -> ir.Operation:
    """Returns the last op of a block.

    Args:
        block: with one op at least.
    """
    return block.operations[len(block.operations) - 1].operation


def next_op(op: ir.Operation) -> ir.Operation:
    """Returns the op after `op` in its block.

    Args:
        op: which is not the last of its block.
    """
    operations = operations_of(op.block)
    return operations[operations.index(op) + 1]


def enclosing_loops(op: ir.Operation) -> list[ir.Operation]:
    """Returns the `scf.for` ops that an op is nested in, the outermost first.

    Args:
        op: any op.
    """
    loops: list[ir.Operation] = []
    parent = op.parent
    while parent is not None:
        if parent.name == "scf.for":
            loops.insert(0, parent.operation)
        parent = parent.parent
    return loops


def constant_bounds(loop: ir.Operation) -> tuple[int, int, int] | None:
    """Returns lower bound, upper bound and step of an `scf.for`, or None where one of them is not constant.

    Args:
        loop: an `scf.for`.
    """
    lower, upper, step = (constant_value(loop.operands[number]) for number in range(BOUNDS))
    return None if lower is None or upper is None or step is None else (lower, upper, step)


def bounds_over_k(loop: ir.Operation) -> tuple[int, int, int]:
    """Returns lower bound, upper bound and step of the loop over k.

    Args:
        loop: an `scf.for`.

    Raises:
        Refusal: one of them is not constant.
    """
    bounds = constant_bounds(loop)
    if bounds is None:
        raise Refusal(loop, "the bounds of the loop over k are not constant")
    return bounds


def add_iter_args(
    loop: ir.Operation, initial: Sequence[ir.Value], rewriter: Rewriter
) -> tuple[ir.Operation, list[ir.BlockArgument]]:
    """Replaces an `scf.for` by one with more iter_args; the caller extends its `scf.yield`.

    Args:
        loop: the `scf.for`; it is erased.
        initial: what the new iter_args hold at first.
        rewriter: of the transform op.

    Returns:
        The new loop, and the block arguments of the new iter_args.
    """
    with ir.InsertionPoint(loop), loop.location:
        wider = ir.Operation.create(
            "scf.for",
            results=[*(result.type for result in loop.results), *(value.type for value in initial)],
            operands=[*loop.operands, *initial],
            attributes=attributes_of(loop),
            regions=1,
        )
    block = body_of(loop)
    block.append_to(wider.regions[0])
    arguments = [block.add_argument(value.type, loop.location) for value in initial]
    for old, new in zip(loop.results, wider.results):
        old.replace_all_uses_with(new)
    rewriter.erase_op(loop)
    return wider, arguments


def extend_yield(loop: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Appends values to those that an `scf.for` yields.

    Args:
        loop: an `scf.for`, or another op with one region of one block that ends in `scf.yield`.
        values: after those that are yielded already.
    """
    old = terminator_of(body_of(loop))
    with ir.InsertionPoint(old), old.location:
        scf.yield_([*old.operands, *values])
    old.erase()
