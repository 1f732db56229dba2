"""Guards: instructions that some threads execute, those for which a predicate holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.hardware.warps import narrowed

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value


class Guarded:
    """Executes an instruction for those threads for which a predicate holds; the results of the others stay.

    The operands are the predicate, what the results were before, and those of the instruction.

    Attributes:
        execute: the instruction without its guard.
        negated: whether it is for the threads for which the predicate does not hold.
        results: how many it has.
    """

    __slots__ = ("execute", "negated", "results")

    def __init__(self, execute: Callable, is_negated: bool, results: int) -> None:
        self.execute, self.negated, self.results = execute, is_negated, results

    def __call__(self, fiber: Fiber, op: Instruction, predicate: Value, *operands: Value) -> Value:
        """Returns the results for all threads of a fiber."""
        results = self.results
        before, operands = operands[:results], operands[results:]
        predicate = fiber.agreed(predicate)
        if not isinstance(predicate, np.ndarray):
            if bool(predicate) == self.negated:
                return before[0] if results == 1 else before
            return self.execute(fiber, op, *operands)
        mask = fiber.active & (predicate != self.negated)
        result = self.execute(narrowed(fiber, mask), op, *operands)
        if not results:
            return None
        after = [result] if results == 1 else result
        merged_results = [values.merge([new, old], [mask, ~mask], fiber.count) for new, old in zip(after, before)]
        return merged_results[0] if results == 1 else merged_results
