"""`tc.prefetch_to_l2`: prefetches the first tiles of an operand to L2 before the previous kernel has ended."""

import math

from stepladder.extension.lib import dependent_launch, launches, tma
from stepladder.extension.lib.control_flow import enclosing_loops, terminator_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, builtin, ir, nvvm
from stepladder.mlir.tensor_maps import READ_ONCE
from stepladder.mlir.traverse import defining_op, walk


class PrefetchToL2(Tc.Operation, name="prefetch_to_l2"):
    """Prefetches the tiles of a block's first `steps` k steps, before the block waits for the previous kernel.

    The producer's thread initializes the mbarriers, and then prefetches the boxes that these steps of its first tile
    load of the larger operand, of both where they are equally large. A prefetch delivers no data, so that it may
    precede the writes of the previous kernel: they go to the same cache, where the loads find them. An attribute of the
    ops that create the descriptors of an operand larger than the other one states that its elements are read once, as
    they are in products of few rows.

    If blocks allow the next kernel to begin before they wait, they do so after their last load instead: its prefetches
    then queue after these loads.

    Operands: a handle to any op with one `gpu.launch` below, with specialized warps and a dependent launch.
    Attributes: steps, of k.
    Refuses: a launch that does not wait for the previous kernel, or without one thread that issues all loads.
    """

    target: Handle
    steps: ir.IntegerAttr


def _elements(load: ir.Operation) -> int:
    """Returns how many elements the matrix has that an op loads a box of."""
    create = defining_op(load.operands[2])
    return math.prod(ir.MemRefType(defining_op(create.operands[0]).operands[0].type).shape)


def _prefetch(load: ir.Operation) -> None:
    """Creates the prefetch of what a load loads, before it."""
    i32 = ir.IntegerType.get_signless(32)
    rank = len(types.tensor_map_box(load.operands[2].type))
    descriptor, coordinates = load.operands[2], list(load.operands)[3 : 3 + rank]
    with ir.InsertionPoint(load), load.location:
        pointer = builtin.unrealized_conversion_cast([ir.Type.parse("!llvm.ptr")], [descriptor])
        nvvm.cp_async_bulk_tensor_prefetch(pointer, [arith.index_cast(i32, place) for place in coordinates], [])


def _keep_prefetches(root: ir.Operation, steps: int, rewriter: Rewriter) -> None:
    """Makes a copy of what the producer does to one that only prefetches the first k steps of its first tile."""
    loads = walk(root, tma.LOAD)
    loops = enclosing_loops(loads[0])
    for loop, end in zip(loops, dependent_launch.ends_after(loops, steps)):
        loop.operands[1] = end
    sizes = [_elements(load) for load in loads]
    for load, size in zip(loads, sizes):
        if size == max(sizes):
            _prefetch(load)
            if size > min(sizes):
                defining_op(load.operands[2]).attributes[READ_ONCE] = ir.UnitAttr.get()
    for op in walk(root, tma.LOAD, tma.WAIT, tma.EXPECT):
        rewriter.erase_op(op)


@transform_op(PrefetchToL2)
def prefetch_to_l2(payload: ir.Operation, op: PrefetchToL2, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    allow, wait = dependent_launch.trigger(launch), dependent_launch.control(launch, "wait")
    producer = dependent_launch.producer_of(launch)
    copy = dependent_launch.copy_producer(launch, producer, wait)
    _keep_prefetches(copy, op.steps.value, rewriter)
    dependent_launch.begin_with(launch, copy)
    if allow is not None and allow.is_before_in_block(wait):
        allow.move_before(terminator_of(producer))
