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

    Operands: a handle to any op with one `gpu.launch` below.
    """

    target: Handle


@transform_op(EnableDependentLaunch)
def enable_dependent_launch(payload: ir.Operation, op: EnableDependentLaunch, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = find_launch(payload)
    barrier = pipeline.prologue_barrier(launch)
    with ir.InsertionPoint.after(barrier), launch.location:
        nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
        nvvm.griddepcontrol(nvvm.GridDepActionKind.wait)
