"""`tc.split_reduction`: the blocks of a cluster divide a tile's reduction, and sum their parts in the end (split-K)."""

from stepladder.bindings import affine, arith, ext, gpu, ir, linalg, llvm, memref, nvvm, scf, transform
from stepladder.extension import building
from stepladder.extension.building import index, integer
from stepladder.extension.dialect import Refusal, Tc, producer, transform_op
from stepladder.extension.epilogue import extents_of
from stepladder.extension.form_clusters import CLUSTER_LIMIT, block_ids
from stepladder.traverse import walk


class SplitReduction(Tc.Operation, name="split_reduction"):
    """Lets a cluster of `parts` blocks compute a tile, each a part of the steps of k.

    Each block writes its sums to a tile in its shared memory. Behind a barrier of the cluster each block takes a share
    of the tile's elements, sums them over the parts, in order, from the shared memory of all of them, and writes or
    adds them to C, rounded to its type. So a result does not depend on who is first. A second barrier keeps blocks from
    ending while others read their sums.

    Rows of the tile of sums are longer by `PAD_BYTES`, so that warps, which write eight rows at once, meet no bank
    conflicts.

    Operands: a handle to any op with one `gpu.launch` below, on buffers, with a loop over k.
    Attributes: parts; threads, that sum.
    Refuses: fewer steps of k than parts; more parts than a cluster may have blocks; rows of C that four neighbours do
        not divide.
    """

    target: ext.Operand[transform.AnyOpType]
    parts: ir.IntegerAttr
    threads: ir.IntegerAttr


_MARK = "partial_sums"
PAD_BYTES = 32
_DYNAMIC = -2**31  # an index of llvm.getelementptr that is an operand
_WIDTH = 4  # neighbours in a row that a thread sums at once
# Address spaces of pointers into a block's own shared memory, and into that of any block of its cluster.
_SHARED, _SHARED_OF_CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"


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
    if parts > CLUSTER_LIMIT:
        raise Refusal(launch, f"a cluster of {parts} blocks: more than {CLUSTER_LIMIT} are not portable")
    loop = loops[-1]
    first, last, step = (building.static_value(loop.operands[number]) for number in range(3))
    steps = (last - first) // step
    share = -(-steps // parts)
    if share * (parts - 1) >= steps:
        raise Refusal(loop, f"k has {steps} steps, and {parts} parts of {share} leave some without any")
    sums = product.operands[2]
    rows, columns = ir.MemRefType(sums.type).shape
    if columns % _WIDTH:
        raise Refusal(product, f"rows of a tile of {rows} x {columns} cannot be summed {_WIDTH} neighbours at once")

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
        begin = building.times(rank, share * step)
        end = affine.AffineMinOp(ir.AffineMap.get(0, 1, [
            ir.AffineExpr.get_symbol(0) + share * step, ir.AffineExpr.get_constant(last)]), [begin]).result
    for id_, number in ((x, across), (y, down)):
        if id_ is not None:
            rewriter.replace_op(id_, [number])
    loop.operands[0], loop.operands[1] = begin, end
    _sum_parts(launch, sums, rank, parts, op.threads.value, rewriter)


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


def _own_tile(launch, sums):
    """Makes the tile in shared memory for a block's sums; returns it, and its rows without their padding."""
    type_ = ir.MemRefType(sums.type)
    rows, columns = type_.shape
    pitch = columns + PAD_BYTES * 8 // type_.element_type.width
    # In front of all that roles have copies of: there is one tile.
    with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]), launch.location:
        tile = memref.alloc(ir.MemRefType.get([rows, pitch], type_.element_type, memory_space=type_.memory_space),
                            [], [])
        tile.owner.attributes[_MARK] = ir.UnitAttr.get()
    return tile, building.view(tile, [0, 0], [rows, columns])


