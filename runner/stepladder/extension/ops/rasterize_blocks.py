"""`tc.rasterize_blocks`: blocks that run together work on a compact part of C."""

from stepladder.extension.lib import building
from stepladder.extension.lib.dialect import Tc, transform_op
from stepladder.extension.lib.tile_grid import grid_of_tiles, tile_ids
from stepladder.mlir.bindings import affine, ext, ir, transform
from stepladder.mlir.traverse import walk


class RasterizeBlocks(Tc.Operation, name="rasterize_blocks"):
    """Renumbers the blocks of each `gpu.launch`, or its clusters: columns of `group` rows, instead of rows of the grid.

    Blocks start in the order of their numbers. In row order the blocks of a wave share a few rows of A and want all
    of B; in groups they form a compact rectangle, whose rows of A and columns of B fit the L2 cache together. Where
    `group` does not divide the grid's height, the last group has fewer rows.

    Operands: a handle to any op. Attributes: group, in rows of blocks, or of clusters where there are any.
    Refuses: a grid whose sizes are not constant.
    """

    target: ext.Operand[transform.AnyOpType]
    group: ir.IntegerAttr


@transform_op(RasterizeBlocks)
def rasterize_blocks(payload, op, rewriter) -> None:
    """Renumbers the blocks of every launch below `payload`; see the op."""
    for launch in walk(payload, "gpu.launch"):
        width, height, _ = grid_of_tiles(launch)
        rows = min(op.group.value, height)
        x, y = tile_ids(launch)
        if rows == 1 or x is None or y is None:
            continue
        _renumber(launch, x, y, width, height, rows)


def _place(x, y, width: int, height: int, rows: int) -> list:
    """Returns column and row of the tile that is computed in the place of tile (x, y)."""

    def number(across, down):
        return down * width + across

    def within(across, down):
        return ir.AffineExpr.get_mod(number(across, down), width * rows)

    def first(across, down):
        return ir.AffineExpr.get_floor_div(number(across, down), width * rows) * rows

    if height % rows == 0:
        column = building.apply(lambda c, r: ir.AffineExpr.get_floor_div(within(c, r), rows), x, y)
        row = building.apply(lambda c, r: first(c, r) + ir.AffineExpr.get_mod(within(c, r), rows), x, y)
        return [column, row]
    symbols = [ir.AffineExpr.get_symbol(position) for position in range(2)]
    left = ir.AffineExpr.get_constant(height) - first(*symbols)
    in_group = affine.AffineMinOp(ir.AffineMap.get(0, 2, [ir.AffineExpr.get_constant(rows), left]), [x, y]).result
    place = building.apply(within, x, y)
    # Not arith: what vectors are converted by takes its divisions for parts of them.
    column, row = affine.AffineDelinearizeIndexOp(
        [ir.IndexType.get()] * 2, place, [in_group], ir.DenseI64ArrayAttr.get([width, ir.ShapedType.get_dynamic_size()])
    ).results
    return [column, affine.apply(ir.AffineMap.get(0, 3, [first(*symbols) + ir.AffineExpr.get_symbol(2)]), [x, y, row])]


def _renumber(launch, x, y, width: int, height: int, rows: int) -> None:
    body = launch.regions[0].blocks[0]
    for id_ in (y, x):
        id_.move_before(body.operations[0])
    uses = [[(use.owner.operation, use.operand_number) for use in id_.results[0].uses] for id_ in (x, y)]
    with ir.InsertionPoint(body.operations[2]), launch.location:
        numbers = _place(x.results[0], y.results[0], width, height, rows)
    for old, number in zip(uses, numbers):
        for user, position in old:
            user.operands[position] = number
