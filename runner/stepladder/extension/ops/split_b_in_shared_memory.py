"""`tc.split_b_in_shared_memory`: splits tiles of B into parts of tf32 in shared memory, not in a preceding kernel."""

import math

from stepladder.extension.lib import launches, memory, tma, transposes, warpgroup_ops
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.register_stages import PREFETCH, erase_unused, stage_of
from stepladder.extension.lib.source_tiles import Source, SourceTile
from stepladder.extension.lib.split_stages import AT_ONCE, WIDTH, Stage, TransposedStage
from stepladder.extension.lib.tf32_operands import erase_unread
from stepladder.extension.lib.warpgroup_ops import WarpgroupMma3xtf32Registers
from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import defining_op, users_of, walk


class SplitBInSharedMemory(Tc.Operation, name="split_b_in_shared_memory"):
    """Loads tiles of the unmodified B, and splits them in shared memory before the MMA.

    The threads of the MMA replace each element of a tile by its large part, and store the small part at the same
    position of a second tile, so that neither layout nor swizzle matters. A proxy fence and a named barrier order the
    stores before the reads of the MMA.

    An N-major B, of which `tc.transpose_operands` made a transposed copy, is loaded as it is, and the threads transpose
    its tiles: they read all elements, wait for each other, and then store both parts K-major.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: a launch without one MMA of two parts with A in registers, which `tc.split_a_into_tf32` creates; a B whose
        pitch is no multiple of 16 bytes; a tile of an N-major B of more than 32 elements for each thread.
    """

    target: Handle


def _the_mma(launch: ir.Operation) -> ir.Operation:
    mmas = walk(launch, WarpgroupMma3xtf32Registers.OPERATION_NAME)
    if len(mmas) != 1:
        raise Refusal(launch, f"expected one MMA of two parts with A in registers, found {len(mmas)}")
    return mmas[0]


def _erase_loads(launch: ir.Operation, descriptor: ir.Operation, rewriter: Rewriter) -> None:
    """Erases the loads by a TMA descriptor, and their bytes from those that a stage expects."""
    loaded_bytes = 0
    for user in users_of(descriptor.results[0]):
        if user.name == tma.LOAD:
            view = defining_op(user.operands[0])
            box = ir.MemRefType(view.results[0].type)
            loaded_bytes += math.prod(box.shape) * types.byte_width(box.element_type)
            rewriter.erase_op(user)
            erase_unused(view, rewriter)
        elif user.name == PREFETCH:
            rewriter.erase_op(user)
    for expect in walk(launch, tma.EXPECT):
        tma.change_expected(expect, lambda bytes_: bytes_ - loaded_bytes)


def _before_split_of_a(mma: ir.Operation) -> ir.InsertionPoint:
    """Returns where a thread has loaded its elements of A, whose latency the split of B hides."""
    ops = operations_of(mma.block)
    before = ops[: ops.index(mma)]
    return ir.InsertionPoint.after([op for op in before if op.name == "memref.load"][-1])


