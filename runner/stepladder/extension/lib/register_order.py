"""A layout of accumulator tiles in memory in which every vector of a thread's fragment has a row of the memory.

A thread holds a pair of adjacent elements of each half of a matrix of 16 x 8 (see `epilogue.AccumulatorFragment`). The
two pairs form a vector of four elements, in the order of its registers; where that is too much at once, each pair is a
vector. Row `slot` of the memory has the vectors of this index that all threads hold, in the order of the threads: a
thread that reads what the same thread of another block has written needs only its own index, and whose sums a row has
is known at compile time.
"""

from stepladder.extension.lib import threads
from stepladder.extension.lib.arithmetic import apply
from stepladder.extension.lib.epilogues.epilogue import MATRIX, PAIR
from stepladder.extension.lib.memory import expand_shape
from stepladder.extension.lib.threads import WARP, WARPGROUP
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_named_op

VECTOR = 2 * PAIR  # elements
_WARP_ROWS = MMA_ROWS // (WARPGROUP // WARP)
# Of a tile in order of rows: warpgroup, block of 64 rows, warp, half, row in it, matrix, thread in a row, element. The
# order in memory, and how many of these count slots, by the elements of a vector.
_ORDERS = {VECTOR: ([1, 5, 0, 2, 4, 6, 3, 7], 2), PAIR: ([1, 5, 3, 0, 2, 4, 6, 7], 3)}


def slots_of(rows: int, columns: int, thread_count: int, width: int) -> int:
    """Returns the number of vectors that a thread holds of a tile.

    Args:
        rows, columns: of the tile.
        thread_count: that hold it.
        width: elements of a vector, VECTOR or PAIR.
    """
    return rows * columns // width // thread_count


def store_tile(tile: ir.Value, memory: ir.Value, thread_count: int, width: int) -> None:
    """Writes a tile to memory in register order, as a `linalg.transpose`.

    Args:
        tile: rows x columns, multiples of 64 for each warpgroup and of 8.
        memory: slots x (threads * width).
        thread_count: that hold the tile.
        width: elements of a vector, VECTOR or PAIR.
    """
    rows, columns = ir.MemRefType(tile.type).shape
    warpgroups = thread_count // WARPGROUP
    blocks = rows // MMA_ROWS // warpgroups
    split_shape = [warpgroups, blocks, MMA_ROWS // _WARP_ROWS, 2, MATRIX, columns // MATRIX, MATRIX // PAIR, PAIR]
    order, of_slots = _ORDERS[width]
    axes = list(range(len(order)))
    source = expand_shape(tile, split_shape, [[0, 1, 2, 3, 4], [5, 6, 7]])
    target = expand_shape(memory, [split_shape[axis] for axis in order], [axes[:of_slots], axes[of_slots:]])
    create_named_op("linalg.transpose", [source], target, {"permutation": ir.DenseI64ArrayAttr.get(order)})


def width_of(transpose: ir.Operation) -> int | None:
    """Returns the elements of the vectors that a `linalg.transpose` of `store_tile` writes; None for another one.

    Args:
        transpose: the op.
    """
    own = list(ir.DenseI64ArrayAttr(transpose.attributes["permutation"]))
    return next((width for width, (order, _) in _ORDERS.items() if order == own), None)


def runs_of(vector: ir.Value, shape: tuple[int, int], thread_count: int, width: int) -> list[tuple[ir.Value, ir.Value]]:
    """Returns the row and the first column of the pairs of a vector.

    Args:
        vector: the index of the vector in the memory.
        shape: rows and columns of the tile.
        thread_count: that hold the tile.
        width: elements of a vector, VECTOR or PAIR.
    """
    rows, columns = shape
    matrices, rows_of_warpgroup, halves = columns // MATRIX, rows * WARPGROUP // thread_count, VECTOR // width
    floor_div, mod = ir.AffineExpr.get_floor_div, ir.AffineExpr.get_mod

    def row(number: ir.AffineExpr, half: int) -> ir.AffineExpr:
        thread, block = mod(number, thread_count), floor_div(number, thread_count * matrices * halves)
        first = floor_div(thread, WARPGROUP) * rows_of_warpgroup + block * MMA_ROWS
        if halves > 1:
            first = first + mod(floor_div(number, thread_count), halves) * MATRIX
        of_warp = floor_div(mod(thread, WARPGROUP), WARP) * _WARP_ROWS
        return first + of_warp + floor_div(mod(thread, WARP), MATRIX // PAIR) + half * MATRIX

    column = apply(
        lambda number: (
            mod(floor_div(number, thread_count * halves), matrices) * MATRIX + mod(number, MATRIX // PAIR) * PAIR
        ),
        vector,
    )
    return [(apply(lambda number: row(number, half), vector), column) for half in range(width // PAIR)]


def vectors_of_thread(columns: int, blocks: int, width: int) -> list[list[tuple[int, int, int]]]:
    """Returns the positions (block, matrix, half) in the `AccumulatorFragment` of the pairs of each vector that a
    thread holds, by slots.

    Args:
        columns: of the tile.
        blocks: of 64 rows, of the accumulator.
        width: elements of a vector, VECTOR or PAIR.
    """
    pairs = [(block, matrix, half) for block in range(blocks) for matrix in range(columns // MATRIX) for half in (0, 1)]
    count = width // PAIR
    return [pairs[first : first + count] for first in range(0, len(pairs), count)]


def column_of_thread(width: int) -> ir.Value:
    """Returns the column of the memory at which a thread's vectors are, at the current insertion point.

    Args:
        width: elements of a vector.
    """
    return apply(lambda thread: thread * width, threads.thread_id())
