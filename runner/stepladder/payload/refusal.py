"""Refusals of payloads that no pipeline computes."""

from __future__ import annotations

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError

ACCEPTED = (
    "accepted: one function of A, B and C with one linalg.matmul; in front of it a linalg.fill with 0; behind "
    "it a linalg.generic that rounds the sums with arith.truncf; arith.constant, tensor.empty, "
    "bufferization.to_tensor, bufferization.materialize_in_destination and func.return"
)


def refuse(op: ir.Operation | ir.Value, message: str, *notes: str) -> StepladderError:
    """Returns the refusal of a payload for one of its ops or arguments; a note lists what is accepted.

    Args:
        op: whose location the error has.
        message: what is refused.
        notes: what is accepted; ACCEPTED unless given.
    """
    return StepladderError(message, location=diagnostics.location_text(op.location), notes=notes or (ACCEPTED,))
