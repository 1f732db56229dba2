"""Split-K workspaces: where the blocks of a tile exchange their partial accumulators, and how they synchronize.

The classes have one interface, `Workspace`. `store` writes the block's accumulator, and `arrive_and_wait` waits until
all splits have. Each thread then reduces some of the `vectors` of the tile, of `width` elements each: `runs` locates a
vector in the tile, `load` returns it from each split. `release` ends the use of the workspace.

Of a transposed C, a workspace in shared memory holds the transposed tile: the vectors are parts of rows of C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stepladder.extension.lib import fragment_order, launches, register_order, remote_memory, semaphores, threads
from stepladder.extension.lib.arithmetic import apply, equal, index, integer, times
from stepladder.extension.lib.control_flow import body_of, create_if
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.extension.lib.epilogues.epilogue import PAIR
from stepladder.extension.lib.memory import create_global, load_vector, subview
from stepladder.extension.lib.tile_grid import (
    PORTABLE_CLUSTER_SIZE,
    batch_id,
    batch_of,
    block_ids,
    grid_of_tiles,
    tile_ids,
)
from stepladder.extension.lib.transposes import transpose
from stepladder.mlir import types
from stepladder.mlir.bindings import gpu, ir, memref, nvvm
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import defining_op

WIDTH = fragment_order.VECTOR  # elements that a thread reduces at once
PAD_BYTES = 32
TRANSPOSED_PAD_BYTES = 16
_WORKSPACE, _SEMAPHORES = "split_k_workspace", "split_k_semaphores"
# Named barriers: 0 is that of the whole block.
_BARRIER = 1


class Workspace(Protocol):
    """A split-K workspace of a launch whose grid has a block for each split of a tile.

    Attributes:
        launch: the launch, with the enlarged grid.
        splits: number of blocks of a tile.
        split: index of the block's split.
        vectors: number of vectors of a tile; known after `store`.
        share: how many of them a block reduces, those of adjacent rows, or less if it is the last; 0 where blocks take
            vectors in turn; known after `store`.
        transposed: whether vectors are parts of columns of the tile, and rows and columns in `runs` exchanged.
        width: elements of a vector; known after `store`.
    """

    launch: ir.Operation
    splits: int
    split: ir.Value
    vectors: int
    share: int
    transposed: bool
    width: int

    def store(self, accumulator: ir.Value) -> None:
        """Writes the block's accumulator tile to the workspace.

        Args:
            accumulator: the tile, a buffer of the accumulator's type.
        """
        ...

    def arrive_and_wait(self) -> None:
        """Waits until all splits of the tile have stored."""
        ...

    def runs(self, vector: ir.Value) -> Sequence[tuple[ir.Value, ir.Value]]:
        """Returns the rows and the columns of the tile at which runs of adjacent elements of a vector begin.

        Args:
            vector: number of the vector in the tile, an index.
        """
        ...

    def load(self, vector: ir.Value) -> list[ir.Value]:
        """Returns a vector of each split.

        Args:
            vector: number of the vector in the tile, an index.
        """
        ...

    def release(self) -> None:
        """Ends the block's use of the workspace."""
        ...


