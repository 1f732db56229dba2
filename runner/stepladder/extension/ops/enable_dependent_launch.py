"""`tc.enable_dependent_launch`: a kernel prepares itself while the one before it ends."""

from stepladder.extension.lib import building, pipeline
from stepladder.extension.lib.dialect import Tc, transform_op
from stepladder.mlir.bindings import ext, ir, nvvm, transform


class EnableDependentLaunch(Tc.Operation, name="enable_dependent_launch"):
    """Lets a kernel begin while the one before it in the stream still runs, and wait for it before it reads memory.

    What a block does first touches no memory that another kernel writes: barriers, descriptors. Behind that it lets the
    kernel after it begin likewise, and waits until all that the one before wrote can be read. The launcher must ask for
    it (programmatic dependent launch), or there is nothing to wait for.

    Operands: a handle to any op with one `gpu.launch` below.
    """

    target: ext.Operand[transform.AnyOpType]


@transform_op(EnableDependentLaunch)
def enable_dependent_launch(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    barrier = pipeline.block_of_prologue(launch)
    with ir.InsertionPoint.after(barrier), launch.location:
        nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
        nvvm.griddepcontrol(nvvm.GridDepActionKind.wait)
