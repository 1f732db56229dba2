"""`tc.overlap_launches`: a kernel prepares itself while the one before it ends."""

from stepladder.bindings import ext, ir, nvvm, transform
from stepladder.extension import building, ring
from stepladder.extension.dialect import Tc, transform_op


class OverlapLaunches(Tc.Operation, name="overlap_launches"):
    """Lets a kernel begin while the one before it in the stream still runs, and wait for it before it reads memory.

    What a block does first touches no memory that another kernel writes: barriers, descriptors. Behind that it lets the
    kernel after it begin likewise, and waits until all that the one before wrote can be read. The launcher must ask for
    it (programmatic dependent launch), or there is nothing to wait for.

    Operands: a handle to any op with one `gpu.launch` below.
    """

    target: ext.Operand[transform.AnyOpType]


@transform_op(OverlapLaunches)
def overlap_launches(payload, op, rewriter) -> None:
    """Treats the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    barrier = ring.block_of_prologue(launch)
    with ir.InsertionPoint.after(barrier), launch.location:
        nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
        nvvm.griddepcontrol(nvvm.GridDepActionKind.wait)
