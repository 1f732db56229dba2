"""Ranges of indices: bounds and divisors of a value in a launch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant_value
from stepladder.extension.lib.launches import BLOCK, GRID, launch_sizes
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer

_SUBGROUP = 16  # threads


@dataclass(frozen=True)
class Range:
    """The values that an index can have.

    Attributes:
        low, high: the least and the largest.
        step: divides every value; 0 where the only value is 0.
    """

    low: int
    high: int
    step: int = 1


def range_of(value: ir.Value, launch: ir.Operation) -> Range | None:
    """Returns the range of an index of a launch; None where it is not known.

    Args:
        value: an index that is computed in the launch.
        launch: the `gpu.launch`, whose sizes bound its ids.
    """
    number = constant_value(value)
    if number is not None:
        return Range(number, number, abs(number))
    op = producer(value)
    if op is None:
        return _of_argument(ir.BlockArgument(value), launch)
    if op.name == "gpu.subgroup_id":
        return Range(0, max(math.prod(launch_sizes(launch, BLOCK)) // _SUBGROUP, 1) - 1)
    if op.name not in _COMBINED:
        return None
    operands = [range_of(operand, launch) for operand in op.operands]
    left, right = operands
    return None if left is None or right is None else _COMBINED[op.name](left, right)


def divisor_of(value: ir.Value) -> int:
    """Returns a divisor of an index: 0 for zero, and 1 where nothing is known.

    Args:
        value: an index, of which no bounds need be known.
    """
    number = constant_value(value)
    if number is not None:
        return abs(number)
    op = producer(value)
    if op is None:
        owner = ir.BlockArgument(value).owner.owner
        is_induction = owner.name == "scf.for" and ir.BlockArgument(value).arg_number == 0
        return math.gcd(divisor_of(owner.operands[0]), divisor_of(owner.operands[2])) if is_induction else 1
    if op.name in ("arith.addi", "arith.subi"):
        return math.gcd(*map(divisor_of, op.operands))
    if op.name == "affine.apply":
        (result,) = ir.AffineMapAttr(op.attributes["map"]).value.results
        return _divisor_of_expression(result, op)
    return math.prod(map(divisor_of, op.operands)) if op.name == "arith.muli" else 1


def _divisor_of_expression(expression: ir.AffineExpr, op: ir.Operation) -> int:
    """Returns a divisor of an expression of an `affine.apply`, as `divisor_of` does."""
    if isinstance(expression, ir.AffineConstantExpr):
        return abs(expression.value)
    if isinstance(expression, ir.AffineDimExpr):
        return divisor_of(op.operands[expression.position])
    if isinstance(expression, ir.AffineSymbolExpr):
        dimensions = ir.AffineMapAttr(op.attributes["map"]).value.n_dims
        return divisor_of(op.operands[dimensions + expression.position])
    assert isinstance(expression, ir.AffineBinaryExpr)  # there are no others
    left, right = (_divisor_of_expression(side, op) for side in (expression.lhs, expression.rhs))
    if isinstance(expression, ir.AffineMulExpr):
        return left * right
    # A remainder differs from its dividend by a multiple of its divisor.
    return math.gcd(left, right) if isinstance(expression, (ir.AffineAddExpr, ir.AffineModExpr)) else 1


def _of_argument(argument: ir.BlockArgument, launch: ir.Operation) -> Range | None:
    owner = argument.owner.owner
    if owner == launch:
        sizes = [*launch_sizes(launch, GRID), *launch_sizes(launch, BLOCK)]
        return Range(0, sizes[argument.arg_number] - 1) if argument.arg_number < len(sizes) else None
    if owner.name == "scf.for" and argument.arg_number == 0:
        bounds = [range_of(operand, launch) for operand in list(owner.operands)[:3]]
        first, end, step = bounds
        if first is None or end is None or step is None or step.low != step.high or step.low <= 0:
            return None
        return Range(first.low, max(end.high - 1, first.low), math.gcd(first.step, step.low))
    return None


def _sum(left: Range, right: Range) -> Range:
    return Range(left.low + right.low, left.high + right.high, math.gcd(left.step, right.step))


def _product(left: Range, right: Range) -> Range | None:
    if left.low < 0 or right.low < 0:
        return None
    return Range(left.low * right.low, left.high * right.high, left.step * right.step)


def _quotient(left: Range, right: Range) -> Range | None:
    if left.low < 0 or right.low != right.high or right.low <= 0:
        return None
    return Range(left.low // right.low, left.high // right.low)


def _remainder(left: Range, right: Range) -> Range | None:
    if left.low < 0 or right.low != right.high or right.low <= 0:
        return None
    step = math.gcd(left.step, right.low)
    return Range(0, min(left.high, right.low - step), step)


_COMBINED = {"arith.addi": _sum, "arith.muli": _product, "arith.divui": _quotient, "arith.remui": _remainder}
