"""Walks over IR, and reads attributes of ops."""

from __future__ import annotations

from stepladder.mlir.bindings import ir


def walk(root: ir.Module | ir.Operation | ir.OpView, *names: str) -> list[ir.Operation]:
    """Returns the ops below `root` and itself, in order: those with one of the given names, or all."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not names or op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def attributes_of(op: ir.Operation) -> dict[str, ir.Attribute]:
    """Returns an op's attributes by name, for making another with the same ones."""
    return {op.attributes[i].name: op.attributes[i].attr for i in range(len(op.attributes))}


def count_operations(module: ir.Module) -> int:
    """Returns the number of ops below a module."""
    return len(walk(module)) - 1
