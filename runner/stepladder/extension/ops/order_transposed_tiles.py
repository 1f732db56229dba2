"""`tc.order_transposed_tiles`: the tiles of a transposed fragment of A in the order that `mma.sync` wants."""

from stepladder.extension.lib.dialect import Tc, transform_op
from stepladder.extension.lib.fragments import take_rows
from stepladder.mlir.bindings import ext, ir, transform
from stepladder.mlir.traverse import walk


class OrderTransposedTiles(Tc.Operation, name="order_transposed_tiles"):
    """Exchanges the second and the third tile of fragments of A that `nvgpu.ldmatrix` transposes.

    A fragment of A is 16 x 16, four tiles: the instruction wants them down m first, then along k. Upstream's lanes
    address them along the rows as they are stored, which for a column-major A is along k first.

    Operands: a handle to any op; treats every load of four transposed tiles that is the first operand of a product.
    """

    target: ext.Operand[transform.AnyOpType]


_WANTED = [0, 2, 1, 3]


@transform_op(OrderTransposedTiles)
def order_transposed_tiles(payload, op, rewriter) -> None:
    """Treats every load below `payload`; see the op."""
    for load in walk(payload, "nvgpu.ldmatrix"):
        transposed = ir.BoolAttr(load.attributes["transpose"]).value
        if not transposed or ir.IntegerAttr(load.attributes["numTiles"]).value != len(_WANTED):
            continue
        fragment = load.results[0]
        products = [
            use.owner.operation
            for use in fragment.uses
            if use.owner.name == "nvgpu.mma.sync" and use.operand_number == 0
        ]
        if not products:
            continue
        block = load.block
        following = next(
            after for before, after in zip(block.operations, list(block.operations)[1:]) if before.operation == load
        )
        with ir.InsertionPoint(following), load.location:
            ordered = take_rows(fragment, _WANTED)
        for product in products:
            product.operands[0] = ordered
