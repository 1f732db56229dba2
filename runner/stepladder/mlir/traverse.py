"""Traversal of IR, and reading the parts of an op that another op is created from."""

from __future__ import annotations

from collections.abc import Collection

from stepladder.mlir.bindings import ir


def walk(root: ir.Operation | ir.OpView | ir.Module, *names: str) -> list[ir.Operation]:
    """Returns `root` and the ops nested in it, in pre-order: those with one of the given names, or all.

    Args:
        root: where the traversal begins.
        names: of ops, such as "memref.alloc"; all ops without any.
    """
    ops: list[ir.Operation] = []
    advance = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not names or op.name in names:
            ops.append(op)
        return advance

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return ops


def attributes_of(op: ir.Operation | ir.OpView) -> dict[str, ir.Attribute]:
    """Returns an op's attributes by name, to create another op with them.

    Args:
        op: it is not changed.
    """
    return {op.attributes[i].name: op.attributes[i].attr for i in range(len(op.attributes))}


def producer(value: ir.Value) -> ir.Operation | None:
    """Returns the op that defines a value, or None for a block argument.

    Args:
        value: the result of an op, or an argument of a block.
    """
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def defining_op(value: ir.Value) -> ir.Operation:
    """Returns the op that defines a value, which is not a block argument.

    Args:
        value: the result of an op.
    """
    op = producer(value)
    assert op is not None, "expected the result of an op"
    return op


def origin(value: ir.Value, names: Collection[str]) -> ir.Value:
    """Returns the value that another one is made of by ops of some names, views for example: each makes a value of its
    first operand.

    Args:
        value: returned itself where no such op makes it.
        names: of the ops.
    """
    op = producer(value)
    while op is not None and op.name in names:
        value = op.operands[0]
        op = producer(value)
    return value


def users_of(value: ir.Value) -> list[ir.Operation]:
    """Returns the ops that use a value, one for each use, in the order of MLIR's use list.

    Args:
        value: the result of an op, or an argument of a block.
    """
    return [use.owner.operation for use in value.uses]


def symbol_of(op: ir.Operation) -> str:
    """Returns the name of an op with a symbol.

    Args:
        op: such as a global or a function.
    """
    return ir.StringAttr(op.attributes["sym_name"]).value


def callee_of(op: ir.Operation) -> str:
    """Returns the name of the function that an op calls, an empty string for an op that calls none by name.

    Args:
        op: such as a `func.call`.
    """
    return ir.FlatSymbolRefAttr(op.attributes["callee"]).value if "callee" in op.attributes else ""


def count_operations(module: ir.Module | ir.Operation) -> int:
    """Returns the number of ops below a module.

    Args:
        module: the root, which is not counted.
    """
    return len(walk(module)) - 1
