"""`tc.stream_k_tail`: the tiles of the last, partial wave are divided along k among all blocks (stream-K)."""

from stepladder.extension.lib import building, tma
from stepladder.extension.lib.building import index, integer
from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.extension.lib.tma_stores import ADD, add_by_tma
from stepladder.extension.lib.warpgroup_ops import PRODUCTS
from stepladder.mlir.bindings import arith, ext, ir, memref, nvvm, scf, transform
from stepladder.mlir.traverse import walk


class StreamKTail(Tc.Operation, name="stream_k_tail"):
    """Divides the steps of k of the tiles that are left after the last whole wave among all blocks.

    With T tiles and P blocks, T mod P tiles are left when each block has computed as many as all have. Their steps of k
    stand in one row, tile behind tile, and each block takes an equal, contiguous part, of half a tile's steps at least:
    the end of one tile and the beginning of the next, or a part of one.

    The parts of a tile are summed in C, in the order of k, so that the result does not depend on who is first: who has
    the beginning stores its sums, each of the others adds its own when the one before it is done. Turns are counted in
    global memory, by a number for each tile and warpgroup, which the last part sets back to zero.

    Operands: a handle to any op with one `gpu.launch` below, whose blocks persist and whose epilogue is TMA's.
    Refuses: blocks that do not persist; sums that are rounded to C, since their parts would be; bounds that are not
        constant; warpgroups that take tiles in turn.
    """

    target: ext.Operand[transform.AnyOpType]


_TURNS = "turns"


def _tile_loops(launch) -> list:
    """Returns the loops over tiles, one for each role."""
    loops = []
    for op in walk(launch, tma.LOAD, *PRODUCTS):
        around = building.loops_around(op)
        if around and around[0] not in loops:
            loops.append(around[0])
    return loops


def _loop_over_k(tiles):
    """Returns the loop over k in a loop over tiles, or None where k has one step."""
    inside = [building.loops_around(op) for op in walk(tiles, tma.LOAD, *PRODUCTS)]
    return inside[0][-1] if inside[0][-1] != tiles else None


def _stores(tiles) -> list:
    """Returns what stores or adds boxes to C."""
    return [
        op
        for op in walk(tiles, tma.STORE, "nvvm.inline_ptx")
        if op.name == tma.STORE or ADD in str(op.attributes["ptxCode"])
    ]


