"""`tc.compute_on_fragments`: computes the elementwise op on a product in the registers of its fragments."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from stepladder.extension.lib import launches, memory
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.elementwise import Outlined, find_outlined
from stepladder.extension.lib.epilogues.fragment_reductions import Pair, key_of, reduce_pairs
from stepladder.extension.lib.epilogues.masked_stores import MaskedStores
from stepladder.extension.lib.epilogues.reduced_results import ReducedResult
from stepladder.extension.lib.epilogues.warp_part import WarpPart
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, users_of

_STORE = "vector.store"
_VALUE, _BUFFER, _INDICES = 0, 1, 2  # operands of a store


class ComputeOnFragments(Tc.Operation, name="compute_on_fragments"):
    """Computes the elementwise op on a product on the vectors that each lane stores, and stores the results to C.

    The lanes of a warp store their accumulators to a tile in shared memory, and the op reads the warp's part of it.
    Each such store becomes the op on its vector and a store to C; the tile is erased. Of a pair of products a lane has
    the same positions of both tiles, and the op takes the vectors of one position. Where tiles extend beyond C, a
    warp whose part does compares rows and columns with the extents of C. Results that are reductions are folded in
    registers and between the lanes of a warp, and then between warps (`lib/partial_results`).

    Operands: a handle to the module, with the op in a function (`tc.outline_consumer`, `tc.outline_masked_consumer`).
    Refuses: other accesses to the tile than these stores: accumulators that do not stay in registers; vectors of a pair
        of products in different positions.
    """

    target: Handle


@transform_op(ComputeOnFragments)
def compute_on_fragments(payload: ir.Operation, op: ComputeOnFragments, rewriter: Rewriter) -> None:
    """Rewrites the stores of the accumulators below `payload`; see the op."""
    outlined = find_outlined(payload)
    if outlined is None:
        return
    vectors = _vectors(outlined, rewriter)
    with ir.InsertionPoint(outlined.call), outlined.call.location:
        # Before the stores: a reduction may read the previous value of C.
        for reduced in outlined.elementwise.reduced:
            _reduce(launches.find_launch(payload), outlined, vectors, reduced)
        if outlined.is_of_block:
            _write_masked(outlined, vectors)
        else:
            _write(outlined, vectors)
    outlined.erase(rewriter)
    for tile in outlined.tiles:
        rewriter.erase_op(tile)
    for reduced in outlined.elementwise.reduced:
        reduced.erase(rewriter)


@dataclass(frozen=True)
class _Vector:
    """Adjacent elements of the product that a lane holds, or of each product of a pair.

    Attributes:
        sums: the elements, a vector for each product.
        row, column: of the first element in the block's tile.
    """

    sums: list[ir.Value]
    row: ir.Value
    column: ir.Value

    @property
    def keys(self) -> tuple[Hashable, Hashable]:
        """Keys that are equal for vectors of one row, and of one column."""
        return key_of(self.row), key_of(self.column)


def _vectors(outlined: Outlined, rewriter: Rewriter) -> list[_Vector]:
    """Returns what a lane stores to the tiles of the products, in program order; erases the stores."""
    first, *others = [_stored(outlined, tile.results[0], rewriter) for tile in outlined.tiles]
    for other in others:
        places = {vector.keys: vector for vector in other}
        if {vector.keys for vector in first} != set(places):
            raise Refusal(outlined.call, "expected that a lane holds the same positions of both products")
        for vector in first:
            vector.sums.extend(places[vector.keys].sums)
    return first


def _stored(outlined: Outlined, tile: ir.Value, rewriter: Rewriter) -> list[_Vector]:
    """Returns what a lane stores to one tile, in program order; erases the stores."""
    vectors: list[_Vector] = []
    for store in reversed(users_of(tile)):  # in program order
        if store == outlined.call:
            continue
        if store.name != _STORE or store.operands[_BUFFER] != tile or store.block != outlined.call.block:
            raise Refusal(
                store, "the accumulators are not stored once, after the loop over k: they must stay in registers"
            )
        source = producer(store.operands[_VALUE])
        if source is None or source.name != "arith.constant":  # a constant is what the accumulator started from
            row, column = list(store.operands)[_INDICES:]
            vectors.append(_Vector([store.operands[_VALUE]], row, column))
        rewriter.erase_op(store)
    if not vectors:
        raise Refusal(outlined.call, "no accumulators are stored to the tile that the elementwise op reads")
    return vectors


def _reduce(
    launch: ir.Operation,
    outlined: Outlined,
    vectors: Sequence[_Vector],
    reduced: ReducedResult,
) -> None:
    """Reduces the warp's part of the product along rows or columns."""
    part = WarpPart(outlined, reduced, 2)
    pairs: list[Pair] = []
    for vector in vectors:
        position = outlined.position(vector.row, vector.column)
        pairs.append(Pair(vector.sums, position.row, position.column, *vector.keys))
    partials = part.partials(launch)
    reduce_pairs(pairs, outlined.elementwise, reduced, part.extents, part.first, partials, part.tile)


def _write(outlined: Outlined, vectors: Sequence[_Vector]) -> None:
    """Writes vectors of the product to C."""
    for vector in vectors:
        position = outlined.position(vector.row, vector.column)
        for value, output in outlined.elementwise.stores(vector.sums, position):
            memory.store_vector(value, output, position.row, position.column)


def _write_masked(outlined: Outlined, vectors: Sequence[_Vector]) -> None:
    """Writes what is inside of C of vectors of the product."""
    (pair,) = {ir.VectorType(sums.type).shape[0] for vector in vectors for sums in vector.sums}
    stores = MaskedStores(outlined, pair)

    def writes(is_masked: bool) -> None:
        for vector in vectors:
            stores.write(vector.sums, vector.row, vector.column, is_masked=is_masked)

    stores.create(writes)
