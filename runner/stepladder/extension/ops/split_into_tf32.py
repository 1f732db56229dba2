"""`tc.split_into_tf32`: multiplies tiles of f32 by warpgroup MMAs of operands that are split into two of tf32."""

from stepladder.extension.lib import launches, tma, warpgroup_ops
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.tf32_operands import Matrix, add_small_tile, erase_unread, parts_of, the_mma
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import defining_op, walk


class SplitIntoTf32(Tc.Operation, name="split_into_tf32"):
    """Splits A and B into large and small parts in workspaces, and multiplies tiles of both.

    The large part of an element is its first 11 bits, rounded to nearest, and the small part what is left. A
    `linalg.generic` before the launch writes both to workspaces, one for each part. Where the matrix is a copy in
    a workspace itself, the op reads the source of the copy, which is erased.

    Each stage has a tile of either part, which TMA loads alike, and `tc.warpgroup_mma_3xtf32` multiplies them.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: a launch without one MMA of tf32; an operand that is a part of a buffer with gaps between its rows.
    """

    target: Handle


def _expect_both(launch: ir.Operation) -> None:
    """Doubles the bytes that a stage expects."""
    for expect in walk(launch, tma.EXPECT):
        tma.change_expected(expect, lambda bytes_: 2 * bytes_)


@transform_op(SplitIntoTf32)
def split_into_tf32(payload: ir.Operation, op: SplitIntoTf32, rewriter: Rewriter) -> None:
    """Rewrites the MMA in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    mma = the_mma(launch)
    generators = [defining_op(mma.operands[number]) for number in (0, 1)]
    matrices = {create: Matrix(create) for create in (defining_op(generator.operands[1]) for generator in generators)}
    parts: dict[ir.Value, list[ir.Value]] = {}
    descriptors: dict[ir.Operation, ir.Value] = {}
    for create, matrix in matrices.items():
        if matrix.buffer not in parts:
            with ir.InsertionPoint(matrix.cast), matrix.cast.location:
                parts[matrix.buffer] = parts_of(matrix.buffer, rewriter)
        descriptors[create] = matrix.split(*parts[matrix.buffer])
    small = [add_small_tile(generator, descriptors[defining_op(generator.operands[1])]) for generator in generators]
    _expect_both(launch)
    with ir.InsertionPoint(mma), mma.location:
        total = warpgroup_ops.multiply_split(list(mma.operands)[:2], small, mma.operands[2])
    rewriter.replace_op(mma, [total])
    for cast in dict.fromkeys(matrix.cast for matrix in matrices.values()):
        rewriter.erase_op(cast)
    for buffer in parts:
        erase_unread(buffer, rewriter)
