"""The product of a reference program, and the producers of its factors."""

from __future__ import annotations

from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import Generic, Insert, Program, Reshape, Slice

# Functions that are computed as exactly as their type can hold.
_ROUNDED = tuple(
    f"math.{name}" for name in ("absf", "absi", "ceil", "copysign", "floor", "fma", "round", "roundeven", "sqrt")
)


def products_of(program: Program, problem: Problem) -> list[Generic]:
    """Returns the product among the instructions of a program that reduce, or both of a pair; others reduce rows or
    columns.

    Args:
        program: of a payload.
        problem: that it computes.
    """
    reductions = [item for item in program.instructions if isinstance(item, Generic) and item.reduces]
    return reductions[: problem.products]


def product_of(program: Program) -> Generic:
    """Returns the first instruction of a program that reduces: the product, of which others reduce rows or columns.

    Args:
        program: of a payload.
    """
    return next(item for item in program.instructions if isinstance(item, Generic) and item.reduces)


def prepared_values(program: Program) -> set[int]:
    """Returns the values that the factors of a program's product are made of, and these.

    Args:
        program: of a payload.
    """
    makers = {
        result: item
        for item in program.instructions
        for result in (item.results if isinstance(item, Generic) else (item.result,))
    }
    values: set[int] = set()
    pending = list(product_of(program).inputs)
    while pending:
        value = pending.pop()
        if value in values:
            continue
        values.add(value)
        maker = makers.get(value)
        if isinstance(maker, Generic):
            pending += maker.inputs
        elif isinstance(maker, (Reshape, Slice, Insert)):
            pending.append(maker.source)
            pending += [maker.target] if isinstance(maker, Insert) else []
    return values


def factors_are_exact(program: Program) -> bool:
    """Returns whether every correct kernel multiplies the same factors: no function that is approximated makes them.

    Args:
        program: of a payload.
    """
    prepared = prepared_values(program)
    return not any(
        op.name.startswith("math.") and op.name not in _ROUNDED
        for item in program.instructions
        if isinstance(item, Generic) and not prepared.isdisjoint(item.results)
        for op in item.body
    )
