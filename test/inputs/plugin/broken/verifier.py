"""A plug-in whose op's verifier raises an error of Python."""

from stepladder.extension import Handle, Tc, transform_op


class Verifier(Tc.Operation, name="raises"):
    """Looks for an attribute that it does not have."""

    target: Handle

    def verify_invariants(self) -> bool:
        return self.attributes["limit"].value > 0


@transform_op(Verifier)
def verifier(payload, op, rewriter) -> None:
    pass
