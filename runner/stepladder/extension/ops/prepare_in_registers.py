"""`tc.prepare_in_registers`: computes elementwise ops that make A in the registers that `wgmma` reads it from."""

from stepladder.extension.lib import launches, tma_pipeline, warpgroup_ops
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.register_operands import Fragments, Operand, source_of
from stepladder.extension.lib.register_stages import erase_unused, release_by_warps, replace_loads, stage_of
from stepladder.extension.lib.source_tiles import SourceTile
from stepladder.mlir.bindings import ir, nvvm


class PrepareInRegisters(Tc.Operation, name="prepare_in_registers"):
    """Replaces the MMA of a k step by one for each 16 steps of k, with A in registers, where elementwise ops make it.

    TMA loads what A is made from, the largest buffer that the ops read, to the stages in place of A. Each thread reads
    the source elements of its elements of A, and computes these two at a time, by the ops of the payload. It loads what
    the ops read beside them, such as scales, from global memory: before the loop over k what is the same for all steps,
    and the rest one step ahead. A warpgroup computes the registers of an MMA while those before it run. It waits for
    the MMA of the step before that has read the same registers.

    All threads read a stage, so that a thread of each warp releases it.

    Operands: a handle to any op with one `gpu.launch` below, and the function of the ops that make A.
    Attributes: first, at whose multiples the rows of tiles begin.
    Refuses: an A that no such function makes; source elements in an order that is neither that of rows nor of columns
        of A, or whose rows TMA does not take; rows of tiles that begin within those that share a source element; more
        than one MMA.
    """

    target: Handle
    first: ir.IntegerAttr


def _multiply(operand: Operand, tile: SourceTile, fragments: Fragments, *, is_pipelined: bool) -> ir.Value:
    """Returns the accumulator after all steps of a tile, at the insertion point.

    What the tile holds is read before the first product, which later reads would wait for. With the products of the
    step before in flight, the registers of a product are written once the one that read them has ended.
    """
    stage, b, accumulator = stage_of(operand.generate, operand.alloc), operand.mma.operands[1], operand.mma.operands[2]
    for step in range(operand.steps):
        fragments.read(tile, stage, step)
    for step in range(operand.steps):
        if is_pipelined:
            nvvm.wgmma_wait_group_sync_aligned(operand.steps - 1)
        accumulator = warpgroup_ops.multiply_registers(
            fragments.fragment(step), b, accumulator, step=step, transpose_b="transposeB" in operand.mma.attributes
        )
    nvvm.wgmma_wait_group_sync_aligned(operand.steps if is_pipelined else 0)
    return accumulator


@transform_op(PrepareInRegisters)
def prepare_in_registers(payload: ir.Operation, op: PrepareInRegisters, rewriter: Rewriter) -> None:
    """Rewrites the MMA in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    loop = tma_pipeline.main_loop(launch)
    mmas = tma_pipeline.mmas_below(launch)
    if len(mmas) != 1:
        raise Refusal(launch, f"expected one warpgroup MMA, found {len(mmas)}")
    (mma,) = mmas
    operand = Operand(launch, mma, payload)
    number, source = source_of(operand)
    tile = SourceTile(source, (operand.tile_m, operand.tile_k), op.first.value, operand.stages, operand.alloc)
    fragments = Fragments(operand, number, launch, loop)
    loop = fragments.load(loop, rewriter)
    replace_loads(operand, tile, rewriter)
    with ir.InsertionPoint(mma), mma.location:
        is_pipelined = loop is not None and warpgroup_ops.in_flight(mma) > 0
        total = _multiply(operand, tile, fragments, is_pipelined=is_pipelined)
    rewriter.replace_op(mma, [total])
    release_by_warps(launch, rewriter)
    erase_unused(operand.generate, rewriter)
    for item in (operand.create, operand.cast, operand.call, operand.function):
        rewriter.erase_op(item)
