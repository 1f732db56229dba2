"""`tc.row_store_epilogue`: stores the accumulators to C by whole rows, through shared memory."""

from stepladder.extension.lib import launches, transposes
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues import warpgroup_reductions
from stepladder.extension.lib.epilogues.epilogue import find_epilogues
from stepladder.extension.lib.epilogues.row_stores import RowStores
from stepladder.mlir.bindings import ir


class RowStoreEpilogue(Tc.Operation, name="row_store_epilogue"):
    """Writes C from the accumulators by whole rows, which may begin at any element of C.

    Each warp writes the rows whose sums it holds to a buffer of its own in shared memory, 16 at a time, 16-bit elements
    by `stmatrix`. It reads them back along rows and stores units of 16 bytes that are aligned in C. Where units begin
    in a row repeats after 2, 4 or 8 rows, so that the shift between buffer and C is a constant of each store, made by a
    shuffle of two vectors. The elements before the first unit and after the last one are stored one by one, and so are
    rows of a tile that reaches beyond C. The synchronization is that of a warp.

    An elementwise op on the product is computed on the units: the buffer holds the sums, and operands with rows like
    those of C are read in units as well. Several results are stored one after the other, C last. C = AB + C reads C in
    units. Results that are reductions are folded in registers, as by `tc.direct_store_epilogue`.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: lines, of 128 bytes, of a row that the buffer holds at a time; warpgroups, that store.
    Refuses: accumulators that reach C in another way than by a copy, an elementwise op or an addition; tiles that begin
        at other than multiples of a unit; matrices of a batch that begin at such positions; a transposed C.
    """

    target: Handle
    lines: ir.IntegerAttr
    warpgroups: ir.IntegerAttr


@transform_op(RowStoreEpilogue)
def row_store_epilogue(payload: ir.Operation, op: RowStoreEpilogue, rewriter: Rewriter) -> None:
    """Rewrites the epilogues of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    for epilogue in find_epilogues(launch):
        if transposes.is_transposed(epilogue.c_tile) or epilogue.consumer.name == "linalg.transpose":
            raise Refusal(epilogue.consumer, "rows are stored to a C that is not transposed")
        stores = RowStores(epilogue, launch, op.lines.value, op.warpgroups.value)
        with ir.InsertionPoint(epilogue.consumer), epilogue.consumer.location:
            # Before the stores: a reduction may read the previous value of C.
            warpgroup_reductions.reduce_accumulators(payload, epilogue)
            stores.create()
        epilogue.erase(rewriter)
        warpgroup_reductions.erase_reduced(epilogue, rewriter)
