"""`tc.stream_k_tail`: splits the tiles of the last, partial wave along k among all blocks (stream-K)."""

from dataclasses import dataclass

from stepladder.extension.lib import launches, semaphores, threads, tma
from stepladder.extension.lib.arithmetic import apply, boolean, constant_value, equal, index, integer, less_than, times
from stepladder.extension.lib.control_flow import body_of, constant_bounds, create_if, enclosing_loops
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.tma_stores import is_reduce_add, reduce_add
from stepladder.extension.lib.warpgroup_ops import MMAS
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, nvvm, scf
from stepladder.mlir.traverse import defining_op, users_of, walk


class StreamKTail(Tc.Operation, name="stream_k_tail"):
    """Splits the k steps of the tiles that remain after the last whole wave among all blocks.

    With T tiles and P blocks, T mod P tiles remain after all whole waves. Their k steps form one sequence, tile after
    tile, and each block computes a contiguous slice of it of equal length, half of a tile's steps at least: the end of
    one tile and the beginning of the next, or a slice of one tile.

    The slices of a tile are accumulated in C, in the order of k, so that the result does not depend on the order in
    which blocks finish: the slice with the first step stores, and each later slice adds its accumulator after the slice
    before it. Semaphores in global memory, one for each tile and warpgroup, count the slices that have been written;
    the last slice resets them to zero.

    Operands: a handle to any op with one `gpu.launch` below, with persistent blocks and a TMA store epilogue.
    Refuses: blocks that are not persistent; accumulators that are rounded to C's type, because each slice would be
        rounded; bounds that are not constant; a ping-pong schedule.
    """

    target: Handle


_SEMAPHORES = "stream_k_semaphores"


def _tile_loops(launch: ir.Operation) -> list[ir.Operation]:
    """Returns the loops over tiles, one for each role."""
    loops: list[ir.Operation] = []
    for op in walk(launch, tma.LOAD, *MMAS):
        around = enclosing_loops(op)
        if around and around[0] not in loops:
            loops.append(around[0])
    return loops


def _loop_over_k(tiles: ir.Operation) -> ir.Operation | None:
    """Returns the loop over k in a loop over tiles, or None where k has one step."""
    inside = [enclosing_loops(op) for op in walk(tiles, tma.LOAD, *MMAS)]
    return inside[0][-1] if inside[0][-1] != tiles else None


def _stores(tiles: ir.Operation) -> list[ir.Operation]:
    """Returns the ops that store or add boxes to C."""
    return [op for op in walk(tiles, tma.STORE, "nvvm.inline_ptx") if op.name == tma.STORE or is_reduce_add(op)]


