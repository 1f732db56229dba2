"""`tc.map_consumer_to_lanes`: distributes the elementwise op on a warp's product over the lanes of the warp."""

from collections.abc import Callable

from stepladder.extension.lib import launches, memory, threads
from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues import lane_reductions
from stepladder.extension.lib.epilogues.elementwise import Outlined, Position, find_outlined
from stepladder.extension.lib.epilogues.masked_stores import MaskedStores
from stepladder.mlir.bindings import affine, arith, ir


class MapConsumerToLanes(Tc.Operation, name="map_consumer_to_lanes"):
    """Distributes the `linalg.generic` that consumes a warp's product over its lanes, after a barrier.

    The warps have stored the product to shared memory, in fragments whose elements no thread can name. A lane reads
    vectors of `width` adjacent elements, computes the op on them and stores the results to C; adjacent lanes take
    adjacent vectors of a row. Where tiles extend beyond C, vectors are as wide as rows of C allow, and a warp
    whose part does compares rows and columns with the extents of C. Results that are reductions are folded by the lanes
    that have vectors of the same rows, or columns.

    Operands: a handle to the module, with the op in a function (`tc.outline_consumer`, `tc.outline_masked_consumer`).
    Attributes: width, elements of a vector.
    Refuses: a tile whose rows are not a multiple of the width, or that vectors of all lanes do not divide evenly.
    """

    target: Handle
    width: ir.IntegerAttr


@transform_op(MapConsumerToLanes)
def map_consumer_to_lanes(payload: ir.Operation, op: MapConsumerToLanes, rewriter: Rewriter) -> None:
    """Distributes the consumer below `payload`; see the op."""
    outlined = find_outlined(payload)
    if outlined is None:
        return
    width = op.width.value
    if outlined.columns % width or outlined.rows * outlined.columns % (width * threads.WARP):
        raise Refusal(
            outlined.call,
            f"a tile of {outlined.rows} x {outlined.columns} cannot be divided evenly among lanes in vectors of "
            f"{width}",
        )
    with ir.InsertionPoint(outlined.call), outlined.call.location:
        ir.Operation.create("gpu.barrier")
        lane = apply(lambda t: ir.AffineExpr.get_mod(t, threads.WARP), threads.thread_id())
        # Before the stores: a reduction may read the previous value of C.
        for reduced in outlined.elementwise.reduced:
            lane_reductions.reduce_vectors(launches.find_launch(payload), outlined, reduced, width)
        if outlined.is_of_block:
            _write_masked(outlined, lane, width)
        else:
            _write(outlined, lane, width)
    outlined.erase(rewriter)
    for reduced in outlined.elementwise.reduced:
        reduced.erase(rewriter)


def _loop(outlined: Outlined, lane: ir.Value, width: int, body: Callable[[ir.Value, ir.Value], None]) -> None:
    """Creates the loop of a lane over its vectors; `body` takes the row and the column of one in the warp's part."""
    per_row = index(outlined.columns // width)
    count = outlined.rows * outlined.columns // (width * threads.WARP)
    # Not an scf.for: later steps search for the loop over k.
    loop = affine.AffineForOp(0, count)
    with ir.InsertionPoint(loop.body):
        number = arith.addi(arith.muli(loop.induction_variable, index(threads.WARP)), lane)
        row = arith.divui(number, per_row)
        column = arith.muli(arith.remui(number, per_row), index(width))
        body(row, column)
        affine.yield_([])


def _write(outlined: Outlined, lane: ir.Value, width: int) -> None:
    """Writes the warp's product, which is inside of C."""

    def body(row: ir.Value, column: ir.Value) -> None:
        sums = outlined.load(width, arith.addi(outlined.row, row), arith.addi(outlined.column, column))
        for result, output in outlined.elementwise.stores(sums, Position(row, column)):
            memory.store_vector(result, output, row, column)

    _loop(outlined, lane, width, body)


def _write_masked(outlined: Outlined, lane: ir.Value, width: int) -> None:
    """Writes what is inside of C of the warp's product."""
    stores = MaskedStores(outlined, width)

    def writes(is_masked: bool) -> None:
        def body(row: ir.Value, column: ir.Value) -> None:
            place = arith.addi(outlined.row, row), arith.addi(outlined.column, column)
            stores.write(outlined.load(stores.width, *place), *place, is_masked=is_masked)

        _loop(outlined, lane, stores.width, body)

    stores.create(writes)
