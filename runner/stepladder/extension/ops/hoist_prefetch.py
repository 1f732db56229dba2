"""`tc.hoist_prefetch`: prefetches move in front of the computation that is to hide them."""

from stepladder.extension.lib.dialect import (
    Refusal,
    Tc,
    is_workgroup_memory,
    producer,
    transform_op,
)
from stepladder.extension.lib.schedule import move_with_operands
from stepladder.mlir.bindings import ext, transform
from stepladder.mlir.traverse import walk


class HoistPrefetch(Tc.Operation, name="hoist_prefetch"):
    """Moves loads for the next iteration of a loop up to the first read of shared memory in its body.

    Software pipelining (`transform.nvgpu.pipeline_shared_memory_copies`) leaves the global loads of tile i + 1 at the
    end of the loop body, behind the computation on tile i and, with one buffer, behind a barrier. Here every load whose
    value leaves through the loop's yield moves up, with the address arithmetic that it needs.

    Operands: a handle to any op; all `scf.for` loops below are treated.
    Refuses: a load from memory that the kernel also writes, since crossing a barrier or a store could then change it.
    """

    target: ext.Operand[transform.AnyOpType]


_LOADS = ("vector.transfer_read", "vector.load")
_WRITES = ("vector.transfer_write", "vector.store", "memref.store", "gpu.subgroup_mma_store_matrix")
_SHARED_READS = ("gpu.subgroup_mma_load_matrix", "nvgpu.ldmatrix", "vector.transfer_read", "vector.load", "memref.load")


def _written_memory(operation) -> list:
    """Returns the memrefs that ops below `operation` write: the value's second operand in every one of these ops."""
    return [write.operands[1] for write in walk(operation, *_WRITES)]


def _prefetches(loop) -> list:
    body = loop.regions[0].blocks[0]
    terminator = body.operations[len(body.operations) - 1]
    found = []
    for value in terminator.operands:
        load = producer(value)
        if load is None or load.name not in _LOADS or load.block != body:
            continue
        if not is_workgroup_memory(load.operands[0].type) and load not in found:
            found.append(load)
    return found


def _first_shared_read(loop):
    for op in loop.regions[0].blocks[0].operations:
        if op.operation.name in _SHARED_READS and is_workgroup_memory(op.operands[0].type):
            return op.operation
    return None


@transform_op(HoistPrefetch)
def hoist_prefetch(payload, op, rewriter) -> None:
    """Treats every loop below `payload`; see the op."""
    for loop in walk(payload, "scf.for"):
        prefetches = _prefetches(loop)
        anchor = _first_shared_read(loop)
        if not prefetches or anchor is None:
            continue
        written = _written_memory(payload)
        for load in prefetches:
            if load.operands[0] in written:
                raise Refusal(load, "the kernel writes the memory that this load reads, so it cannot move")
            if anchor.is_before_in_block(load):
                move_with_operands(load, anchor)
