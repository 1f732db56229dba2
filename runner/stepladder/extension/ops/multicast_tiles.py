"""`tc.multicast_tiles`: the blocks of a cluster load the tiles that they share once, each a part, for all."""

from stepladder.extension.lib import building, pipeline, tma
from stepladder.extension.lib.building import index, integer
from stepladder.extension.lib.dialect import Refusal, Tc, producer, transform_op
from stepladder.mlir.bindings import arith, ext, ir, nvgpu, nvvm, transform
from stepladder.mlir.traverse import walk


class MulticastTiles(Tc.Operation, name="multicast_tiles"):
    """Lets each block of a cluster load its part of a shared tile, and TMA write it to all blocks that share it.

    The blocks in a row of the cluster read the same tile of A, those in a column the same tile of B. A tile is divided
    into as many parts as blocks share it, by its boxes, or by rows of its box. Each block still expects the bytes of a
    whole tile, and now may load over a slot only when all blocks that its loads write to have read theirs: a
    warpgroup's threads arrive at the barriers of all of them, one thread at each.

    An arrival in another block is written without release at cluster scope, which would wait for all memory of the
    thread; the reads that it orders are those of the matrix unit, and have been waited for.

    Operands: a handle to any op with one `gpu.launch` below, in clusters.
    Attributes: rows and columns of the cluster, in blocks.
    Refuses: tiles that cannot be divided into that many parts of 8 rows or more.
    """

    target: ext.Operand[transform.AnyOpType]
    rows: ir.IntegerAttr
    columns: ir.IntegerAttr


_SWIZZLE_ROWS = 8
_MARKS = ("operand_a", "operand_b")


class _Cluster:
    """A block's place in its cluster, at the insertion point: numbered down columns first."""

    def __init__(self, rows: int, columns: int):
        self.rows, self.columns = rows, columns
        rank = building.block_in_cluster()
        self.row = building.apply(lambda r: ir.AffineExpr.get_mod(r, rows), rank)
        self.column = building.apply(lambda r: ir.AffineExpr.get_floor_div(r, rows), rank)

    def sharers(self, mark: str) -> int:
        """Returns how many blocks read the same tile: of A in a row of the cluster, of B in a column."""
        return self.columns if mark == "operand_a" else self.rows

    def part(self, mark: str):
        """Returns which part of a shared tile the block loads."""
        return self.column if mark == "operand_a" else self.row

    def mask(self, mark: str):
        """Returns the blocks that read the same tile, a bit each."""
        if mark == "operand_a":
            bits, shift = sum(1 << self.rows * column for column in range(self.columns)), self.row
        else:
            bits, shift = (1 << self.rows) - 1, building.times(self.column, self.rows)
        i32, i16 = (ir.IntegerType.get_signless(bits_) for bits_ in (32, 16))
        return arith.trunci(i16, arith.shli(integer(bits, 32), arith.index_cast(i32, shift)))

    def peers(self) -> int:
        """Returns how many blocks a block's loads write to, itself included."""
        return self.rows + self.columns - 1

    def peer(self, number):
        """Returns the rank of peer `number`: the blocks of its column, then the others of its row."""
        in_column = building.apply(lambda n, c: c * self.rows + n, number, self.column)
        if self.columns == 1:
            return in_column
        in_row = building.apply(
            lambda n, c, r: ir.AffineExpr.get_mod(c + n + (1 - self.rows + self.columns), self.columns) * self.rows + r,
            number,
            self.column,
            self.row,
        )
        is_above = arith.cmpi(arith.CmpIPredicate.ult, number, index(self.rows))
        return arith.select(is_above, in_column, in_row)


def _ring_of(load):
    """Returns the ring that a load writes: of one slot, by way of a cast too."""
    source = producer(load.operands[0])
    while source.name != "memref.alloc":
        source = producer(source.operands[0])
    return source.results[0]


def _mark(load) -> str:
    return next(mark for mark in _MARKS if mark in _ring_of(load).owner.attributes)


def _loads(issue, mark: str) -> list:
    return [load for load in walk(issue, tma.LOAD) if _mark(load) == mark]


