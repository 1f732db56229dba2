"""`tc.alternate_tiles`: two consumer warpgroups take tiles in turn, so that one stores while the other multiplies."""

from stepladder.bindings import arith, ext, ir, nvvm, transform
from stepladder.extension import building, ring, tma
from stepladder.extension.building import WARPGROUP, index, integer
from stepladder.extension.dialect import Refusal, Tc, producer, transform_op
from stepladder.traverse import walk


class AlternateTiles(Tc.Operation, name="alternate_tiles"):
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
        position = next(number for number, operand in enumerate(compare.operands)
                        if building.static_value(operand) is not None)
        with ir.InsertionPoint(compare), compare.location:
            compare.operands[position] = index(building.static_value(compare.operands[position]) + shift)


@transform_op(AlternateTiles)
def alternate_tiles(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    stages = op.stages.value
    loop = ring.main_loop(launch)
    product = ring.products_below(launch)[0]
    around = building.loops_around(product if loop is None else loop)
    roles = _roles(launch)
    threads = building.launch_sizes(launch, building.BLOCK)[0]
    if threads != 2 * WARPGROUP:
        raise Refusal(launch, f"{threads // WARPGROUP - 1} consumer warpgroups: two take tiles in turn where there was "
                              "one")
    if not around:
        raise Refusal(launch, "a block computes one tile, and there is no next one for a second consumer: "
                              "persist_blocks must run")
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
    # Without a loop, the turn lasts from the wait for the tiles to the product.
    first = loop or next(op for op in walk(tiles, tma.WAIT))
    with ir.InsertionPoint(first), tiles.location:
        nvvm.barrier(barrier_id=own, number_of_threads=both)
    with ir.InsertionPoint.after(loop or product), tiles.location:
        nvvm.barrier_arrive(both, barrier_id=other)
    terminator = building.terminator_of(building.body_of(tiles))
    with ir.InsertionPoint(terminator), tiles.location:
        terminator.operands[0], terminator.operands[1] = _skip(
            terminator.operands[0], terminator.operands[1], index(steps), stages)


def _skip(slot, parity, steps, stages: int):
    """Returns the place in the ring `steps` steps behind another."""
    place = arith.addi(slot, steps)
    rounds = building.apply(lambda x: ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(x, stages), 2), place)
    is_odd = building.equal(rounds, index(1))
    return building.apply(lambda x: ir.AffineExpr.get_mod(x, stages), place), arith.xori(parity, is_odd)