def _tiles_of_cluster(tile, parts: int) -> list:
    """Returns pointers to the tiles of sums of all blocks of the cluster."""
    own = memref.extract_aligned_pointer_as_index(tile)
    own = llvm.inttoptr(ir.Type.parse(_SHARED), arith.index_cast(ir.IntegerType.get_signless(64), own))
    return [nvvm.mapa(ir.Type.parse(_SHARED_OF_CLUSTER), own, integer(part, 32)) for part in range(parts)]


def _sum_parts(launch, sums, rank, parts: int, threads: int, rewriter) -> None:
    """Replaces what takes the sums to C: to shared memory first, then, a share a block, summed to C."""
    reader = _reader_of(sums)
    adds = _start_from_zero(sums, rewriter)
    c_tile = reader.operands[len(reader.operands) - 1]
    rows, columns = ir.MemRefType(sums.type).shape
    pitch = ir.MemRefType(c_tile.type).get_strides_and_offset()[0][0]
    if pitch % _WIDTH:
        raise Refusal(reader, f"rows of C have {pitch} elements, and parts are summed {_WIDTH} neighbours at once: "
                              f"make its rows a multiple of {_WIDTH} elements")
    with ir.InsertionPoint(reader), reader.location:
        tile, mine = _own_tile(launch, sums)
        linalg.copy(sums, outs=[mine])
        nvvm.cluster_arrive()
        nvvm.cluster_wait()
        tiles = _tiles_of_cluster(tile, parts)
        rows_of_c, columns_of_c = extents_of(c_tile, (rows, columns))
        # Neighbouring threads, and then neighbouring blocks, take neighbouring units of the rows that there are.
        per_row = columns // _WIDTH
        units = index(rows * per_row) if rows_of_c is None else building.times(rows_of_c, per_row)
        first = building.apply(lambda r, t: r * threads + t, rank, building.thread_number())
        loop = scf.ForOp(first, units, index(parts * threads))
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            row = building.apply(lambda n: ir.AffineExpr.get_floor_div(n, per_row), number)
            column = building.apply(lambda n: ir.AffineExpr.get_mod(n, per_row) * _WIDTH, number)
            if columns_of_c is None:
                _sum_unit(tiles, tile, row, column, c_tile, adds)
            else:
                with building.if_(arith.cmpi(arith.CmpIPredicate.ult, column, columns_of_c)):
                    _sum_unit(tiles, tile, row, column, c_tile, adds)
            scf.yield_([])
        nvvm.cluster_arrive()
        nvvm.cluster_wait()
    rewriter.erase_op(reader)


def _sum_unit(tiles: list, tile, row, column, c_tile, adds: bool) -> None:
    """Sums `_WIDTH` neighbours over the parts, in order, and writes or adds them to C."""
    tile_type = ir.MemRefType(tile.type)
    sum_type = tile_type.element_type
    c_type = ir.MemRefType(c_tile.type).element_type
    type_ = ir.VectorType.get([_WIDTH], sum_type)
    i64 = ir.IntegerType.get_signless(64)

    def aligned(element) -> dict:
        return {"alignment": ir.IntegerAttr.get(i64, _WIDTH * element.width // 8)}

    pitch = tile_type.shape[1]
    place = arith.index_cast(i64, building.apply(lambda r, c: r * pitch + c, row, column))
    pointer = ir.Type.parse(_SHARED_OF_CLUSTER)
    values = []
    for of_part in tiles:
        there = llvm.getelementptr(pointer, of_part, [place], [_DYNAMIC], sum_type, None)
        values.append(ir.Operation.create("llvm.load", results=[type_], operands=[there],
                                          attributes=aligned(sum_type)).results[0])
    total = values[0]
    for value in values[1:]:
        total = arith.addf(total, value)
    if c_type != sum_type:
        total = arith.truncf(ir.VectorType.get([_WIDTH], c_type), total)
    if adds:
        old = ir.Operation.create("vector.load", results=[ir.VectorType.get([_WIDTH], c_type)],
                                  operands=[c_tile, row, column], attributes=aligned(c_type)).results[0]
        total = arith.addf(old, total)
    ir.Operation.create("vector.store", operands=[total, c_tile, row, column], attributes=aligned(c_type))
