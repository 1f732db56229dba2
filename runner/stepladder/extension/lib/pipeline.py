"""What the ops about the ring of tiles share: its parts, as `tc.load_by_tma` leaves them."""

from __future__ import annotations

from stepladder.extension.lib import building, tma
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.warpgroup_ops import PRODUCTS
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


def issues_below(root) -> list:
    """Returns the `scf.if` ops that issue loads: wait for a slot, expect its bytes, load its tiles."""
    return [
        branch
        for branch in walk(root, "scf.if")
        if any(op.operation.name == tma.LOAD for op in branch.regions[0].blocks[0].operations)
    ]


def releases_below(root) -> list:
    """Returns the `scf.if` ops that release a slot: a thread of each warpgroup arrives at its barrier."""
    return [
        branch
        for branch in walk(root, "scf.if")
        if any(op.operation.name == tma.ARRIVE for op in branch.regions[0].blocks[0].operations)
    ]


def slots_of(launch) -> int:
    """Returns how many slots the ring has."""
    rings = [alloc for alloc in walk(launch, "memref.alloc") if "operand_a" in alloc.attributes]
    return ir.MemRefType(rings[0].results[0].type).shape[0]


def products_below(root) -> list:
    """Returns the products of warpgroups."""
    return walk(root, *PRODUCTS)


def main_loop(root):
    """Returns the loop over k, or None where k has one step.

    Raises:
        Refusal: no product of warpgroups below `root`, or more than one.
    """
    products = products_below(root)
    if len(products) != 1:
        raise Refusal(root, f"expected one product of warpgroups, found {len(products)}")
    loops = building.loops_around(products[0])
    is_carried = any(use.owner.name == "scf.yield" for use in products[0].results[0].uses)
    return loops[-1] if loops and is_carried else None


def block_of_prologue(launch):
    """Returns the barrier behind which all threads know the mbarriers: the first of the launch."""
    for op in launch.regions[0].blocks[0].operations:
        if op.operation.name in ("gpu.barrier", "nvvm.cluster.wait"):
            return op.operation
    raise Refusal(launch, "expected a barrier behind the initialisation of mbarriers")


def ops_behind(op) -> list:
    """Returns the ops behind `op` in its block, without the terminator."""
    operations = [other.operation for other in op.block.operations]
    return operations[operations.index(op) + 1 : -1]


def is_inside(op, root) -> bool:
    """Tells whether an op stands below `root`."""
    while op is not None:
        if op.operation == root.operation:
            return True
        op = op.parent
    return False


def copies_inside(ops: list, block) -> dict:
    """Clones ops, in order, to the current insertion point; what they use of each other they use of the copies.

    Returns:
        Old value -> its copy.
    """
    copied: dict = {}
    clones = []
    for op in ops:
        clone = op.clone().operation
        clones.append(clone)
        copied.update(zip(op.results, clone.results))
    for clone in clones:
        for inner in walk(clone):
            for position, operand in enumerate(inner.operands):
                if operand in copied:
                    inner.operation.operands[position] = copied[operand]
    return copied
