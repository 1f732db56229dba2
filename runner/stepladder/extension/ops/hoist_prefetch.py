"""`tc.hoist_prefetch`: moves prefetches before the computation that hides their latency."""

from stepladder.extension.lib.control_flow import body_of, operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.schedule import move_with_operands
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, walk
from stepladder.mlir.types import is_workgroup_memory


class HoistPrefetch(Tc.Operation, name="hoist_prefetch"):
    """Moves the loads for the next iteration of a loop before the first read of shared memory in its body.

    Software pipelining (`transform.nvgpu.pipeline_shared_memory_copies`) places the global loads of tile i + 1 at the
    end of the loop body, after the computation on tile i and, with one buffer, after a barrier. This op moves each load
    whose value the loop yields, together with its address arithmetic.

    Operands: a handle to any op; all `scf.for` loops below are rewritten.
    Refuses: a load from memory that the kernel also writes: after the move, a barrier or a store could change its
        value.
    """

    target: Handle


_LOADS = ("vector.transfer_read", "vector.load")
_WRITES = ("vector.transfer_write", "vector.store", "memref.store", "gpu.subgroup_mma_store_matrix")
_SHARED_READS = ("gpu.subgroup_mma_load_matrix", "nvgpu.ldmatrix", "vector.transfer_read", "vector.load", "memref.load")


def _written_buffers(payload: ir.Operation) -> list[ir.Value]:
    """Returns the memrefs that ops below `payload` write: operand 1 of every one of these ops."""
    return [write.operands[1] for write in walk(payload, *_WRITES)]


def _prefetches(loop: ir.Operation) -> list[ir.Operation]:
    body = body_of(loop)
    prefetches: list[ir.Operation] = []
    for value in terminator_of(body).operands:
        load = producer(value)
        if load is None or load.name not in _LOADS or load.block != body:
            continue
        if not is_workgroup_memory(load.operands[0].type) and load not in prefetches:
            prefetches.append(load)
    return prefetches


def _first_shared_read(loop: ir.Operation) -> ir.Operation | None:
    for op in operations_of(body_of(loop)):
        if op.name in _SHARED_READS and is_workgroup_memory(op.operands[0].type):
            return op
    return None


@transform_op(HoistPrefetch)
def hoist_prefetch(payload: ir.Operation, op: HoistPrefetch, rewriter: Rewriter) -> None:
    """Rewrites every loop below `payload`; see the op."""
    for loop in walk(payload, "scf.for"):
        prefetches = _prefetches(loop)
        anchor = _first_shared_read(loop)
        if not prefetches or anchor is None:
            continue
        written_buffers = _written_buffers(payload)
        for load in prefetches:
            if load.operands[0] in written_buffers:
                raise Refusal(load, "the kernel writes the memory that this load reads, so it cannot move")
            if anchor.is_before_in_block(load):
                move_with_operands(load, anchor)
