"""The body of a linalg op, computed on an element or on a vector of adjacent ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.epilogues.paired_roundings import is_paired, rounded_pair
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, producer


def needed_values(op: ir.Operation, results: Sequence[int] | None) -> set[ir.Value]:
    """Returns the values of the body of a linalg op that some of its results depend on.

    Args:
        op: the op.
        results: their numbers; all if None.
    """
    *inner, end = operations_of(op.regions[0].blocks[0])
    values = set(end.operands if results is None else [end.operands[number] for number in results])
    for item in reversed(inner):
        if item.results[0] in values:
            values |= set(item.operands)
    return values


def compute_body(
    op: ir.Operation,
    arguments: Mapping[ir.Value, ir.Value],
    width: int | None,
    results: Sequence[int] | None = None,
    *,
    rounds_pairs: bool = False,
) -> list[ir.Value]:
    """Returns results of a `linalg.generic` for an element, or for a vector of adjacent ones, at the insertion point.

    Args:
        op: the op.
        arguments: the elements, or vectors of rank 1, for the arguments of the body that the results depend on.
        width: of the vectors; None for elements.
        results: which are computed; all if None.
        rounds_pairs: whether one instruction rounds two elements.

    Raises:
        Refusal: the body takes a value that is no constant from outside.
    """
    needed = needed_values(op, results)
    values = dict(arguments)

    def value_of(operand: ir.Value) -> ir.Value:
        if operand in values:
            return values[operand]
        source = producer(operand)
        if source is None or source.name != "arith.constant":
            raise Refusal(op, "the body captures a value that is not a constant")
        return create_scalar_op(source, [], width)

    *body, end = operations_of(op.regions[0].blocks[0])
    for inner in body:
        if inner.results[0] in needed:
            operands = [value_of(operand) for operand in inner.operands]
            values[inner.results[0]] = (
                rounded_pair(operands[0], inner.results[0].type)
                if rounds_pairs and is_paired(inner, width)
                else create_scalar_op(inner, operands, width)
            )
    numbers = range(len(end.operands)) if results is None else results
    return [value_of(end.operands[number]) for number in numbers]


def _widened(type_: ir.Type, width: int | None) -> ir.Type:
    return type_ if width is None else ir.VectorType.get([width], type_)


def create_scalar_op(op: ir.Operation, operands: Sequence[ir.Value], width: int | None) -> ir.Value:
    """Returns the result of a scalar op on vectors of `width` elements, or on scalars, at the insertion point.

    Args:
        op: of the body of an elementwise op.
        operands: vectors or scalars that represent its operands.
        width: elements of a vector; None for scalars.
    """
    attributes = attributes_of(op)
    type_ = _widened(op.results[0].type, width)
    if op.name == "arith.constant" and width is not None:
        attributes["value"] = ir.DenseElementsAttr.get_splat(type_, attributes["value"])
    return ir.Operation.create(op.name, results=[type_], operands=list(operands), attributes=attributes).results[0]
