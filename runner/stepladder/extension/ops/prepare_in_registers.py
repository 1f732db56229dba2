"""`tc.prepare_in_registers`: computes elementwise ops that make A in the registers that `wgmma` reads it from."""

from stepladder.extension.lib import launches, memory, pipeline, threads, tma, warpgroup_ops
from stepladder.extension.lib.arithmetic import apply, constant_value, index, integer, less_than
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.register_operands import Fragments, Operand, source_of
from stepladder.extension.lib.source_tiles import SourceTile
from stepladder.mlir.bindings import ir, nvvm
from stepladder.mlir.traverse import defining_op, producer, users_of, walk


class PrepareInRegisters(Tc.Operation, name="prepare_in_registers"):
    """Replaces the MMA of a k step by one for each 16 steps of k, with A in registers, where elementwise ops make it.

    TMA loads what A is made from, the largest buffer that the ops read, to the stages in place of A. Each thread reads
    the numbers for its elements of A, and computes these two at a time, by the ops of the payload. It loads what the
    ops read beside them, such as scales, from global memory: before the loop over k what is the same for all steps, and
    the rest one step ahead. A warpgroup computes the registers of an MMA while those before it run. It waits for the
    MMA of the step before that has read the registers of the same place.

    All threads read a stage, so that a thread of each warp releases it.

    Operands: a handle to any op with one `gpu.launch` below, and the function of the ops that make A.
    Attributes: first, at whose multiples the rows of tiles begin.
    Refuses: an A that no such function makes; numbers in an order that is neither that of rows nor of columns of A, or
        whose rows TMA does not take; rows of tiles that begin within those that share a number; more than one MMA.
    """

    target: Handle
    first: ir.IntegerAttr


def _replace_loads(operand: Operand, tile: SourceTile, rewriter: Rewriter) -> None:
    """Loads tiles of the source in place of those of A."""
    with ir.InsertionPoint(operand.create), operand.create.location:
        descriptor = tile.describe()
    for user in users_of(operand.create.results[0]):
        if user.name == "nvgpu.tma.prefetch.descriptor":
            user.operands[0] = descriptor
    first = operand.loads[0]
    issue = first.parent
    assert issue is not None  # an scf.if
    tile.load(first, descriptor, operand.row, operand.first_k)
    for expect in walk(issue.operation, tma.EXPECT):
        expected = constant_value(expect.operands[1])
        assert expected is not None, "tc.load_by_tma creates constant byte counts"
        with ir.InsertionPoint(expect), expect.location:
            expect.operands[1] = index(expected - operand.bytes + tile.bytes)
    for load in operand.loads:
        view = defining_op(load.operands[0])
        rewriter.erase_op(load)
        rewriter.erase_op(view)


def _release_by_warps(launch: ir.Operation, rewriter: Rewriter) -> None:
    """Makes a thread of each warp release a stage, behind the reads of its warp."""
    releases = pipeline.releases_below(launch)
    empty = body_of(releases[0]).operations[0].operation.operands[0]
    for release in releases:
        compare = defining_op(release.operands[0])
        if compare.name == "arith.andi":
            compare = defining_op(compare.operands[0])
        with ir.InsertionPoint(compare), compare.location:
            lane = apply(lambda x: ir.AffineExpr.get_mod(x, threads.WARP), threads.thread_id())
            rewriter.replace_op(compare, [less_than(lane, index(1))])
        with ir.InsertionPoint(release), release.location:
            nvvm.bar_warp_sync(integer(-1, 32))
    for init in users_of(empty):
        if init.name == "nvgpu.mbarrier.init":
            count = constant_value(init.operands[1])
            assert count is not None, "tc.load_by_tma initializes mbarriers with constants"
            with ir.InsertionPoint(init), init.location:
                init.operands[1] = index(count * threads.WARPGROUP // threads.WARP)


def _stage_of(operand: Operand) -> ir.Value:
    """Returns the stage whose tiles the MMA reads."""
    view = defining_op(operand.generate.operands[0])
    while defining_op(view.operands[0]) != operand.alloc:
        view = defining_op(view.operands[0])
    return memory.offsets_of(view)[0]


def _multiply(operand: Operand, tile: SourceTile, fragments: Fragments, *, pipelined: bool) -> ir.Value:
    """Returns the accumulator behind all steps of a tile, at the insertion point.

    What the tile holds is read before the first product, which later reads would wait for. With the products of the
    step before in flight, the registers of a product are written once the one that read them has ended.
    """
    stage, b, accumulator = _stage_of(operand), operand.mma.operands[1], operand.mma.operands[2]
    for step in range(operand.steps):
        fragments.read(tile, stage, step)
    for step in range(operand.steps):
        if pipelined:
            nvvm.wgmma_wait_group_sync_aligned(operand.steps - 1)
        accumulator = warpgroup_ops.multiply_registers(
            fragments.fragment(step), b, accumulator, step=step, transpose_b="transposeB" in operand.mma.attributes
        )
    nvvm.wgmma_wait_group_sync_aligned(operand.steps if pipelined else 0)
    return accumulator


def _erase_unused(op: ir.Operation, rewriter: Rewriter) -> None:
    """Erases an op that nothing uses, and the views and the buffer behind its first operand."""
    if any(list(result.uses) for result in op.results):
        return
    source = producer(op.operands[0]) if len(op.operands) else None
    rewriter.erase_op(op)
    if source is not None:
        _erase_unused(source, rewriter)


@transform_op(PrepareInRegisters)
def prepare_in_registers(payload: ir.Operation, op: PrepareInRegisters, rewriter: Rewriter) -> None:
    """Rewrites the MMA in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    loop = pipeline.main_loop(launch)
    mmas = pipeline.mmas_below(launch)
    if len(mmas) != 1:
        raise Refusal(launch, f"expected one warpgroup MMA, found {len(mmas)}")
    (mma,) = mmas
    operand = Operand(launch, mma, payload)
    number, source = source_of(operand)
    tile = SourceTile(source, (operand.tile_m, operand.tile_k), op.first.value, operand.stages, operand.alloc)
    fragments = Fragments(operand, number, launch, loop)
    loop = fragments.load(loop, rewriter)
    _replace_loads(operand, tile, rewriter)
    with ir.InsertionPoint(mma), mma.location:
        pipelined = loop is not None and warpgroup_ops.in_flight(mma) > 0
        total = _multiply(operand, tile, fragments, pipelined=pipelined)
    rewriter.replace_op(mma, [total])
    _release_by_warps(launch, rewriter)
    _erase_unused(operand.generate, rewriter)
    for unused in (operand.create, operand.cast, operand.call, operand.function):
        rewriter.erase_op(unused)
