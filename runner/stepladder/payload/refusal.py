"""Refusals of payloads that no pipeline computes."""

from __future__ import annotations

from typing import Protocol

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError

ACCEPTED = (
    "accepted: one function of A, B and C with one linalg.matmul; in front of it a linalg.fill with 0; behind "
    "it elementwise ops of linalg on the accumulators, one result; arith.constant, tensor.empty, "
    "bufferization.to_tensor, bufferization.materialize_in_destination and func.return"
)
# Why -0.0 is not taken for 0: matrix units start sums from 0.0.
_NEGATIVE = "from -0.0, the sum of products that are all -0.0 is -0.0, and 0.0 from 0.0; accepted: 0.0"


class Located(Protocol):
    """The subject of a refusal: an op, a value, or another object with a location in the payload."""

    @property
    def location(self) -> ir.Location:
        """Its location."""
        ...


def refuse(op: Located, message: str, *notes: str) -> StepladderError:
    """Returns the refusal of a payload for one of its ops or arguments; a note lists what is accepted.

    Args:
        op: whose location the error has, or the op around one without, such as in the body of a named op.
        message: what is refused.
        notes: what is accepted; ACCEPTED unless given.
    """
    location = diagnostics.location_text(op.location)
    while not location and isinstance(op, ir.Operation | ir.OpView) and op.parent is not None:
        op = op.parent
        location = diagnostics.location_text(op.location)
    return StepladderError(message, location=location, notes=notes or (ACCEPTED,))


def refuse_fill(op: ir.Operation, number: object) -> StepladderError:
    """Returns the refusal of a `linalg.fill` with something other than the constant 0.

    Args:
        op: the fill.
        number: that it writes; None if it is no constant.
    """
    text = f": {number}" if isinstance(number, (int, float)) else ""
    if not _starts_sums(op):
        return refuse(op, f"linalg.fill makes an operand, or overwrites a result, with copies of one scalar{text}")
    return refuse(
        op,
        f"linalg.fill starts the accumulator from something other than the constant 0{text}",
        "accepted initial values: zero (C = AB), C itself (C = AB + C)",
        *((_NEGATIVE,) if isinstance(number, float) and number == 0 else ()),
    )


def _starts_sums(fill: ir.Operation) -> bool:
    """Returns whether a linalg op after a fill has what is filled as its output."""
    target = fill.results[0] if len(fill.results) else fill.operands[1]
    ops = [op.operation for op in fill.block.operations]
    return any(
        op.name.startswith("linalg.") and op.name != fill.name and op.operands[len(op.operands) - 1] == target
        for op in ops[ops.index(fill) + 1 :]
        if len(op.operands)
    )
