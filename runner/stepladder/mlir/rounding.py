"""How ops round."""

from __future__ import annotations

from stepladder.mlir.bindings import ir


def rounds_to_nearest(op: ir.Operation) -> bool:
    """Returns whether an op rounds to nearest, ties to even: `arith.truncf` may state another mode, in which no kernel
    and no reference rounds.

    Args:
        op: any op.
    """
    mode = op.attributes.get("roundingmode", None)
    return mode is None or ir.IntegerAttr(mode).value == 0
