"""A plug-in whose op raises an error of Python, three calls deep."""

from __future__ import annotations

from stepladder.extension import Handle, Tc, ir, transform_op
from stepladder.mlir.bindings import transform


class Raises(Tc.Operation, name="raises"):
    """Divides by zero."""

    target: Handle


def ratio(sizes: dict[str, int]) -> int:
    return sizes["m"] // sizes["n"]


@transform_op(Raises)
def raises(payload: ir.Operation, op: Raises, rewriter: transform.TransformRewriter) -> None:
    ratio({"m": 1, "n": 0})
