"""`tc.split_k`: several blocks divide a tile's reduction, and sum their parts in the end (split-K)."""

from stepladder.extension.lib import building
from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Refusal, Tc, producer, transform_op
from stepladder.extension.lib.epilogue import extents_of
from stepladder.extension.lib.split_k_workspace import WIDTH, InCluster, InMemory
from stepladder.mlir.bindings import (
    affine,
    arith,
    ext,
    ir,
    linalg,
    scf,
    transform,
    vector,
)
from stepladder.mlir.traverse import walk


class SplitK(Tc.Operation, name="split_k"):
    """Lets `parts` blocks compute a tile, each a part of the steps of k.

    Each block writes its sums to a tile of its own. When all have, each block takes a share of the tile's elements,
    sums them over the parts, in order, and writes or adds them to C, rounded to its type. So a result does not depend
    on who is first.

    Where the tiles of sums are: in shared memory (`within = "cluster"`; the blocks form a cluster, behind whose barrier
    they read each other's; a second barrier keeps blocks from ending while others read their sums), or in a workspace
    in global memory (`"memory"`; the blocks are neighbours in the grid, or one of each of neighbouring clusters, and a
    counter for each tile says how many have written). Blocks that wait for each other must all run: they start in the
    order of their numbers, and those of a tile must fit on the card together.

    Operands: a handle to any op with one `gpu.launch` below, on buffers, with a loop over k.
    Attributes: parts; threads, that sum; within, "cluster" or "memory".
    Refuses: fewer steps of k than parts; more parts than a cluster may have blocks, or blocks that form clusters
        already, for sums in shared memory; rows of C that four neighbours do not divide.
    """

    target: ext.Operand[transform.AnyOpType]
    parts: ir.IntegerAttr
    threads: ir.IntegerAttr
    within: ir.StringAttr


_PLACES = {"cluster": InCluster, "memory": InMemory}


@transform_op(SplitK)
def split_k(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    parts, threads = op.parts.value, op.threads.value
    if parts == 1:
        return
    launch = building.find_launch(payload)
    product = next(iter(walk(launch, "linalg.matmul")), None)
    loops = building.loops_around(product) if product is not None else []
    if not loops:
        raise Refusal(launch, f"k has one step, which cannot be split into {parts} parts")
    loop = loops[-1]
    first, last, step = (building.static_value(loop.operands[number]) for number in range(3))
    steps = (last - first) // step
    share = -(-steps // parts)
    if share * (parts - 1) >= steps:
        raise Refusal(loop, f"k has {steps} steps, and {parts} parts of {share} leave some without any")
    sums = product.operands[2]
    rows, columns = ir.MemRefType(sums.type).shape
    if columns % WIDTH:
        raise Refusal(product, f"rows of a tile of {rows} x {columns} cannot be summed {WIDTH} neighbours at once")

    place = _PLACES[op.within.value](launch, parts, threads, rewriter)
    # The threads that will compute the tile are there to sum its parts from here on.
    building.set_launch_sizes(place.launch, building.BLOCK, [threads, 1, 1])
    with ir.InsertionPoint.after(producer(place.part)), place.launch.location:
        begin = building.times(place.part, share * step)
        end = affine.AffineMinOp(
            ir.AffineMap.get(0, 1, [ir.AffineExpr.get_symbol(0) + share * step, ir.AffineExpr.get_constant(last)]),
            [begin],
        ).result
        # No part is empty. Where that is not known, the sums have two beginnings, with a loop and without, and what
        # they are merged by stands between products (C7515).
        _assume(arith.cmpi(arith.CmpIPredicate.slt, begin, end))
    loop.operands[0], loop.operands[1] = begin, end
    _sum_parts(place, sums, threads, rewriter)


def _assume(condition) -> None:
    """Promises a condition to LLVM."""
    ir.Operation.create(
        "llvm.intr.assume", operands=[condition], attributes={"op_bundle_sizes": ir.DenseI32ArrayAttr.get([])}
    )


def _reader_of(sums):
    """Returns the linalg op that takes the sums to C."""
    for user, position in building.linalg_uses(sums):
        if user.name in ("linalg.copy", "linalg.generic") and position == 0:
            return user
    raise Refusal(producer(sums), "nothing takes the sums to C")


def _start_from_zero(sums, rewriter) -> bool:
    """Lets sums that start from a copy of C start from zero: C is added once, when the parts are summed.

    Returns:
        Whether they started from C.
    """
    copies = [user for user, position in building.linalg_uses(sums) if user.name == "linalg.copy" and position == 1]
    for copy in copies:
        with ir.InsertionPoint(copy), copy.location:
            element_type = ir.MemRefType(sums.type).element_type
            linalg.fill(arith.constant(element_type, 0.0), outs=[sums])
        rewriter.erase_op(copy)
    return bool(copies)


def _sum_parts(place, sums, threads: int, rewriter) -> None:
    """Replaces what takes the sums to C: to the block's own tile first, then, a share a block, summed to C."""
    reader = _reader_of(sums)
    adds = _start_from_zero(sums, rewriter)
    c_tile = reader.operands[len(reader.operands) - 1]
    rows, columns = ir.MemRefType(sums.type).shape
    pitch = ir.MemRefType(c_tile.type).get_strides_and_offset()[0][0]
    if pitch % WIDTH:
        raise Refusal(
            reader,
            f"rows of C have {pitch} elements, and parts are summed {WIDTH} neighbours at once: "
            f"make its rows a multiple of {WIDTH} elements",
        )
    with ir.InsertionPoint(reader), reader.location:
        place.keep(sums)
        place.meet()
        rows_of_c, columns_of_c = extents_of(c_tile, (rows, columns))
        # Neighbouring threads, and then neighbouring blocks, take neighbouring units.
        first = building.apply(lambda p, t: p * threads + t, place.part, building.thread_number())
        loop = scf.ForOp(first, index(place.units), index(place.parts * threads))
        with ir.InsertionPoint(loop.body):
            unit = loop.induction_variable
            row, column_numbers = place.locate(unit)
            with building.if_below(row, rows_of_c):
                total = _sum(place.load(unit), c_tile)
                length = WIDTH // len(column_numbers)
                for number, column in enumerate(column_numbers):
                    with building.if_below(column, columns_of_c):
                        _write(_run(total, number * length, length), c_tile, row, column, adds)
            scf.yield_([])
        place.leave()
    rewriter.erase_op(reader)


def _sum(values: list, c_tile):
    """Returns the sum of vectors, in order, rounded to C's type."""
    total, *others = values
    for value in others:
        total = arith.addf(total, value)
    rounded = ir.VectorType.get([WIDTH], ir.MemRefType(c_tile.type).element_type)
    return total if total.type == rounded else arith.truncf(rounded, total)


def _run(total, first: int, length: int):
    """Returns some neighbours of a vector."""
    return total if length == WIDTH else vector.shuffle(total, total, list(range(first, first + length)))


def _write(value, c_tile, row, column, adds: bool) -> None:
    """Writes neighbours to C, or adds them to it."""
    attributes = building.aligned(value.type)
    if adds:
        old = ir.Operation.create(
            "vector.load", results=[value.type], operands=[c_tile, row, column], attributes=attributes
        ).results[0]
        value = arith.addf(old, value)
    ir.Operation.create("vector.store", operands=[value, c_tile, row, column], attributes=attributes)
