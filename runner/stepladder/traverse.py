"""Walking over IR."""

from __future__ import annotations

from stepladder.bindings import ir


def walk(root, *names: str) -> list:
    """Returns the ops below `root` and itself, in order: those with one of the given names, or all."""
    found = []

    def visit(op):
        if not names or op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
