"""`tc.wait_at_start`: lets a kernel that has no prologue be launched while the one before it ends."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import find_launch
from stepladder.mlir.bindings import ir, nvvm


class WaitAtStart(Tc.Operation, name="wait_at_start"):
    """Makes all threads of a kernel wait for the kernel before it, and then lets the next one be launched.

    The launcher must set the programmatic-dependent-launch attribute; without it, the wait returns at once.

    Operands: a handle to any op with one `gpu.launch` below.
    """

    target: Handle


@transform_op(WaitAtStart)
def wait_at_start(payload: ir.Operation, op: WaitAtStart, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = find_launch(payload)
    with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]), launch.location:
        nvvm.griddepcontrol(nvvm.GridDepActionKind.wait)
        nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
