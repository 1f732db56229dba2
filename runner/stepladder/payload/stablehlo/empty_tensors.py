"""Tensors of StableHLO without elements, which nothing computes: what reads them follows from their shapes."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.stablehlo.builder import Tensor, constant, created


def drop(module: ir.Module) -> None:
    """Takes tensors without elements out of concatenations, paddings, sums of products and reductions, and erases what
    makes them: upstream's lowering refuses slices of no elements at the end of a tensor, which JAX writes for
    `lax.associative_scan` and its gradients.

    Args:
        module: with functions of StableHLO.
    """
    for op in walk(module, "stablehlo.concatenate"):
        parts = [operand for operand in op.operands if not _is_empty(operand)]
        if parts and len(parts) < len(op.operands):
            with ir.InsertionPoint(op), op.location:
                joined = created(op.name, op.results[0].type, *parts, dimension=op.attributes["dimension"])
            _replace(op, [joined])
    for op in walk(module, "stablehlo.pad", "stablehlo.reduce", "stablehlo.dot_general"):
        if _is_empty(op.operands[0]) and not any(map(_is_empty, op.results)):
            with ir.InsertionPoint(op), op.location:
                _replace(op, [_of_none(op, place) for place in range(len(op.results))])
    for op in reversed(list(walk(module))):
        if op.name.startswith("stablehlo.") and op.results and all(map(_is_empty, op.results)) and not _is_used(op):
            op.erase()


def _of_none(op: ir.Operation, place: int) -> ir.Value:
    """Returns a result of an op on tensors without elements: copies of the scalar that the op takes, or zeros."""
    type_ = ir.RankedTensorType(op.results[place].type)
    shape = list(type_.shape)
    if op.name == "stablehlo.dot_general":
        return constant(0, shape, type_.element_type).value
    return Tensor(op.operands[len(op.results) + place]).expand(shape, []).value


def _replace(op: ir.Operation, values: list[ir.Value]) -> None:
    for result, value in zip(op.results, values):
        result.replace_all_uses_with(value)
    op.erase()


def _is_empty(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and 0 in ir.RankedTensorType(value.type).shape


def _is_used(op: ir.Operation) -> bool:
    return any(True for item in op.results for _ in item.uses)
