"""`tc.load_by_tma`: the copies into shared tiles become TMA loads into a ring of tiles, guarded by mbarriers."""

from stepladder.extension.lib import building, tma
from stepladder.extension.lib.building import boolean, index
from stepladder.extension.lib.dialect import Refusal, Tc, producer, transform_op
from stepladder.mlir.bindings import (
    arith,
    builtin,
    ext,
    gpu,
    ir,
    memref,
    nvgpu,
    nvvm,
    scf,
    transform,
)
from stepladder.mlir.traverse import walk


class LoadByTma(Tc.Operation, name="load_by_tma"):
    """Replaces the copies of the k loop by TMA loads into a ring of `stages` tiles each of A and B.

    Each slot of the ring has two mbarriers. `full` counts bytes: the loads of a slot complete it, and all threads wait
    for it before they read the tiles. `empty` counts warpgroups: each arrives when it has read the tiles, and the
    thread that issues the loads waits for it before it loads over them. The slot, and the parity that both barriers
    have in this round of the ring, travel from iteration to iteration and through the loops around.

    A tile lies in shared memory as TMA writes it: in boxes as wide as the swizzle, `memref<boxes x rows x columns>` a
    slot, the 16-byte units of a row exchanged within groups of eight rows. Only the matrix unit reads it so. What reads
    the tile of the copy reads a cast of the slot instead, for `tc.convert_to_warpgroup_mma` to take.

    Rows of B's tile that lie along n are loaded in whole boxes, of 64 bytes or more where the tile has more than 32:
    what a box has beyond the tile is not multiplied.

    Descriptors are made on the host, in front of the launch (`nvgpu.tma.create.descriptor`). TMA fills what lies
    outside of the matrix with zeros, so that fills of the tile go.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: stages, slots of the ring; warpgroups, that will read the tiles.
    Refuses: a matrix whose rows are no multiple of 16 bytes; a tile whose rows are no multiple of 32 bytes, or that has
        more than 256 of them.
    """

    target: ext.Operand[transform.AnyOpType]
    stages: ir.IntegerAttr
    warpgroups: ir.IntegerAttr


_OPERANDS = {"operand_a": "A", "operand_b": "B"}


def _copies(launch) -> list:
    return [op for op in walk(launch, "linalg.copy") if any(mark in op.attributes for mark in _OPERANDS)]


def _whole_tile(value):
    """Returns the alloc that a copy writes, wholly or in part."""
    source = producer(value)
    while source is not None and source.name == "memref.subview":
        source = producer(source.operands[0])
    return source


def _is_along_k(product) -> bool:
    """Tells whether rows of B's tile lie along k, that is B is stored as n x k."""
    if "indexing_maps" not in product.attributes:
        return False
    return ir.AffineMapAttr(product.attributes["indexing_maps"][1]).value.results[0] != ir.AffineExpr.get_dim(2)


