"""`tc.split_a_into_tf32`: multiplies tiles of f32 by warpgroup MMAs of two parts of tf32, those of A in registers."""

from stepladder.extension.lib import launches, tma, transposes, vectors, warpgroup_ops
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.mixed_radix import Index
from stepladder.extension.lib.register_stages import (
    LANE,
    StagedOperand,
    erase_unused,
    release_by_warps,
    replace_loads,
    rows_of,
    stage_of,
)
from stepladder.extension.lib.source_tiles import Source, SourceTile, together
from stepladder.extension.lib.tf32_operands import Matrix, add_small_tile, copy_to, erase_unread, parts_of, the_mma
from stepladder.extension.lib.tf32_parts import split_in_warp
from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import defining_op, users_of, walk


class SplitAIntoTf32(Tc.Operation, name="split_a_into_tf32"):
    """Splits B into large and small parts in workspaces, and A in the registers of the threads that multiply it.

    TMA loads tiles of A as it is, also where it is M-major and A was to be copied to a transpose. Each thread
    reads its elements of a tile, and splits them as `tc.split_into_tf32` does. `tc.warpgroup_mma_3xtf32_registers`
    multiplies the parts.

    All threads read a stage, so that a thread of each warp releases it.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: a launch without one MMA of tf32; a copy, or a batch, that is both A and B; rows of tiles of A that TMA
        does not swizzle.
    """

    target: Handle


_STEP, _HALF = 8, 4  # of k, that an instruction takes, and between the two elements of a row that a thread has


def _source_of(operand: StagedOperand) -> Source:
    """Returns what TMA loads tiles of A from: the source of the transposing copy that A is, or A."""
    buffer, along_k = operand.cast.operands[0], True
    copy = copy_to(buffer)
    if copy is not None:
        # The views of a copy are created before it.
        with ir.InsertionPoint(copy), copy.location:
            original = transposes.source_of_transpose(copy.operands[0])
        if original is not None and _is_loadable(copy, original):
            buffer, along_k = original, False
    is_batch = ir.MemRefType(buffer.type).rank > 2
    source = Source(operand.create, buffer, (operand.m, operand.k), is_batch=is_batch)
    source.along_k = along_k
    return source


def _is_loadable(op: ir.Operation, buffer: ir.Value) -> bool:
    """Returns whether TMA can load tiles of a buffer."""
    try:
        tma.check_buffer(op, buffer, "A")
    except Refusal:
        return False
    return True


def _split(operand: StagedOperand, tile: SourceTile, launch: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """Returns the large and the small part of a thread's elements of a tile, at the insertion point: 64 rows x steps of
    k x 4 elements."""
    rows, lane = rows_of(operand, launch)
    bases = {LANE: lane, **{row.name: row.in_tile for row in rows}}
    stage, steps = stage_of(operand.generate, operand.alloc), operand.tile_k // _STEP
    elements_by_place = {}
    # All reads come before the first of the ops that split what was read: each takes as long as many of these.
    for block in range(operand.blocks):
        for step in range(steps):
            elements = [
                tile.element(
                    stage,
                    Index.of(row.name, operand.tile_m),
                    Index.of(LANE, _HALF) + (step * _STEP + half * _HALF),
                    bases,
                )
                for half in range(2)
                for row in rows[2 * block : 2 * block + 2]
            ]
            elements_by_place[block, step] = elements
    numbers = vectors.stack(
        {place: together(elements) for place, elements in elements_by_place.items()}, [operand.blocks, steps]
    )
    return split_in_warp(numbers)


@transform_op(SplitAIntoTf32)
def split_a_into_tf32(payload: ir.Operation, op: SplitAIntoTf32, rewriter: Rewriter) -> None:
    """Rewrites the MMA in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    mma = the_mma(launch)
    operand = StagedOperand(launch, mma)
    generate_b = defining_op(mma.operands[1])
    b = Matrix(defining_op(generate_b.operands[1]))
    a_buffer, b_buffer = operand.cast.operands[0], b.buffer
    source = _source_of(operand)
    if source.is_batch and b.create == operand.create:
        raise Refusal(mma, "expected A and B of a batch in buffers of their own")
    if source.buffer == b_buffer and copy_to(b_buffer) is not None:
        raise Refusal(mma, "expected A and B in buffers of their own: a B that is a copy is erased where B is split")
    # The tiles of matrices of a batch whose rows lie along k are loaded as they are read.
    replaces = not (source.is_batch and source.along_k)
    tile = SourceTile(source, (operand.tile_m, operand.tile_k), 1, operand.stages, operand.alloc, replaces=replaces)
    if replaces:
        replace_loads(operand, tile, rewriter)

    with ir.InsertionPoint(b.cast), b.cast.location:
        descriptor = b.split(*parts_of(b_buffer, rewriter))
    small = add_small_tile(generate_b, descriptor)
    tile_b = types.matrix_descriptor_tile(generate_b.results[0].type)
    rows, columns = tile_b.shape
    part_bytes = rows * columns * types.byte_width(ir.F32Type.get())
    for expect in walk(launch, tma.EXPECT):
        tma.change_expected(expect, lambda bytes_: bytes_ + part_bytes)

    with ir.InsertionPoint(mma), mma.location:
        large_a, small_a = _split(operand, tile, launch)
        total = warpgroup_ops.multiply_split([large_a, mma.operands[1]], [small_a, small], mma.operands[2])
    rewriter.replace_op(mma, [total])
    release_by_warps(launch, rewriter)
    erase_unused(operand.generate, rewriter)
    # Two descriptors of one buffer, with tiles of two sizes, have one cast.
    for item in dict.fromkeys((operand.create, operand.cast, b.cast)):
        if not users_of(item.results[0]):
            rewriter.erase_op(item)
    for buffer in dict.fromkeys((a_buffer, b_buffer)):
        erase_unread(buffer, rewriter)
