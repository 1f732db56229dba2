"""`tc.outline_masked_consumer`: distributes the op that writes C over warps, where tiles extend beyond C."""

from stepladder.extension.lib import memory, threads
from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.elementwise import MARK, WARP_TILE, products_of
from stepladder.extension.lib.outlining import outline
from stepladder.mlir.bindings import affine, ir
from stepladder.mlir.linalg_ops import axis_loops, create_generic
from stepladder.mlir.traverse import defining_op, walk


class OutlineMaskedConsumer(Tc.Operation, name="outline_masked_consumer"):
    """Moves the op that writes the product of a block to C to a function, which each warp calls for its part.

    The function takes the block's tile of the product, or those of a pair, the row and the column at which the warp's
    part begins, the other operands of the op as the block sees them, and C's tile, which it returns. Of the warp's part
    only what is inside of C is computed. A copy to C becomes a `linalg.generic`. Otherwise as `tc.outline_consumer`.

    Operands: a handle to the module.
    Attributes: rows, columns: of a warp's part.
    Refuses: more than one such op with the attribute `operand_c`; a product that is no tile in shared memory; a body
        that takes a value from outside that is no constant.
    """

    target: Handle
    rows: ir.IntegerAttr
    columns: ir.IntegerAttr


def _inside(view: ir.Value, tile_size: int, axis: int, begin: ir.Value, extent: int) -> int | ir.Value:
    """Returns how many of `extent` rows or columns of C from `begin` on are in C: `tile_size` in a tile inside of C."""
    type_ = ir.MemRefType(view.type)
    if not type_.is_dynamic_dim(axis) and type_.shape[axis] == tile_size:
        return extent
    first, total = ir.AffineExpr.get_symbol(0), ir.AffineExpr.get_symbol(1)
    zero, limit = ir.AffineExpr.get_constant(0), ir.AffineExpr.get_constant(extent)
    size = ir.Operation.create("memref.dim", results=[ir.IndexType.get()], operands=[view, index(axis)]).results[0]
    count = affine.AffineMinOp(ir.AffineMap.get(0, 2, [total - first, limit]), [begin, size]).result
    return affine.AffineMaxOp(ir.AffineMap.get(0, 1, [first, zero]), [count]).result


def _generic_of(op: ir.Operation) -> ir.Operation:
    """Returns a `linalg.generic` for a copy, in its place; other ops as they are."""
    if op.name == "linalg.generic":
        return op
    with ir.InsertionPoint(op), op.location:
        source, target = op.operands
        maps = [ir.AffineMap.get_identity(2)] * 2
        generic, block = create_generic([source], [target], maps, {MARK: ir.UnitAttr.get()})
        with ir.InsertionPoint(block):
            ir.Operation.create("linalg.yield", operands=list(block.arguments)[:1])
    return generic


@transform_op(OutlineMaskedConsumer)
def outline_masked_consumer(payload: ir.Operation, op: OutlineMaskedConsumer, rewriter: Rewriter) -> None:
    """Outlines the op below `payload`; see the op."""
    writes = [write for write in walk(payload, "linalg.generic", "linalg.copy") if MARK in write.attributes]
    if len(writes) != 1:
        raise Refusal(payload, f"expected one op that writes the product to C, found {len(writes)}")
    (write,) = writes
    count = products_of(write)
    sums = list(write.operands)[:count]
    tiles, views = [memory.shared_tile_of(write, value) for value in sums], [defining_op(value) for value in sums]
    generic = _generic_of(write)
    if generic != write:
        rewriter.erase_op(write)
    shape = [op.rows.value, op.columns.value]
    tile_shape = ir.MemRefType(tiles[0].results[0].type).shape
    maps = [ir.AffineMapAttr(attribute).value for attribute in generic.attributes["indexing_maps"]]
    with ir.InsertionPoint(generic), generic.location:
        warp = apply(lambda t: ir.AffineExpr.get_floor_div(t, threads.WARP), threads.thread_id())
        across = tile_shape[1] // shape[1]
        begin = [
            apply(lambda w: ir.AffineExpr.get_floor_div(w, across) * shape[0], warp),
            apply(lambda w: ir.AffineExpr.get_mod(w, across) * shape[1], warp),
        ]

    def operands(*arguments: ir.Value) -> list[ir.Value]:
        own, place, others = arguments[:count], arguments[count : count + 2], arguments[count + 2 :]
        sizes = [_inside(others[-1], tile_shape[axis], axis, place[axis], shape[axis]) for axis in range(2)]

        def part(operand: ir.Value, map_: ir.AffineMap) -> ir.Value:
            if not isinstance(operand.type, ir.MemRefType) or not map_.results:
                return operand
            loops = axis_loops(map_)
            offsets = [0 if loop is None else place[loop] for loop in loops]
            extents = [1 if loop is None else sizes[loop] for loop in loops]
            return memory.subview(operand, offsets, extents)

        return [part(operand, map_) for operand, map_ in zip([*own, *others], maps)]

    arguments = [*(tile.results[0] for tile in tiles), *begin, *list(generic.operands)[count:]]
    outline(payload, generic, arguments, operands, {WARP_TILE: ir.DenseI64ArrayAttr.get(shape)})
    for tile, view in zip(tiles, views):
        if view != tile and not list(view.results[0].uses):
            rewriter.erase_op(view)
