"""`tc.enable_dependent_launch`: makes a kernel support programmatic dependent launch."""

from stepladder.extension.lib import tma_pipeline
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import find_launch
from stepladder.mlir.bindings import ir, nvvm


class EnableDependentLaunch(Tc.Operation, name="enable_dependent_launch"):
    """Lets the prologue of a kernel overlap with the end of the previous kernel in the stream.

    The prologue, which initializes barriers and prefetches descriptors, accesses no memory that another kernel writes.
    After it, a block allows the next kernel to launch, and waits until the writes of the previous kernel are visible.
    The launcher must set the programmatic-dependent-launch attribute; without it, the wait returns at once.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: trigger, when a block allows it: `start`, before it waits; `wait`, directly after its wait: a next
    kernel that reads its weights before it waits then does so when all kernels before this one have ended; `exit`, when
    it ends, which takes no op and lets that kernel do the same.
    Refuses: another trigger.
    """

    target: Handle
    trigger: ir.StringAttr


_KINDS = {
    "start": (nvvm.GridDepActionKind.launch_dependents, nvvm.GridDepActionKind.wait),
    "wait": (nvvm.GridDepActionKind.wait, nvvm.GridDepActionKind.launch_dependents),
    "exit": (nvvm.GridDepActionKind.wait,),
}


@transform_op(EnableDependentLaunch)
def enable_dependent_launch(payload: ir.Operation, op: EnableDependentLaunch, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = find_launch(payload)
    barrier = tma_pipeline.prologue_barrier(launch)
    kinds = _KINDS.get(op.trigger.value)
    if kinds is None:
        raise Refusal(launch, f"trigger must be {', '.join(_KINDS)}, not {op.trigger.value}")
    with ir.InsertionPoint.after(barrier), launch.location:
        for kind in kinds:
            nvvm.griddepcontrol(kind)
