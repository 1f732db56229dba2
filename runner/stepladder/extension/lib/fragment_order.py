"""A layout of accumulator tiles in memory in which each thread stores its fragment in 16-byte vectors.

A thread holds a pair of adjacent elements of each 8 x 8 matrix (see `epilogue.AccumulatorFragment`). In a row-major
tile, the pairs of a warp are segments of 32 bytes. In this layout, the pairs that a thread holds of two adjacent
matrices form a vector of four elements, and the vectors of the 32 threads of a warp, of 8 rows and 16 columns, are
contiguous: a warp writes, and others read, 32 adjacent vectors.
"""

from stepladder.extension.lib import threads
from stepladder.extension.lib.arithmetic import apply
from stepladder.extension.lib.epilogues.epilogue import MATRIX, PAIR
from stepladder.extension.lib.memory import expand_shape
from stepladder.extension.lib.threads import WARP, WARPGROUP
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import defining_op

VECTOR = 2 * PAIR  # elements
_WARPS = WARPGROUP // WARP
_WARP_ROWS = 2 * MATRIX  # of the 64 rows of an instruction
_VECTOR_COLUMNS = 2 * MATRIX  # that the vectors of a warp cover


def _vectors_of_warp(columns: int) -> int:
    """Returns the number of vectors in a warp's rows of a tile with `columns` columns."""
    return 2 * (columns // _VECTOR_COLUMNS) * WARP


def store_tile(tile: ir.Value, vectors: ir.Value) -> None:
    """Writes a tile to memory in fragment order, as a `linalg.transpose`.

    Args:
        tile: rows x columns, both multiples of 16.
        vectors: the memory, (rows * columns / 4) x 4.
    """
    rows, columns = ir.MemRefType(tile.type).shape
    # Rows: warp, upper or lower matrix, row in it. Columns: two matrices, which of them, thread, element.
    split_shape = [rows // _WARP_ROWS, 2, MATRIX, columns // _VECTOR_COLUMNS, 2, MATRIX // PAIR, PAIR]
    order = [0, 1, 3, 2, 5, 4, 6]
    source = expand_shape(tile, split_shape, [[0, 1, 2], [3, 4, 5, 6]])
    target = expand_shape(vectors, [split_shape[axis] for axis in order], [[0, 1, 2, 3, 4], [5, 6]])
    create_named_op("linalg.transpose", [source], target, {"permutation": ir.DenseI64ArrayAttr.get(order)})


def vectors_of(transpose: ir.Operation) -> ir.Value:
    """Returns the memory, as vectors, that a `linalg.transpose` of `store_tile` writes.

    Args:
        transpose: the op.
    """
    return defining_op(transpose.operands[1]).operands[0]


def coordinates_of(vector: ir.Value, columns: int) -> tuple[ir.Value, list[ir.Value]]:
    """Returns the row of a vector in its tile, and the columns of its two pairs.

    Args:
        vector: the index of the vector.
        columns: of the tile.
    """
    groups = columns // _VECTOR_COLUMNS

    def row(number: ir.AffineExpr) -> ir.AffineExpr:
        warp_row = ir.AffineExpr.get_floor_div(number, groups * WARP) * MATRIX
        return warp_row + ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(number, WARP), MATRIX // PAIR)

    def column(number: ir.AffineExpr, matrix: int) -> ir.AffineExpr:
        pair = ir.AffineExpr.get_mod(number, MATRIX // PAIR) * PAIR
        group = ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(number, WARP), groups)
        return group * _VECTOR_COLUMNS + pair + matrix * MATRIX

    return apply(row, vector), [apply(lambda n: column(n, matrix), vector) for matrix in (0, 1)]


def first_vector_of_thread(first_row: ir.Value, columns: int) -> ir.Value:
    """Returns the index of the first vector that a thread holds of its warpgroup's accumulator.

    Args:
        first_row: row of the tile at which the accumulator begins.
        columns: of the tile.
    """
    return apply(
        lambda row, thread: (
            (
                ir.AffineExpr.get_floor_div(row, _WARP_ROWS)
                + ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(thread, WARPGROUP), WARP)
            )
            * _vectors_of_warp(columns)
            + ir.AffineExpr.get_mod(thread, WARP)
        ),
        first_row,
        threads.thread_id(),
    )


def vectors_of_thread(columns: int, blocks: int) -> list[tuple[int, tuple[int, int, int]]]:
    """Returns, for each vector that a thread holds, its distance from the thread's first vector, and the position
    (block, left matrix, half) of its pairs in the `AccumulatorFragment`.

    Args:
        columns: of the tile.
        blocks: of 64 rows, of the accumulator.
    """
    groups = columns // _VECTOR_COLUMNS
    return [
        (block * _WARPS * _vectors_of_warp(columns) + (half * groups + group) * WARP, (block, 2 * group, half))
        for block in range(blocks)
        for half in (0, 1)
        for group in range(groups)
    ]