class ClusterWorkspace:
    """A split-K workspace in distributed shared memory: the splits of a tile form a cluster.

    Rows of the tile are padded by `PAD_BYTES`, so that the stores of a warp, to eight rows at once, have no bank
    conflicts. Those of a transposed tile are padded by `TRANSPOSED_PAD_BYTES`: a warp stores elements of eight adjacent
    ones of every other row.

    Args:
        launch: the `gpu.launch`, without clusters.
        splits: number of blocks of a tile.
        thread_count: of a block, that reduce.
        rewriter: of the transform op.
        transposed: whether C is transposed.

    Raises:
        Refusal: more splits than a portable cluster has blocks, or a launch with clusters.
    """

    def __init__(
        self, launch: ir.Operation, splits: int, thread_count: int, rewriter: Rewriter, transposed: bool
    ) -> None:
        if splits > PORTABLE_CLUSTER_SIZE:
            raise Refusal(
                launch, f"a cluster of {splits} blocks; portable clusters have at most {PORTABLE_CLUSTER_SIZE}"
            )
        if launches.launch_sizes(launch, launches.CLUSTER)[0] > 1:
            raise Refusal(launch, "its blocks form clusters, and a split-K workspace in shared memory needs its own")
        self.splits, self.transposed, self.width = splits, transposed, WIDTH
        width, height, batch = launches.launch_sizes(launch, launches.GRID)
        x, y = block_ids(launch)
        launches.set_launch_sizes(launch, launches.GRID, [width * splits, height, batch])
        with ir.InsertionPoint(launch), launch.location:
            sizes = [index(splits), index(1), index(1)]
        self.launch = launches.add_launch_operands(launch, launches.CLUSTER, sizes, rewriter)
        with ir.InsertionPoint.at_block_begin(body_of(self.launch)), self.launch.location:
            tile_x, tile_y = gpu.cluster_id(gpu.Dimension.x), gpu.cluster_id(gpu.Dimension.y)
            self.split = threads.block_rank_in_cluster()
        for id_, number in ((x, tile_x), (y, tile_y)):
            if id_ is not None:
                rewriter.replace_op(id_, [number])

    def store(self, accumulator: ir.Value) -> None:
        """Writes the block's accumulator tile to its own shared memory.

        Args:
            accumulator: the tile, a buffer of the accumulator's type.
        """
        type_ = ir.MemRefType(accumulator.type)
        shape = list(type_.shape)
        rows, self._columns = reversed(shape) if self.transposed else shape
        self.vectors = rows * self._columns // WIDTH
        self.share = -(-rows // self.splits) * self._columns // WIDTH
        pad = TRANSPOSED_PAD_BYTES if self.transposed else PAD_BYTES
        self._pitch = self._columns + pad // types.byte_width(type_.element_type)
        self._allocate([rows, self._pitch], type_)
        own = subview(self._tile, [0, 0], [rows, self._columns])
        create_named_op("linalg.copy", [accumulator], transpose(own) if self.transposed else own)

    def arrive_and_wait(self) -> None:
        """Waits at the cluster's barrier, and maps the tiles of all its blocks."""
        remote_memory.cluster_barrier()
        self._tiles = remote_memory.addresses_in_cluster(self._tile, self.splits)

    def runs(self, vector: ir.Value) -> Sequence[tuple[ir.Value, ir.Value]]:
        """Returns the row of a vector in the tile, and the column at which it begins.

        Args:
            vector: number of the vector in the tile, an index.
        """
        per_row = self._columns // WIDTH
        row = apply(lambda n: ir.AffineExpr.get_floor_div(n, per_row), vector)
        return [(row, apply(lambda n: ir.AffineExpr.get_mod(n, per_row) * WIDTH, vector))]

    def load(self, vector: ir.Value) -> list[ir.Value]:
        """Returns a vector of each block of the cluster.

        Args:
            vector: number of the vector in the tile, an index.
        """
        type_ = ir.VectorType.get([self.width], ir.MemRefType(self._tile.type).element_type)
        place = self._place(vector)
        return [remote_memory.load(tile, place, type_) for tile in self._tiles]

    def release(self) -> None:
        """Keeps a block from exiting while others read its tile."""
        remote_memory.cluster_barrier()

    def _place(self, vector: ir.Value) -> ir.Value:
        """Returns the position of a vector's first element in the buffer of the tile."""
        ((row, column),) = self.runs(vector)
        return apply(lambda r, c: r * self._pitch + c, row, column)

    def _allocate(self, shape: Sequence[int], type_: ir.MemRefType) -> None:
        """Allocates the buffer of the tile, once: before ops that warp specialization clones."""
        with ir.InsertionPoint.at_block_begin(body_of(self.launch)), self.launch.location:
            self._tile: ir.Value = memref.alloc(
                ir.MemRefType.get(shape, type_.element_type, memory_space=type_.memory_space), [], []
            )
            defining_op(self._tile).attributes[_WORKSPACE] = ir.UnitAttr.get()


class RegisterWorkspace(ClusterWorkspace):
    """A split-K workspace in distributed shared memory whose tiles are in register order.

    Each block reduces the same slots of all threads, and a thread those that it holds itself.

    Args:
        launch, splits, rewriter, transposed: as of `ClusterWorkspace`.
        thread_count: of a block, that hold the accumulator and reduce.
    """

    def __init__(
        self, launch: ir.Operation, splits: int, thread_count: int, rewriter: Rewriter, transposed: bool
    ) -> None:
        super().__init__(launch, splits, thread_count, rewriter, transposed)
        self.transposed, self._thread_count = False, thread_count

    def store(self, accumulator: ir.Value) -> None:
        """Writes the block's accumulator tile to its own shared memory, in register order.

        Args:
            accumulator: the tile, a buffer of the accumulator's type.
        """
        type_ = ir.MemRefType(accumulator.type)
        rows, columns = type_.shape
        self._shape = rows, columns
        pairs = register_order.slots_of(rows, columns, self._thread_count, PAIR)
        # A pair for each block, where there are no more: every other block would reduce nothing.
        self.width = PAIR if pairs <= self.splits else WIDTH
        slots = pairs * PAIR // self.width
        self.vectors, self.share = slots * self._thread_count, -(-slots // self.splits) * self._thread_count
        self._allocate([slots, self._thread_count * self.width], type_)
        register_order.store_tile(accumulator, self._tile, self._thread_count, self.width)

    def runs(self, vector: ir.Value) -> Sequence[tuple[ir.Value, ir.Value]]:
        """Returns the rows and the columns of a vector's pairs.

        Args:
            vector: number of the vector in the tile, an index.
        """
        return register_order.runs_of(vector, self._shape, self._thread_count, self.width)

    def _place(self, vector: ir.Value) -> ir.Value:
        return times(vector, self.width)


class GlobalWorkspace:
    """A split-K workspace in global memory: the splits of a tile need no cluster, and may belong to clusters.

    The splits of a tile are adjacent in the grid, so that they start together. A semaphore for each tile counts the
    splits that have stored. Launches of a loaded kernel share workspace and semaphores: they must not overlap.

    Args:
        launch: the `gpu.launch`.
        splits: number of blocks of a tile.
        thread_count: of a block, that reduce.
        rewriter: of the transform op.
        transposed: whether C is transposed, which makes no difference here.
    """

    transposed, share, width = False, 0, WIDTH

    def __init__(
        self, launch: ir.Operation, splits: int, thread_count: int, rewriter: Rewriter, transposed: bool
    ) -> None:
        self.launch, self.splits, self._thread_count = launch, splits, thread_count
        width, height, size = grid_of_tiles(launch)
        batch = batch_of(launch)
        self._tile_count = width * height * batch * size
        launches.set_launch_sizes(launch, launches.GRID, [width * splits * size, height, batch])
        x, y = tile_ids(launch)
        z = batch_id(launch)
        body = body_of(launch)
        uses = [] if x is None else [(use.owner.operation, use.operand_number) for use in x.results[0].uses]
        for id_ in (z, y, x):
            if id_ is not None:
                id_.move_before(body.operations[0])
        with ir.InsertionPoint.at_block_begin(body), launch.location:
            if x is None:
                kind = gpu.block_id if size == 1 else gpu.cluster_id
                x = defining_op(kind(gpu.Dimension.x))
        with ir.InsertionPoint(body.operations[1 + sum(id_ is not None for id_ in (y, z))]), launch.location:
            number = x.results[0]
            column = apply(lambda n: ir.AffineExpr.get_floor_div(n, splits), number)
            self.split = apply(lambda n: ir.AffineExpr.get_mod(n, splits), number)
            tile = column if y is None else apply(lambda c, r: r * width + c, column, y.results[0])
            if z is not None:
                tile = apply(lambda t, b: b * (width * height) + t, tile, z.results[0])
            if size > 1:
                tile = apply(lambda t, r: t * size + r, tile, threads.block_rank_in_cluster())
            self._tile = tile
        for user, position in uses:
            user.operands[position] = column

    def store(self, accumulator: ir.Value) -> None:
        """Writes the block's accumulator tile to the workspace, in fragment order.

        Args:
            accumulator: the tile, a buffer of the accumulator's type.
        """
        type_ = ir.MemRefType(accumulator.type)
        rows, self._columns = type_.shape
        self.vectors = rows * self._columns // WIDTH
        workspace_type = ir.MemRefType.get(
            [self._tile_count, self.splits, self.vectors, WIDTH],
            type_.element_type,
            memory_space=types.address_space(types.GLOBAL),
        )
        symbol = create_global(self.launch, _WORKSPACE, workspace_type)
        self._workspace: ir.Value = memref.get_global(workspace_type, symbol)
        own = subview(self._workspace, [self._tile, self.split, 0, 0], [1, 1, self.vectors, WIDTH], drop=2)
        fragment_order.store_tile(accumulator, own)

    def arrive_and_wait(self) -> None:
        """Waits until all splits of the tile have arrived at its semaphore, by one thread of each block."""
        counters = semaphores.Semaphores(self.launch, _SEMAPHORES, self._tile_count)
        thread_count = integer(self._thread_count, 32)
        nvvm.barrier(barrier_id=integer(_BARRIER, 32), number_of_threads=thread_count)
        with create_if(equal(threads.thread_id(), index(0))):
            semaphores.arrive_and_wait(counters.address(self._tile), self.splits)
        nvvm.barrier(barrier_id=integer(_BARRIER, 32), number_of_threads=thread_count)

    def runs(self, vector: ir.Value) -> Sequence[tuple[ir.Value, ir.Value]]:
        """Returns the row of a vector in the tile, and the columns of its two pairs.

        Args:
            vector: number of the vector in the tile, an index.
        """
        row, columns = fragment_order.coordinates_of(vector, self._columns)
        return [(row, column) for column in columns]

    def load(self, vector: ir.Value) -> list[ir.Value]:
        """Returns a vector of each split of the tile.

        Args:
            vector: number of the vector in the tile, an index.
        """
        tile = subview(self._workspace, [self._tile, 0, 0, 0], [1, self.splits, self.vectors, WIDTH], drop=1)
        type_ = ir.VectorType.get([WIDTH], ir.MemRefType(self._workspace.type).element_type)
        return [load_vector(type_, tile, index(split), vector, index(0)) for split in range(self.splits)]

    def release(self) -> None:
        """Does nothing: global memory outlives the block."""
