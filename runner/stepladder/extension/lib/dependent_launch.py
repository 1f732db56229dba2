"""Kernels that begin before the previous kernel has ended: the prologue of the producer before its wait."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib import launches, threads, tma, tma_pipeline
from stepladder.extension.lib.arithmetic import equal, index
from stepladder.extension.lib.control_flow import create_if, enclosing_loops, next_op, operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.schedule import move_with_operands
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import defining_op, producer, users_of, walk

CONTROL = "nvvm.griddepcontrol"
_TRIGGER = "launch_dependents"
_INIT = "nvgpu.mbarrier.init"


def _controls(launch: ir.Operation, kind: str) -> list[ir.Operation]:
    return [op for op in walk(launch, CONTROL) if kind in str(op.attributes["kind"])]


def control(launch: ir.Operation, kind: str) -> ir.Operation:
    """Returns the op that allows the next kernel to launch, or that waits for the previous one.

    Args:
        launch: a `gpu.launch`.
        kind: `launch_dependents` or `wait`.

    Raises:
        Refusal: there is none, or there are several.
    """
    ops = _controls(launch, kind)
    if len(ops) != 1:
        raise Refusal(launch, f"expected one {CONTROL} {kind} in the launch, found {len(ops)}")
    return ops[0]


def trigger(launch: ir.Operation) -> ir.Operation | None:
    """Returns the op that allows the next kernel to launch; None in a kernel that does so when its blocks exit.

    Args:
        launch: a `gpu.launch`.

    Raises:
        Refusal: there are several.
    """
    return control(launch, _TRIGGER) if _controls(launch, _TRIGGER) else None


def producer_of(launch: ir.Operation) -> ir.Block:
    """Returns the block of the ops that the producer's thread executes: loops around all loads.

    Args:
        launch: a `gpu.launch`.

    Raises:
        Refusal: loads at several points of the program, or by more than one thread.
    """
    blocks = {(enclosing_loops(load) or [load])[0].block for load in walk(launch, tma.LOAD)}
    if len(blocks) != 1:
        raise Refusal(launch, f"expected TMA loads at one point of the launch, found {len(blocks)}")
    block = blocks.pop()
    if block.owner.name != "scf.if":
        raise Refusal(launch, "expected TMA loads by one thread of a producer warpgroup")
    return block


def copy_producer(launch: ir.Operation, producer: ir.Block, place: ir.Operation) -> ir.Operation:
    """Copies the ops of the producer's thread to an earlier insertion point; returns the `scf.if` of the copy.

    Args:
        launch: a `gpu.launch` whose last warpgroup is the producer.
        producer: of `producer_of`.
        place: the op before which the copy is created.
    """
    thread_count = launches.launch_sizes(launch, launches.BLOCK)[0]
    with ir.InsertionPoint(place), place.location:
        leads = equal(threads.thread_id(), index(thread_count - threads.WARPGROUP))
        with create_if(leads):
            tma_pipeline.clone_ops(operations_of(producer)[:-1])
    return users_of(leads)[0]


def begin_with(launch: ir.Operation, copy: ir.Operation) -> None:
    """Makes the producer's thread initialize the mbarriers, and execute a copy of what it does directly after that.

    Where blocks of a cluster load for each other, nothing changes: they wait for the mbarriers of all.

    Args:
        launch: a `gpu.launch`.
        copy: the `scf.if` that `copy_producer` returned.
    """
    barrier = tma_pipeline.prologue_barrier(launch)
    initializers = [op for op in operations_of(barrier.block) if op.is_before_in_block(barrier) and walk(op, _INIT)]
    if barrier.name != "gpu.barrier" or len(initializers) != 1:
        return
    init = initializers[0]
    condition = defining_op(copy.operands[0])
    move_with_operands(condition, init)
    init.operands[0] = condition.results[0]
    place = next_op(init)
    for op in walk(copy):
        for value in op.operands:
            source = producer(value)
            if source is not None and source.block == init.block and place.is_before_in_block(source):
                move_with_operands(source, place)
    copy.move_before(place)


def ends_after(loops: Sequence[ir.Operation], iterations: int) -> list[ir.Value]:
    """Returns upper bounds with which loops around a load end after the first iterations, created before each.

    Args:
        loops: `scf.for` ops, the outermost first.
        iterations: of the innermost loop; the others have one.
    """
    ends = []
    for loop in loops:
        lower, upper, step = list(loop.operands)[:3]
        count = iterations if loop == loops[-1] else 1
        with ir.InsertionPoint(loop), loop.location:
            ends.append(arith.minsi(upper, arith.addi(lower, arith.muli(step, index(count)))))
    return ends
