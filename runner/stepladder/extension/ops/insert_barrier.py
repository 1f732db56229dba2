"""`tc.insert_barrier`: inserts a block-wide barrier before an op."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir


class InsertBarrier(Tc.Operation, name="insert_barrier"):
    """Inserts a `gpu.barrier` before each op of the handle.

    Upstream inserts a barrier only after a whole parallel loop that is mapped to threads: after each pass of a copy,
    where one barrier after the last pass is enough.

    Operands: a handle to ops inside a `gpu.launch`.
    Refuses: an op outside of a `gpu.launch`.
    """

    target: Handle


@transform_op(InsertBarrier)
def insert_barrier(payload: ir.Operation, op: InsertBarrier, rewriter: Rewriter) -> None:
    """Inserts a barrier before `payload`; see the op."""
    parent = payload.parent
    while parent is not None and parent.name != "gpu.launch":
        parent = parent.parent
    if parent is None:
        raise Refusal(payload, "a barrier has no meaning outside a gpu.launch")
    with ir.InsertionPoint(payload), payload.location:
        ir.Operation.create("gpu.barrier")
