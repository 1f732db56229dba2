"""`tc.multicast_tiles`: the blocks of a cluster load shared tiles once, by TMA multicast."""

from stepladder.extension.lib import memory, threads, tma, tma_pipeline
from stepladder.extension.lib.arithmetic import apply, constant_value, index, integer, less_than, times
from stepladder.extension.lib.control_flow import body_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import find_launch
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, nvgpu, nvvm
from stepladder.mlir.traverse import defining_op, walk


class MulticastTiles(Tc.Operation, name="multicast_tiles"):
    """Makes each block of a cluster load a slice of a shared tile, which TMA writes to all blocks that share the tile.

    The blocks in a row of the cluster read the same tile of A, those in a column the same tile of B. A tile is split
    into as many slices as blocks share it, by boxes, or by rows of its box. TMA swizzles by the address in shared
    memory, so that slices need not begin where the pattern does. Each block still expects the bytes of whole tiles. It
    may overwrite a stage only after all blocks that its loads write to have released it: one thread of a warpgroup
    arrives at the `empty` barrier of each of these blocks.

    The arrival at the barrier of another block has no release semantics at cluster scope, which would wait for all
    memory accesses of the thread. It orders only reads of the tensor core, which have completed.

    Operands: a handle to any op with one `gpu.launch` below, in clusters.
    Attributes: rows and columns of the cluster, in blocks.
    Refuses: tiles that cannot be split into that many slices of equally many rows, at multiples of 128 bytes; a launch
        without TMA loads of a shared tile, or without an op that releases a stage.
    """

    target: Handle
    rows: ir.IntegerAttr
    columns: ir.IntegerAttr


_SHARED_ALIGNMENT = 128  # bytes, of a box in shared memory
_MARKS = {"operand_a": "A", "operand_b": "B"}
_MBARRIER_BYTES = 8


class _Cluster:
    """The position of a block in its cluster, at the insertion point; ranks number the blocks column by column.

    Args:
        rows, columns: of the cluster, in blocks.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        rank = threads.block_rank_in_cluster()
        self.row = apply(lambda r: ir.AffineExpr.get_mod(r, rows), rank)
        self.column = apply(lambda r: ir.AffineExpr.get_floor_div(r, rows), rank)

    def sharers(self, mark: str) -> int:
        """Returns how many blocks read the same tile: of A in a row of the cluster, of B in a column."""
        return self.columns if mark == "operand_a" else self.rows

    def slice_of(self, mark: str) -> ir.Value:
        """Returns the index of the slice of a shared tile that the block loads."""
        return self.column if mark == "operand_a" else self.row

    def mask(self, mark: str) -> ir.Value:
        """Returns the multicast mask: a bit for each block that reads the same tile."""
        if mark == "operand_a":
            bits, shift = sum(1 << self.rows * column for column in range(self.columns)), self.row
        else:
            bits, shift = (1 << self.rows) - 1, times(self.column, self.rows)
        i32, i16 = (ir.IntegerType.get_signless(width) for width in (32, 16))
        return arith.trunci(i16, arith.shli(integer(bits, 32), arith.index_cast(i32, shift)))

    def peers(self) -> int:
        """Returns how many blocks a block's loads write to, itself included."""
        return self.rows + self.columns - 1

    def peer(self, number: ir.Value) -> ir.Value:
        """Returns the rank of peer `number`: first the blocks of its column, then the others of its row."""
        in_column = apply(lambda n, c: c * self.rows + n, number, self.column)
        if self.columns == 1:
            return in_column
        in_row = apply(
            lambda n, c, r: ir.AffineExpr.get_mod(c + n + (1 - self.rows + self.columns), self.columns) * self.rows + r,
            number,
            self.column,
            self.row,
        )
        return arith.select(less_than(number, index(self.rows)), in_column, in_row)


def _buffer_of(load: ir.Operation) -> ir.Value:
    """Returns the buffer of the stages that a load writes to."""
    return memory.shared_tile_of(load, load.operands[0]).results[0]


