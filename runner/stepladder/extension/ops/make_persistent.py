"""`tc.make_persistent`: converts a launch of one block per tile to a launch of persistent blocks."""

from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.control_flow import body_of, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import GRID, find_launch, set_launch_sizes
from stepladder.extension.lib.tile_grid import batch_id, batch_of, grid_of_tiles, tile_ids
from stepladder.mlir.bindings import gpu, ir, scf


class MakePersistent(Tc.Operation, name="make_persistent"):
    """Launches `blocks` persistent blocks, rounded down to whole clusters, which loop over the tiles of the grid.

    The body of the launch moves to a loop over tiles that starts at the id of the block, or of its cluster, with the
    number of blocks or clusters as its step. Shared tiles are allocated once, before the loop. Work that is the same
    for all tiles can then be hoisted out of the loop, and work on the next tile can overlap with the epilogue of this
    one.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: blocks, the largest size of the new grid; 0 keeps one block per tile.
    Refuses: fewer blocks than a cluster has.
    """

    target: Handle
    blocks: ir.IntegerAttr


@transform_op(MakePersistent)
def make_persistent(payload: ir.Operation, op: MakePersistent, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = find_launch(payload)
    if op.blocks.value == 0:
        return
    width, height, size = grid_of_tiles(launch)
    if op.blocks.value < size:
        raise Refusal(
            launch,
            f"blocks = {op.blocks.value}, and a cluster has {size}: take {size} or more, or 0 for one block per tile",
        )
    batch = batch_of(launch)
    tiles = width * height * batch
    cells = min(op.blocks.value // size, tiles)
    set_launch_sizes(launch, GRID, [cells * size, 1, 1])
    x, y = tile_ids(launch)
    z = batch_id(launch)
    ids = [id_ for id_ in (x, y, z) if id_ is not None]
    body = body_of(launch)
    operations = operations_of(body)
    allocs = [inner for inner in operations if inner.name == "memref.alloc"]
    per_tile = [inner for inner in operations[:-1] if inner not in allocs and inner not in ids]
    for alloc in reversed(allocs):
        alloc.move_before(body.operations[0])
    with ir.InsertionPoint(operations[-1]), launch.location:
        first = gpu.block_id(gpu.Dimension.x) if size == 1 else gpu.cluster_id(gpu.Dimension.x)
        loop = scf.ForOp(first, index(tiles), index(cells))
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            column = apply(lambda t: ir.AffineExpr.get_mod(t, width), number)
            row = apply(lambda t: ir.AffineExpr.get_floor_div(t, width), number)
            matmul = index(0)
            if batch > 1:  # all tiles of a matmul before those of the next
                row = apply(lambda r: ir.AffineExpr.get_mod(r, height), row)
                matmul = apply(lambda t: ir.AffineExpr.get_floor_div(t, width * height), number)
            end = scf.yield_([])
    for inner in per_tile:
        inner.move_before(end.operation)
    for id_, number in ((x, column), (y, row), (z, matmul)):
        if id_ is not None:
            rewriter.replace_op(id_, [number])
