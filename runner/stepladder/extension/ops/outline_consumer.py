"""`tc.outline_consumer`: moves the elementwise op on a product to a function of its own."""

from stepladder.extension.lib import memory
from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.elementwise import MARK
from stepladder.extension.lib.outlining import outline
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import defining_op, walk


class OutlineConsumer(Tc.Operation, name="outline_consumer"):
    """Moves the `linalg.generic` that consumes a warp's product to a private function, and calls it in its place.

    The function takes the block's tile of the product and the row and the column at which the warp's begins, and then
    the other operands of the op, and returns the last, the tiles that the op writes. In the launch, the tile has no
    view, behind which upstream's hoisting of transfers expects accesses to the accumulators, and no arithmetic on
    numbers, at which `convert-vector-to-gpu` fails.
    `tc.compute_on_fragments` and `tc.map_consumer_to_lanes` replace the call.

    Operands: a handle to the module.
    Refuses: more than one op with the attribute `operand_c`; a product that is no tile in shared memory; a body that
        takes a value from outside that is no constant.
    """

    target: Handle


@transform_op(OutlineConsumer)
def outline_consumer(payload: ir.Operation, op: OutlineConsumer, rewriter: Rewriter) -> None:
    """Outlines the consumer below `payload`; see the op."""
    found = [generic for generic in walk(payload, "linalg.generic") if MARK in generic.attributes]
    if not found:
        return
    if len(found) > 1:
        raise Refusal(found[1], "expected one elementwise op on the product")
    (generic,) = found
    sums = generic.operands[0]
    tile, view = memory.shared_tile_of(generic, sums), defining_op(sums)
    extents = ir.MemRefType(sums.type).shape
    with ir.InsertionPoint(generic), generic.location:
        begin = [index(0), index(0)] if view == tile else memory.offsets_of(view)

    def operands(own: ir.Value, row: ir.Value, column: ir.Value, *others: ir.Value) -> list[ir.Value]:
        return [memory.subview(own, [row, column], extents), *others]

    outline(payload, generic, [tile.results[0], *begin, *list(generic.operands)[1:]], operands, {})
    if view != tile and not list(sums.uses):
        rewriter.erase_op(view)
