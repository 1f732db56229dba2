"""`tc.order_transposed_tiles`: reorders the matrices of a transposed fragment of A for `mma.sync`."""

from stepladder.extension.lib.control_flow import next_op
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.fragments import take_rows
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


class OrderTransposedTiles(Tc.Operation, name="order_transposed_tiles"):
    """Swaps the second and the third matrix of fragments of A that `nvgpu.ldmatrix` transposes.

    A fragment of A is 16 x 16, four 8 x 8 matrices, which `mma.sync` takes in the order m first, then k. Upstream's
    lanes address them along the stored rows, which for a column-major A is k first.

    Operands: a handle to any op; rewrites the uses of every load of four transposed matrices as the first operand of an
        `nvgpu.mma.sync`.
    """

    target: Handle


_ORDER = [0, 2, 1, 3]


@transform_op(OrderTransposedTiles)
def order_transposed_tiles(payload: ir.Operation, op: OrderTransposedTiles, rewriter: Rewriter) -> None:
    """Rewrites the uses of every load below `payload`; see the op."""
    for load in walk(payload, "nvgpu.ldmatrix"):
        is_transposed = ir.BoolAttr(load.attributes["transpose"]).value
        if not is_transposed or ir.IntegerAttr(load.attributes["numTiles"]).value != len(_ORDER):
            continue
        fragment = load.results[0]
        mmas = [
            use.owner.operation
            for use in fragment.uses
            if use.owner.name == "nvgpu.mma.sync" and use.operand_number == 0
        ]
        if not mmas:
            continue
        with ir.InsertionPoint(next_op(load)), load.location:
            ordered_fragment = take_rows(fragment, _ORDER)
        for mma in mmas:
            mma.operands[0] = ordered_fragment
