"""`tc.enable_dependent_launch`: makes a kernel support programmatic dependent launch."""

from stepladder.extension.lib import pipeline
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import find_launch
from stepladder.mlir.bindings import ir, nvvm


class EnableDependentLaunch(Tc.Operation, name="enable_dependent_launch"):
    """Lets the prologue of a kernel overlap with the end of the previous kernel in the stream.

    The prologue, which initializes barriers and prefetches descriptors, accesses no memory that another kernel writes.
    After it, a block allows the next kernel to launch, and waits until the writes of the previous kernel are visible.
    The launcher must set the programmatic-dependent-launch attribute; without it, the wait returns at once.

    Operands: a handle to any op with one `gpu.launch` below. Attributes: late, 1 for a block that waits first: a next
    kernel that reads its weights before it waits then does so when all kernels before this one have ended.
    """

    target: Handle
    late: ir.IntegerAttr


@transform_op(EnableDependentLaunch)
def enable_dependent_launch(payload: ir.Operation, op: EnableDependentLaunch, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = find_launch(payload)
    barrier = pipeline.prologue_barrier(launch)
    kinds = [nvvm.GridDepActionKind.launch_dependents, nvvm.GridDepActionKind.wait]
    with ir.InsertionPoint.after(barrier), launch.location:
        for kind in reversed(kinds) if op.late.value else kinds:
            nvvm.griddepcontrol(kind)
