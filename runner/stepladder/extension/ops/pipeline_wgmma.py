"""`tc.pipeline_wgmma`: the next product is issued before the last one is waited for."""

from stepladder.extension.lib import building, pipeline
from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.mlir.bindings import arith, ext, ir, nvvm, transform


class PipelineWgmma(Tc.Operation, name="pipeline_wgmma"):
    """Lets a warpgroup's product of one step of k run while that of the next is issued.

    Waiting for each product leaves the tensor cores idle between two. Now a step waits for the product before its own,
    and releases the slot that that one has read; behind the loop the last is waited for, and its slot released.

    In a ring of one slot nothing changes: the next product needs the slot that the last one reads.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: a main loop that does not release one slot a step.
    """

    target: ext.Operand[transform.AnyOpType]


@transform_op(PipelineWgmma)
def pipeline_wgmma(payload, op, rewriter) -> None:
    """Treats the main loop of the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    loop = pipeline.main_loop(launch)
    if loop is None or pipeline.slots_of(launch) == 1:
        return
    releases = pipeline.releases_below(loop)
    if len(releases) != 1:
        raise Refusal(loop, f"expected one release of a slot a step, found {len(releases)}")
    product = pipeline.products_below(loop)[0]
    i64 = ir.IntegerType.get_signless(64)
    product.attributes["waitGroup"] = ir.IntegerAttr.get(i64, 1)

    with ir.InsertionPoint(loop), loop.location:
        none = index(0)
    first = loop.operands[0]
    loop, (previous,) = building.with_carried(loop, [none], rewriter)
    release = releases[0]
    arrival = release.regions[0].blocks[0].operations[0].operation
    slot = arrival.operands[1]
    with ir.InsertionPoint(release), release.location:
        is_later = arith.cmpi(arith.CmpIPredicate.ne, building.body_of(loop).arguments[0], first)
        condition = arith.andi(release.operands[0], is_later)
    release.operands[0] = condition
    arrival.operands[1] = previous
    building.extend_yield(loop, [slot])
    with ir.InsertionPoint.after(loop), loop.location:
        nvvm.wgmma_wait_group_sync_aligned(0)
        last = building.equal(building.thread_in_warpgroup(), index(0))
        with building.if_(last):
            ir.Operation.create(
                arrival.name,
                results=[result.type for result in arrival.results],
                operands=[arrival.operands[0], list(loop.results)[-1]],
            )
