"""The multistage pipeline of TMA loads that `tc.load_by_tma` creates: finding its ops.

A stage of the pipeline holds a tile of A and one of B. It has two mbarriers: `full` completes when the stage's loads
have written it, `empty` when all consumers have released it.
"""

from __future__ import annotations

from stepladder.extension.lib import tma
from stepladder.extension.lib.control_flow import enclosing_loops, operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.warpgroup_ops import MMAS, WarpgroupMmaRegisters
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of, walk

# Multiplies a part of a k step, so that a step has several.
_OF_A_PART = WarpgroupMmaRegisters.OPERATION_NAME


def _branches_with(root: ir.Operation, name: str) -> list[ir.Operation]:
    """Returns the `scf.if` ops below `root` that have an op of that name directly in their then region."""
    return [
        branch
        for branch in walk(root, "scf.if")
        if any(op.name == name for op in operations_of(branch.regions[0].blocks[0]))
    ]


def issues_below(root: ir.Operation) -> list[ir.Operation]:
    """Returns the `scf.if` ops that issue loads: wait for an empty stage, expect its bytes, load its tiles.

    Args:
        root: a launch, or an op in one.
    """
    return _branches_with(root, tma.LOAD)


def releases_below(root: ir.Operation) -> list[ir.Operation]:
    """Returns the `scf.if` ops that release a stage: one thread of each warpgroup arrives at the `empty` barrier.

    Args:
        root: a launch, or an op in one.
    """
    return _branches_with(root, tma.ARRIVE)


def stages_of(launch: ir.Operation) -> int:
    """Returns the number of stages of the pipeline.

    Args:
        launch: a `gpu.launch` with the pipeline.
    """
    buffers = [alloc for alloc in walk(launch, "memref.alloc") if "operand_a" in alloc.attributes]
    return ir.MemRefType(buffers[0].results[0].type).shape[0]


def mmas_below(root: ir.Operation) -> list[ir.Operation]:
    """Returns the warpgroup MMA ops.

    Args:
        root: a launch, or an op in one.
    """
    return walk(root, *MMAS)


def main_loop(root: ir.Operation) -> ir.Operation | None:
    """Returns the loop over k, or None where k has one step.

    Args:
        root: a launch, or an op in one.

    Raises:
        Refusal: no warpgroup MMA below `root`, or more than those of one k step.
    """
    mmas = mmas_below(root)
    last = mmas[-1] if mmas else root
    if not mmas or any(mma.block != last.block or mma.name != _OF_A_PART for mma in mmas[:-1]):
        raise Refusal(root, f"expected one warpgroup MMA, found {len(mmas)}")
    loops = enclosing_loops(last)
    is_carried = any(user.name == "scf.yield" for user in users_of(last.results[0]))
    return loops[-1] if loops and is_carried else None


def prologue_barrier(launch: ir.Operation) -> ir.Operation:
    """Returns the barrier after which the mbarriers are initialized for all threads: the first of the launch.

    Args:
        launch: a `gpu.launch` with the pipeline.

    Raises:
        Refusal: the launch has no barrier.
    """
    for op in operations_of(launch.regions[0].blocks[0]):
        if op.name in ("gpu.barrier", "nvvm.cluster.wait"):
            return op
    raise Refusal(launch, "expected a barrier after the initialization of mbarriers")


def ops_after(op: ir.Operation) -> list[ir.Operation]:
    """Returns the ops after `op` in its block, without the terminator.

    Args:
        op: of a block with a terminator.
    """
    operations = operations_of(op.block)
    return operations[operations.index(op) + 1 : -1]


def is_inside(op: ir.Operation, root: ir.Operation) -> bool:
    """Returns whether an op is `root` or nested in it.

    Args:
        op: any op.
        root: any op.
    """
    parent: ir.Operation | None = op
    while parent is not None:
        if parent.operation == root.operation:
            return True
        parent = parent.parent
    return False


def replace_operands(root: ir.Operation, replacements: dict[ir.Value, ir.Value]) -> None:
    """Replaces values that `root` and the ops nested in it use.

    Args:
        root: an op with regions.
        replacements: values, and what replaces them.
    """
    for inner in walk(root):
        for position, operand in enumerate(inner.operands):
            if operand in replacements:
                inner.operands[position] = replacements[operand]


def clone_ops(ops: list[ir.Operation]) -> dict[ir.Value, ir.Value]:
    """Clones ops, in order, to the current insertion point; the clones use each other's results.

    Args:
        ops: in an order in which each follows those that make its operands.

    Returns:
        Each result of an op, and the result of its clone.
    """
    mapping: dict[ir.Value, ir.Value] = {}
    clones: list[ir.Operation] = []
    for op in ops:
        clone = op.clone().operation
        clones.append(clone)
        mapping.update(zip(op.results, clone.results))
    for clone in clones:
        replace_operands(clone, mapping)
    return mapping
