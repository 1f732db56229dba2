"""A plug-in whose op has a result that its function does not return."""

from __future__ import annotations

from stepladder.extension import Handle, HandleResult, Tc, ir, transform_op
from stepladder.mlir.bindings import transform


class WrongResult(Tc.Operation, name="with_result"):
    """Has a result."""

    target: Handle
    found: HandleResult


@transform_op(WrongResult)
def wrong_result(payload: ir.Operation, op: WrongResult, rewriter: transform.TransformRewriter) -> None:
    pass
