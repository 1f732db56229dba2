"""`tc.decouple_warpgroups`: lets warpgroups begin iterations of a loop at different times."""

from stepladder.extension.lib import copying_loops, launches, threads, tma
from stepladder.extension.lib.arithmetic import apply, constant_value, equal, index
from stepladder.extension.lib.control_flow import body_of, create_if, next_op, operations_of
from stepladder.extension.lib.copying_loops import BARRIER, COMMIT, COPY
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.warpgroup_ops import MMAS, WAIT_GROUP, WarpgroupMmaRegisters
from stepladder.mlir import types
from stepladder.mlir.bindings import gpu, ir, nvgpu, nvvm
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import walk

# Ops of a thread before others may read its copies.
_ARRIVED = ("nvvm.cp.async.wait.group", "nvvm.fence.proxy")
# Three would do, but the remainder by a power of two is one instruction.
_STAGES = 4


class DecoupleWarpgroups(Tc.Operation, name="decouple_warpgroups"):
    """Replaces the barrier of a loop that copies tiles by an mbarrier for each of three stages.

    A thread arrives when its copies of the next iteration have ended, beside the products with the values, and waits
    for all at the start of that iteration. It begins its copies beside the products of the tile.

    Operands: a handle to any op with one `gpu.launch`, in which one loop copies tiles an iteration ahead and has a
    barrier, a product of tiles, and products of operands in registers.
    Refuses: other loops.
    """

    target: Handle


@transform_op(DecoupleWarpgroups)
def decouple_warpgroups(payload: ir.Operation, op: DecoupleWarpgroups, rewriter: Rewriter) -> None:
    """Rewrites the loop in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    loop = copying_loops.find(launch)
    body = operations_of(body_of(loop))
    arrivals = [item for item in body if item.name in _ARRIVED]
    barriers = [item for item in body if item.name == BARRIER]
    products = [item for item in body if item.name == WarpgroupMmaRegisters.OPERATION_NAME]
    tiles = [item for item in body if item.name in MMAS and item not in products]
    if len(arrivals) != len(_ARRIVED) or len(barriers) != 1 or len(tiles) != 1 or not products:
        raise Refusal(loop, f"{len(barriers)} barriers and {len(tiles)} products of tiles; accepted: one each")
    lower, step = (constant_value(loop.operands[number]) for number in (0, 2))
    if lower is None or step is None:
        raise Refusal(loop, "the first iteration or the step is not constant")
    copies = [item for item in body if walk(item, COPY) or item.name == COMMIT]
    iteration = body_of(loop).arguments[0]
    number = _Number(iteration, lower, step)
    with ir.InsertionPoint(loop), loop.location:
        full = nvgpu.mbarrier_create(types.mbarrier_group(_STAGES))
        with create_if(equal(threads.thread_id(), index(0))):
            for stage in range(_STAGES):
                count = launches.launch_sizes(launch, launches.BLOCK)[0]
                nvgpu.mbarrier_init(full, index(count), index(stage))
        gpu.barrier()
        clone_ops(arrivals, {}, ir.InsertionPoint(loop))
        nvgpu.mbarrier_arrive(full, index(0))
    with ir.InsertionPoint(barriers[0]), loop.location:
        nvgpu.mbarrier_try_wait_parity(full, number.parity(), index(tma.TRY_WAIT_TICKS), number.stage(0))
    # The tensor cores multiply while the threads begin their copies.
    (scores,) = tiles
    scores.attributes[WAIT_GROUP] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    place = scores
    for item in copies:
        item.move_after(place)
        place = item
    with ir.InsertionPoint.after(place), loop.location:
        nvvm.wgmma_wait_group_sync_aligned(0)
    behind = next_op(products[-1])
    clone_ops(arrivals, {}, ir.InsertionPoint(behind))
    with ir.InsertionPoint(behind), loop.location:
        nvgpu.mbarrier_arrive(full, number.stage(1))
    for item in (*arrivals, *barriers):
        rewriter.erase_op(item)


class _Number:
    """The number of an iteration of a loop.

    Args:
        iteration: the value of its induction variable.
        lower, step: of the loop.
    """

    def __init__(self, iteration: ir.Value, lower: int, step: int) -> None:
        self.iteration, self.lower, self.step = iteration, lower, step

    def _number(self, i: ir.AffineExpr) -> ir.AffineExpr:
        return ir.AffineExpr.get_floor_div(i - self.lower, self.step)

    def stage(self, ahead: int) -> ir.Value:
        """Returns the stage of the iteration, or of one after it.

        Args:
            ahead: iterations between.
        """
        return apply(lambda i: ir.AffineExpr.get_mod(self._number(i) + ahead, _STAGES), self.iteration)

    def parity(self) -> ir.Value:
        """Returns the parity of the phase that the iteration waits for."""
        floor, mod = ir.AffineExpr.get_floor_div, ir.AffineExpr.get_mod
        return equal(apply(lambda i: mod(floor(self._number(i), _STAGES), 2), self.iteration), index(1))
