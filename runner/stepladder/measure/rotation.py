"""Rotated buffers: launches go through copies of the operands, so that none finds its own in the L2 cache."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem

# Copies hold together more than so many times the L2 cache.
CACHES = 2
# Of a problem of a few kilobytes, no more copies than this are made.
MAX_COPIES = 512


def operand_bytes(problem: Problem) -> int:
    """Returns the bytes of all operands of a problem.

    Args:
        problem: of a matmul; one buffer that is A and B counts once.
    """
    operands = [problem.operand(role) for role in problem.roles if role != "b" or not problem.b_is_a]
    return sum(math.prod(operand.shape) * element_type(operand.element_type).bytes for operand in operands)


def copies_of(problem: Problem, l2_bytes: int) -> int:
    """Returns how many copies of a problem's operands are more than twice the L2 cache; MAX_COPIES at most.

    Args:
        problem: of a matmul.
        l2_bytes: size of the L2 cache.
    """
    return min(MAX_COPIES, CACHES * l2_bytes // operand_bytes(problem) + 1)


def repeated(launch: Callable[[], object], count: int) -> Callable[[], object]:
    """Returns a function that calls another one several times.

    Args:
        launch: the function.
        count: calls, 1 or more.
    """
    if count == 1:
        return launch

    def enqueue() -> None:
        for _ in range(count):
            launch()

    return enqueue


def in_turn(launches: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """Returns a function that calls the next of several functions each time.

    Args:
        launches: the functions, one at least; after the last the first is called again.
    """
    if len(launches) == 1:
        return launches[0]
    order = itertools.cycle(launches)

    def enqueue() -> None:
        next(order)()

    return enqueue
