"""The folds in the bodies of reductions: what a body makes of each result so far."""

from __future__ import annotations

from collections.abc import Iterator

from stepladder.mlir.bindings import ir
from stepladder.mlir.neutral_elements import FOLDS
from stepladder.mlir.traverse import walk

FUSED = "math.fma"
# Folds of negated values, and the folds that they are.
DIFFERENCES = {"arith.subf": "arith.addf", "arith.subi": "arith.addi"}


def results_so_far(function: ir.Operation) -> Iterator[tuple[ir.Operation, int, ir.Value]]:
    """Yields the end of the body of each reduction, with the number of each result and its value so far.

    Args:
        function: whose `linalg.generic` ops with a reduction loop are meant.
    """
    for generic in walk(function, "linalg.generic"):
        if "reduction" not in str(generic.attributes["iterator_types"]):
            continue
        block = generic.regions[0].blocks[0]
        *_, end = (item.operation for item in block.operations)
        arguments = list(block.arguments)
        for place, so_far in enumerate(arguments[len(arguments) - len(end.operands) :]):
            yield end, place, so_far


def fold_of(op: ir.Operation, place: int) -> str | None:
    """Returns the name of the fold that an op is: a sum for differences and fused products; None for no fold.

    Args:
        op: of the body.
        place: of the operand that is the result so far.
    """
    if op.name == FUSED:
        return "arith.addf" if place == 2 else None
    if op.name in DIFFERENCES:
        return DIFFERENCES[op.name] if place == 0 else None
    return op.name if op.name in FOLDS else None