class _Parts:
    """The tiles of both parts of B in shared memory, and where their elements come from.

    Args:
        launch: with the MMA.
        mma: the op.

    Attributes:
        generates: the ops that make the matrix descriptors of the tiles; `tiles`: the allocations of their stages.
        descriptors: the TMA descriptors that they are loaded by; `casts`: the operands of these.
        parts: the workspaces; `writer`: the op that fills them, from `source`.
    """

    def __init__(self, launch: ir.Operation, mma: ir.Operation) -> None:
        self.launch = launch
        self.generates = [defining_op(mma.operands[place]) for place in (1, 4)]
        self.tiles = [memory.shared_tile_of(generate, generate.operands[0]) for generate in self.generates]
        self.descriptors = [defining_op(generate.operands[1]) for generate in self.generates]
        self.casts = [defining_op(descriptor.operands[0]) for descriptor in self.descriptors]
        self.parts = [cast.operands[0] for cast in self.casts]
        self.writer = next(user for user in users_of(self.parts[0]) if user.name == "linalg.generic")
        self.source = self.writer.operands[0]
        self.thread_count = launches.launch_sizes(launch, launches.BLOCK)[0]

    def _stage(self) -> ir.Value:
        """Returns the stage that the MMA reads, at the insertion point."""
        return stage_of(self.generates[0], self.tiles[0])

    def load_k_major(self, mma: ir.Operation) -> None:
        """Loads tiles of the source in place of those of the large part."""
        tma.check_buffer(mma, self.source, "B")
        first, type_ = self.descriptors[0], self.casts[0].results[0].type
        with ir.InsertionPoint(first), first.location:
            cast = ir.Operation.create(self.casts[0].name, results=[type_], operands=[self.source])
        first.operands[0] = cast.results[0]
        self.generates[1].operands[1] = first.results[0]

    def stage_k_major(self) -> Stage:
        """Returns the stage that is split, at the insertion point."""
        return Stage([tile.results[0] for tile in self.tiles], self.thread_count, self._stage())

    def load_n_major(self, original: ir.Value, rewriter: Rewriter) -> SourceTile:
        """Loads tiles of an N-major matrix in place of those of the large part, and returns them.

        Args:
            original: the matrix, of which the source is the transpose.
            rewriter: of the transform op.
        """
        stages, boxes, columns, width = _shape(self.tiles[0])
        tile_k = boxes * width
        if columns * tile_k > AT_ONCE * WIDTH * self.thread_count:
            raise Refusal(
                self.generates[0],
                f"a tile of B of {columns} x {tile_k} elements, which {self.thread_count} threads transpose: expected "
                f"at most {AT_ONCE * WIDTH} elements for each thread",
            )
        *batch, k, n = ir.MemRefType(original.type).shape
        source = Source(self.generates[0], original, (n, k), is_batch=bool(batch))
        source.along_k = False
        tile = SourceTile(source, (columns, tile_k), 1, stages, self.tiles[0])
        with tma.before_descriptor(self.descriptors[0]):
            descriptor = tile.describe("B")
        for user in users_of(self.descriptors[0].results[0]):
            if user.name == PREFETCH:
                user.operands[0] = descriptor
        loads = [load for load in walk(self.launch, tma.LOAD) if memory.alloc_of(load.operands[0]) == self.tiles[0]]
        tile.load(loads[0], descriptor, *reversed(list(loads[0].operands)[3:5]))
        for load in loads:
            view = defining_op(load.operands[0])
            rewriter.erase_op(load)
            erase_unused(view, rewriter)
        return tile

    def stage_n_major(self, tile: SourceTile, rewriter: Rewriter) -> Stage:
        """Returns the stage that is split and transposed, at the insertion point, and describes its parts to the MMA.

        Args:
            tile: that is loaded.
            rewriter: of the transform op.
        """
        shape, small, stage = _shape(self.tiles[0])[1:], self.tiles[1].results[0], self._stage()
        large = memory.subview(tile.buffer, [stage, 0, 0, 0], [1, *_shape(defining_op(tile.buffer))[1:]], drop=1)
        views = [memory.reshape(large, shape), memory.subview(small, [stage, 0, 0, 0], [1, *shape], drop=1)]
        for generate, view in zip(self.generates, views):
            descriptor = warpgroup_ops.describe_tile(generate.results[0].type, view, warpgroup_ops.swizzle_of(generate))
            before = defining_op(generate.operands[0])
            rewriter.replace_op(generate, [descriptor])
            erase_unused(before, rewriter)
        return TransposedStage(views, self.thread_count, tile, stage)

    def erase(self, rewriter: Rewriter) -> None:
        """Erases the workspaces of the parts and what fills and loads them."""
        for item in (*self.descriptors, *self.casts):
            if not users_of(item.results[0]):
                rewriter.erase_op(item)
        rewriter.erase_op(self.writer)
        for part in self.parts:
            erase_unread(part, rewriter)


def _shape(tile: ir.Operation) -> list[int]:
    """Returns the extents of an allocation."""
    return list(ir.MemRefType(tile.results[0].type).shape)


@transform_op(SplitBInSharedMemory)
def split_b_in_shared_memory(payload: ir.Operation, op: SplitBInSharedMemory, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    mma = _the_mma(launch)
    parts = _Parts(launch, mma)
    _erase_loads(launch, parts.descriptors[1], rewriter)
    original = transposes.source_of_transpose(parts.source)
    tile = None
    if original is None:
        parts.load_k_major(mma)
    else:
        tile = parts.load_n_major(original, rewriter)
    with _before_split_of_a(mma), mma.location:
        stage = parts.stage_k_major() if tile is None else parts.stage_n_major(tile, rewriter)
        stage.split()
    parts.erase(rewriter)
