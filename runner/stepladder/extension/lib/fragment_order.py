"""A tile of sums in the order in which threads hold it, for those who need it in memory but not in rows.

A thread holds two neighbours in a row of each fragment of 8 x 8 (see `epilogue.Sums`). Written to rows, a warp's pairs
are 32 bytes here and there. In this order, the pairs that a thread holds of two fragments beside each other are a unit
of four elements, and the units of the 32 threads of a warp, of 8 rows and 16 columns, lie behind each other: a warp
writes, and others read, 32 units in a row.
"""

from stepladder.extension.lib import building
from stepladder.extension.lib.epilogue import FRAGMENT, WARP
from stepladder.mlir.bindings import ir, linalg

UNIT = 4  # elements
_PAIR = 2
_WARPS = building.WARPGROUP // WARP
_WARP_ROWS = 2 * FRAGMENT  # of the 64 that a warpgroup multiplies at once
_UNIT_COLUMNS = 2 * FRAGMENT


def _warp_units(columns: int) -> int:
    """Returns the units of a warp's rows, in a tile of so many columns."""
    return 2 * (columns // _UNIT_COLUMNS) * WARP


def write(tile, units) -> None:
    """Writes a tile, rows x columns, to memory as units: rows * columns / 4 x 4.

    Rows and columns are multiples of 16.
    """
    rows, columns = ir.MemRefType(tile.type).shape
    # Of a row: the warp's rows, upper or lower fragment, row of it. Of a column: two fragments, which, thread, element.
    parts = [rows // _WARP_ROWS, 2, FRAGMENT, columns // _UNIT_COLUMNS, 2, FRAGMENT // _PAIR, _PAIR]
    order = [0, 1, 3, 2, 5, 4, 6]
    shown = building.expand(tile, parts, [[0, 1, 2], [3, 4, 5, 6]])
    target = building.expand(units, [parts[number] for number in order], [[0, 1, 2, 3, 4], [5, 6]])
    linalg.transpose(shown, outs=[target], permutation=order)


def units_of(transpose):
    """Returns the units that a `linalg.transpose` of `write` writes."""
    return transpose.operands[1].owner.operands[0]


def place_of(unit, columns: int) -> tuple:
    """Returns the row of a unit, and the columns where its two pairs begin, as values; of a tile of so many columns."""
    across = columns // _UNIT_COLUMNS

    def row(number):
        warp_row = ir.AffineExpr.get_floor_div(number, across * WARP) * FRAGMENT
        return warp_row + ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(number, WARP), FRAGMENT // _PAIR)

    def column(number, fragment: int):
        pair = ir.AffineExpr.get_mod(number, FRAGMENT // _PAIR) * _PAIR
        group = ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(number, WARP), across)
        return group * _UNIT_COLUMNS + pair + fragment * FRAGMENT

    return building.apply(row, unit), [building.apply(lambda n: column(n, fragment), unit) for fragment in (0, 1)]


def unit_of_thread(first_row, columns: int):
    """Returns the first unit that a thread holds of its warpgroup's accumulator.

    Args:
        first_row: of the tile, where the accumulator begins.
        columns: of the tile.
    """
    return building.apply(
        lambda row, thread: (
            (
                ir.AffineExpr.get_floor_div(row, _WARP_ROWS)
                + ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(thread, building.WARPGROUP), WARP)
            )
            * _warp_units(columns)
            + ir.AffineExpr.get_mod(thread, WARP)
        ),
        first_row,
        building.thread_number(),
    )


def units_of_thread(columns: int, blocks: int) -> list[tuple[int, tuple[int, int, int]]]:
    """Returns, for each unit that a thread holds, how far it is from the first, and block, left fragment's number and
    half of it in `Sums`.

    Args:
        columns: of the tile.
        blocks: of 64 rows, of the accumulator.
    """
    across = columns // _UNIT_COLUMNS
    return [
        (block * _WARPS * _warp_units(columns) + (half * across + group) * WARP, (block, 2 * group, half))
        for block in range(blocks)
        for half in (0, 1)
        for group in range(across)
    ]
