"""`tc.tma_store_epilogue`: stores the accumulators to C through shared memory, by TMA."""

from stepladder.extension.lib import launches, transposes
from stepladder.extension.lib.control_flow import enclosing_loops
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues import warpgroup_reductions
from stepladder.extension.lib.epilogues.box_stores import BoxStore
from stepladder.extension.lib.epilogues.epilogue import find_epilogues
from stepladder.extension.lib.epilogues.stores_in_flight import in_flight
from stepladder.extension.lib.epilogues.transposed_box_stores import TransposedBoxStore
from stepladder.mlir.bindings import ir


class TmaStoreEpilogue(Tc.Operation, name="tma_store_epilogue"):
    """Writes C from the accumulators through shared memory, in boxes of a warpgroup's rows and up to 128 bytes.

    Each warpgroup has `stages` buffers of one box. It writes the elements of a box to a buffer, swizzled as TMA
    expects, 16-bit elements by `stmatrix`. One thread issues the TMA store, or the TMA reduction that adds to C, and
    the next box is written to the next buffer while TMA reads this one. TMA leaves out elements beyond the edges of C.
    Several results of an elementwise op are stored one after the other, C last, each from buffers of its own.
    An elementwise op on the product is computed on pairs in registers, before they are written to the buffer. Beyond
    the edges it reads its operands at the last row and column of C, so that no address leaves them; boxes without an
    element of C are left out.
    A tile of a transposed C (`memref.transpose`) is stored to C itself, whose rows are the columns of the tile: a
    buffer holds 64 rows and up to 64 columns of the tile, transposed, as 16-bit elements by `stmatrix` with `.trans`.
    The columns are divided evenly in multiples of eight; the last box, if it is smaller, has a descriptor of its own.
    With a group of 32 threads, each warp stores its rows of a box by itself, 16 of each instruction's 64, so that the
    warps of a warpgroup do not wait for each other.
    Results that are reductions are folded in registers, as by `tc.direct_store_epilogue`.
    The last stores are waited for before the block exits, not before the next tile.
    With `copies_operand`, a matrix of C's shape and type that the elementwise op reads is copied to the boxes while the
    main loop runs (`cp.async`), as many boxes as there are buffers, and read from there before C is written to them,
    16-bit elements by `ldmatrix`. With a transposed C, only 16-bit elements are copied.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: stages, of each warpgroup; warpgroups, that store; copies_operand, whether an operand is copied;
        group, the threads that store together, those of a warpgroup or of a warp.
    Refuses: accumulators that reach C in another way than by a copy, an elementwise op or an addition; a matrix whose
        rows are not a multiple of 16 bytes; a tile whose rows are not a multiple of 32 bytes; a transposed C of other
        elements than of 16 or 32 bits, or with a group of 32.
    """

    target: Handle
    stages: ir.IntegerAttr
    warpgroups: ir.IntegerAttr
    copies_operand: ir.IntegerAttr
    group: ir.IntegerAttr


@transform_op(TmaStoreEpilogue)
def tma_store_epilogue(payload: ir.Operation, op: TmaStoreEpilogue, rewriter: Rewriter) -> None:
    """Rewrites the epilogues of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    for epilogue in find_epilogues(launch):
        outputs = [0] if epilogue.elementwise is None else epilogue.elementwise.stored
        kind = TransposedBoxStore if transposes.is_transposed(epilogue.c_tile) else BoxStore
        # C last: the other results may be computed from what it held.
        stores = [
            kind(epilogue, launch, op.stages.value, op.warpgroups.value, op.group.value, result)
            for result in reversed(outputs)
        ]
        if op.copies_operand.value and len(stores) == 1:
            stores[0].copy_operand()
        loops = enclosing_loops(epilogue.consumer)
        with ir.InsertionPoint(epilogue.consumer), epilogue.consumer.location:
            # Before the stores: a reduction may read the previous value of C.
            warpgroup_reductions.reduce_accumulators(payload, epilogue)
            for store in stores:
                store.create(in_flight(stores))
        with ir.InsertionPoint.after(loops[0] if loops else epilogue.consumer), epilogue.consumer.location:
            stores[-1].create_final_wait()
        epilogue.erase(rewriter)
        warpgroup_reductions.erase_reduced(epilogue, rewriter)
