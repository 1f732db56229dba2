"""`tc.compute_on_fragments`: computes the elementwise op on a product in the registers of its fragments."""

from collections.abc import Sequence

from stepladder.extension.lib import launches, memory
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.elementwise import Outlined, find_outlined
from stepladder.extension.lib.fragment_reductions import Pair, key_of, reduce_pairs
from stepladder.extension.lib.masked_stores import MaskedStores
from stepladder.extension.lib.reduced_results import ReducedResult
from stepladder.extension.lib.warp_part import WarpPart
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, users_of

_STORE = "vector.store"
_VALUE, _BUFFER, _INDICES = 0, 1, 2  # operands of a store


class ComputeOnFragments(Tc.Operation, name="compute_on_fragments"):
    """Computes the elementwise op on a product on the vectors that each lane stores, and stores the results to C.

    The lanes of a warp store their accumulators to a tile in shared memory, and the op reads the warp's part of it.
    Each such store becomes the op on its vector and a store to C; the tile is erased. Where tiles extend beyond C, a
    warp whose part does compares rows and columns with the extents of C. Results that are reductions are folded in
    registers and between the lanes of a warp, and then between warps (`lib/partial_results`).

    Operands: a handle to the module, with the op in a function (`tc.outline_consumer`, `tc.outline_masked_consumer`).
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
    vectors: list[tuple[ir.Value, ir.Value, ir.Value]] = []
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
            vectors.append((store.operands[_VALUE], row, column))
        rewriter.erase_op(store)
    if not vectors:
        raise Refusal(found.call, "no accumulators are stored to the tile that the elementwise op reads")
    with ir.InsertionPoint(found.call), found.call.location:
        # Before the stores: what is reduced may be computed from what C held.
        for reduced in found.elementwise.reduced:
            _reduce(launches.find_launch(payload), found, vectors, reduced)
        if found.is_of_block:
            _write_masked(found, vectors)
        else:
            _write(found, vectors)
    found.erase(rewriter)
    rewriter.erase_op(found.tile)
    for reduced in found.elementwise.reduced:
        reduced.erase(rewriter)


def _reduce(
    launch: ir.Operation,
    found: Outlined,
    vectors: Sequence[tuple[ir.Value, ir.Value, ir.Value]],
    reduced: ReducedResult,
) -> None:
    """Reduces the warp's part of the product along rows or columns."""
    part = WarpPart(found, reduced, 2)
    pairs: list[Pair] = []
    for sums, row, column in vectors:
        position = found.position(row, column)
        pairs.append(Pair(sums, position.row, position.column, key_of(row), key_of(column)))
    partials = part.partials(launch)
    reduce_pairs(pairs, found.elementwise, reduced, part.extents, part.first, partials, part.tile)


def _write(found: Outlined, vectors: Sequence[tuple[ir.Value, ir.Value, ir.Value]]) -> None:
    """Writes vectors of the product, each with the row and the column of its first element, to C."""
    for sums, row, column in vectors:
        position = found.position(row, column)
        for value, output in found.elementwise.stores(sums, position):
            memory.store_vector(value, output, position.row, position.column)


def _write_masked(found: Outlined, vectors: Sequence[tuple[ir.Value, ir.Value, ir.Value]]) -> None:
    """Writes what is inside of C of vectors of the product."""
    (pair,) = {ir.VectorType(sums.type).shape[0] for sums, _, _ in vectors}
    stores = MaskedStores(found, pair)

    def writes(is_masked: bool) -> None:
        for sums, row, column in vectors:
            stores.write(sums, row, column, is_masked=is_masked)

    stores.create(writes)