def _mark(load: ir.Operation) -> str:
    attributes = defining_op(_buffer_of(load)).attributes
    return next(mark for mark in _MARKS if mark in attributes)


def _loads(issue: ir.Operation, mark: str) -> list[list[ir.Operation]]:
    """Returns the loads of the tiles of an operand: of one, or of each of its parts."""
    loads: dict[ir.Value, list[ir.Operation]] = {}
    for load in walk(issue, tma.LOAD):
        if _mark(load) == mark:
            loads.setdefault(_buffer_of(load), []).append(load)
    return list(loads.values())


def _place_of_part(load: ir.Operation) -> tuple[int, int]:
    """Returns the box and the row of a tile that the first load of a part of it begins with."""
    view = defining_op(load.operands[0])
    if view.name != "memref.subview":  # the whole buffer: one stage of one box
        return 0, 0
    _, box, row, _ = ir.DenseI64ArrayAttr(view.attributes["static_offsets"])
    return box, row


def _split_loads(loads: list[ir.Operation], mark: str, cluster: _Cluster, rewriter: Rewriter) -> None:
    """Replaces the loads of a tile, or of a part of it from another matrix, by multicast loads of the block's slice."""
    sharers = cluster.sharers(mark)
    first = loads[0]
    buffer = _buffer_of(first)
    boxes, (*_, rows, columns) = len(loads), ir.MemRefType(first.operands[0].type).shape
    box_of_part, row_of_part = _place_of_part(first)
    by_box = boxes % sharers == 0
    slice_rows = rows if by_box else rows // sharers
    row_bytes = columns * types.byte_width(ir.MemRefType(buffer.type).element_type)
    if not by_box and (rows % sharers or slice_rows * row_bytes % _SHARED_ALIGNMENT):
        raise Refusal(
            first,
            f"a tile of {rows} rows of {row_bytes} bytes cannot be loaded in {sharers} slices of as many rows at "
            f"multiples of {_SHARED_ALIGNMENT} bytes",
        )
    descriptor = first.operands[2]
    barrier, _, tile_column, tile_row, *outer, stage = list(first.operands)[1:]
    rank = 2 + len(outer)
    if not by_box:
        create = defining_op(descriptor)
        element_type = ir.MemRefType(buffer.type).element_type
        type_ = types.tensor_map(
            slice_rows, columns, element_type, types.tensor_map_swizzle(descriptor.type), rank=rank
        )
        with tma.before_descriptor(create):
            sizes = tma.box_sizes(rank, slice_rows, columns)
            descriptor = nvgpu.tma_create_descriptor(type_, create.operands[0], sizes, loc=create.location)
        rewriter.replace_op(create, [descriptor])
    count = boxes // sharers if by_box else boxes
    with ir.InsertionPoint(first), first.location:
        slice_, mask = cluster.slice_of(mark), cluster.mask(mark)
        for number in range(count):
            box = box_of_tile = number if not by_box else apply(lambda s: s * count + number, slice_)
            column = tile_column
            if not isinstance(box, int):
                column = apply(lambda c, b: c + b * columns, tile_column, box)
            elif number:
                column = apply(lambda c: c + number * columns, tile_column)
            if box_of_part:
                box_of_tile = box + box_of_part if isinstance(box, int) else arith.addi(box, index(box_of_part))
            row, first_row = tile_row, row_of_part
            if not by_box:
                first_row = times(slice_, slice_rows)
                row = arith.addi(tile_row, first_row)
                if row_of_part:
                    first_row = arith.addi(first_row, index(row_of_part))
            sizes = [1, 1, slice_rows, columns]
            destination = memory.subview(buffer, [stage, box_of_tile, first_row, 0], sizes, drop=4 - rank)
            nvgpu.tma_async_load(destination, barrier, descriptor, [column, row, *outer], stage, multicast_mask=mask)
    for load in loads:
        rewriter.erase_op(load)


