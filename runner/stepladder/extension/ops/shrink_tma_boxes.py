"""`tc.shrink_tma_boxes`: shrinks TMA boxes to the rows that a tile needs."""

from collections.abc import Sequence

from stepladder.extension.lib import launches, memory, threads, tma, tma_pipeline
from stepladder.extension.lib.arithmetic import apply, index, zero_of
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.source_tiles import OTHER_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, nvgpu, scf
from stepladder.mlir.traverse import defining_op, walk


class ShrinkTmaBoxes(Tc.Operation, name="shrink_tma_boxes"):
    """Makes the boxes of a matrix with fewer rows than a tile as high as the matrix, and those of A as a tile of C.

    A load then transfers only the rows of the matrix that the tile is computed from, and the barrier of its stage
    expects only their bytes. The other rows of the tile are zero: threads write them once, before the barrier at the
    end of the prologue, and no load overwrites them.

    A tile that blocks of a cluster load for each other, by multicast, does not change.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: unused_rows, of A's tile, after those of the tile of C. Tiles of what A is made from in registers may
        have other rows, and keep them.
    """

    target: Handle
    unused_rows: ir.IntegerAttr


_ACCESS_BYTES = 16  # of a thread's store


def _shrink(load: ir.Operation, descriptor: ir.Value, rows: int) -> int:
    """Replaces a load by one of `rows` rows; returns by how many bytes the new load is smaller."""
    tile, barrier, _, *coordinates, stage = load.operands
    type_ = ir.MemRefType(tile.type)
    *outer, before, columns = type_.shape
    with ir.InsertionPoint(load), load.location:
        destination = memory.subview(tile, [0] * type_.rank, [*outer, rows, columns])
        nvgpu.tma_async_load(destination, barrier, descriptor, coordinates, stage)
    return (before - rows) * columns * types.byte_width(type_.element_type)


def _expect_less(block: ir.Block, barrier: ir.Value, bytes_: int) -> None:
    """Reduces the bytes that the ops of a block make a barrier expect by `bytes_`."""
    for expect in operations_of(block):
        if expect.name == tma.EXPECT and expect.operands[0] == barrier:
            tma.change_expected(expect, lambda byte_count: byte_count - bytes_)


def _first_row(tile: ir.Value) -> int:
    """Returns the row of a pipeline buffer at which a tile begins: of a pair of products, one B is below the other."""
    view, first = defining_op(tile), 0
    while view.name != "memref.alloc":
        if view.name == "memref.subview":
            first += list(ir.DenseI64ArrayAttr(view.attributes["static_offsets"]))[-2]
        view = defining_op(view.operands[0])
    return first


def _zero_rest(launch: ir.Operation, buffer: ir.Value, rows: range) -> None:
    """Writes zeros to some rows of all stages of a pipeline buffer, at the insertion point."""
    type_ = ir.MemRefType(buffer.type)
    stages, boxes, _, columns = type_.shape
    width = _ACCESS_BYTES // types.byte_width(type_.element_type)
    per_row, row_count = columns // width, len(rows)
    thread_count = launches.launch_sizes(launch, launches.BLOCK)[0]
    zero_type = ir.VectorType.get([width], type_.element_type)
    zeros = arith.constant(zero_type, zero_of(zero_type))
    units = scf.ForOp(threads.thread_id(), index(row_count * per_row), index(thread_count))
    with ir.InsertionPoint(units.body):
        unit = units.induction_variable
        row = apply(lambda n: ir.AffineExpr.get_floor_div(n, per_row) + rows.start, unit)
        column = apply(lambda n: ir.AffineExpr.get_mod(n, per_row) * width, unit)
        # The stores of a thread to all boxes are at constant distances: loops over them would take a microsecond, in
        # which nothing is loaded that a block waits for.
        for stage in range(stages):
            for box in range(boxes):
                memory.store_vector(zeros, buffer, index(stage), index(box), row, column)
        scf.yield_([])


def _zero_in_prologue(launch: ir.Operation, buffers: Sequence[tuple[ir.Value, range]]) -> None:
    """Writes zeros to the rows of pipeline buffers that no load fills, in the prologue.

    Args:
        launch: the `gpu.launch`.
        buffers: each with the rows of a tile that no load fills.
    """
    barrier = tma_pipeline.prologue_barrier(launch)
    operations = operations_of(barrier.block)
    before = operations[operations.index(barrier) - 1]
    with ir.InsertionPoint(before if before.name == "nvvm.cluster.arrive" else barrier), launch.location:
        for buffer, rows in buffers:
            _zero_rest(launch, buffer, rows)
        tma.fence_async_proxy()


@transform_op(ShrinkTmaBoxes)
def shrink_tma_boxes(payload: ir.Operation, op: ShrinkTmaBoxes, rewriter: Rewriter) -> None:
    """Rewrites the loads of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    loads: dict[ir.Operation, list[ir.Operation]] = {}
    for load in walk(launch, tma.LOAD):
        loads.setdefault(defining_op(load.operands[2]), []).append(load)
    short: list[tuple[ir.Value, range]] = []
    for create, group in loads.items():
        matrix = ir.MemRefType(defining_op(create.operands[0]).operands[0].type)
        rows = matrix.shape[matrix.rank - 2]
        *_, box_rows, columns = ir.MemRefType(group[0].operands[0].type).shape
        buffer = memory.shared_tile_of(group[0], group[0].operands[0])
        if "operand_a" in buffer.attributes and OTHER_ROWS not in buffer.attributes:
            rows = min(rows, box_rows - op.unused_rows.value)
        if rows >= box_rows or any(tma.is_multicast(load) for load in group):
            continue
        swizzle = types.tensor_map_swizzle(create.results[0].type)
        type_ = types.tensor_map(rows, columns, matrix.element_type, swizzle, rank=matrix.rank)
        begins = sorted({_first_row(load.operands[0]) for load in group})
        with tma.before_descriptor(create):
            sizes = tma.box_sizes(matrix.rank, rows, columns)
            descriptor = nvgpu.tma_create_descriptor(type_, create.operands[0], sizes, loc=create.location)
        for load in group:
            _expect_less(load.block, load.operands[1], _shrink(load, descriptor, rows))
            rewriter.erase_op(load)
        rewriter.replace_op(create, [descriptor])
        short += [(buffer.results[0], range(first + rows, first + box_rows)) for first in begins]
    if short:
        _zero_in_prologue(launch, short)