class _Partition:
    """The partition of the k steps of the remaining tiles: `waves` whole waves, then slices of `length` steps.

    Args:
        tiles: number of tiles.
        cells: number of blocks, or clusters, that compute a tile each.
        steps: k steps of a tile.
    """

    def __init__(self, tiles: int, cells: int, steps: int) -> None:
        self.cells, self.steps = cells, steps
        self.waves, self.tiles = divmod(tiles, cells)
        self.first = self.waves * cells  # of the tiles that are split
        self.total = self.tiles * steps
        self.length = max(-(-self.total // cells), -(-steps // 2))

    @property
    def is_profitable(self) -> bool:
        """Whether the slices end earlier than a wave of whole tiles."""
        return self.total > 0 and self.length < self.steps


@transform_op(StreamKTail)
def stream_k_tail(payload: ir.Operation, op: StreamKTail, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    loops = _tile_loops(launch)
    if not loops:
        raise Refusal(launch, "its blocks compute one tile each: make_persistent must run before")
    main = [loop for loop in (_loop_over_k(tiles) for tiles in loops) if loop is not None]
    if len(main) < len(loops):
        return
    if not any(_stores(tiles) for tiles in loops):
        raise Refusal(launch, "TMA accumulates the slices of a tile: the epilogue must be tma")
    _check_types(launch, loops)
    tiles, cells = (constant_value(loops[0].operands[number]) for number in (1, 2))
    k_bounds = constant_bounds(main[0])
    strides = {constant_value(loop.operands[2]) for loop in loops}
    if tiles is None or cells is None or k_bounds is None or strides != {cells}:
        raise Refusal(launch, "stream-K does not support a ping-pong schedule")
    lower, upper, step = k_bounds
    partition = _Partition(tiles, cells, (upper - lower) // step)
    if not partition.is_profitable:
        return
    fixup = _Fixup(launch, partition)
    for tile_loop, loop in zip(loops, main):
        work = _convert_to_waves(tile_loop, loop, partition, step)
        stores = _stores(tile_loop)
        if stores:
            fixup.order_stores(stores, work)


def _check_types(launch: ir.Operation, loops: list[ir.Operation]) -> None:
    """Refuses accumulators that are rounded to C's type."""
    for mma in walk(launch, *MMAS):
        acc_type = types.accumulator_vector(mma.results[0].type).element_type
        for store in (store for tiles in loops for store in _stores(tiles) if store.name == tma.STORE):
            c_type = ir.MemRefType(store.operands[0].type).element_type
            if c_type != acc_type:
                raise Refusal(
                    launch,
                    f"each slice of a tile would be rounded from {acc_type} to {c_type}: stream-K needs a C of the "
                    "accumulator's type",
                )


@dataclass(frozen=True)
class _Work:
    """The work of a block in a wave: a tile, from k step `first` to k step `last`, exclusive."""

    tile: ir.Value
    first: ir.Value
    last: ir.Value


def _convert_to_waves(tiles: ir.Operation, loop: ir.Operation, partition: _Partition, step: int) -> _Work:
    """Converts a loop over tiles to a loop over waves: those of whole tiles, then one for each slice.

    A block whose slice spans two tiles computes the second first: that is the beginning of a tile, which another block
    may wait for, and which itself waits for no block.

    Args:
        tiles: the loop over tiles.
        loop: the loop over k in it.
        partition: of the k steps.
        step: of the loop over k.

    Returns:
        The work of a wave.
    """
    cell = tiles.operands[0]
    with ir.InsertionPoint(tiles), tiles.location:
        # The block's slice of the sequence of steps, and the end of the tile that it begins in.
        total = index(partition.total)
        start = arith.minui(times(cell, partition.length), total)
        end = arith.minui(arith.addi(start, index(partition.length)), total)
        border = arith.minui(
            end, apply(lambda s: (ir.AffineExpr.get_floor_div(s, partition.steps) + 1) * partition.steps, start)
        )
        spans_two = less_than(border, end)
        slices = arith.select(spans_two, index(2), arith.select(less_than(start, end), index(1), index(0)))
        tiles.operands[0], tiles.operands[2] = index(0), index(1)
        tiles.operands[1] = arith.addi(slices, index(partition.waves))
        latest = arith.select(spans_two, border, start)
    body = body_of(tiles)
    wave = body.arguments[0]
    with ir.InsertionPoint.at_block_begin(body), tiles.location:
        is_whole = less_than(wave, index(partition.waves))
        is_latest = equal(wave, index(partition.waves))
        own = apply(lambda n, c: n * partition.cells + c, wave, cell)
        begin = arith.select(is_latest, latest, start)
        finish = arith.select(is_latest, end, border)
        split_tile = apply(lambda b: ir.AffineExpr.get_floor_div(b, partition.steps), begin)
        before = times(split_tile, partition.steps)
        tile = arith.select(is_whole, own, arith.addi(split_tile, index(partition.first)))
        first = arith.select(is_whole, index(0), arith.subi(begin, before))
        last = arith.select(is_whole, index(partition.steps), arith.subi(finish, before))
    selection = defining_op(tile)
    for use in list(wave.uses):
        user = use.owner.operation
        if not (user.block == body and user.is_before_in_block(selection)):
            user.operands[use.operand_number] = tile
    _set_first_step(loop, first, step)
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[1] = times(last, step)
    return _Work(tile, first, last)


def _set_first_step(loop: ir.Operation, first: ir.Value, step: int) -> None:
    """Makes a loop over k begin at k step `first`, and comparisons of its induction variable with its lower bound too.

    An MMA in flight releases the stage of the MMA before it, except in the first step. Compared with the old lower
    bound, the first step of a slice would release a stage that the consumer does not hold.
    """
    old = constant_value(loop.operands[0])
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[0] = times(first, step)
    for user in users_of(body_of(loop).arguments[0]):
        if user.name == "arith.cmpi" and constant_value(user.operands[1]) == old:
            user.operands[1] = loop.operands[0]


class _Fixup:
    """The ordered accumulation of the slices of a tile in C, by semaphores.

    Args:
        launch: the `gpu.launch`.
        partition: of the k steps.
    """

    def __init__(self, launch: ir.Operation, partition: _Partition) -> None:
        self.partition = partition
        self.blocks = launches.launch_sizes(launch, launches.CLUSTER)[0]
        self.warpgroups = launches.launch_sizes(launch, launches.BLOCK)[0] // threads.WARPGROUP
        count = partition.tiles * self.blocks * self.warpgroups
        self.semaphores = semaphores.Semaphores(launch, _SEMAPHORES, count)

    def order_stores(self, stores: list[ir.Operation], work: _Work) -> None:
        """Makes the stores of a slice wait for those of the slice before it, and add to C unless it is the first."""
        partition = self.partition
        branches = [store.parent for store in stores]
        before, after = branches[0], branches[-1]
        assert before is not None and after is not None
        i32 = ir.IntegerType.get_signless(32)
        with ir.InsertionPoint(before), before.location:
            is_first = equal(work.first, index(0))
            is_last = equal(work.last, index(partition.steps))
            address = self._address(work)
            # The slices of a tile belong to successive blocks: the number of slices before this one is the difference
            # of their blocks' indices.
            start = apply(lambda t: (t - partition.first) * partition.steps, work.tile)
            number = arith.index_cast(
                i32,
                apply(
                    lambda s, f: (
                        ir.AffineExpr.get_floor_div(s + f, partition.length)
                        - ir.AffineExpr.get_floor_div(s, partition.length)
                    ),
                    start,
                    work.first,
                ),
            )
            with create_if(arith.andi(before.operands[0], arith.xori(is_first, boolean(True)))):
                semaphores.acquire(address, number)
        for store in stores:
            if store.name == tma.STORE:
                _store_or_add(store, is_first)
        with ir.InsertionPoint.after(after), after.location:
            is_slice = arith.xori(arith.andi(is_first, is_last), boolean(True))
            with create_if(arith.andi(after.operands[0], is_slice)):
                nvvm.cp_async_bulk_wait_group(0)
                semaphores.fence_proxy_async()
                following = arith.select(is_last, integer(0, 32), arith.addi(number, integer(1, 32)))
                semaphores.release(address, following)

    def _address(self, work: _Work) -> ir.Value:
        """Returns the address of the semaphore of the tile and the warpgroup, where the tile is split."""
        warpgroup = threads.warpgroup_id()
        rank = threads.block_rank_in_cluster() if self.blocks > 1 else index(0)
        number = apply(
            lambda t, r, w: ((t - self.partition.first) * self.blocks + r) * self.warpgroups + w,
            work.tile,
            rank,
            warpgroup,
        )
        return self.semaphores.address(number)


def _store_or_add(store: ir.Operation, is_first: ir.Value) -> None:
    """Makes a store add to C, unless the slice is the first of its tile."""
    with ir.InsertionPoint(store), store.location:
        branch = scf.IfOp(is_first, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            end = scf.yield_([])
        with ir.InsertionPoint(branch.else_block):
            box, descriptor, *coordinates = store.operands
            reduce_add(box, descriptor, coordinates)
            scf.yield_([])
    store.move_before(end.operation)
