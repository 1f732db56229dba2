"""`tc.outline_consumer`: moves the elementwise op on a product to a function of its own."""

from stepladder.extension.lib import memory
from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.elementwise import MARK, products_of
from stepladder.extension.lib.outlining import outline
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import defining_op, walk


class OutlineConsumer(Tc.Operation, name="outline_consumer"):
    """Moves the `linalg.generic` that consumes a warp's product to a private function, and calls it in its place.

    The function takes the block's tile of the product, or those of a pair, and the row and the column at which the
    warp's begins, and then the other operands of the op, and returns the last, the tiles that the op writes. In the
    launch, the tile has no view, after which upstream's hoisting of transfers expects accesses to the accumulators,
    and no scalar arithmetic, at which `convert-vector-to-gpu` fails.
    `tc.compute_on_fragments` and `tc.map_consumer_to_lanes` replace the call.

    Operands: a handle to the module.
    Refuses: more than one op with the attribute `operand_c`; a product that is no tile in shared memory; a body that
        takes a value from outside that is no constant.
    """

    target: Handle


@transform_op(OutlineConsumer)
def outline_consumer(payload: ir.Operation, op: OutlineConsumer, rewriter: Rewriter) -> None:
    """Outlines the consumer below `payload`; see the op."""
    consumers = [generic for generic in walk(payload, "linalg.generic") if MARK in generic.attributes]
    if not consumers:
        return
    if len(consumers) > 1:
        raise Refusal(consumers[1], "expected one elementwise op on the product")
    (generic,) = consumers
    count = products_of(generic)
    sums, others = list(generic.operands)[:count], list(generic.operands)[count:]
    tiles, views = [memory.shared_tile_of(generic, value) for value in sums], [defining_op(value) for value in sums]
    extents = ir.MemRefType(sums[0].type).shape
    with ir.InsertionPoint(generic), generic.location:
        begin = [index(0), index(0)] if views[0] == tiles[0] else memory.offsets_of(views[0])

    def operands(*arguments: ir.Value) -> list[ir.Value]:
        own, place, further = arguments[:count], arguments[count : count + 2], arguments[count + 2 :]
        return [*(memory.subview(tile, list(place), extents) for tile in own), *further]

    outline(payload, generic, [*(tile.results[0] for tile in tiles), *begin, *others], operands, {})
    for tile, view in zip(tiles, views):
        if view != tile and not list(view.results[0].uses):
            rewriter.erase_op(view)
