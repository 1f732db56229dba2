"""`tc.stagger_consumers`: consumer warpgroups that share a tile end their main loops one after the other."""

from stepladder.extension.lib import threads, tma_pipeline
from stepladder.extension.lib.arithmetic import equal, index, integer, less_than
from stepladder.extension.lib.control_flow import body_of, bounds_over_k, create_if, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import BLOCK, find_launch, launch_sizes
from stepladder.extension.lib.threads import WARPGROUP
from stepladder.mlir.bindings import arith, ir, nvvm
from stepladder.mlir.traverse import walk


class StaggerConsumers(Tc.Operation, name="stagger_consumers"):
    """Lets a consumer warpgroup issue the last MMAs of a tile before the next warpgroup issues its own.

    Each consumer but the first waits at a named barrier, before its last `steps` k steps, until the consumer before it
    has issued all of its MMAs.

    Operands: a handle to any op with one `gpu.launch` below, with specialized warps.
    Attributes: steps, the k steps that wait, and stages, of the pipeline of loads.
    Refuses: one consumer; a loop over k whose bounds are not constant, or of fewer steps than stages; as many steps as
        stages, since a consumer that waits has not released the last one.
    """

    target: Handle
    steps: ir.IntegerAttr
    stages: ir.IntegerAttr


# Named barriers: 0 is that of the whole block, those from 1 on are used by the epilogue of each warpgroup.
_FIRST_BARRIER = 4


def _consumers(launch: ir.Operation) -> int:
    """Returns the number of consumer warpgroups of a launch with specialized warps."""
    if not walk(launch, "nvvm.setmaxregister"):
        raise Refusal(launch, "expected a launch with specialized warps")
    return launch_sizes(launch, BLOCK)[0] // WARPGROUP - 1


@transform_op(StaggerConsumers)
def stagger_consumers(payload: ir.Operation, op: StaggerConsumers, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = find_launch(payload)
    consumers = _consumers(launch)
    if consumers < 2:
        raise Refusal(launch, "expected two consumer warpgroups or more")
    loop = tma_pipeline.main_loop(launch)
    if loop is None:
        raise Refusal(launch, "expected a loop over k")
    lower, upper, step = bounds_over_k(loop)
    count = -(-(upper - lower) // step)
    if not op.steps.value < op.stages.value <= count:
        raise Refusal(loop, f"{op.steps.value} of {count} steps cannot wait in a pipeline of {op.stages.value} stages")
    with ir.InsertionPoint(loop), loop.location:
        warpgroup = threads.uniform_warpgroup_id()
        barrier = arith.addi(arith.index_cast(ir.IntegerType.get_signless(32), warpgroup), integer(_FIRST_BARRIER, 32))
        before = arith.subi(barrier, integer(1, 32))
        thread_count = integer(2 * WARPGROUP, 32)
        follows = less_than(index(0), warpgroup)
        is_followed = less_than(warpgroup, index(consumers - 1))
    body = body_of(loop)
    with ir.InsertionPoint(operations_of(body)[0]), loop.location:
        waits = equal(body.arguments[0], index(lower + (count - op.steps.value) * step))
        with create_if(arith.andi(waits, follows)):
            nvvm.barrier(barrier_id=before, number_of_threads=thread_count)
    with ir.InsertionPoint.after(loop), loop.location, create_if(is_followed):
        nvvm.barrier_arrive(thread_count, barrier_id=barrier)
