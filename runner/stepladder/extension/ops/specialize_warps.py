"""`tc.specialize_warps`: one warpgroup issues loads, the others multiply."""

from stepladder.extension.lib import building, pipeline, tma
from stepladder.extension.lib.building import WARPGROUP, index
from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.extension.lib.warpgroup_ops import DESCRIPTORS, STORES, ZERO
from stepladder.mlir.bindings import ext, ir, nvvm, scf, transform
from stepladder.mlir.traverse import walk


class SpecializeWarps(Tc.Operation, name="specialize_warps"):
    """Gives a block one warpgroup more, which does nothing but issue loads: the producer; the others are consumers.

    Behind the initialisation of the barriers, the program splits by warpgroup. Both roles run the same loops. The
    producer's copy keeps what issues loads, run by one thread; the consumers' copy keeps all else. The barriers of the
    ring are all that they share, so that loads run ahead as far as the ring reaches, through the end of a tile too.

    The register file is divided anew: the producer gives registers back, the consumers take them for their sums.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: producer_registers and consumer_registers a thread, multiples of 8.
    Refuses: a launch without loads that a thread issues, or whose roles are divided already.
    """

    target: ext.Operand[transform.AnyOpType]
    producer_registers: ir.IntegerAttr
    consumer_registers: ir.IntegerAttr


# What consumers do and the producer does not.
_OF_CONSUMERS = (
    *STORES,
    "linalg.copy",
    "linalg.add",
    "linalg.generic",
    "linalg.transpose",
    "nvvm.wgmma.wait.group.sync.aligned",
    "vector.store",
    "nvvm.cluster.arrive",
    "nvvm.cluster.wait",
    "nvvm.barrier",
    "nvvm.inline_ptx",
)


def _keep_loads(block, rewriter) -> None:
    """Leaves in the producer's copy what issues loads."""
    issues = pipeline.issues_below(block.owner)
    issues = [issue for issue in issues if pipeline.is_inside(issue, block.owner)]
    for release in pipeline.releases_below(block.owner):
        rewriter.erase_op(release)
    for wait in walk(block.owner, tma.WAIT):
        if not any(pipeline.is_inside(wait, issue) for issue in issues):
            rewriter.erase_op(wait)
    for op in reversed(walk(block.owner, *_OF_CONSUMERS)):  # uses before what they use
        rewriter.erase_op(op)
    for product in pipeline.products_below(block.owner):
        rewriter.replace_op(product, [product.operands[2]])
    for descriptor in walk(block.owner, *DESCRIPTORS):
        rewriter.erase_op(descriptor)
    # What consumers' values begin with: canonicalization drops what uses it, and would keep these two themselves.
    for begin in walk(block.owner, ZERO, "nvvm.mapa"):
        with ir.InsertionPoint(begin), begin.location:
            none = ir.Operation.create(
                "ub.poison", results=[begin.results[0].type], attributes={"value": ir.Attribute.parse("#ub.poison")}
            )
        rewriter.replace_op(begin, [none.results[0]])
    for issue in issues:
        inner = [op.operation for op in issue.regions[0].blocks[0].operations][:-1]
        for op in inner:
            op.move_before(issue)
        rewriter.erase_op(issue)


@transform_op(SpecializeWarps)
def specialize_warps(payload, op, rewriter) -> None:
    """Divides the roles in the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    issues = pipeline.issues_below(launch)
    if len(issues) != 1:
        raise Refusal(launch, f"expected one place where loads are issued, found {len(issues)}")
    threads = building.launch_sizes(launch, building.BLOCK)[0]
    building.set_launch_sizes(launch, building.BLOCK, [threads + WARPGROUP, 1, 1])
    barrier = pipeline.block_of_prologue(launch)
    both = pipeline.ops_behind(barrier)
    # A tile in shared memory is one, whoever uses it.
    tiles = [op for op in both if op.name == "memref.alloc"]
    for tile in tiles:
        tile.move_before(barrier)
    both = [op for op in both if op not in tiles]
    with ir.InsertionPoint(both[0]), launch.location:
        is_producer = building.equal(building.uniform_warpgroup_number(), index(threads // WARPGROUP))
        roles = scf.IfOp(is_producer, has_else=True)
        with ir.InsertionPoint(roles.then_block):
            nvvm.setmaxregister(op.producer_registers.value, ir.Attribute.parse("#nvvm<action decrease>"))
            one = scf.IfOp(building.equal(building.thread_number(), index(threads)))
            with ir.InsertionPoint(one.then_block):
                pipeline.copies_inside(both, one.then_block)
                scf.yield_([])
            scf.yield_([])
        with ir.InsertionPoint(roles.else_block):
            nvvm.setmaxregister(op.consumer_registers.value, ir.Attribute.parse("#nvvm<action increase>"))
            end = scf.yield_([])
    for moved in both:
        moved.move_before(end.operation)
    _keep_loads(one.then_block, rewriter)
    for issue in pipeline.issues_below(launch):
        rewriter.erase_op(issue)
