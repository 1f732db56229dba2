"""The conditions of raising a function on buffers, and the values of its ops."""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import attributes_of, producer


def stored_number(type_: ir.Type) -> ir.Type:
    """Returns the type of a scalar in a buffer: i64 of an index.

    Args:
        type_: of the scalar.
    """
    return ir.IntegerType.get_signless(64) if isinstance(type_, ir.IndexType) else type_


def as_number(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns a stored scalar in its own type, at the insertion point.

    Args:
        value: of the type that `stored_number` gives.
        type_: of the scalar.
    """
    return arith.index_cast(type_, value) if value.type != type_ else value


def decides(op: ir.Operation) -> bool:
    """Returns whether an op computes a scalar that conditions of branches alone depend on.

    Args:
        op: any op.
    """
    if not op.name.startswith("arith.") or op.name == "arith.constant" or isinstance(op.results[0].type, ir.ShapedType):
        return False
    users = [use.owner.operation for use in op.results[0].uses]
    return bool(users) and all(user.name == "scf.if" or decides(user) for user in users)


def deciding(value: ir.Value) -> list[ir.Operation]:
    """Returns the ops that compute the condition of a branch, in order.

    Args:
        value: the condition.
    """
    op = producer(value)
    if op is None or not decides(op):
        return []
    ops: list[ir.Operation] = []
    for operand in op.operands:
        ops += [item for item in deciding(operand) if item not in ops]
    return [*ops, op]


def is_output(op: ir.Operation, number: int) -> bool:
    """Returns whether an operand of a linalg op is an output.

    Args:
        op: the linalg op.
        number: of the operand.
    """
    if "operandSegmentSizes" in op.attributes:
        return number >= list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[0]
    if op.name in ("linalg.map", "linalg.transpose", "linalg.broadcast"):
        return number == len(op.operands) - 1
    return number >= len(op.operands) // 2  # of linalg.reduce


def reads_elements(op: ir.Operation, number: int) -> bool:
    """Returns whether a linalg op uses the elements of an operand, and not only its shape, as that of an output.

    Args:
        op: the linalg op.
        number: of the operand.
    """
    elements = [argument for region in op.regions for argument in region.blocks[0].arguments]
    return number < len(elements) and bool(list(elements[number].uses))


def names_a_symbol(op: ir.Operation) -> bool:
    """Returns whether an op refers to another function or a global of the payload, as a call does.

    Args:
        op: any op.
    """
    return any(isinstance(value, (ir.FlatSymbolRefAttr, ir.SymbolRefAttr)) for value in attributes_of(op).values())