class _Share:
    """How the steps of the last tiles are divided: `whole` waves, then parts of `length` steps."""

    def __init__(self, tiles: int, cells: int, steps: int):
        self.cells, self.steps = cells, steps
        self.whole, left = divmod(tiles, cells)
        self.first = self.whole * cells  # of the tiles that are shared
        self.total = left * steps
        self.length = max(-(-self.total // cells), -(-steps // 2))

    @property
    def is_worthwhile(self) -> bool:
        """Whether sharing ends earlier than a wave of whole tiles would."""
        return self.total > 0 and self.length < self.steps


@transform_op(StreamKTail)
def stream_k_tail(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    loops = _tile_loops(launch)
    if not loops:
        raise Refusal(launch, "its blocks compute one tile each: make_persistent must run for them to share tiles")
    main = [_loop_over_k(tiles) for tiles in loops]
    if any(loop is None for loop in main):
        return
    if not any(_stores(tiles) for tiles in loops):
        raise Refusal(launch, "the parts of a tile are summed by TMA: the epilogue must be tma")
    _check_sums(launch, loops)
    bounds = [building.static_value(loops[0].operands[number]) for number in (1, 2)]
    k_bounds = [building.static_value(main[0].operands[number]) for number in range(3)]
    strides = {building.static_value(tiles.operands[2]) for tiles in loops}
    if None in [*bounds, *k_bounds] or strides != {bounds[1]}:
        raise Refusal(launch, "warpgroups that take tiles in turn cannot share them")
    share = _Share(bounds[0], bounds[1], (k_bounds[1] - k_bounds[0]) // k_bounds[2])
    if not share.is_worthwhile:
        return
    turns = _Turns(launch, share)
    for tiles, loop in zip(loops, main):
        part = _divide(tiles, loop, share, k_bounds[2])
        stores = _stores(tiles)
        if stores:
            turns.take(stores, part)


def _check_sums(launch, loops) -> None:
    """Refuses sums that C's type rounds."""
    for product in walk(launch, *PRODUCTS):
        sum_type = str(product.results[0].type).split("x")[-1].rstrip(">")
        for store in (store for tiles in loops for store in _stores(tiles) if store.name == tma.STORE):
            c_type = str(ir.MemRefType(store.operands[0].type).element_type)
            if c_type != sum_type:
                raise Refusal(
                    launch,
                    f"the parts of a tile would each be rounded from {sum_type} to {c_type}: only "
                    "sums of C's own type can be shared",
                )


class _Part:
    """The part of a tile that an iteration computes, as values: the tile, and its first step and the one behind its
    last."""

    def __init__(self, tile, first, last):
        self.tile, self.first, self.last = tile, first, last


def _divide(tiles, loop, share: _Share, step: int) -> _Part:
    """Lets a loop over tiles run over waves: those of whole tiles, then the parts; returns what a wave computes.

    A block whose part reaches into two tiles begins with the second: its beginning, for which another block may wait,
    waits for nobody.
    """
    cell = tiles.operands[0]
    with ir.InsertionPoint(tiles), tiles.location:
        # The block's part of the row of steps, and where the tile ends that it begins in.
        total = index(share.total)
        start = arith.minui(building.times(cell, share.length), total)
        end = arith.minui(arith.addi(start, index(share.length)), total)
        border = arith.minui(
            end, building.apply(lambda s: (ir.AffineExpr.get_floor_div(s, share.steps) + 1) * share.steps, start)
        )
        below = arith.CmpIPredicate.ult
        has_two = arith.cmpi(below, border, end)
        parts = arith.select(has_two, index(2), arith.select(arith.cmpi(below, start, end), index(1), index(0)))
        tiles.operands[0], tiles.operands[2] = index(0), index(1)
        tiles.operands[1] = arith.addi(parts, index(share.whole))
        latest = arith.select(has_two, border, start)
    body = building.body_of(tiles)
    number = body.arguments[0]
    with ir.InsertionPoint.at_block_begin(body), tiles.location:
        is_whole = arith.cmpi(below, number, index(share.whole))
        is_latest = building.equal(number, index(share.whole))
        own = building.apply(lambda n, c: n * share.cells + c, number, cell)
        begin = arith.select(is_latest, latest, start)
        finish = arith.select(is_latest, end, border)
        shared = building.apply(lambda b: ir.AffineExpr.get_floor_div(b, share.steps), begin)
        before = building.times(shared, share.steps)
        tile = arith.select(is_whole, own, arith.addi(shared, index(share.first)))
        first = arith.select(is_whole, index(0), arith.subi(begin, before))
        last = arith.select(is_whole, index(share.steps), arith.subi(finish, before))
    made = tile.owner.operation
    for use in list(number.uses):
        user = use.owner.operation
        if not (user.block == body and user.is_before_in_block(made)):
            user.operands[use.operand_number] = tile
    _begin_at(loop, first, step)
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[1] = building.times(last, step)
    return _Part(tile, first, last)


def _begin_at(loop, first, step: int) -> None:
    """Lets a loop over k begin at step `first`; what asks whether a step is the first means that one then.

    A product in flight releases the slot of the one before it, which the first has not: asked of the old bound, each
    part would release a slot that it does not hold.
    """
    old = building.static_value(loop.operands[0])
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[0] = building.times(first, step)
    for use in list(building.body_of(loop).arguments[0].uses):
        user = use.owner.operation
        if user.name == "arith.cmpi" and building.static_value(user.operands[1]) == old:
            user.operands[1] = loop.operands[0]


class _Turns:
    """The numbers in global memory that say whose turn it is to add to a tile."""

    def __init__(self, launch, share: _Share):
        self.share = share
        blocks = building.launch_sizes(launch, building.CLUSTER)[0]
        self.warpgroups = building.launch_sizes(launch, building.BLOCK)[0] // building.WARPGROUP
        self.blocks = blocks
        count = -(-share.total // share.steps) * blocks * self.warpgroups
        self.type = ir.MemRefType.get(
            [count], ir.IntegerType.get_signless(32), memory_space=ir.Attribute.parse(building.GLOBAL)
        )
        self.symbol = building.make_global(launch, _TURNS, self.type, 0)

    def take(self, stores: list, part: _Part) -> None:
        """Lets the stores of a tile be those of a part: in turn, and added where it is not the first."""
        share = self.share
        around = [store.parent.operation for store in stores]
        before, behind = around[0], around[-1]
        i32 = ir.IntegerType.get_signless(32)
        with ir.InsertionPoint(before), before.location:
            begins = building.equal(part.first, index(0))
            ends = building.equal(part.last, index(share.steps))
            address = self._address(part)
            # Parts of a tile fall to successive blocks: how many are between them is a part's turn.
            start = building.apply(lambda t: (t - share.first) * share.steps, part.tile)
            turn = arith.index_cast(
                i32,
                building.apply(
                    lambda s, f: (
                        ir.AffineExpr.get_floor_div(s + f, share.length) - ir.AffineExpr.get_floor_div(s, share.length)
                    ),
                    start,
                    part.first,
                ),
            )
            with building.if_(arith.andi(before.operands[0], arith.xori(begins, building.boolean(True)))):
                nvvm.inline_ptx(
                    [],
                    [address, turn],
                    [],
                    "{.reg .pred p; .reg .b32 now; WAIT: "
                    "ld.acquire.gpu.global.b32 now, [{$r0}]; setp.ne.b32 p, now, {$r1}; @p bra WAIT;}",
                    memory_clobber=True,
                )
                nvvm.inline_ptx([], [], [], "fence.proxy.async;", memory_clobber=True)
        for store in stores:
            if store.name == tma.STORE:
                _store_or_add(store, begins)
        with ir.InsertionPoint.after(behind), behind.location:
            is_part = arith.xori(arith.andi(begins, ends), building.boolean(True))
            with building.if_(arith.andi(behind.operands[0], is_part)):
                nvvm.cp_async_bulk_wait_group(0)
                nvvm.inline_ptx([], [], [], "fence.proxy.async;", memory_clobber=True)
                following = arith.select(ends, integer(0, 32), arith.addi(turn, integer(1, 32)))
                nvvm.inline_ptx(
                    [], [address, following], [], "st.release.gpu.global.b32 [{$r0}], {$r1};", memory_clobber=True
                )

    def _address(self, part: _Part):
        """Returns the address of the warpgroup's turns at the tile, where the tile is a shared one."""
        warpgroup = building.warpgroup_number()
        rank = building.block_in_cluster() if self.blocks > 1 else index(0)
        place = building.apply(
            lambda t, r, w: ((t - self.share.first) * self.blocks + r) * self.warpgroups + w, part.tile, rank, warpgroup
        )
        turns = memref.get_global(self.type, self.symbol)
        start = memref.extract_aligned_pointer_as_index(turns)
        return arith.index_cast(ir.IntegerType.get_signless(64), arith.addi(start, building.times(place, 4)))


def _store_or_add(store, begins) -> None:
    """Makes a store one that adds, where it is not the first of its tile."""
    with ir.InsertionPoint(store), store.location:
        either = scf.IfOp(begins, has_else=True)
        with ir.InsertionPoint(either.then_block):
            end = scf.yield_([])
        with ir.InsertionPoint(either.else_block):
            add_by_tma(store.operands[0], store.operands[1], *list(store.operands)[2:4])
            scf.yield_([])
    store.move_before(end.operation)
