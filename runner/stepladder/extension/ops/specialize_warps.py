"""`tc.specialize_warps`: splits a block into a producer warpgroup and consumer warpgroups."""

from stepladder.extension.lib import launches, threads, tma, tma_pipeline
from stepladder.extension.lib.arithmetic import equal, index
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.fragments import poison
from stepladder.extension.lib.threads import WARPGROUP
from stepladder.extension.lib.warpgroup_ops import DESCRIPTORS, INIT_ACCUMULATORS, STORES
from stepladder.mlir.bindings import ir, nvvm, scf
from stepladder.mlir.traverse import walk


class SpecializeWarps(Tc.Operation, name="specialize_warps"):
    """Adds a producer warpgroup to a block, which issues all loads; the other warpgroups become consumers.

    After the prologue, the body of the launch is split by warpgroup. Both roles run the same loops. The producer's copy
    keeps the ops that issue loads, run by one thread; the consumers' copy keeps all other ops. The roles synchronize
    through the barriers of the pipeline only, so that loads run ahead by the depth of the pipeline, across tiles too.

    The register file is reallocated: the producer releases registers, and the consumers use them for accumulators.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: producer_registers and consumer_registers per thread, multiples of 8.
    Refuses: a launch that does not issue loads at one point, such as one with specialized warps.
    """

    target: Handle
    producer_registers: ir.IntegerAttr
    consumer_registers: ir.IntegerAttr


# Ops that only consumers run, besides warpgroup MMAs and their operands.
_CONSUMER_OPS = (
    *STORES,
    "linalg.copy",
    "linalg.add",
    "linalg.generic",
    "linalg.transpose",
    "nvvm.wgmma.wait.group.sync.aligned",
    "vector.store",
    "memref.store",
    "nvvm.cluster.arrive",
    "nvvm.cluster.wait",
    "nvvm.barrier",
    "nvvm.fence.proxy",
    "nvvm.bar.warp.sync",
    "nvvm.inline_ptx",
)

# Ops without side effects that are not marked `Pure`, so that canonicalization keeps them when they are dead.
_KEPT_OPS = ("nvvm.mapa", "nvvm.convert.f8x2.to.f16x2", "nvvm.vote.sync")


def _keep_loads(role: ir.Operation, rewriter: Rewriter) -> None:
    """Erases from the producer's branch all ops that do not issue loads."""
    issues = tma_pipeline.issues_below(role)
    issues = [issue for issue in issues if tma_pipeline.is_inside(issue, role)]
    for release in tma_pipeline.releases_below(role):
        rewriter.erase_op(release)
    for wait in walk(role, tma.WAIT):
        if not any(tma_pipeline.is_inside(wait, issue) for issue in issues):
            rewriter.erase_op(wait)
    for op in reversed(walk(role, *_CONSUMER_OPS)):  # users before the ops that they use
        rewriter.erase_op(op)
    for mma in tma_pipeline.mmas_below(role):
        rewriter.replace_op(mma, [mma.operands[2]])
    for descriptor in walk(role, *DESCRIPTORS):
        rewriter.erase_op(descriptor)
    # Canonicalization erases the users of these ops, but not the ops.
    for origin in walk(role, *INIT_ACCUMULATORS, *_KEPT_OPS):
        with ir.InsertionPoint(origin), origin.location:
            none = poison(origin.results[0].type)
        rewriter.replace_op(origin, [none])
    for issue in issues:
        for op in operations_of(issue.regions[0].blocks[0])[:-1]:
            op.move_before(issue)
        rewriter.erase_op(issue)


@transform_op(SpecializeWarps)
def specialize_warps(payload: ir.Operation, op: SpecializeWarps, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    issues = tma_pipeline.issues_below(launch)
    if len(issues) != 1:
        raise Refusal(launch, f"expected one point where loads are issued, found {len(issues)}")
    thread_count = launches.launch_sizes(launch, launches.BLOCK)[0]
    launches.set_launch_sizes(launch, launches.BLOCK, [thread_count + WARPGROUP, 1, 1])
    barrier = tma_pipeline.prologue_barrier(launch)
    loop_ops = tma_pipeline.ops_after(barrier)
    # Both roles use the same tiles in shared memory.
    tiles = [inner for inner in loop_ops if inner.name == "memref.alloc"]
    for tile in tiles:
        tile.move_before(barrier)
    loop_ops = [inner for inner in loop_ops if inner not in tiles]
    with ir.InsertionPoint(loop_ops[0]), launch.location:
        is_producer = equal(threads.uniform_warpgroup_id(), index(thread_count // WARPGROUP))
        roles = scf.IfOp(is_producer, has_else=True)
        with ir.InsertionPoint(roles.then_block):
            nvvm.setmaxregister(op.producer_registers.value, ir.Attribute.parse("#nvvm<action decrease>"))
            leader = scf.IfOp(equal(threads.thread_id(), index(thread_count)))
            with ir.InsertionPoint(leader.then_block):
                tma_pipeline.clone_ops(loop_ops)
                scf.yield_([])
            scf.yield_([])
        with ir.InsertionPoint(roles.else_block):
            nvvm.setmaxregister(op.consumer_registers.value, ir.Attribute.parse("#nvvm<action increase>"))
            end = scf.yield_([])
    for inner in loop_ops:
        inner.move_before(end.operation)
    _keep_loads(leader.operation, rewriter)
    rewriter.erase_op(issues[0])
