"""`tc.form_clusters`: blocks of neighbouring tiles run as a cluster, on multiprocessors that can reach each other."""

from stepladder.extension.lib import building
from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.extension.lib.tile_grid import CLUSTER_LIMIT, block_ids
from stepladder.mlir.bindings import arith, ext, gpu, ir, transform


class FormClusters(Tc.Operation, name="form_clusters"):
    """Groups `rows` x `columns` neighbouring blocks of the grid into clusters.

    A cluster is a row of blocks in the new grid, and computes a compact group of tiles. What was a block's number
    becomes that of its cluster in the grid, times the cluster's extent, plus its place in the cluster: the blocks of a
    cluster are numbered down its columns first.

    Where the last tiles reach beyond C anyway, clusters may too: a block that is wholly beyond has a tile of no rows or
    columns. Blocks of a cluster run together, so that it cannot be left out.

    Operands: a handle to any op with one `gpu.launch` below. Attributes: rows and columns, in blocks.
    Refuses: more than 8 blocks, which are not portable; a grid that clusters of this shape do not divide, of tiles that
        divide C.
    """

    target: ext.Operand[transform.AnyOpType]
    rows: ir.IntegerAttr
    columns: ir.IntegerAttr


def _extents_at_edges(id_) -> list:
    """Returns what the extent of a block's tile is computed by along one axis, where tiles reach beyond C."""
    if id_ is None:
        return []
    return [use.owner.operation for use in id_.results[0].uses if use.owner.name == "affine.min"]


def _keep_from_negative(extents: list) -> None:
    """Makes extents of tiles that begin beyond C zero."""
    for extent in extents:
        with ir.InsertionPoint.after(extent), extent.location:
            kept = arith.maxsi(extent.results[0], index(0))
        extent.results[0].replace_all_uses_except(kept, kept.owner.operation)


@transform_op(FormClusters)
def form_clusters(payload, op, rewriter) -> None:
    """Groups the blocks of the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    rows, columns = op.rows.value, op.columns.value
    size = rows * columns
    if size == 1:
        return
    if size > CLUSTER_LIMIT:
        raise Refusal(launch, f"a cluster of {rows} x {columns} blocks: more than {CLUSTER_LIMIT} are not portable")
    width, height, _ = building.launch_sizes(launch, building.GRID)
    x, y = block_ids(launch)
    for extent, blocks, id_, name in ((rows, height, y, "rows"), (columns, width, x, "columns")):
        edges = _extents_at_edges(id_)
        if blocks % extent and not edges:
            raise Refusal(
                launch,
                f"the grid has {blocks} {name} of blocks, and clusters of {rows} x {columns} blocks "
                f"take a multiple of {extent}: smaller clusters or other tiles would fit",
            )
        if blocks % extent:
            _keep_from_negative(edges)
    building.set_launch_sizes(launch, building.GRID, [-(-width // columns) * size, -(-height // rows), 1])
    with ir.InsertionPoint(launch), launch.location:
        sizes = [index(size), index(1), index(1)]
    launch = building.relaunch(launch, building.CLUSTER, sizes, rewriter)
    with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]), launch.location:
        across, down = gpu.cluster_id(gpu.Dimension.x), gpu.cluster_id(gpu.Dimension.y)
        rank = gpu.cluster_block_id(gpu.Dimension.x)
        column = building.apply(lambda c, r: c * columns + ir.AffineExpr.get_floor_div(r, rows), across, rank)
        row = building.apply(lambda c, r: c * rows + ir.AffineExpr.get_mod(r, rows), down, rank)
    for id_, number in ((x, column), (y, row)):
        if id_ is not None:
            rewriter.replace_op(id_, [number])
