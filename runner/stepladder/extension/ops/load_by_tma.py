"""`tc.load_by_tma`: replaces copies to shared tiles by a multistage pipeline of TMA loads."""

from stepladder.extension.lib import launches, memory, threads, tma
from stepladder.extension.lib.arithmetic import apply, boolean, equal, index
from stepladder.extension.lib.control_flow import (
    add_iter_args,
    body_of,
    create_if,
    enclosing_loops,
    extend_yield,
    next_op,
    terminator_of,
)
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, builtin, gpu, ir, memref, nvgpu, nvvm, scf
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import defining_op, producer, users_of, walk


class LoadByTma(Tc.Operation, name="load_by_tma"):
    """Replaces the copies of the k loop by TMA loads to a pipeline of `stages` stages, each a tile of A and one of B.

    Each stage has two mbarriers. `full` counts bytes: the loads of the stage complete it, and all threads wait for it
    before they read the tiles. `empty` counts warpgroups: each arrives after it has read the tiles, and the thread that
    issues the loads waits for it before it overwrites them. The state of the pipeline, which is the index of the stage
    and the parity that both its barriers have in this pass over the stages, is carried through all enclosing loops.

    A tile has the layout in shared memory that TMA writes: boxes as wide as the swizzle, `memref<boxes x rows x
    columns>` per stage, with the 16-byte units of a row permuted within groups of eight rows. Only the tensor core can
    read it. The user of the copy's tile uses a cast of the stage instead, which `tc.convert_to_warpgroup_mma` takes.
    Several copies to parts of one tile, along n, become loads of matrices of their own.

    Rows of B's tile along n are loaded in whole boxes, of 64 bytes or more where the row exceeds 32 bytes. The tensor
    core does not read the columns of a box beyond the tile.

    Descriptors are created on the host, before the launch (`nvgpu.tma.create.descriptor`). TMA fills elements outside
    of the matrix with zeros, so that fills of the tile are erased.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: stages, of the pipeline; warpgroups, that read the tiles.
    Refuses: a matrix whose rows are not a multiple of 16 bytes; a tile whose rows are not a multiple of 32 bytes, or
        that has more than 256 rows.
    """

    target: Handle
    stages: ir.IntegerAttr
    warpgroups: ir.IntegerAttr


_OPERANDS = {"operand_a": "A", "operand_b": "B"}


def _copies(launch: ir.Operation) -> list[ir.Operation]:
    return [op for op in walk(launch, "linalg.copy") if any(mark in op.attributes for mark in _OPERANDS)]


def _shared_tile(copy: ir.Operation) -> ir.Operation:
    """Returns the alloc that a copy writes, all of it or a subview."""
    source = producer(copy.operands[1])
    while source is not None and source.name == "memref.subview":
        source = producer(source.operands[0])
    if source is None or source.name != "memref.alloc":
        raise Refusal(copy, "expected a copy to a tile in shared memory")
    return source


def _is_b_along_k(matmul: ir.Operation) -> bool:
    """Returns whether the rows of B's tile are along k: B is stored as n x k."""
    return indexing_maps(matmul)[1].results[0] != ir.AffineExpr.get_dim(2)


