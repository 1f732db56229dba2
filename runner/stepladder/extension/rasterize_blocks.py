"""`tc.rasterize_blocks`: blocks that run together work on a compact part of C."""

import math

from stepladder.bindings import ext, ir, transform
from stepladder.extension.dialect import Refusal, Tc, producer, transform_op
from stepladder.traverse import walk


class RasterizeBlocks(Tc.Operation, name="rasterize_blocks"):
    """Renumbers the blocks of each `gpu.launch`: columns of `group` block rows, instead of rows of the whole grid.

    Blocks start in the order of their numbers. In row order the blocks of a wave share a few rows of A and want all
    of B; in groups they form a compact rectangle, whose rows of A and columns of B fit the L2 cache together.

    Operands: a handle to any op. Attributes: group, in block rows; the largest divisor of the grid's height that also
    divides it is used.
    Refuses: a grid whose sizes are not constant.
    """

    target: ext.Operand[transform.AnyOpType]
    group: ir.IntegerAttr


def _constant(launch, value) -> int:
    source = producer(value)
    if source is None or source.name != "arith.constant":
        raise Refusal(launch, "the sizes of the grid are not constant")
    return ir.IntegerAttr(source.attributes["value"]).value


def _apply(expression, x, y):
    return ir.Operation.create("affine.apply", results=[ir.IndexType.get()], operands=[x, y], attributes={
        "map": ir.AffineMapAttr.get(ir.AffineMap.get(0, 2, [expression]))}).results[0]


@transform_op(RasterizeBlocks)
def rasterize_blocks(payload, op, rewriter) -> None:
    """Renumbers the blocks of every launch below `payload`; see the op."""
    for launch in walk(payload, "gpu.launch"):
        width, height = (_constant(launch, launch.operands[axis]) for axis in (0, 1))
        rows = math.gcd(op.group.value, height)
        ids = {str(id_.attributes["dimension"]): id_ for id_ in walk(launch, "gpu.block_id")}
        x, y = (next((id_ for key, id_ in ids.items() if f"dim {axis}" in key), None) for axis in "xy")
        if rows == 1 or x is None or y is None:
            continue
        _renumber(launch, x, y, width, rows)


def _renumber(launch, x, y, width: int, rows: int) -> None:
    across, down = ir.AffineExpr.get_symbol(0), ir.AffineExpr.get_symbol(1)
    number = down * width + across
    within = ir.AffineExpr.get_mod(number, width * rows)
    body = launch.regions[0].blocks[0]
    for id_ in (y, x):
        id_.move_before(body.operations[0])
    with ir.InsertionPoint(body.operations[2]), launch.location:
        row = _apply(ir.AffineExpr.get_floor_div(number, width * rows) * rows + ir.AffineExpr.get_mod(within, rows),
                     x.results[0], y.results[0])
        column = _apply(ir.AffineExpr.get_floor_div(within, rows), x.results[0], y.results[0])
    for old, new in ((x, column), (y, row)):
        for use in list(old.results[0].uses):
            if use.owner.operation not in (row.owner.operation, column.owner.operation):
                use.owner.operation.operands[use.operand_number] = new
