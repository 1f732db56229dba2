"""Stores of C behind the reduction of splits of k in a cluster, and the barrier that follows them."""

from __future__ import annotations

from stepladder.extension.lib.arithmetic import constant_value, index, less_than, zero_of
from stepladder.extension.lib.control_flow import body_of, create_if, operations_of
from stepladder.extension.lib.dialect import Rewriter
from stepladder.mlir.bindings import arith, ir, scf
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import walk

_ARRIVE, _STORE, _LOAD = "nvvm.cluster.arrive", "vector.store", "llvm.load"
# Vectors that a thread holds from their reduction to their stores, which take registers.
_MOST_VECTORS = 4


def store_behind_arrival(launch: ir.Operation, rewriter: Rewriter) -> None:
    """Moves the stores of C behind the arrival at the last barrier of a cluster, where blocks reduce splits of k.

    The barrier keeps the shared memory of a block until others have read it. An arrival releases: it waits for the
    stores before it, whose latency adds to the time from the last product to the end of the kernel. Nothing is changed
    where no such loop precedes the barrier, or one of many vectors a thread.

    Args:
        launch: a `gpu.launch`.
        rewriter: of the transform op.
    """
    arrivals = walk(launch, _ARRIVE)
    if not arrivals:
        return
    before = operations_of(arrivals[-1].block)
    place = before.index(arrivals[-1])
    loop = before[place - 1] if place else None
    if loop is None or loop.name != "scf.for" or len(loop.results) or not walk(loop, _LOAD):
        return
    stores = [op for op in operations_of(body_of(loop)) if op.name == _STORE]
    upper, step = (constant_value(bound) for bound in list(loop.operands)[1:3])
    if len(stores) != 1 or upper is None or step is None or -(-upper // step) > _MOST_VECTORS:
        return
    behind = operations_of(arrivals[-1].block)[place + 1]
    for number in range(-(-upper // step)):
        _store_behind(loop, number * step, arrivals[-1], behind)
    rewriter.erase_op(loop)


def _store_behind(loop: ir.Operation, offset: int, arrival: ir.Operation, behind: ir.Operation) -> None:
    """Creates an iteration of a loop: its sums in front of the arrival, and its store behind that.

    Args:
        loop: of iterations that end in a store; its lower bound is less than its step.
        offset: of the iteration from the lower bound.
        arrival: at the barrier.
        behind: the op behind the arrival.
    """
    ops = operations_of(body_of(loop))
    (store,) = [op for op in ops if op.name == _STORE]
    sums, stored = ops[: ops.index(store)], store.operands[0]
    type_ = ir.VectorType(stored.type)
    with ir.InsertionPoint(arrival), loop.location:
        number = arith.addi(loop.operands[0], index(offset)) if offset else loop.operands[0]
        known: dict[ir.Value, ir.Value] = {body_of(loop).arguments[0]: number}
        is_inside = less_than(number, loop.operands[1])
        branch = scf.IfOp(is_inside, [type_], has_else=True)
        with ir.InsertionPoint(branch.then_block) as point:
            scf.yield_([clone_ops(sums, known, point)[stored]])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([arith.constant(type_, zero_of(type_))])
    with ir.InsertionPoint(behind), loop.location, create_if(is_inside) as point:
        # Sums are not used here; what computes the place of the store is.
        values = clone_ops(sums, known, point)
        clone_ops([store], {**values, stored: branch.results[0]}, point)
