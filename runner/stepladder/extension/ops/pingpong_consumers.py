"""`tc.pingpong_consumers`: two consumer warpgroups take tiles in turn, so that one stores while the other multiplies."""

from stepladder.extension.lib import building, pipeline, tma, warpgroup_ops
from stepladder.extension.lib.building import WARPGROUP, index, integer
from stepladder.extension.lib.dialect import Refusal, Tc, producer, transform_op
from stepladder.extension.lib.epilogue import find_epilogues
from stepladder.mlir.bindings import arith, ext, ir, memref, nvvm, transform
from stepladder.mlir.traverse import attributes_of, walk


class PingpongConsumers(Tc.Operation, name="pingpong_consumers"):
    """Adds a second consumer warpgroup to a block with one, and lets the two take tiles in turn (ping-pong).

    The main loops of the two follow each other, in the order of the ring: a warpgroup waits at a named barrier until
    the other has issued its last product, and then has the tensor cores to itself while the other stores its tile. The
    place in the ring skips the steps of the tiles that the other computes.

    Operands: a handle to any op with one `gpu.launch` below, divided into roles, whose blocks persist.
    Attributes: stages, slots of the ring.
    Refuses: more than one consumer warpgroup; a block that computes one tile; a loop over k whose bounds are not
        constant.
    """

    target: ext.Operand[transform.AnyOpType]
    stages: ir.IntegerAttr


# Named barriers: 0 is that of the block, those from 1 on are the warpgroups' own.
_FIRST_TURN = 4


def _roles(launch):
    """Returns the `scf.if` that divides the roles: the producer's, else the consumers'."""
    for branch in walk(launch, "scf.if"):
        inside = [op.operation for op in branch.regions[0].blocks[0].operations]
        if inside[0].name == "nvvm.setmaxregister":
            return branch
    raise Refusal(launch, "expected a launch whose roles are divided")


def _steps(loop) -> int:
    """Returns how many steps the loop over k has."""
    bounds = [building.static_value(loop.operands[number]) for number in range(3)]
    if None in bounds:
        raise Refusal(loop, "the bounds of the loop over k are not constant")
    return -(-(bounds[1] - bounds[0]) // bounds[2])


def _shift_producer(roles) -> None:
    """Makes the warpgroup behind the second consumer the producer."""
    one = next(op.operation for op in roles.regions[0].blocks[0].operations if op.operation.name == "scf.if")
    for branch, shift in ((roles, 1), (one, WARPGROUP)):
        compare = producer(branch.operands[0])
        position = next(
            number for number, operand in enumerate(compare.operands) if building.static_value(operand) is not None
        )
        with ir.InsertionPoint(compare), compare.location:
            compare.operands[position] = index(building.static_value(compare.operands[position]) + shift)


@transform_op(PingpongConsumers)
def pingpong_consumers(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    stages = op.stages.value
    loop = pipeline.main_loop(launch)
    product = pipeline.products_below(launch)[0]
    around = building.loops_around(product if loop is None else loop)
    roles = _roles(launch)
    threads = building.launch_sizes(launch, building.BLOCK)[0]
    if threads != 2 * WARPGROUP:
        raise Refusal(
            launch, f"{threads // WARPGROUP - 1} consumer warpgroups: two take tiles in turn where there was one"
        )
    if not around:
        raise Refusal(
            launch,
            "a block computes one tile, and there is no next one for a second consumer: make_persistent must run",
        )
    steps = 1 if loop is None else _steps(loop)
    tiles = around[-1]
    _shift_producer(roles)
    building.set_launch_sizes(launch, building.BLOCK, [threads + WARPGROUP, 1, 1])

    # Every second tile, each from its own place in the ring on.
    with ir.InsertionPoint(tiles), tiles.location:
        warpgroup = building.uniform_warpgroup_number()
        stride = tiles.operands[2]
        tiles.operands[0] = arith.addi(tiles.operands[0], arith.muli(warpgroup, stride))
        tiles.operands[2] = arith.addi(stride, stride)
        begun = building.times(warpgroup, steps)
        slot, parity = _skip(index(0), building.boolean(False), begun, stages)
        tiles.operands[3], tiles.operands[4] = slot, parity
        own = arith.addi(arith.index_cast(ir.IntegerType.get_signless(32), warpgroup), integer(_FIRST_TURN, 32))
        other = arith.subi(integer(2 * _FIRST_TURN + 1, 32), own)
        both = integer(2 * WARPGROUP, 32)
        with building.if_(building.equal(warpgroup, index(1))):  # the first may begin
            nvvm.barrier_arrive(both, barrier_id=other)
        _divide_sums(launch, warpgroup, rewriter)
    # Without a loop, the turn lasts from the wait for the tiles to the product.
    first = loop or next(op for op in walk(tiles, tma.WAIT))
    with ir.InsertionPoint(first), tiles.location:
        nvvm.barrier(barrier_id=own, number_of_threads=both)
    with ir.InsertionPoint.after(loop or product), tiles.location:
        nvvm.barrier_arrive(both, barrier_id=other)
    terminator = building.terminator_of(building.body_of(tiles))
    with ir.InsertionPoint(terminator), tiles.location:
        terminator.operands[0], terminator.operands[1] = _skip(
            terminator.operands[0], terminator.operands[1], index(steps), stages
        )


def _divide_sums(launch, warpgroup, rewriter) -> None:
    """Gives each consumer a tile of sums of its own, at the current insertion point: their tiles are under way at once."""
    for sums in {found.sums for found in find_epilogues(launch)}:
        old = sums.results[0]
        type_ = ir.MemRefType(old.type)
        shape = list(type_.shape)
        with ir.InsertionPoint(sums), sums.location:
            both = memref.alloc(
                ir.MemRefType.get([2, *shape], type_.element_type, memory_space=type_.memory_space), [], []
            )
        both.owner.attributes["operand_c"] = ir.UnitAttr.get()
        own = building.view(both, [warpgroup, 0, 0], [1, *shape], drop=1)
        for view in [use.owner.operation for use in old.uses if use.owner.name == "memref.subview"]:
            _move_view(view, own, rewriter)
        old.replace_all_uses_with(own)
        rewriter.erase_op(sums)
    for op in walk(launch, "nvgpu.warpgroup.mma.store"):
        with ir.InsertionPoint(op), op.location:
            warpgroup_ops.store(*op.operands, one_warpgroup=False)
        rewriter.erase_op(op)


def _move_view(view, source, rewriter) -> None:
    """Makes a view one of another buffer, whose offset is not known."""
    type_ = ir.MemRefType(view.results[0].type)
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), type_.get_strides_and_offset()[0])
    with ir.InsertionPoint(view), view.location:
        moved = ir.Operation.create(
            view.name,
            results=[
                ir.MemRefType.get(type_.shape, type_.element_type, layout=layout, memory_space=type_.memory_space)
            ],
            operands=[source, *list(view.operands)[1:]],
            attributes=attributes_of(view),
        )
    rewriter.replace_op(view, list(moved.results))


def _skip(slot, parity, steps, stages: int):
    """Returns the place in the ring `steps` steps behind another."""
    place = arith.addi(slot, steps)
    rounds = building.apply(lambda x: ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(x, stages), 2), place)
    is_odd = building.equal(rounds, index(1))
    return building.apply(lambda x: ir.AffineExpr.get_mod(x, stages), place), arith.xori(parity, is_odd)
