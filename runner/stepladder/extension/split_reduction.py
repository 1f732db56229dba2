"""`tc.split_reduction`: the blocks of a cluster divide a tile's reduction, and sum their parts in the end (split-K)."""

import math

from stepladder.bindings import affine, arith, ext, gpu, ir, linalg, memref, nvvm, scf, transform
from stepladder.extension import building
from stepladder.extension.building import index
from stepladder.extension.dialect import Refusal, Tc, producer, transform_op
from stepladder.extension.epilogue import extents_of
from stepladder.extension.form_clusters import block_ids
from stepladder.traverse import walk


class SplitReduction(Tc.Operation, name="split_reduction"):
    """Lets a cluster of `parts` blocks compute a tile, each a part of the steps of k.

    Each block writes its sums to a workspace in global memory, a tile each. Behind a barrier of the cluster each block
    takes its share of the tile's rows, sums them over the parts, in order, and writes or adds them to C, rounded to its
    type. So a result does not depend on who is first.

    Operands: a handle to any op with one `gpu.launch` below, on buffers, with a loop over k.
    Attributes: parts; threads, that sum.
    Refuses: fewer steps of k than parts; rows of a tile that the parts do not divide; rows of C that four neighbours do
        not divide; a workspace above 256 MiB.
    """

    target: ext.Operand[transform.AnyOpType]
    parts: ir.IntegerAttr
    threads: ir.IntegerAttr


_WORKSPACE = "partial_sums"
_LIMIT = 256 * 1024 * 1024  # bytes
_WIDTH = 4  # neighbours in a row that a thread sums at once


@transform_op(SplitReduction)
def split_reduction(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    parts = op.parts.value
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
    if rows % parts or columns % _WIDTH:
        raise Refusal(product, f"a tile of {rows} x {columns} cannot be summed by {parts} blocks, a share of rows each")

    width, height, _ = building.launch_sizes(launch, building.GRID)
    x, y = block_ids(launch)
    building.set_launch_sizes(launch, building.GRID, [width * parts, height, 1])
    with ir.InsertionPoint(launch), launch.location:
        sizes = [index(parts), index(1), index(1)]
    launch = building.relaunch(launch, building.CLUSTER, sizes, rewriter)
    # The threads that will compute the tile are there to sum its parts from here on.
    building.set_launch_sizes(launch, building.BLOCK, [op.threads.value, 1, 1])
    with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]), launch.location:
        across, down = gpu.cluster_id(gpu.Dimension.x), gpu.cluster_id(gpu.Dimension.y)
        rank = building.block_in_cluster()
        tile = building.apply(lambda c, r: r * width + c, across, down)
        begin = building.times(rank, share * step)
        end = affine.AffineMinOp(ir.AffineMap.get(0, 1, [
            ir.AffineExpr.get_symbol(0) + share * step, ir.AffineExpr.get_constant(last)]), [begin]).result
    for id_, number in ((x, across), (y, down)):
        if id_ is not None:
            rewriter.replace_op(id_, [number])
    loop.operands[0], loop.operands[1] = begin, end
    workspace = _workspace(payload, launch, sums, width * height, parts)
    _sum_parts(launch, sums, workspace, tile, rank, parts, op.threads.value, rewriter)


def _workspace(payload, launch, sums, tiles: int, parts: int):
    """Makes the workspace, and returns its type."""
    type_ = ir.MemRefType(sums.type)
    shape = [tiles, parts, *type_.shape]
    size = math.prod(shape) * type_.element_type.width // 8
    if size > _LIMIT:
        raise Refusal(launch, f"{tiles} tiles in {parts} parts take a workspace of {size // 2**20} MiB, more than "
                              f"{_LIMIT // 2**20}: there are blocks enough without splitting")
    workspace = ir.MemRefType.get(shape, type_.element_type, memory_space=ir.Attribute.parse(
        "#gpu.address_space<global>"))
    with ir.InsertionPoint.at_block_begin(payload.regions[0].blocks[0]), launch.location:
        ir.Operation.create("memref.global", attributes={
            "sym_name": ir.StringAttr.get(_WORKSPACE), "sym_visibility": ir.StringAttr.get("private"),
            "type": ir.TypeAttr.get(workspace), "initial_value": ir.UnitAttr.get(),
            "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 16)})
    return workspace


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


def _sum_parts(launch, sums, workspace, tile, rank, parts: int, threads: int, rewriter) -> None:
    """Replaces what takes the sums to C: to the workspace first, then, a share of rows a block, summed to C."""
    reader = _reader_of(sums)
    adds = _start_from_zero(sums, rewriter)
    c_tile = reader.operands[len(reader.operands) - 1]
    rows, columns = ir.MemRefType(sums.type).shape
    own_rows = rows // parts
    pitch = ir.MemRefType(c_tile.type).get_strides_and_offset()[0][0]
    if pitch % _WIDTH:
        raise Refusal(reader, f"rows of C have {pitch} elements, and parts are summed {_WIDTH} neighbours at once: "
                              f"make its rows a multiple of {_WIDTH} elements")
    with ir.InsertionPoint(reader), reader.location:
        everything = memref.get_global(workspace, _WORKSPACE)
        mine = building.view(everything, [tile, rank, 0, 0], [1, 1, rows, columns], drop=2)
        linalg.copy(sums, outs=[mine])
        nvvm.cluster_arrive()
        nvvm.cluster_wait()
        extents = extents_of(c_tile, (rows, columns))
        units = own_rows * columns // _WIDTH
        loop = scf.ForOp(building.thread_number(), index(units), index(threads))
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            row = building.apply(lambda n, r: ir.AffineExpr.get_floor_div(n, columns // _WIDTH) + r * own_rows, number,
                                 rank)
            column = building.apply(lambda n: ir.AffineExpr.get_mod(n, columns // _WIDTH) * _WIDTH, number)
            inside = None
            guards = [arith.cmpi(arith.CmpIPredicate.ult, place, extent)
                      for place, extent in zip((row, column), extents) if extent is not None]
            for guard in guards:
                inside = guard if inside is None else arith.andi(inside, guard)
            if inside is None:
                _sum_unit(everything, tile, parts, row, column, c_tile, adds)
            else:
                with building.if_(inside):
                    _sum_unit(everything, tile, parts, row, column, c_tile, adds)
            scf.yield_([])
    rewriter.erase_op(reader)


def _sum_unit(everything, tile, parts: int, row, column, c_tile, adds: bool) -> None:
    """Sums `_WIDTH` neighbours over the parts, in order, and writes or adds them to C."""
    sum_type = ir.MemRefType(everything.type).element_type
    c_type = ir.MemRefType(c_tile.type).element_type
    type_ = ir.VectorType.get([_WIDTH], sum_type)

    def aligned(element) -> dict:
        return {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _WIDTH * element.width // 8)}

    total = None
    for part in range(parts):
        value = ir.Operation.create("vector.load", results=[type_], attributes=aligned(sum_type),
                                    operands=[everything, tile, index(part), row, column]).results[0]
        total = value if total is None else arith.addf(total, value)
    if c_type != sum_type:
        total = arith.truncf(ir.VectorType.get([_WIDTH], c_type), total)
    if adds:
        old = ir.Operation.create("vector.load", results=[ir.VectorType.get([_WIDTH], c_type)],
                                  operands=[c_tile, row, column], attributes=aligned(c_type)).results[0]
        total = arith.addf(old, total)
    ir.Operation.create("vector.store", operands=[total, c_tile, row, column], attributes=aligned(c_type))
