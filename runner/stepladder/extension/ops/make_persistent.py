"""`tc.make_persistent`: as many blocks as run at once, each of which computes tile after tile."""

from stepladder.extension.lib import building
from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.extension.lib.tile_grid import grid_of_tiles, tile_ids
from stepladder.mlir.bindings import ext, gpu, ir, scf, transform


class MakePersistent(Tc.Operation, name="make_persistent"):
    """Lets `blocks` blocks, or what clusters fit into them, walk over the tiles of the grid.

    The body of the launch stands in a loop over tiles, which starts at the number of the block, or of its cluster, and
    steps by how many there are. Shared tiles are made once, in front of it. What a block does once for all its tiles
    can then move in front of the loop, and what it does for the next tile can begin before it is done with this one.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: blocks, of the new grid at most; 0 leaves a block for each tile.
    Refuses: fewer blocks than a cluster has.
    """

    target: ext.Operand[transform.AnyOpType]
    blocks: ir.IntegerAttr


@transform_op(MakePersistent)
def make_persistent(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    if op.blocks.value == 0:
        return
    width, height, size = grid_of_tiles(launch)
    if op.blocks.value < size:
        raise Refusal(
            launch,
            f"blocks = {op.blocks.value}, and a cluster has {size}: take {size} or more, or 0 for a block a tile",
        )
    cells = min(op.blocks.value // size, width * height)
    building.set_launch_sizes(launch, building.GRID, [cells * size, 1, 1])
    x, y = tile_ids(launch)
    ids = [id_ for id_ in (x, y) if id_ is not None]
    body = launch.regions[0].blocks[0]
    operations = [inner.operation for inner in body.operations]
    once = [inner for inner in operations if inner.name == "memref.alloc"]
    every = [inner for inner in operations[:-1] if inner not in once and inner not in ids]
    for alloc in reversed(once):
        alloc.move_before(body.operations[0])
    with ir.InsertionPoint(operations[-1]), launch.location:
        first = gpu.block_id(gpu.Dimension.x) if size == 1 else gpu.cluster_id(gpu.Dimension.x)
        loop = scf.ForOp(first, index(width * height), index(cells))
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            column = building.apply(lambda t: ir.AffineExpr.get_mod(t, width), number)
            row = building.apply(lambda t: ir.AffineExpr.get_floor_div(t, width), number)
            end = scf.yield_([])
    for inner in every:
        inner.move_before(end.operation)
    for id_, number in ((x, column), (y, row)):
        if id_ is not None:
            rewriter.replace_op(id_, [number])
