"""`tc.set_min_blocks_per_sm`: bounds the registers of a kernel so that several blocks fit on a multiprocessor."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir


class SetMinBlocksPerSm(Tc.Operation, name="set_min_blocks_per_sm"):
    """Sets the least number of blocks of a kernel that must fit on a multiprocessor.

    The number becomes the attribute `nvvm.minctasm`, which LLVM prints as `.minnctapersm`: the second argument of
    `__launch_bounds__` in CUDA. ptxas derives a register limit from it and from the size of a block. With 0, the kernel
    keeps its attributes.

    Operands: a handle to `gpu.func` ops.
    Attributes: blocks, the number.
    Refuses: a function that is no kernel, and a kernel whose block size is unknown, for which ptxas ignores the number.
    """

    target: Handle
    blocks: ir.IntegerAttr


@transform_op(SetMinBlocksPerSm)
def set_min_blocks_per_sm(payload: ir.Operation, op: SetMinBlocksPerSm, rewriter: Rewriter) -> None:
    """Sets `nvvm.minctasm` on the kernel `payload`; see the op."""
    if payload.name != "gpu.func" or "kernel" not in payload.attributes:
        raise Refusal(payload, "the op is not a kernel function")
    if op.blocks.value == 0:
        return
    if "known_block_size" not in payload.attributes:
        raise Refusal(payload, "the kernel's block size is unknown")
    payload.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), op.blocks.value)
