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
    if "indexing_maps" not in matmul.attributes:
        return False
    return ir.AffineMapAttr(matmul.attributes["indexing_maps"][1]).value.results[0] != ir.AffineExpr.get_dim(2)


class _Load:
    """A copy that becomes TMA loads.

    Args:
        copy: the `linalg.copy`.
        launch: the launch around it.
        first: the first of all copies.
        stages: of the pipeline.
        matmul: the `linalg.matmul` that reads the tile.

    Attributes:
        tile: the alloc that the copy fills.
        buffer: the stages that replace the tile: stages x boxes x rows x columns.
        descriptor: of the matrix that is loaded.
        bytes: of a stage.
    """

    def __init__(
        self, copy: ir.Operation, launch: ir.Operation, first: ir.Operation, stages: int, matmul: ir.Operation
    ) -> None:
        self.copy = copy
        self.mark = next(mark for mark in _OPERANDS if mark in copy.attributes)
        self.tile = _shared_tile(copy)
        type_ = ir.MemRefType(self.tile.results[0].type)
        self.rows, columns = type_.shape
        self.element_type = type_.element_type
        width = types.byte_width(self.element_type)
        if self.mark == "operand_b" and not _is_b_along_k(matmul):
            columns = tma.whole_boxes(columns * width) // width
        swizzle = tma.row_swizzle(columns * width)
        matrix = _OPERANDS[self.mark]
        if swizzle is None:
            raise Refusal(
                copy, f"rows of the tile of {matrix} are {columns * width} bytes, and TMA swizzles multiples of 32"
            )
        if self.rows > tma.BOX_LIMIT:
            raise Refusal(copy, f"the tile of {matrix} has {self.rows} rows, and a box of TMA at most {tma.BOX_LIMIT}")
        self.columns = swizzle // width
        self.boxes = columns // self.columns
        self.bytes = self.rows * columns * width
        with ir.InsertionPoint(first), copy.location:  # before all loads
            self.origin = tma.global_tile(copy, copy.operands[0])
        tma.check_buffer(copy, self.origin.buffer, matrix)
        descriptor_type = types.tensor_map(self.rows, self.columns, self.element_type, swizzle, rank=self.origin.rank)
        with ir.InsertionPoint(launch), launch.location:
            self.descriptor = tma.create_descriptor(self.origin.buffer, descriptor_type, self.rows, self.columns)
        with ir.InsertionPoint(self.tile), self.tile.location:
            shape = [stages, self.boxes, self.rows, self.columns]
            self.buffer: ir.Value = memref.alloc(
                ir.MemRefType.get(shape, self.element_type, memory_space=type_.memory_space), [], []
            )
            defining_op(self.buffer).attributes[self.mark] = ir.UnitAttr.get()

    def stage(self, stage: ir.Value) -> ir.Value:
        """Returns the tile of a stage: boxes x rows x columns."""
        return memory.subview(self.buffer, [stage, 0, 0, 0], [1, self.boxes, self.rows, self.columns], drop=1)

    def issue(self, full: ir.Value, stage: ir.Value) -> None:
        """Creates the loads of a stage, one per box."""
        for box in range(self.boxes):
            destination = memory.subview(
                self.buffer, [stage, box, 0, 0], [1, 1, self.rows, self.columns], drop=4 - self.origin.rank
            )
            column = self.origin.column
            if box:
                column = apply(lambda x: x + box * self.columns, column)
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
    launch: ir.Operation, loads: list[_Load], stages: int, warpgroups: int
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Creates the mbarriers, their initialization by one thread, and the barrier after it.

    Returns:
        Whether a thread is the one that issues loads, and the groups of mbarriers `full` and `empty`.
    """
    buffers = [defining_op(load.buffer) for load in loads]
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
    loads = [_Load(copy, launch, copies[0], stages, matmul) for copy in copies]
    for load in reversed(loads):
        defining_op(load.buffer).move_before(body_of(launch).operations[0])
    launches.set_launch_sizes(launch, launches.BLOCK, [warpgroups * threads.WARPGROUP, 1, 1])
    is_leader, full, empty = _create_prologue(launch, loads, stages, warpgroups)

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
    for load in loads:
        with ir.InsertionPoint(matmul), load.copy.location:
            cast = builtin.unrealized_conversion_cast([load.tile.results[0].type], [load.stage(stage)])
        _replace_tile(load, cast, rewriter)
    with ir.InsertionPoint(matmul), matmul.location:
        nvgpu.mbarrier_try_wait_parity(full, parity, index(tma.TRY_WAIT_TICKS), stage)
    with ir.InsertionPoint(next_op(matmul)), matmul.location:
        with create_if(equal(threads.thread_in_warpgroup(), index(0))):
            nvgpu.mbarrier_arrive(empty, stage)
    if loops:
        with ir.InsertionPoint(terminator_of(body_of(loops[-1]))), launch.location:
            following = _advance(stage, parity, stages)
        extend_yield(loops[-1], following)


def _replace_tile(load: _Load, cast: ir.Value, rewriter: Rewriter) -> None:
    """Replaces the tile that a copy fills by a cast of the stage, and erases the copy and the fills."""
    view = defining_op(load.copy.operands[1])
    rewriter.erase_op(load.copy)
    for user in users_of(load.tile.results[0]):
        if user.name == "linalg.fill":
            rewriter.erase_op(user)
    if view != load.tile and not list(view.results[0].uses):
        rewriter.erase_op(view)
    load.tile.results[0].replace_all_uses_with(cast)
    rewriter.erase_op(load.tile)
