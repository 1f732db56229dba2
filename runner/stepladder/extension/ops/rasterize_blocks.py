"""`tc.rasterize_blocks`: orders blocks so that those of a wave compute a compact region of C."""

from stepladder.extension.lib.arithmetic import apply
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.tile_grid import grid_of_tiles, tile_ids
from stepladder.mlir.bindings import affine, ir
from stepladder.mlir.traverse import walk


class RasterizeBlocks(Tc.Operation, name="rasterize_blocks"):
    """Renumbers the blocks or clusters of each `gpu.launch`: column by column in groups of `group` rows of the grid.

    Blocks start in the order of their ids. In row-major order the blocks of a wave read few rows of A and all of B. In
    groups of rows they form a compact rectangle, whose rows of A and columns of B fit in the L2 cache together. Where
    `group` does not divide the height of the grid, the last group has fewer rows.

    Operands: a handle to any op.
    Attributes: group, in rows of blocks, or of clusters where the launch has clusters.
    Refuses: a grid whose sizes are not constant.
    """

    target: Handle
    group: ir.IntegerAttr


@transform_op(RasterizeBlocks)
def rasterize_blocks(payload: ir.Operation, op: RasterizeBlocks, rewriter: Rewriter) -> None:
    """Renumbers the blocks of every launch below `payload`; see the op."""
    for launch in walk(payload, "gpu.launch"):
        width, height, _ = grid_of_tiles(launch)
        rows = min(op.group.value, height)
        x, y = tile_ids(launch)
        if rows == 1 or x is None or y is None:
            continue
        _renumber(launch, x, y, width, height, rows)


def _tile_of(x: ir.Value, y: ir.Value, width: int, height: int, rows: int) -> list[ir.Value]:
    """Returns column and row of the tile that block (x, y) of the grid computes.

    Args:
        x, y: the id of the block.
        width, height: of the grid.
        rows: of a group.
    """

    def number(column: ir.AffineExpr, row: ir.AffineExpr) -> ir.AffineExpr:
        return row * width + column

    def within(column: ir.AffineExpr, row: ir.AffineExpr) -> ir.AffineExpr:
        return ir.AffineExpr.get_mod(number(column, row), width * rows)

    def first(column: ir.AffineExpr, row: ir.AffineExpr) -> ir.AffineExpr:
        return ir.AffineExpr.get_floor_div(number(column, row), width * rows) * rows

    if height % rows == 0:
        column = apply(lambda c, r: ir.AffineExpr.get_floor_div(within(c, r), rows), x, y)
        row = apply(lambda c, r: first(c, r) + ir.AffineExpr.get_mod(within(c, r), rows), x, y)
        return [column, row]
    symbols = [ir.AffineExpr.get_symbol(position) for position in range(2)]
    rows_left = ir.AffineExpr.get_constant(height) - first(*symbols)
    in_group = affine.AffineMinOp(ir.AffineMap.get(0, 2, [ir.AffineExpr.get_constant(rows), rows_left]), [x, y]).result
    position = apply(within, x, y)
    # An affine op: the conversion of vectors to gpu does not accept divisions of arith in indices.
    column, row = affine.AffineDelinearizeIndexOp(
        [ir.IndexType.get()] * 2,
        position,
        [in_group],
        ir.DenseI64ArrayAttr.get([width, ir.ShapedType.get_dynamic_size()]),
    ).results
    return [column, affine.apply(ir.AffineMap.get(0, 3, [first(*symbols) + ir.AffineExpr.get_symbol(2)]), [x, y, row])]


def _renumber(launch: ir.Operation, x: ir.Operation, y: ir.Operation, width: int, height: int, rows: int) -> None:
    body = body_of(launch)
    for id_ in (y, x):
        id_.move_before(body.operations[0])
    uses = [[(use.owner.operation, use.operand_number) for use in id_.results[0].uses] for id_ in (x, y)]
    with ir.InsertionPoint(body.operations[2]), launch.location:
        numbers = _tile_of(x.results[0], y.results[0], width, height, rows)
    for old, number in zip(uses, numbers):
        for user, position in old:
            user.operands[position] = number
