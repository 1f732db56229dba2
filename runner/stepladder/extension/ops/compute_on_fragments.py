"""`tc.compute_on_fragments`: computes the elementwise op on a product in the registers of its fragments."""

from stepladder.extension.lib import memory
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.elementwise import Position, find_outlined
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer, users_of

_STORE = "vector.store"
_VALUE, _BUFFER, _INDICES = 0, 1, 2  # operands of a store


class ComputeOnFragments(Tc.Operation, name="compute_on_fragments"):
    """Computes the elementwise op on a product on the vectors that each lane stores, and stores the results to C.

    The lanes of a warp store their accumulators to a tile in shared memory, and the op reads the warp's part of it.
    Each such store becomes the op on its vector and a store to C; the tile is erased.

    Operands: a handle to the module, with the op in a function (`tc.outline_consumer`).
    Refuses: other accesses to the tile than these stores: accumulators that do not stay in registers.
    """

    target: Handle


@transform_op(ComputeOnFragments)
def compute_on_fragments(payload: ir.Operation, op: ComputeOnFragments, rewriter: Rewriter) -> None:
    """Rewrites the stores of the accumulators below `payload`; see the op."""
    found = find_outlined(payload)
    if found is None:
        return
    tile = found.tile.results[0]
    computed = 0
    for store in reversed(users_of(tile)):  # in program order
        if store == found.call:
            continue
        if store.name != _STORE or store.operands[_BUFFER] != tile or store.block != found.call.block:
            raise Refusal(
                store, "the accumulators are not stored once, after the loop over k: they must stay in registers"
            )
        source = producer(store.operands[_VALUE])
        if source is None or source.name != "arith.constant":  # a constant is what the accumulator started from
            row, column = list(store.operands)[_INDICES:]
            with ir.InsertionPoint(found.call), store.location:
                position = Position(arith.subi(row, found.row), arith.subi(column, found.column))
                results = found.elementwise.compute(store.operands[_VALUE], position)
                for value, output in zip(results, found.outputs):
                    memory.store_vector(value, output, position.row, position.column)
            computed += 1
        rewriter.erase_op(store)
    if not computed:
        raise Refusal(found.call, "no accumulators are stored to the tile that the elementwise op reads")
    found.erase(rewriter)
    rewriter.erase_op(found.tile)
