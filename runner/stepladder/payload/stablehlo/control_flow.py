"""Loops and branches of StableHLO as the ops that they run: kernels have none around them."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.diagnostics import location_text
from stepladder.mlir.traverse import walk
from stepladder.payload.stablehlo.builder import Tensor, where
from stepladder.payload.stablehlo.constants import Known
from stepladder.runtime.errors import StepladderError

# Iterations of a loop, of which each launches kernels of its own.
MAX_ITERATIONS = 256
# Ops that all loops of a module become.
_MAX_OPS = 20_000
_NAMES = ("stablehlo.while", "stablehlo.case", "stablehlo.if")


def unroll(module: ir.Module) -> None:
    """Replaces loops by their iterations and branches by selects of what each of them computes.

    Args:
        module: with functions of StableHLO, without calls.

    Raises:
        StepladderError: a loop that depends on data, or of too many iterations.
    """
    created_ops = 0
    while ops := walk(module, *_NAMES):
        op = ops[0]  # the outermost one
        with ir.InsertionPoint(op), op.location:
            values, count = _iterated(op) if op.name == "stablehlo.while" else _selected(op)
        for result, value in zip(op.results, values):
            result.replace_all_uses_with(value)
        location = location_text(op.location)
        op.erase()
        created_ops += count
        if created_ops > _MAX_OPS:
            raise StepladderError(
                f"loops that become more than {_MAX_OPS} ops",
                location=location,
                notes=["accepted: loops that launch a few kernels in each iteration"],
            )


def _iterated(op: ir.Operation) -> tuple[list[ir.Value], int]:
    """Copies the body of a loop before it, once for each iteration; returns the results, and how many ops are made."""
    condition, body = (region.blocks[0] for region in op.regions)
    values, numbers, created_ops = list(op.operands), Known(), 0
    for _ in range(MAX_ITERATIONS + 1):
        count, (is_next_value,) = _copied(condition, values, op)
        is_next = numbers.number(is_next_value)
        if is_next is None:
            raise StepladderError(
                "'stablehlo.while' is a loop whose number of iterations depends on data",
                location=location_text(op.location),
                notes=["accepted: loops that count, as those of jax.lax.scan and of fori_loop with constant bounds"],
            )
        created_ops += count
        if not is_next:
            return values, created_ops
        count, values = _copied(body, values, op)
        created_ops += count
    raise StepladderError(
        f"'stablehlo.while' has more than {MAX_ITERATIONS} iterations, of which each launches kernels",
        location=location_text(op.location),
        notes=["accepted: the caller runs the loop around a compiled iteration"],
    )


def _copied(block: ir.Block, values: list[ir.Value], anchor: ir.Operation) -> tuple[int, list[ir.Value]]:
    """Copies the ops of a block before an op; returns how many there are, and what the block returns."""
    *ops, end = [item.operation for item in block.operations]
    new = clone_ops(ops, dict(zip(block.arguments, values)), ir.InsertionPoint(anchor))
    return len(ops), [new.get(value, value) for value in end.operands]


def _selected(op: ir.Operation) -> tuple[list[ir.Value], int]:
    """Copies all branches before an op; returns selects of their results, and how many ops are made.

    An index that no branch has takes the last one.
    """
    index, created_ops = op.operands[0], 0
    branches = []
    branch_number = Known().number(index)
    regions = list(op.regions)
    if op.name == "stablehlo.if":
        regions.reverse()  # that of a true condition is the first, and the last one is taken by any other index than 0
    if branch_number is not None:
        regions = [regions[branch_number if 0 <= branch_number < len(regions) else -1]]
    for region in regions:
        count, values = _copied(region.blocks[0], [], op)
        created_ops += count
        branches.append([Tensor(value) for value in values])
    results = branches[-1]
    number_of_branch = Tensor(index)
    for number, branch in reversed(list(enumerate(branches[:-1]))):
        is_taken = number_of_branch.equals(number)
        results = [where(is_taken, left, right) for left, right in zip(branch, results)]
    return [result.value for result in results], created_ops
