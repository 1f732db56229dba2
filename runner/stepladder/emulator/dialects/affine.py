"""affine: maps of indices, each compiled once to a Python function."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value
from stepladder.mlir.bindings import ir

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def _source(expression: ir.AffineExpr) -> str:
    """Returns an affine expression as Python's, over d0, d1, ... and s0, s1, ..."""
    match expression:
        case ir.AffineDimExpr():
            return f"d{expression.position}"
        case ir.AffineSymbolExpr():
            return f"s{expression.position}"
        case ir.AffineConstantExpr():
            return f"({expression.value})"
    assert isinstance(expression, ir.AffineBinaryExpr)
    left, right = _source(expression.lhs), _source(expression.rhs)
    match expression:
        case ir.AffineAddExpr():
            return f"({left} + {right})"
        case ir.AffineMulExpr():
            return f"({left} * {right})"
        case ir.AffineModExpr():
            return f"({left} % {right})"
        case ir.AffineFloorDivExpr():
            return f"({left} // {right})"
        case ir.AffineCeilDivExpr():
            return f"(-(-{left} // {right}))"
    raise AssertionError(expression)


def dimensions_of(expression: ir.AffineExpr) -> set[int]:
    """Returns the indices of the dimensions that an expression depends on.

    Args:
        expression: affine.
    """
    if isinstance(expression, ir.AffineBinaryExpr):
        return dimensions_of(expression.lhs) | dimensions_of(expression.rhs)
    return {expression.position} if isinstance(expression, ir.AffineDimExpr) else set()


def compiled(affine_map: ir.AffineMap) -> Callable[..., tuple]:
    """Returns a Python function that evaluates an affine map.

    Args:
        affine_map: of dimensions and symbols.

    Returns:
        A function from the dimensions and the symbols, ints or int64 arrays, to the tuple of results.
    """
    arguments = [f"d{number}" for number in range(affine_map.n_dims)]
    arguments += [f"s{number}" for number in range(affine_map.n_symbols)]
    results = "".join(f"{_source(expression)}, " for expression in affine_map.results)
    return _function(f"lambda {', '.join(arguments)}: ({results})")


@functools.cache  # many maps have few texts
def _function(text: str) -> Callable[..., tuple]:
    return eval(text)


def _results(op: Instruction, operands: Sequence[Value]) -> tuple:
    if "function" not in op.cache:
        op.cache["function"] = compiled(op.attributes["map"])
    return op.cache["function"](*operands)


@executes("affine.apply")
def apply(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """The result of a map."""
    return _results(op, operands)[0]


def _extreme(op: Instruction, operands: Sequence[Value], of_two: Callable, of_numbers: Callable) -> Value:
    results = _results(op, operands)
    if not any(isinstance(result, np.ndarray) for result in results):
        return of_numbers(results)
    extreme = results[0]
    for result in results[1:]:
        extreme = of_two(extreme, result)
    return extreme


@executes("affine.min")
def minimum(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """The least result of a map."""
    return _extreme(op, operands, np.minimum, min)


@executes("affine.max")
def maximum(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """The greatest result of a map."""
    return _extreme(op, operands, np.maximum, max)


def _basis(op: Instruction, dynamic: Sequence[Value]) -> list:
    remaining = iter(dynamic)
    return [next(remaining) if size == _DYNAMIC else size for size in op.attributes["static_basis"]]


@executes("affine.delinearize_index")
def delinearize_index(fiber: Fiber, op: Instruction, index: Value, *dynamic: Value) -> Value:
    """The coordinates of an element in row-major order; a size for the first coordinate may be given, and is unused."""
    basis = _basis(op, dynamic)
    inner = basis[len(basis) - len(op.result_types) + 1 :]
    coordinates = []
    for size in reversed(inner):
        # Lanes that are not active may have any size, 0 among them.
        size = np.where(size == 0, 1, size) if isinstance(size, np.ndarray) else size
        coordinates.append(index % size)
        index = index // size
    results = (index, *reversed(coordinates))
    return results if len(results) > 1 else results[0]


@executes("affine.linearize_index")
def linearize_index(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """The number of an element in row-major order; a size for the first coordinate may be given, and is not used."""
    count = op.attributes["operandSegmentSizes"][0]
    coordinates, basis = operands[:count], _basis(op, operands[count:])
    inner = basis[len(basis) - count + 1 :] if count else []
    return sum(coordinate * math.prod(inner[axis:]) for axis, coordinate in enumerate(coordinates))
