"""`tc.pingpong_consumers`: two consumer warpgroups compute alternate tiles (ping-pong schedule)."""

from stepladder.extension.lib import launches, memory, threads, tma, tma_pipeline, warpgroup_ops
from stepladder.extension.lib.arithmetic import apply, boolean, constant_value, equal, index, integer, times
from stepladder.extension.lib.control_flow import (
    BOUNDS,
    body_of,
    bounds_over_k,
    create_if,
    enclosing_loops,
    operations_of,
    terminator_of,
)
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.epilogue import find_epilogues
from stepladder.extension.lib.threads import WARPGROUP
from stepladder.mlir.bindings import arith, ir, memref, nvvm
from stepladder.mlir.traverse import attributes_of, defining_op, users_of, walk


class PingpongConsumers(Tc.Operation, name="pingpong_consumers"):
    """Adds a second consumer warpgroup to a block with one; the two compute alternate tiles.

    The main loops of the two consumers run one after the other, in the order of the pipeline: a consumer waits at a
    named barrier until the other has issued its last MMA. It then uses the tensor cores alone, while the other runs its
    epilogue. The pipeline state of a consumer skips the k steps of the tiles that the other computes.

    Operands: a handle to any op with one `gpu.launch` below, with specialized warps and persistent blocks.
    Attributes: stages, of the pipeline.
    Refuses: more than one consumer warpgroup; blocks that compute one tile; a loop over k whose bounds are not
        constant.
    """

    target: Handle
    stages: ir.IntegerAttr


# Named barriers: 0 is that of the whole block, those from 1 on are used by the epilogue of each warpgroup.
_FIRST_BARRIER = 4


def _roles(launch: ir.Operation) -> ir.Operation:
    """Returns the `scf.if` that splits the roles: producer in the then region, consumers in the else region."""
    for branch in walk(launch, "scf.if"):
        if operations_of(body_of(branch))[0].name == "nvvm.setmaxregister":
            return branch
    raise Refusal(launch, "expected a launch with specialized warps")