class _Tile:
    """A tile in shared memory, and the stages that replace it.

    Args:
        alloc: of the tile.
        copies: to it: one, or one to each of its equal parts along n (`tc.merge_products`).
        matmul: the `linalg.matmul` that reads it.
        stages: of the pipeline.

    Attributes:
        matrix: what is copied to it, for messages.
        boxes, rows, columns: of a part, and of its boxes.
        bytes: of a part.
        buffer: the stages: stages x boxes x rows x columns.
    """

    def __init__(self, alloc: ir.Operation, copies: list[ir.Operation], matmul: ir.Operation, stages: int) -> None:
        self.alloc = alloc
        copy = copies[0]
        mark = next(mark for mark in _OPERANDS if mark in copy.attributes)
        self.matrix = _OPERANDS[mark]
        type_ = ir.MemRefType(alloc.results[0].type)
        self.element_type = type_.element_type
        self.rows, columns = type_.shape
        width = types.byte_width(self.element_type)
        parts = len(copies)
        self._parts_by_row = mark == "operand_b" and _is_b_along_k(matmul)
        if self._parts_by_row:
            self.rows //= parts
        else:
            columns //= parts
        if mark == "operand_b" and not _is_b_along_k(matmul):
            box_columns = tma.whole_boxes(columns * width) // width
            if parts > 1 and box_columns != columns:
                raise Refusal(
                    copy, f"parts of a tile of {columns * width} bytes a row, which are no whole boxes of TMA"
                )
            columns = box_columns
        swizzle = tma.row_swizzle(columns * width)
        if swizzle is None:
            raise Refusal(
                copy,
                f"rows of the tile of {self.matrix} are {columns * width} bytes; TMA swizzles require multiples of 32",
            )
        if self.rows > tma.BOX_LIMIT:
            raise Refusal(
                copy, f"the tile of {self.matrix} has {self.rows} rows, and a box of TMA at most {tma.BOX_LIMIT}"
            )
        self.swizzle = swizzle
        self.columns = swizzle // width
        self.boxes = columns // self.columns
        self.bytes = self.rows * columns * width
        with ir.InsertionPoint(alloc), alloc.location:
            by_row, by_box = (parts, 1) if self._parts_by_row else (1, parts)
            self._shape = [self.boxes * by_box, self.rows * by_row, self.columns]
            self.buffer: ir.Value = memref.alloc(
                ir.MemRefType.get([stages, *self._shape], self.element_type, memory_space=type_.memory_space), [], []
            )
            defining_op(self.buffer).attributes[mark] = ir.UnitAttr.get()

    def place(self, copy: ir.Operation) -> tuple[int, int]:
        """Returns the box and the row at which the part that a copy fills begins."""
        view = producer(copy.operands[1])
        offsets = [0, 0]
        while view is not None and view.name == "memref.subview":
            own = list(ir.DenseI64ArrayAttr(view.attributes["static_offsets"]))
            offsets = [before + offset for before, offset in zip(offsets, own)]
            view = producer(view.operands[0])
        return (0, offsets[0]) if self._parts_by_row else (offsets[1] // self.columns, 0)

    def stage(self, stage: ir.Value) -> ir.Value:
        """Returns the tile of a stage: boxes x rows x columns."""
        return memory.subview(self.buffer, [stage, 0, 0, 0], [1, *self._shape], drop=1)


class _Load:
    """A copy that becomes TMA loads.

    Args:
        copy: the `linalg.copy`.
        tile: that it fills, or a part of which.
        launch: the launch around it.
        first: the first of all copies.

    Attributes:
        descriptor: of the matrix that is loaded.
        bytes: that it loads.
    """

    def __init__(self, copy: ir.Operation, tile: _Tile, launch: ir.Operation, first: ir.Operation) -> None:
        self.copy, self.tile, self.bytes = copy, tile, tile.bytes
        self.place = tile.place(copy)
        with ir.InsertionPoint(first), copy.location:  # before all loads
            self.origin = tma.global_tile(copy, copy.operands[0])
        tma.check_buffer(copy, self.origin.buffer, tile.matrix)
        type_ = types.tensor_map(tile.rows, tile.columns, tile.element_type, tile.swizzle, rank=self.origin.rank)
        with ir.InsertionPoint(launch), launch.location:
            self.descriptor = tma.create_descriptor(self.origin.buffer, type_, tile.rows, tile.columns)

    def issue(self, full: ir.Value, stage: ir.Value) -> None:
        """Creates the loads of a stage, one per box."""
        first_box, row = self.place
        for box in range(self.tile.boxes):
            sizes = [1, 1, self.tile.rows, self.tile.columns]
            destination = memory.subview(
                self.tile.buffer, [stage, first_box + box, row, 0], sizes, drop=4 - self.origin.rank
            )
            column = self.origin.column
            if box:
                column = apply(lambda x: x + box * self.tile.columns, column)
            nvgpu.tma_async_load(
                destination, full, self.descriptor, self.origin.coordinates(column, self.origin.row), stage
            )


def _matmul_of(launch: ir.Operation, copies: list[ir.Operation]) -> ir.Operation:
    """Returns the matmul that reads the tiles and is in the same block as the copies."""
    if not copies:
        raise Refusal(launch, "no copies of A and B to shared memory in the launch")
    matmuls = walk(launch, "linalg.matmul")
    if len(matmuls) != 1:
        raise Refusal(launch, f"expected one linalg.matmul in the launch, found {len(matmuls)}")
    if any(copy.block != matmuls[0].block for copy in copies):
        raise Refusal(copies[0], "expected the copies of A and B in the same block as the linalg.matmul")
    return matmuls[0]


def _create_prologue(
    launch: ir.Operation, tiles: list[_Tile], loads: list[_Load], stages: int, warpgroups: int
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Creates the mbarriers, their initialization by one thread, and the barrier after it.

    Returns:
        Whether a thread is the one that issues loads, and the groups of mbarriers `full` and `empty`.
    """
    buffers = [defining_op(tile.buffer) for tile in tiles]
    last = next(buffer for buffer in buffers if not any(buffer.is_before_in_block(other) for other in buffers))
    with ir.InsertionPoint(next_op(last)), launch.location:
        is_leader = equal(threads.thread_id(), index(0))
        full = nvgpu.mbarrier_create(types.mbarrier_group(stages))
        empty = nvgpu.mbarrier_create(types.mbarrier_group(stages))
        with create_if(is_leader):
            loop = scf.ForOp(index(0), index(stages), index(1))
            with ir.InsertionPoint(loop.body):
                nvgpu.mbarrier_init(full, index(1), loop.induction_variable)
                nvgpu.mbarrier_init(empty, index(warpgroups), loop.induction_variable)
                scf.yield_([])
            nvvm.fence_mbarrier_init()
            for load in loads:
                nvgpu.tma_prefetch_descriptor(load.descriptor)
        gpu.barrier()
    return is_leader, full, empty


def _advance(stage: ir.Value, parity: ir.Value, stages: int) -> tuple[ir.Value, ir.Value]:
    """Returns the next state of the pipeline: the index of the stage after `stage`, and its parity."""
    if stages == 1:
        return stage, arith.xori(parity, boolean(True))
    following = arith.addi(stage, index(1))
    wraps = equal(following, index(stages))
    return arith.select(wraps, index(0), following), arith.select(wraps, arith.xori(parity, boolean(True)), parity)


@transform_op(LoadByTma)
def load_by_tma(payload: ir.Operation, op: LoadByTma, rewriter: Rewriter) -> None:
    """Rewrites the copies of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    stages, warpgroups = op.stages.value, op.warpgroups.value
    copies = _copies(launch)
    matmul = _matmul_of(launch, copies)
    of_tile: dict[ir.Operation, list[ir.Operation]] = {}
    for copy in copies:
        of_tile.setdefault(_shared_tile(copy), []).append(copy)
    tiles = {alloc: _Tile(alloc, own, matmul, stages) for alloc, own in of_tile.items()}
    loads = [_Load(copy, tiles[_shared_tile(copy)], launch, copies[0]) for copy in copies]
    for tile in reversed(tiles.values()):
        defining_op(tile.buffer).move_before(body_of(launch).operations[0])
    launches.set_launch_sizes(launch, launches.BLOCK, [warpgroups * threads.WARPGROUP, 1, 1])
    is_leader, full, empty = _create_prologue(launch, list(tiles.values()), loads, stages, warpgroups)

    # All enclosing loops carry the state of the pipeline.
    loops = enclosing_loops(matmul)
    with ir.InsertionPoint(loops[0] if loops else copies[0]), launch.location:
        state: list[ir.Value] = [index(0), boolean(False)]
    for number, loop in enumerate(loops):
        loops[number], arguments = add_iter_args(loop, state, rewriter)
        state = list(arguments)
    stage, parity = state
    for outer, inner in zip(loops, loops[1:]):
        extend_yield(outer, list(inner.results)[-2:])

    with ir.InsertionPoint(copies[0]), copies[0].location:
        with create_if(is_leader):
            nvgpu.mbarrier_try_wait_parity(empty, arith.xori(parity, boolean(True)), index(tma.TRY_WAIT_TICKS), stage)
            nvgpu.mbarrier_arrive_expect_tx(full, index(sum(load.bytes for load in loads)), stage)
            for load in loads:
                load.issue(full, stage)
    for tile in tiles.values():
        own = [load.copy for load in loads if load.tile is tile]
        with ir.InsertionPoint(matmul), own[0].location:
            cast = builtin.unrealized_conversion_cast([tile.alloc.results[0].type], [tile.stage(stage)])
        _replace_tile(tile.alloc, own, cast, rewriter)
    with ir.InsertionPoint(matmul), matmul.location:
        nvgpu.mbarrier_try_wait_parity(full, parity, index(tma.TRY_WAIT_TICKS), stage)
    with ir.InsertionPoint(next_op(matmul)), matmul.location:
        with create_if(equal(threads.thread_in_warpgroup(), index(0))):
            nvgpu.mbarrier_arrive(empty, stage)
    if loops:
        with ir.InsertionPoint(terminator_of(body_of(loops[-1]))), launch.location:
            following = _advance(stage, parity, stages)
        extend_yield(loops[-1], following)


def _replace_tile(tile: ir.Operation, copies: list[ir.Operation], cast: ir.Value, rewriter: Rewriter) -> None:
    """Replaces the tile that copies fill by a cast of the stage, and erases the copies and the fills."""
    views = [producer(copy.operands[1]) for copy in copies]
    for copy in copies:
        rewriter.erase_op(copy)
    for view in views:
        while view is not None and view.name == "memref.subview" and not list(view.results[0].uses):
            source = producer(view.operands[0])
            rewriter.erase_op(view)
            view = source
    for user, _ in memory.linalg_uses(tile.results[0]):
        if user.name == "linalg.fill":
            rewriter.erase_op(user)
    for view in users_of(tile.results[0]):
        if view.name == "memref.subview" and not list(view.results[0].uses):
            rewriter.erase_op(view)
    tile.results[0].replace_all_uses_with(cast)
    rewriter.erase_op(tile)
