"""`tc.pipeline_wgmma`: keeps one wgmma in flight while the next is issued."""

from stepladder.extension.lib import tma_pipeline
from stepladder.extension.lib.arithmetic import equal, index
from stepladder.extension.lib.control_flow import add_iter_args, body_of, create_if, extend_yield
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import find_launch
from stepladder.extension.lib.threads import thread_in_warpgroup
from stepladder.mlir.bindings import arith, ir, nvvm


class PipelineWgmma(Tc.Operation, name="pipeline_wgmma"):
    """Overlaps the MMA of one k step with the issue of the next.

    With a wait after each MMA, the tensor cores are idle between two. In the new loop a step waits for the MMA of the
    step before, and releases the stage that this MMA has read. After the loop, the last MMA is waited for, and its
    stage released.

    In a pipeline of one stage the op does nothing: the next MMA needs the stage that the previous one reads.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: a main loop that does not release one stage per step.
    """

    target: Handle


@transform_op(PipelineWgmma)
def pipeline_wgmma(payload: ir.Operation, op: PipelineWgmma, rewriter: Rewriter) -> None:
    """Rewrites the main loop of the one launch below `payload`; see the op."""
    launch = find_launch(payload)
    loop = tma_pipeline.main_loop(launch)
    if loop is None or tma_pipeline.stages_of(launch) == 1:
        return
    releases = tma_pipeline.releases_below(loop)
    if len(releases) != 1:
        raise Refusal(loop, f"expected one release of a stage per step, found {len(releases)}")
    mma = tma_pipeline.mmas_below(loop)[0]
    i64 = ir.IntegerType.get_signless(64)
    mma.attributes["waitGroup"] = ir.IntegerAttr.get(i64, 1)

    with ir.InsertionPoint(loop), loop.location:
        none = index(0)
    first = loop.operands[0]
    loop, (previous,) = add_iter_args(loop, [none], rewriter)
    release = releases[0]
    arrival = body_of(release).operations[0].operation
    stage = arrival.operands[1]
    with ir.InsertionPoint(release), release.location:
        has_previous = arith.cmpi(arith.CmpIPredicate.ne, body_of(loop).arguments[0], first)
        condition = arith.andi(release.operands[0], has_previous)
    release.operands[0] = condition
    arrival.operands[1] = previous
    extend_yield(loop, [stage])
    with ir.InsertionPoint.after(loop), loop.location:
        nvvm.wgmma_wait_group_sync_aligned(0)
        releases_last = equal(thread_in_warpgroup(), index(0))
        with create_if(releases_last):
            ir.Operation.create(
                arrival.name,
                results=[result.type for result in arrival.results],
                operands=[arrival.operands[0], list(loop.results)[-1]],
            )
