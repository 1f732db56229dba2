"""A of an MMA in registers: its stages in shared memory, the rows of a thread, and the release of stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib import launches, memory, threads, tma, tma_pipeline
from stepladder.extension.lib.arithmetic import apply, constant_value, index, integer, less_than
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.dialect import Rewriter
from stepladder.extension.lib.source_tiles import SourceTile
from stepladder.extension.lib.warpgroup_ops import DESCRIPTORS, MMA_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, nvvm
from stepladder.mlir.traverse import defining_op, producer, users_of, walk

LANE = "lane"  # name, in indices, of a thread's index among the four that have rows together
PREFETCH = "nvgpu.tma.prefetch.descriptor"
MATRIX = 8  # rows, or elements of 16 bits along k, between the two halves of a thread's elements


@dataclass(frozen=True)
class Row:
    """A row of A's tile of which a thread has elements.

    Attributes:
        name: of its index in the matrix, in indices.
        in_tile: its index in the tile.
        in_matrix: in the matrix; the last one for rows beyond it.
    """

    name: str
    in_tile: ir.Value
    in_matrix: ir.Value


class StagedOperand:
    """A of one MMA op: the tile, its stages, and where it begins.

    Args:
        launch: with the MMA.
        mma: the op.

    Attributes:
        generate: the op that makes the matrix descriptor of the tile.
        alloc: of the stages of tiles.
        create: the op that makes the TMA descriptor; `cast`, its operand.
        m, k: of A, or of each matrix of a batch; `tile_m`, `tile_k`: of the tile.
        bytes: of the tile.
        row, first_k: where the tile begins.
        slice: rows of a warpgroup; `blocks`: of 64 of them.
    """

    def __init__(self, launch: ir.Operation, mma: ir.Operation) -> None:
        self.mma = mma
        self.generate = defining_op(mma.operands[0])
        self.alloc = memory.shared_tile_of(self.generate, self.generate.operands[0])
        self.create = defining_op(self.generate.operands[1])
        self.cast = defining_op(self.create.operands[0])
        extents = ir.MemRefType(self.cast.operands[0].type).shape
        self.m, self.k = self._by_row(extents[-2:])
        tiles = ir.MemRefType(self.alloc.results[0].type)
        self.stages, boxes, rows, columns = tiles.shape
        self.tile_m, self.tile_k = self._by_row([rows, boxes * columns])
        self.bytes = self.tile_m * self.tile_k * types.byte_width(tiles.element_type)
        self.loads = [load for load in walk(launch, tma.LOAD) if memory.alloc_of(load.operands[0]) == self.alloc]
        column, row = list(self.loads[0].operands)[3:5]
        self.row, self.first_k = self._by_row([row, column])
        self.slice = types.matrix_descriptor_tile(mma.operands[0].type).shape[0]
        self.blocks = self.slice // MMA_ROWS

    @property
    def is_transposed(self) -> bool:
        """Whether the matrix is stored as k x m."""
        return "transposeA" in self.mma.attributes

    def _by_row(self, pair: Sequence) -> tuple:
        return (pair[1], pair[0]) if self.is_transposed else (pair[0], pair[1])


def rows_of(operand: StagedOperand, launch: ir.Operation) -> tuple[list[Row], ir.Value]:
    """Returns the rows of a thread, and which of four threads with them it is, at the insertion point.

    Args:
        operand: A.
        launch: with the MMA.
    """
    floor, mod = ir.AffineExpr.get_floor_div, ir.AffineExpr.get_mod
    warpgroups = launches.launch_sizes(launch, launches.BLOCK)[0] // threads.WARPGROUP
    thread = threads.thread_id()

    def first(number: ir.AffineExpr) -> ir.AffineExpr:
        inside = mod(number, threads.WARPGROUP)
        row = floor(inside, threads.WARP) * (MMA_ROWS // 4) + floor(mod(inside, threads.WARP), 4)
        return row + floor(number, threads.WARPGROUP) * operand.slice if warpgroups > 1 else row

    rows = []
    for block in range(operand.blocks):
        for half in range(2):
            in_tile_ = apply(lambda x, below=block * MMA_ROWS + half * MATRIX: first(x) + below, thread)
            in_matrix = arith.addi(operand.row, in_tile_)
            if operand.m % operand.tile_m:
                in_matrix = arith.minsi(in_matrix, index(operand.m - 1))
            rows.append(Row(f"row {len(rows)}", in_tile_, in_matrix))
    return rows, apply(lambda x: mod(x, 4), thread)


def replace_loads(operand: StagedOperand, tile: SourceTile, rewriter: Rewriter) -> None:
    """Loads tiles of the source in place of those of A. A TMA descriptor that B has too stays.

    Args:
        operand: A.
        tile: of the source.
        rewriter: of the transform op.
    """
    with tma.before_descriptor(operand.create):
        descriptor = tile.describe()
    users = users_of(operand.create.results[0])
    is_shared = any(user.name in DESCRIPTORS and user != operand.generate for user in users)
    for user in users:
        if user.name == PREFETCH and is_shared:
            with ir.InsertionPoint(user), user.location:
                ir.Operation.create(PREFETCH, operands=[descriptor])
        elif user.name == PREFETCH:
            user.operands[0] = descriptor
    first = operand.loads[0]
    issue = first.parent
    assert issue is not None  # an scf.if
    tile.load(first, descriptor, operand.row, operand.first_k)
    for expect in walk(issue.operation, tma.EXPECT):
        tma.change_expected(expect, lambda bytes_: bytes_ - operand.bytes + tile.bytes)
    for load in operand.loads:
        view = defining_op(load.operands[0])
        rewriter.erase_op(load)
        rewriter.erase_op(view)


def release_by_warps(launch: ir.Operation, rewriter: Rewriter) -> None:
    """Makes a thread of each warp release a stage, after the reads of its warp.

    Args:
        launch: with the pipeline.
        rewriter: of the transform op.
    """
    releases = tma_pipeline.releases_below(launch)
    if not releases:  # stages that are loaded once
        return
    empty = body_of(releases[0]).operations[0].operation.operands[0]
    for release in releases:
        compare = defining_op(release.operands[0])
        if compare.name == "arith.andi":
            compare = defining_op(compare.operands[0])
        with ir.InsertionPoint(compare), compare.location:
            lane = apply(lambda x: ir.AffineExpr.get_mod(x, threads.WARP), threads.thread_id())
            rewriter.replace_op(compare, [less_than(lane, index(1))])
        with ir.InsertionPoint(release), release.location:
            nvvm.bar_warp_sync(integer(-1, 32))
    for init in users_of(empty):
        if init.name == "nvgpu.mbarrier.init":
            count = constant_value(init.operands[1])
            assert count is not None, "tc.load_by_tma initializes mbarriers with constants"
            with ir.InsertionPoint(init), init.location:
                init.operands[1] = index(count * threads.WARPGROUP // threads.WARP)


def stage_of(generate: ir.Operation, alloc: ir.Operation) -> ir.Value:
    """Returns the stage whose tile the MMA reads.

    Args:
        generate: the op that makes the matrix descriptor of the tile.
        alloc: of the stages of tiles.
    """
    view = defining_op(generate.operands[0])
    while defining_op(view.operands[0]) != alloc:
        view = defining_op(view.operands[0])
    return memory.offsets_of(view)[0]


def erase_unused(op: ir.Operation, rewriter: Rewriter) -> None:
    """Erases an op that nothing uses, and the views and the buffer after its first operand.

    Args:
        op: without side effects.
        rewriter: of the transform op.
    """
    if any(list(result.uses) for result in op.results):
        return
    source = producer(op.operands[0]) if len(op.operands) else None
    rewriter.erase_op(op)
    if source is not None:
        erase_unused(source, rewriter)
