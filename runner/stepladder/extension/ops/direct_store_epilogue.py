"""`tc.direct_store_epilogue`: each thread writes the sums that it holds to C."""

from stepladder.extension.lib import building, epilogue, fragment_order
from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Tc, transform_op
from stepladder.extension.lib.warpgroup_ops import ROWS
from stepladder.mlir.bindings import arith, ext, ir, transform, vector


class DirectStoreEpilogue(Tc.Operation, name="direct_store_epilogue"):
    """Writes C from the accumulators, two neighbours in a row at a time, rounded to C's type or added to C.

    Where the tile may reach beyond C, rows and columns are compared with what there is of it. Where rows of C have an
    odd number of elements, so that pairs are neither aligned nor whole at their ends, elements are written one by one.
    A tile that is to be in the order of fragments (a `linalg.transpose`, see `fragment_order`) is written in units of
    four elements.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: sums that go another way than by a copy, a rounding, an addition or such a transpose.
    """

    target: ext.Operand[transform.AnyOpType]


def _rows_take_pairs(tile) -> bool:
    """Tells whether every row of a view of C begins where a pair is aligned, and ends with one."""
    strides, _ = ir.MemRefType(tile.type).get_strides_and_offset()
    return strides[0] % 2 == 0


def _store(sums, found, place: tuple[int, int, int], row, column, columns) -> None:
    """Writes the pair of sums at `place`, left of column number `columns` of the tile (None: anywhere)."""
    if _rows_take_pairs(found.tile):
        with building.if_below(column, columns):
            _write(sums.pair(*place), found, row, column)
        return
    for side in (0, 1):
        own = arith.addi(column, index(side)) if side else column
        with building.if_below(own, columns):
            _write(_element(sums.pair(*place), side), found, row, own)


def _element(pair, side: int):
    """Returns one of the two elements of a pair."""
    return ir.Operation.create(
        "vector.extract",
        results=[ir.VectorType(pair.type).element_type],
        operands=[pair],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([side])},
    ).results[0]


def _write(value, found, row, column) -> None:
    """Writes a pair or one element to C, or adds it to what is there."""
    dialect, attributes = "memref", {}
    if isinstance(value.type, ir.VectorType):
        dialect, attributes = "vector", building.aligned(value.type)
    if found.adds:
        old = ir.Operation.create(
            f"{dialect}.load", results=[value.type], operands=[found.tile, row, column], attributes=attributes
        ).results[0]
        value = arith.addf(old, value)
    ir.Operation.create(f"{dialect}.store", operands=[value, found.tile, row, column], attributes=attributes)


def _store_rows(found) -> None:
    """Writes C, or a tile in rows."""
    share, columns = found.shape
    whole = ir.MemRefType(found.sums.results[0].type).shape[-2:]
    rows_of_tile, columns_of_tile = epilogue.extents_of(found.tile, whole)
    sums = found.held_sums()
    first_row = arith.addi(found.first_row(), epilogue.thread_row())
    first_column = epilogue.thread_column()
    column_numbers = [
        arith.addi(first_column, index(epilogue.FRAGMENT * number)) for number in range(columns // epilogue.FRAGMENT)
    ]
    for block in range(share // ROWS):
        for half in (0, 1):
            row = arith.addi(first_row, index(ROWS * block + epilogue.FRAGMENT * half))
            with building.if_below(row, rows_of_tile):
                for number, column in enumerate(column_numbers):
                    _store(sums, found, (block, number, half), row, column, columns_of_tile)


def _store_units(found) -> None:
    """Writes a tile in the order of fragments."""
    share, columns = found.shape
    units = fragment_order.units_of(found.consumer)
    sums = found.held_sums()
    first = fragment_order.unit_of_thread(found.first_row(), columns)
    for distance, (block, number, half) in fragment_order.units_of_thread(columns, share // ROWS):
        left, right = sums.pair(block, number, half), sums.pair(block, number + 1, half)
        four = vector.shuffle(left, right, [0, 1, 2, 3])
        place = arith.addi(first, index(distance))
        ir.Operation.create(
            "vector.store", operands=[four, units, place, index(0)], attributes=building.aligned(four.type)
        )


@transform_op(DirectStoreEpilogue)
def direct_store_epilogue(payload, op, rewriter) -> None:
    """Writes the epilogues of the one launch below `payload`; see the op."""
    for found in epilogue.find_epilogues(building.find_launch(payload)):
        with ir.InsertionPoint(found.consumer), found.consumer.location:
            if found.consumer.name == "linalg.transpose":
                _store_units(found)
            else:
                _store_rows(found)
        found.erase(rewriter)
