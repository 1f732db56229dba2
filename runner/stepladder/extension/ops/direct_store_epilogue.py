"""`tc.direct_store_epilogue`: stores the accumulators from registers to C."""

from collections.abc import Mapping

from stepladder.extension.lib import fragment_order, launches, memory, register_order, transposes, vectors
from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import create_if_below
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues import warpgroup_reductions
from stepladder.extension.lib.epilogues.elementwise import Position
from stepladder.extension.lib.epilogues.epilogue import (
    MATRIX,
    PAIR,
    AccumulatorFragment,
    Epilogue,
    extents_of,
    find_epilogues,
    thread_column,
    thread_row,
)
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir.bindings import arith, ir, vector
from stepladder.mlir.traverse import defining_op


class DirectStoreEpilogue(Tc.Operation, name="direct_store_epilogue"):
    """Writes C from the accumulators, a pair of adjacent elements at a time, rounded to C's type or added to C.

    An elementwise op on the product is computed on the pairs, before they are stored. Its operands are read where they
    are used: elements along n as pairs, those along m one for a row.

    Where a tile may extend beyond C, rows and columns are predicated on C's extents. Where rows of C have an odd number
    of elements, pairs are neither aligned nor complete at the end of a row, and elements are stored one by one. So are
    those of a tile of a transposed C (`memref.transpose`), to C itself. A tile that is written in fragment order or in
    register order (a `linalg.transpose`, see `fragment_order` and `register_order`) is stored in vectors of four
    elements. Results that are reductions are
    folded in registers and between the lanes of a warp, and then between warps (`lib/partial_results`).

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: accumulators that reach C in another way than by a copy, an elementwise op, an addition or such a
        transpose.
    """

    target: Handle


def _rows_take_pairs(tile: ir.Value) -> bool:
    """Returns whether in every row of a view of C pairs are aligned and complete."""
    strides, _ = ir.MemRefType(tile.type).get_strides_and_offset()
    return strides[0] % PAIR == 0


def _store_row_major(epilogue: Epilogue) -> None:
    """Writes a row-major tile of C, or of its transpose."""
    rows, columns = epilogue.shape
    rows_of_tile, columns_of_tile = extents_of(epilogue.c_tile, epilogue.tile_shape)
    fragment = epilogue.fragment()
    first_row = arith.addi(epilogue.first_row(), thread_row())
    first_column = thread_column()
    tiles = [epilogue.c_tile] if epilogue.elementwise is None else epilogue.elementwise.outputs
    sources = {tile: source for tile in tiles if (source := transposes.source_of_transpose(tile)) is not None}
    column_of = [arith.addi(first_column, index(MATRIX * matrix)) for matrix in range(columns // MATRIX)]
    for block in range(rows // MMA_ROWS):
        for half in (0, 1):
            row = arith.addi(first_row, index(MMA_ROWS * block + MATRIX * half))
            with create_if_below(row, rows_of_tile):
                for matrix, column in enumerate(column_of):
                    _store_at(fragment, epilogue, sources, (block, matrix, half), row, column, columns_of_tile)


def _store_at(
    fragment: AccumulatorFragment,
    epilogue: Epilogue,
    sources: Mapping[ir.Value, ir.Value],
    position: tuple[int, int, int],
    row: ir.Value,
    column: ir.Value,
    columns: ir.Value | None,
) -> None:
    """Writes the pair at `position` of a fragment to `row` and `column` of the tile.

    Elements from `columns`, the tile's extent inside C, on are left out; None: the tile is inside C. `sources` has, by
    tile of a transposed result, the view whose transpose it is.
    """
    if _rows_take_pairs(epilogue.c_tile):
        with create_if_below(column, columns):
            for value, tile in _computed(fragment.pairs(*position), epilogue, row, column):
                memory.write(value, tile, [row, column], epilogue.accumulates)
        return
    for side in range(PAIR):
        own = arith.addi(column, index(side)) if side else column
        with create_if_below(own, columns):
            elements = [
                vectors.extract(pair, [side], ir.VectorType(pair.type).element_type)
                for pair in fragment.pairs(*position)
            ]
            for value, tile in _computed(elements, epilogue, row, own):
                if tile in sources:
                    memory.write(value, sources[tile], [own, row], epilogue.accumulates)
                else:
                    memory.write(value, tile, [row, own], epilogue.accumulates)


def _computed(
    values: list[ir.Value], epilogue: Epilogue, row: ir.Value, column: ir.Value
) -> list[tuple[ir.Value, ir.Value]]:
    """Returns what is stored for a pair or one element of each product, each with the tile that it goes to."""
    if epilogue.elementwise is None:
        return [(values[0], epilogue.c_tile)]
    return epilogue.elementwise.stores(values, Position(row, column))


def _store_in_fragment_order(epilogue: Epilogue) -> None:
    """Writes a tile in fragment order."""
    rows, columns = epilogue.shape
    vectors = fragment_order.vectors_of(epilogue.consumer)
    fragment = epilogue.fragment()
    first = fragment_order.first_vector_of_thread(epilogue.first_row(), columns)
    for distance, (block, matrix, half) in fragment_order.vectors_of_thread(columns, rows // MMA_ROWS):
        left, right = fragment.pair(block, matrix, half), fragment.pair(block, matrix + 1, half)
        pairs = vector.shuffle(left, right, [0, 1, 2, 3])
        memory.store_vector(pairs, vectors, arith.addi(first, index(distance)), index(0))


def _store_in_register_order(epilogue: Epilogue, width: int) -> None:
    """Writes a tile in register order, in vectors of `width` elements."""
    rows, columns = epilogue.shape
    memory_of_tile = defining_op(epilogue.consumer.operands[1]).operands[0]
    fragment = epilogue.fragment()
    column = register_order.column_of_thread(width)
    for slot, positions in enumerate(register_order.vectors_of_thread(columns, rows // MMA_ROWS, width)):
        first, *others = [fragment.pair(*position) for position in positions]
        elements = vector.shuffle(first, *others, list(range(width))) if others else first
        memory.store_vector(elements, memory_of_tile, index(slot), column)


@transform_op(DirectStoreEpilogue)
def direct_store_epilogue(payload: ir.Operation, op: DirectStoreEpilogue, rewriter: Rewriter) -> None:
    """Rewrites the epilogues of the one launch below `payload`; see the op."""
    for epilogue in find_epilogues(launches.find_launch(payload)):
        with ir.InsertionPoint(epilogue.consumer), epilogue.consumer.location:
            if epilogue.consumer.name == "linalg.transpose":
                width = register_order.width_of(epilogue.consumer)
                if width:
                    _store_in_register_order(epilogue, width)
                else:
                    _store_in_fragment_order(epilogue)
            else:
                # Before the stores: a reduction may read the previous value of C.
                warpgroup_reductions.reduce_accumulators(payload, epilogue)
                _store_row_major(epilogue)
        epilogue.erase(rewriter)
        warpgroup_reductions.erase_reduced(epilogue, rewriter)
