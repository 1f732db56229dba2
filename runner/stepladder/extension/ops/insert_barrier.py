"""`tc.insert_barrier`: a block-wide barrier in front of an op."""

from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.mlir.bindings import ext, ir, transform


class InsertBarrier(Tc.Operation, name="insert_barrier"):
    """Inserts a `gpu.barrier` in front of each op of the handle.

    Upstream inserts barriers only behind a whole parallel loop that is mapped to threads, which is behind every pass of
    a copy where one is needed behind the last.

    Operands: a handle to ops inside a `gpu.launch`.
    Refuses: an op that is in none.
    """

    target: ext.Operand[transform.AnyOpType]


@transform_op(InsertBarrier)
def insert_barrier(payload, op, rewriter) -> None:
    """Inserts a barrier in front of `payload`; see the op."""
    parent = payload.parent
    while parent is not None and parent.name != "gpu.launch":
        parent = parent.parent
    if parent is None:
        raise Refusal(payload, "a barrier has no meaning outside a gpu.launch")
    with ir.InsertionPoint(payload), payload.location:
        ir.Operation.create("gpu.barrier")
