"""`tc.shrink_tma_boxes`: TMA loads no rows beyond a matrix that is shorter than a tile."""

from stepladder.extension.lib import building, pipeline, tma
from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Tc, producer, transform_op
from stepladder.mlir.bindings import arith, ext, ir, nvgpu, nvvm, scf, transform
from stepladder.mlir.traverse import walk


class ShrinkTmaBoxes(Tc.Operation, name="shrink_tma_boxes"):
    """Makes the boxes of a matrix with fewer rows than a tile as short as the matrix.

    A load then brings, and its slot's barrier expects, the rows that there are. What the other rows of the tile hold is
    zero from the start and stays so: threads write it once, in front of the barrier behind which mbarriers are known.

    A tile that blocks of a cluster load for each other, a part each, stays as it is.

    Operands: a handle to any op with one `gpu.launch` below.
    """

    target: ext.Operand[transform.AnyOpType]


_UNIT = 16  # bytes that a thread writes at once
# Operands of a load that is not multicast: tile, barrier, descriptor, column and row, number of the barrier.
_PLAIN = 6


def _shared_tile(value):
    """Returns the ring that a load writes to."""
    source = producer(value)
    while source.name != "memref.alloc":
        source = producer(source.operands[0])
    return source.results[0]


def _shorten(load, descriptor, rows: int) -> int:
    """Replaces a load by one of `rows` rows, and lets its barrier expect so many bytes; returns by how many fewer."""
    place, barrier, _, column, row, slot = load.operands
    before, columns = ir.MemRefType(place.type).shape
    bits = ir.MemRefType(place.type).element_type.width
    with ir.InsertionPoint(load), load.location:
        nvgpu.tma_async_load(building.view(place, [0, 0], [rows, columns]), barrier, descriptor, [column, row], slot)
    return (before - rows) * columns * bits // 8


def _expect_less(block, barrier, by: int) -> None:
    """Lowers the bytes that the loads in a block say to a barrier will come."""
    for op in block.operations:
        expect = op.operation
        if expect.name == tma.EXPECT and expect.operands[0] == barrier:
            with ir.InsertionPoint(expect), expect.location:
                expect.operands[1] = index(building.static_value(expect.operands[1]) - by)


def _fill_rest(launch, tiles, rows: int) -> None:
    """Writes zeros to the rows of all slots of a ring from number `rows` on, for the matrix unit to read."""
    type_ = ir.MemRefType(tiles.type)
    slots, boxes, all_rows, columns = type_.shape
    width = _UNIT * 8 // type_.element_type.width
    per_row, rest = columns // width, all_rows - rows
    threads = building.launch_sizes(launch, building.BLOCK)[0]
    barrier = pipeline.block_of_prologue(launch)
    operations = [op.operation for op in barrier.block.operations]
    before = operations[operations.index(barrier) - 1]
    with ir.InsertionPoint(before if before.name == "nvvm.cluster.arrive" else barrier), launch.location:
        zero_type = ir.VectorType.get([width], type_.element_type)
        zeros = arith.constant(
            zero_type, ir.DenseElementsAttr.get_splat(zero_type, ir.FloatAttr.get(type_.element_type, 0.0))
        )
        loop = scf.ForOp(building.thread_number(), index(slots * boxes * rest * per_row), index(threads))
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            divided = ir.AffineExpr.get_floor_div
            place = [
                building.apply(lambda n: divided(n, per_row * rest * boxes), number),
                building.apply(lambda n: ir.AffineExpr.get_mod(divided(n, per_row * rest), boxes), number),
                building.apply(lambda n: ir.AffineExpr.get_mod(divided(n, per_row), rest) + rows, number),
                building.apply(lambda n: ir.AffineExpr.get_mod(n, per_row) * width, number),
            ]
            ir.Operation.create(
                "vector.store", operands=[zeros, tiles, *place], attributes=building.aligned(zeros.type)
            )
            scf.yield_([])
        nvvm.fence_proxy(
            ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"), space=ir.Attribute.parse("#nvvm.shared_space<cta>")
        )


@transform_op(ShrinkTmaBoxes)
def shrink_tma_boxes(payload, op, rewriter) -> None:
    """Treats the loads of the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    loads: dict = {}
    for load in walk(launch, tma.LOAD):
        loads.setdefault(producer(load.operands[2]), []).append(load)
    for create, group in loads.items():
        buffer = producer(create.operands[0]).operands[0]
        rows = ir.MemRefType(buffer.type).shape[0]
        box_rows, columns = ir.MemRefType(group[0].operands[0].type).shape
        if rows >= box_rows or any(len(load.operands) != _PLAIN for load in group):
            continue
        element_type = ir.MemRefType(buffer.type).element_type
        type_ = tma.descriptor_type(rows, columns, element_type, tma.swizzle_of(create.results[0].type))
        with ir.InsertionPoint(create), create.location:
            fresh = nvgpu.tma_create_descriptor(type_, create.operands[0], [index(rows), index(columns)])
        tiles = _shared_tile(group[0].operands[0])
        for load in group:
            _expect_less(load.block, load.operands[1], _shorten(load, fresh, rows))
            rewriter.erase_op(load)
        rewriter.replace_op(create, [fresh])
        _fill_rest(launch, tiles, rows)