def _release_to_peers(release: ir.Operation, cluster: _Cluster, remote: ir.Value, rewriter: Rewriter) -> None:
    """Makes one thread per peer arrive, each at the barrier of one peer.

    Args:
        release: the `scf.if` that releases a stage.
        cluster: the position of the block.
        remote: address of the first `empty` barrier of the thread's peer.
        rewriter: of the transform op.
    """
    i32 = ir.IntegerType.get_signless(32)
    compare = defining_op(release.operands[0])
    if compare.name == "arith.andi":
        compare = defining_op(compare.operands[0])
    thread = compare.operands[0]
    with ir.InsertionPoint(compare), compare.location:
        arrives = less_than(thread, index(cluster.peers()))
    rewriter.replace_op(compare, [arrives])
    arrival = body_of(release).operations[0].operation
    with ir.InsertionPoint(arrival), arrival.location:
        offset = arith.index_cast(i32, times(arrival.operands[1], _MBARRIER_BYTES))
        nvvm.inline_ptx(
            [], [arith.addi(remote, offset)], [], "mbarrier.arrive.shared::cluster.b64 _, [{$r0}];", memory_clobber=True
        )
    rewriter.erase_op(arrival)


def _expect_arrivals_of_peers(empty: ir.Value, peers: int) -> None:
    """Makes the `empty` barriers count the arrivals of all peers."""
    for use in list(empty.uses):
        init = use.owner.operation
        if init.name != "nvgpu.mbarrier.init":
            continue
        count = constant_value(init.operands[1])
        assert count is not None, "tc.load_by_tma initializes mbarriers with constants"
        with ir.InsertionPoint(init), init.location:
            init.operands[1] = index(count * peers)


def _multicast_loads(launch: ir.Operation, issue: ir.Operation, cluster: _Cluster, rewriter: Rewriter) -> None:
    """Splits the loads of an issue of a k step that several blocks share, so that each block loads a part for all."""
    for mark in _MARKS:
        if cluster.sharers(mark) == 1:
            continue
        loads = _loads(issue, mark)
        if not loads:
            raise Refusal(launch, f"no TMA loads of the tile of {_MARKS[mark]}, which blocks share")
        for of_tile in loads:
            # A tile of both B of a pair has parts from two matrices.
            for descriptor in dict.fromkeys(load.operands[2] for load in of_tile):
                own = [load for load in of_tile if load.operands[2] == descriptor]
                _split_loads(own, mark, cluster, rewriter)


@transform_op(MulticastTiles)
def multicast_tiles(payload: ir.Operation, op: MulticastTiles, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = find_launch(payload)
    rows, columns = op.rows.value, op.columns.value
    if rows * columns == 1:
        return
    issues = tma_pipeline.issues_below(launch) or [launch]
    block = body_of(launch)
    with ir.InsertionPoint.at_block_begin(block), launch.location:
        cluster = _Cluster(rows, columns)
    for issue in issues:
        _multicast_loads(launch, issue, cluster, rewriter)
    releases = tma_pipeline.releases_below(launch)
    if not releases:
        raise Refusal(launch, "no op releases a stage of the pipeline")
    empty = body_of(releases[0]).operations[0].operation.operands[0]
    _expect_arrivals_of_peers(empty, cluster.peers())
    barrier = tma_pipeline.prologue_barrier(launch)
    i32 = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint(barrier), launch.location:
        nvvm.cluster_arrive()
        nvvm.cluster_wait()
        peer = cluster.peer(threads.thread_in_warpgroup())
        own = nvgpu.mbarrier_get(i32, empty, index(0))
        remote = nvvm.inline_ptx(
            [i32], [own, arith.index_cast(i32, peer)], [], "mapa.shared::cluster.u32 {$w0}, {$r0}, {$r1};"
        )
    rewriter.erase_op(barrier)
    for release in releases:
        _release_to_peers(release, cluster, remote, rewriter)
    # A block must not exit while others write to its shared memory.
    with ir.InsertionPoint(terminator_of(block)), launch.location:
        nvvm.cluster_arrive()
        nvvm.cluster_wait()