class _Load:
    """One copy on its way to TMA: the tile it fills, the ring that replaces the tile, the descriptor it reads by."""

    def __init__(self, copy, launch, first, stages: int, product):
        self.copy = copy
        self.mark = next(mark for mark in _OPERANDS if mark in copy.attributes)
        self.tile = _whole_tile(copy.operands[1])
        if self.tile is None or self.tile.name != "memref.alloc":
            raise Refusal(copy, "expected a copy into a tile in shared memory")
        type_ = ir.MemRefType(self.tile.results[0].type)
        self.rows, columns = type_.shape
        self.element_type = type_.element_type
        bits = self.element_type.width
        if self.mark == "operand_b" and not _is_along_k(product):
            columns = tma.whole_boxes(columns * bits // 8) * 8 // bits
        swizzle = tma.row_swizzle(columns * bits // 8)
        matrix = _OPERANDS[self.mark]
        if swizzle is None:
            raise Refusal(
                copy, f"rows of the tile of {matrix} are {columns * bits // 8} bytes, and TMA swizzles multiples of 32"
            )
        if self.rows > tma.BOX_LIMIT:
            raise Refusal(copy, f"the tile of {matrix} has {self.rows} rows, and a box of TMA at most {tma.BOX_LIMIT}")
        self.columns = swizzle * 8 // bits
        self.boxes = columns // self.columns
        self.bytes = self.rows * columns * bits // 8
        with ir.InsertionPoint(first), copy.location:  # in front of all loads
            self.origin = tma.global_tile(copy, copy.operands[0])
        tma.check_buffer(copy, self.origin.buffer, matrix)
        self.descriptor_type = tma.descriptor_type(self.rows, self.columns, self.element_type, swizzle)
        with ir.InsertionPoint(launch), launch.location:
            self.descriptor = tma.create_descriptor(self.origin.buffer, self.descriptor_type, self.rows, self.columns)
        with ir.InsertionPoint(self.tile), self.tile.location:
            self.ring = memref.alloc(
                ir.MemRefType.get(
                    [stages, self.boxes, self.rows, self.columns], self.element_type, memory_space=type_.memory_space
                ),
                [],
                [],
            )
            self.ring.owner.attributes[self.mark] = ir.UnitAttr.get()

    def slot(self, number):
        """Returns the tile in slot `number`: boxes x rows x columns."""
        return building.view(self.ring, [number, 0, 0, 0], [1, self.boxes, self.rows, self.columns], drop=1)

    def issue(self, full, number) -> None:
        """Writes the loads of one tile, a box each."""
        for box in range(self.boxes):
            place = building.view(self.ring, [number, box, 0, 0], [1, 1, self.rows, self.columns], drop=2)
            column = self.origin.column
            if box:
                column = building.apply(lambda x: x + box * self.columns, column)
            nvgpu.tma_async_load(place, full, self.descriptor, [column, self.origin.row], number)


def _product_of(launch, copies):
    """Returns the matmul that reads what the copies write and stands beside them, in the loop over k or in none."""
    if not copies:
        raise Refusal(launch, "no copies of A and B into shared memory in the launch")
    products = [op for op in walk(launch, "linalg.matmul")]
    if len(products) != 1:
        raise Refusal(launch, f"expected one linalg.matmul in the launch, found {len(products)}")
    if any(copy.block != products[0].block for copy in copies):
        raise Refusal(copies[0], "expected the copies of A and B beside the product that reads them")
    return products[0]


def _begin(launch, loads, stages: int, warpgroups: int):
    """Writes what a block does first: barriers made and initialised by one thread, seen by all."""
    rings = [load.ring.owner.operation for load in loads]
    following = _following(next(ring for ring in rings if not any(ring.is_before_in_block(other) for other in rings)))
    with ir.InsertionPoint(following), launch.location:
        leader = building.equal(building.thread_number(), index(0))
        full = nvgpu.mbarrier_create(tma.barriers_type(stages))
        empty = nvgpu.mbarrier_create(tma.barriers_type(stages))
        with building.if_(leader):
            every = scf.ForOp(index(0), index(stages), index(1))
            with ir.InsertionPoint(every.body):
                nvgpu.mbarrier_init(full, index(1), every.induction_variable)
                nvgpu.mbarrier_init(empty, index(warpgroups), every.induction_variable)
                scf.yield_([])
            nvvm.fence_mbarrier_init()
            for load in loads:
                nvgpu.tma_prefetch_descriptor(load.descriptor)
        gpu.barrier()
    return leader, full, empty


def _following(op):
    operations = [other.operation for other in op.block.operations]
    return operations[operations.index(op) + 1]


def _advance(slot, parity, stages: int):
    """Returns the slot behind `slot`, and the parity of its barriers."""
    if stages == 1:
        return slot, arith.xori(parity, boolean(True))
    following = arith.addi(slot, index(1))
    wraps = building.equal(following, index(stages))
    return arith.select(wraps, index(0), following), arith.select(wraps, arith.xori(parity, boolean(True)), parity)


@transform_op(LoadByTma)
def load_by_tma(payload, op, rewriter) -> None:
    """Rewrites the copies of the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    stages, warpgroups = op.stages.value, op.warpgroups.value
    copies = _copies(launch)
    product = _product_of(launch, copies)
    loads = [_Load(copy, launch, copies[0], stages, product) for copy in copies]
    for load in reversed(loads):
        load.ring.owner.operation.move_before(launch.regions[0].blocks[0].operations[0])
    building.set_launch_sizes(launch, building.BLOCK, [warpgroups * building.WARPGROUP, 1, 1])
    leader, full, empty = _begin(launch, loads, stages, warpgroups)

    # The place in the ring travels through all loops.
    loops = building.loops_around(product)
    with ir.InsertionPoint(loops[0] if loops else copies[0]), launch.location:
        carried = [index(0), boolean(False)]
    for number, loop in enumerate(loops):
        loops[number], carried = building.with_carried(loop, carried, rewriter)
        carried = list(carried)
    slot, parity = carried
    for outer, inner in zip(loops, loops[1:]):
        building.extend_yield(outer, list(inner.results)[-2:])

    with ir.InsertionPoint(copies[0]), copies[0].location:
        with building.if_(leader):
            nvgpu.mbarrier_try_wait_parity(empty, arith.xori(parity, boolean(True)), index(tma.TICKS), slot)
            nvgpu.mbarrier_arrive_expect_tx(full, index(sum(load.bytes for load in loads)), slot)
            for load in loads:
                load.issue(full, slot)
    for load in loads:
        with ir.InsertionPoint(product), load.copy.location:
            cast = builtin.unrealized_conversion_cast([load.tile.results[0].type], [load.slot(slot)])
        _replace_tile(load, cast, rewriter)
    with ir.InsertionPoint(product), product.location:
        nvgpu.mbarrier_try_wait_parity(full, parity, index(tma.TICKS), slot)
    with ir.InsertionPoint(_following(product)), product.location:
        with building.if_(building.equal(building.thread_in_warpgroup(), index(0))):
            nvgpu.mbarrier_arrive(empty, slot)
    if loops:
        with ir.InsertionPoint(building.terminator_of(building.body_of(loops[-1]))), launch.location:
            following = _advance(slot, parity, stages)
        building.extend_yield(loops[-1], list(following))


def _replace_tile(load: _Load, cast, rewriter) -> None:
    target = load.copy.operands[1]
    rewriter.erase_op(load.copy)
    views = [producer(target)] if producer(target) != load.tile else []
    for use in list(load.tile.results[0].uses):
        user = use.owner.operation
        if user.name == "linalg.fill":
            rewriter.erase_op(user)
    for view in views:
        if not list(view.results[0].uses):
            rewriter.erase_op(view)
    load.tile.results[0].replace_all_uses_with(cast)
    rewriter.erase_op(load.tile)
