"""Walking over IR, and reading off an op what another is made with."""

from __future__ import annotations

from stepladder.mlir.bindings import ir


def walk(root, *names: str) -> list:
    """Returns the ops below `root` and itself, in order: those with one of the given names, or all."""
    found = []

    def visit(op):
        if not names or op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def attributes_of(op) -> dict:
    """Returns an op's attributes by name, for making another with the same ones."""
    return {op.attributes[i].name: op.attributes[i].attr for i in range(len(op.attributes))}