def _divide(loads: list, mark: str, cluster: _Cluster, launch, rewriter) -> None:
    """Replaces the loads of a tile by those of the block's part, to all that share it."""
    sharers = cluster.sharers(mark)
    ring_ = _ring_of(loads[0])
    _, boxes, rows, columns = ir.MemRefType(ring_.type).shape
    by_box = boxes % sharers == 0
    part_rows = rows if by_box else rows // sharers
    if part_rows % _SWIZZLE_ROWS or (not by_box and rows % sharers):
        raise Refusal(
            loads[0], f"a tile of {rows} rows cannot be loaded in {sharers} parts of {_SWIZZLE_ROWS} rows or more"
        )
    descriptor = loads[0].operands[2]
    if not by_box:
        create = producer(descriptor)
        element_type = ir.MemRefType(ring_.type).element_type
        type_ = tma.descriptor_type(part_rows, columns, element_type, tma.swizzle_of(descriptor.type))
        with ir.InsertionPoint(create), create.location:
            fresh = nvgpu.tma_create_descriptor(type_, create.operands[0], [index(part_rows), index(columns)])
        rewriter.replace_op(create, [fresh])
        descriptor = fresh
    first = loads[0]
    barrier, column, row = first.operands[1], first.operands[3], first.operands[4]
    slot = first.operands[5]
    count = boxes // sharers if by_box else boxes
    with ir.InsertionPoint(first), first.location:
        part, mask = cluster.part(mark), cluster.mask(mark)
        for number in range(count):
            box = number if not by_box else building.apply(lambda p: p * count + number, part)
            across = column
            if by_box:
                across = building.apply(lambda c, b: c + b * columns, column, box)
            elif number:
                across = building.apply(lambda c: c + number * columns, column)
            down, start = row, 0
            if not by_box:
                start = building.times(part, part_rows)
                down = arith.addi(row, start)
            place = building.view(ring_, [slot, box, start, 0], [1, 1, part_rows, columns], drop=2)
            nvgpu.tma_async_load(place, barrier, descriptor, [across, down], slot, multicast_mask=mask)
    for load in loads:
        rewriter.erase_op(load)


def _release_to_all(release, cluster: _Cluster, remote, rewriter) -> None:
    """Lets as many threads as there are peers arrive, each at the barrier of one."""
    i32 = ir.IntegerType.get_signless(32)
    compare = producer(release.operands[0])
    if compare.name == "arith.andi":
        compare = producer(compare.operands[0])
    thread = compare.operands[0]
    with ir.InsertionPoint(compare), compare.location:
        is_sender = arith.cmpi(arith.CmpIPredicate.ult, thread, index(cluster.peers()))
    rewriter.replace_op(compare, [is_sender])
    arrival = release.regions[0].blocks[0].operations[0].operation
    with ir.InsertionPoint(arrival), arrival.location:
        offset = arith.index_cast(i32, building.times(arrival.operands[1], 8))
        nvvm.inline_ptx(
            [], [arith.addi(remote, offset)], [], "mbarrier.arrive.shared::cluster.b64 _, [{$r0}];", memory_clobber=True
        )
    rewriter.erase_op(arrival)


@transform_op(MulticastTiles)
def multicast_tiles(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    rows, columns = op.rows.value, op.columns.value
    if rows * columns == 1:
        return
    issues = pipeline.issues_below(launch) or [launch]
    block = launch.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block), launch.location:
        cluster = _Cluster(rows, columns)
    for issue in issues:
        for mark in _MARKS:
            if cluster.sharers(mark) > 1:
                _divide(_loads(issue, mark), mark, cluster, launch, rewriter)

    releases = pipeline.releases_below(launch)
    empty = releases[0].regions[0].blocks[0].operations[0].operation.operands[0]
    for use in list(empty.uses):
        if use.owner.name == "nvgpu.mbarrier.init":
            with ir.InsertionPoint(use.owner), launch.location:
                count = building.static_value(use.owner.operands[1]) * cluster.peers()
                use.owner.operation.operands[1] = index(count)
    barrier = pipeline.block_of_prologue(launch)
    i32 = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint(barrier), launch.location:
        nvvm.cluster_arrive()
        nvvm.cluster_wait()
        peer = cluster.peer(building.thread_in_warpgroup())
        own = nvgpu.mbarrier_get(i32, empty, index(0))
        remote = nvvm.inline_ptx(
            [i32], [own, arith.index_cast(i32, peer)], [], "mapa.shared::cluster.u32 {$w0}, {$r0}, {$r1};"
        )
    rewriter.erase_op(barrier)
    for release in releases:
        _release_to_all(release, cluster, remote, rewriter)
    # No block ends while others write to its shared memory.
    with ir.InsertionPoint(building.terminator_of(block)), launch.location:
        nvvm.cluster_arrive()
        nvvm.cluster_wait()
