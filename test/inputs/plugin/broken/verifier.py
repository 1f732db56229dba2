"""A plug-in whose op's verifier raises an error of Python."""

from __future__ import annotations

from stepladder.extension import Handle, Tc, ir, transform_op
from stepladder.mlir.bindings import transform


class Verifier(Tc.Operation, name="raises"):
    """Looks for an attribute that it does not have."""

    target: Handle

    def verify_invariants(self) -> bool:
        return self.attributes["limit"].value > 0


@transform_op(Verifier)
def verifier(payload: ir.Operation, op: Verifier, rewriter: transform.TransformRewriter) -> None:
    pass
