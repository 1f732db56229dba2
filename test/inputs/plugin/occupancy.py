"""A plug-in: `occupancy.limit_registers`, which lets a number of blocks of a kernel share a multiprocessor."""

from stepladder.extension import (
    Dialect,
    Handle,
    HandleResult,
    Refusal,
    ir,
    transform_op,
    walk,
)

REGISTERS = 65536  # of a multiprocessor, from sm_70 on
WIDTH = 8  # registers are given to the threads of a warp in units of eight
MIN, MAX = 24, 255  # that a thread can have


class Occupancy(Dialect, name="occupancy"):
    """Transform ops about how many blocks share a multiprocessor."""


class LimitRegisters(Occupancy.Operation, name="limit_registers"):
    """Limits the registers of each kernel so that `blocks` blocks of it have room on a multiprocessor.

    Operands: a handle to ops with kernels of the LLVM dialect below them.
    Attributes: the number of blocks.
    Results: a handle to the kernels.
    Refuses: a kernel whose block size is not known, and so many blocks that too few registers are left.
    """

    target: Handle
    kernels: HandleResult
    blocks: ir.IntegerAttr


@transform_op(LimitRegisters)
def limit_registers(payload: ir.Operation, op: LimitRegisters, rewriter: object) -> list[ir.Operation]:
    """Sets `nvvm.maxnreg` on the kernels below `payload`; see the op."""
    kernels = [func for func in walk(payload, "llvm.func") if "nvvm.kernel" in func.attributes]
    for kernel in kernels:
        if "nvvm.maxntid" not in kernel.attributes:
            raise Refusal(kernel, "the kernel's block size is not known")
        threads = 1
        for size in ir.DenseI32ArrayAttr(kernel.attributes["nvvm.maxntid"]):
            threads *= size
        registers = min(REGISTERS // (op.blocks.value * threads) // WIDTH * WIDTH, MAX)
        if registers < MIN:
            raise Refusal(
                kernel, f"{op.blocks.value} blocks of {threads} threads leave {registers} registers per thread"
            )
        kernel.attributes["nvvm.maxnreg"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), registers)
    return kernels