def _step_count(loop: ir.Operation) -> int:
    """Returns the number of steps of the loop over k."""
    lower, upper, step = bounds_over_k(loop)
    return -(-(upper - lower) // step)


def _shift_producer(roles: ir.Operation) -> None:
    """Makes the warpgroup after the second consumer the producer."""
    leader = next(op for op in operations_of(body_of(roles)) if op.name == "scf.if")
    for branch, shift in ((roles, 1), (leader, WARPGROUP)):
        compare = defining_op(branch.operands[0])
        for position, operand in enumerate(compare.operands):
            value = constant_value(operand)
            if value is not None:
                with ir.InsertionPoint(compare), compare.location:
                    compare.operands[position] = index(value + shift)
                break


@transform_op(PingpongConsumers)
def pingpong_consumers(payload: ir.Operation, op: PingpongConsumers, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    stages = op.stages.value
    loop = tma_pipeline.main_loop(launch)
    mma = tma_pipeline.mmas_below(launch)[-1]
    loops = enclosing_loops(mma if loop is None else loop)
    roles = _roles(launch)
    thread_count = launches.launch_sizes(launch, launches.BLOCK)[0]
    if thread_count != 2 * WARPGROUP:
        raise Refusal(
            launch, f"{thread_count // WARPGROUP - 1} consumer warpgroups: the ping-pong schedule starts from one"
        )
    if not loops:
        raise Refusal(
            launch,
            "a block computes one tile, and a second consumer needs a next one: make_persistent must run before",
        )
    steps = 1 if loop is None else _step_count(loop)
    tiles = loops[-1]
    _shift_producer(roles)
    launches.set_launch_sizes(launch, launches.BLOCK, [thread_count + WARPGROUP, 1, 1])

    # Each consumer computes every second tile, and starts from the pipeline state of its first one.
    with ir.InsertionPoint(tiles), tiles.location:
        warpgroup = threads.uniform_warpgroup_id()
        stride = tiles.operands[2]
        tiles.operands[0] = arith.addi(tiles.operands[0], arith.muli(warpgroup, stride))
        tiles.operands[2] = arith.addi(stride, stride)
        skipped_steps = times(warpgroup, steps)
        state = _advance(index(0), boolean(False), skipped_steps, stages)
        tiles.operands[BOUNDS], tiles.operands[BOUNDS + 1] = state
        own = arith.addi(arith.index_cast(ir.IntegerType.get_signless(32), warpgroup), integer(_FIRST_BARRIER, 32))
        other = arith.subi(integer(2 * _FIRST_BARRIER + 1, 32), own)
        consumer_threads = integer(2 * WARPGROUP, 32)
        with create_if(equal(warpgroup, index(1))):  # the first consumer starts without a wait
            nvvm.barrier_arrive(consumer_threads, barrier_id=other)
        _split_accumulator_tile(launch, warpgroup, rewriter)
    # Without a loop over k, the exclusive section lasts from the wait for the tiles to the MMA.
    first = loop or next(iter(walk(tiles, tma.WAIT)))
    with ir.InsertionPoint(first), tiles.location:
        nvvm.barrier(barrier_id=own, number_of_threads=consumer_threads)
    with ir.InsertionPoint.after(loop or mma), tiles.location:
        nvvm.barrier_arrive(consumer_threads, barrier_id=other)
    terminator = terminator_of(body_of(tiles))
    with ir.InsertionPoint(terminator), tiles.location:
        terminator.operands[0], terminator.operands[1] = _advance(
            terminator.operands[0], terminator.operands[1], index(steps), stages
        )


def _split_accumulator_tile(launch: ir.Operation, warpgroup: ir.Value, rewriter: Rewriter) -> None:
    """Gives each consumer an accumulator tile of its own, at the current insertion point: both are in use at once."""
    for alloc in {epilogue.accumulator_tile for epilogue in find_epilogues(launch)}:
        old = alloc.results[0]
        type_ = ir.MemRefType(old.type)
        shape = list(type_.shape)
        with ir.InsertionPoint(alloc), alloc.location:
            tiles = memref.alloc(
                ir.MemRefType.get([2, *shape], type_.element_type, memory_space=type_.memory_space), [], []
            )
        tiles.owner.attributes["operand_c"] = ir.UnitAttr.get()
        own = memory.subview(tiles, [warpgroup, 0, 0], [1, *shape], drop=1)
        for view in [user for user in users_of(old) if user.name == "memref.subview"]:
            _rebase_view(view, own, rewriter)
        old.replace_all_uses_with(own)
        rewriter.erase_op(alloc)
    for op in walk(launch, "nvgpu.warpgroup.mma.store"):
        with ir.InsertionPoint(op), op.location:
            warpgroup_ops.store_accumulator(op.operands[0], op.operands[1], one_warpgroup=False)
        rewriter.erase_op(op)


def _rebase_view(view: ir.Operation, source: ir.Value, rewriter: Rewriter) -> None:
    """Replaces a subview, and the subviews of it, by those of another buffer, with dynamic offsets."""
    type_ = ir.MemRefType(view.results[0].type)
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), type_.get_strides_and_offset()[0])
    begin = defining_op(source)
    point = ir.InsertionPoint(view) if _is_behind(view, begin) else ir.InsertionPoint.after(begin)
    with point, view.location:
        new_view = ir.Operation.create(
            view.name,
            results=[
                ir.MemRefType.get(type_.shape, type_.element_type, layout=layout, memory_space=type_.memory_space)
            ],
            operands=[source, *list(view.operands)[1:]],
            attributes=attributes_of(view),
        )
    for inner in [user for user in users_of(view.results[0]) if user.name == "memref.subview"]:
        _rebase_view(inner, new_view.results[0], rewriter)
    rewriter.replace_op(view, list(new_view.results))


def _is_behind(op: ir.Operation, other: ir.Operation) -> bool:
    """Returns whether an op is behind another one in its block, or nested in an op that is."""
    inner: ir.Operation | None = op
    while inner is not None and inner.block != other.block:
        inner = inner.parent if inner.parent is None else inner.parent.operation
        if inner is not None and inner.name == "gpu.launch":
            return False
    return inner is not None and other.is_before_in_block(inner)


def _advance(stage: ir.Value, parity: ir.Value, steps: ir.Value, stages: int) -> tuple[ir.Value, ir.Value]:
    """Returns the pipeline state, stage and parity, `steps` steps after another."""
    total = arith.addi(stage, steps)
    wraps = apply(lambda x: ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(x, stages), 2), total)
    is_odd = equal(wraps, index(1))
    return apply(lambda x: ir.AffineExpr.get_mod(x, stages), total), arith.xori(parity, is_odd)
