"""`tc.prefetch_to_l2`: prefetches the first tiles of an operand to L2 before the previous kernel has ended."""

import math

from stepladder.extension.lib import launches, pipeline, threads, tma
from stepladder.extension.lib.arithmetic import equal, index
from stepladder.extension.lib.control_flow import create_if, enclosing_loops, operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, builtin, ir, nvvm
from stepladder.mlir.traverse import defining_op, users_of, walk


class PrefetchToL2(Tc.Operation, name="prefetch_to_l2"):
    """Prefetches the tiles of a block's first `steps` k steps, before the block waits for the previous kernel.

    The producer's thread first prefetches the boxes that these steps of its first tile load of the larger operand, of
    both where they are equally large. A prefetch delivers no data, so that it may precede the writes of the previous
    kernel: they go to the same cache, where the loads find them. The next kernel may begin when all blocks have issued
    their last load, and no longer when all have ended their prologue, so that its prefetches queue behind these loads.

    Operands: a handle to any op with one `gpu.launch` below, with specialized warps and a dependent launch.
    Attributes: steps, of k.
    Refuses: a launch that does not wait for the previous kernel, or without one thread that issues all loads.
    """

    target: Handle
    steps: ir.IntegerAttr


_CONTROL = "nvvm.griddepcontrol"


def _control(launch: ir.Operation, kind: str) -> ir.Operation:
    """Returns the op that allows the next kernel to launch, or that waits for the previous one."""
    found = [op for op in walk(launch, _CONTROL) if kind in str(op.attributes["kind"])]
    if len(found) != 1:
        raise Refusal(launch, f"expected one {_CONTROL} {kind} in the launch, found {len(found)}")
    return found[0]


def _producer(launch: ir.Operation) -> ir.Block:
    """Returns the block of the ops that the producer's thread executes: loops around all loads."""
    loads = walk(launch, tma.LOAD)
    blocks = {(enclosing_loops(load) or [load])[0].block for load in loads}
    if len(blocks) != 1:
        raise Refusal(launch, f"expected TMA loads in one place of the launch, found {len(blocks)}")
    block = blocks.pop()
    if block.owner.name != "scf.if":
        raise Refusal(launch, "expected TMA loads by one thread of a producer warpgroup")
    return block


def _elements(load: ir.Operation) -> int:
    """Returns how many elements the matrix has that an op loads a box of."""
    create = defining_op(load.operands[2])
    return math.prod(ir.MemRefType(defining_op(create.operands[0]).operands[0].type).shape)


def _prefetch(load: ir.Operation) -> None:
    """Creates the prefetch of what a load loads, in front of it."""
    i32 = ir.IntegerType.get_signless(32)
    rank = len(types.tensor_map_box(load.operands[2].type))
    descriptor, coordinates = load.operands[2], list(load.operands)[3 : 3 + rank]
    with ir.InsertionPoint(load), load.location:
        pointer = builtin.unrealized_conversion_cast([ir.Type.parse("!llvm.ptr")], [descriptor])
        nvvm.cp_async_bulk_tensor_prefetch(pointer, [arith.index_cast(i32, place) for place in coordinates], [])


def _shorten(loop: ir.Operation, iterations: int) -> None:
    """Makes a loop end after so many iterations at most."""
    lower, upper, step = list(loop.operands)[:3]
    with ir.InsertionPoint(loop), loop.location:
        end = arith.addi(lower, arith.muli(step, index(iterations)))
        loop.operands[1] = arith.minsi(upper, end)


def _keep_prefetches(root: ir.Operation, steps: int, rewriter: Rewriter) -> None:
    """Makes a copy of what the producer does to one that only prefetches the first k steps of its first tile."""
    loads = walk(root, tma.LOAD)
    loops = enclosing_loops(loads[0])
    for number, loop in enumerate(loops):
        _shorten(loop, steps if number == len(loops) - 1 else 1)
    largest = max(map(_elements, loads))
    for load in loads:
        if _elements(load) == largest:
            _prefetch(load)
    for op in walk(root, tma.LOAD, tma.WAIT, tma.EXPECT):
        rewriter.erase_op(op)


@transform_op(PrefetchToL2)
def prefetch_to_l2(payload: ir.Operation, op: PrefetchToL2, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    allow, wait = (_control(launch, kind) for kind in ("launch_dependents", "wait"))
    producer = _producer(launch)
    thread_count = launches.launch_sizes(launch, launches.BLOCK)[0]
    with ir.InsertionPoint(wait), wait.location:
        leads = equal(threads.thread_id(), index(thread_count - threads.WARPGROUP))
        with create_if(leads):
            pipeline.clone_ops(operations_of(producer)[:-1])
    _keep_prefetches(users_of(leads)[0], op.steps.value, rewriter)
    allow.move_before(terminator_of(producer))
