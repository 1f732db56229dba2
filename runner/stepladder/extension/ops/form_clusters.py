"""`tc.form_clusters`: groups the blocks of adjacent tiles into clusters."""

from stepladder.extension.lib import launches
from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.threads import block_rank_in_cluster
from stepladder.extension.lib.tile_grid import LARGEST_CLUSTER_SIZE, block_ids
from stepladder.mlir.bindings import arith, gpu, ir


class FormClusters(Tc.Operation, name="form_clusters"):
    """Groups `rows` x `columns` adjacent blocks of the grid into clusters.

    In the new grid a cluster is a row of blocks, and computes a rectangle of tiles. The id of a block becomes the id of
    its cluster times the cluster's extent, plus its position in the cluster: ranks number the blocks of a cluster
    column by column.

    Where tiles extend beyond C, clusters may too: a block whose tile is entirely outside of C has a tile of zero rows
    or columns. It cannot be left out, because all blocks of a cluster are launched together.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: rows and columns, in blocks.
    Refuses: more than 16 blocks; more than 8 are not portable, and a launch has to opt in to them. A grid that is not a
        multiple of the cluster, where tiles divide C.
    """

    target: Handle
    rows: ir.IntegerAttr
    columns: ir.IntegerAttr


def _extents_at_edges(id_: ir.Operation | None) -> list[ir.Operation]:
    """Returns the ops that compute the extent of a block's tile along one axis, where tiles extend beyond C."""
    if id_ is None:
        return []
    return [use.owner.operation for use in id_.results[0].uses if use.owner.name == "affine.min"]


def _clamp_to_zero(extents: list[ir.Operation]) -> None:
    """Makes the negative extents of tiles that begin beyond C zero."""
    for extent in extents:
        with ir.InsertionPoint.after(extent), extent.location:
            non_negative = arith.maxsi(extent.results[0], index(0))
        extent.results[0].replace_all_uses_except(non_negative, non_negative.owner.operation)


@transform_op(FormClusters)
def form_clusters(payload: ir.Operation, op: FormClusters, rewriter: Rewriter) -> None:
    """Groups the blocks of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    rows, columns = op.rows.value, op.columns.value
    size = rows * columns
    if size == 1:
        return
    if size > LARGEST_CLUSTER_SIZE:
        raise Refusal(launch, f"a cluster of {rows} x {columns} blocks; clusters have at most {LARGEST_CLUSTER_SIZE}")
    width, height, batch = launches.launch_sizes(launch, launches.GRID)
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
            _clamp_to_zero(edges)
    launches.set_launch_sizes(launch, launches.GRID, [-(-width // columns) * size, -(-height // rows), batch])
    with ir.InsertionPoint(launch), launch.location:
        sizes = [index(size), index(1), index(1)]
    launch = launches.add_launch_operands(launch, launches.CLUSTER, sizes, rewriter)
    with ir.InsertionPoint.at_block_begin(body_of(launch)), launch.location:
        cluster_x, cluster_y = gpu.cluster_id(gpu.Dimension.x), gpu.cluster_id(gpu.Dimension.y)
        rank = block_rank_in_cluster()
        column = apply(lambda c, r: c * columns + ir.AffineExpr.get_floor_div(r, rows), cluster_x, rank)
        row = apply(lambda c, r: c * rows + ir.AffineExpr.get_mod(r, rows), cluster_y, rank)
    for id_, number in ((x, column), (y, row)):
        if id_ is not None:
            rewriter.replace_op(id_, [number])
