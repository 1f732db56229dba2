"""Tensors of integers that constants and indices alone give, such as an `arange` of shift distances: their elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer
from stepladder.payload.constants import integers_of
from stepladder.payload.rewrites.bit_parts import CONSTANT, INDEX, Expression, element_of, number_of

# Ops on numbers whose results do not depend on a sign.
_COMPUTED: dict[str, Callable[..., int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.index_cast": lambda a: a,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a,
    "arith.trunci": lambda a: a,
}


def numbers_of(value: ir.Value, most: int) -> tuple[list[int], list[int]] | None:
    """Returns the elements of a tensor of integers that constants and indices alone give.

    Args:
        value: of static shape.
        most: how many elements are looked at.

    Returns:
        The axes that the elements depend on, and these in row-major order along those; None where they are others,
        more, or computed by ops other than casts, sums and products.
    """
    expression = element_of(value)
    if expression is None:
        return None
    shape = ir.RankedTensorType(value.type).shape
    axes = sorted(_loops_of(expression))
    if math.prod(shape[axis] for axis in axes) > most:
        return None
    places = itertools.product(*(range(shape[axis]) for axis in axes))
    numbers = [_evaluated(expression, dict(zip(axes, place))) for place in places]
    known = [number for number in numbers if number is not None]
    return (axes, known) if len(known) == len(numbers) else None


def _loops_of(expression: Expression) -> set[int]:
    inner = (_loops_of(operand) for operand in expression.operands)
    return {loop for loop in expression.loops if loop is not None}.union(*inner)


def _evaluated(expression: Expression, place: Mapping[int, int]) -> int | None:
    """Returns the number that an expression is for the indices of loops; None where it depends on anything else."""
    if expression.tensor is not None:
        source = producer(expression.tensor)
        is_constant = source is not None and source.name == CONSTANT and expression.bits is None
        return _constant_element(expression.tensor, expression.loops, place) if is_constant else None
    if expression.name == INDEX:
        return 0 if expression.loops[0] is None else place[expression.loops[0]]
    if expression.name == CONSTANT:
        return number_of(expression)
    operands = [_evaluated(operand, place) for operand in expression.operands]
    known = [number for number in operands if number is not None]
    compute = _COMPUTED.get(expression.name)
    if compute is None or len(known) != len(operands):
        return None
    number = compute(*known)
    if expression.name == "arith.extui":
        number %= 1 << ir.IntegerType(expression.operands[0].type).width
    if not isinstance(expression.type, ir.IntegerType):
        return number
    half = 1 << (expression.type.width - 1)
    return (number + half) % (2 * half) - half


def _constant_element(tensor: ir.Value, loops: Sequence[int | None], place: Mapping[int, int]) -> int | None:
    source = producer(tensor)
    assert source is not None  # a constant
    numbers = integers_of(source)
    if numbers is None:
        return None
    at = 0
    for size, loop in zip(ir.RankedTensorType(tensor.type).shape, loops):
        at = at * size + (0 if loop is None else place[loop])
    return numbers[at]
