"""Contractions that convert integers to floating point, or numbers to integers: elementwise ops in front convert them.

Matrix units multiply two operands of one type: where sums are of f32, i8 becomes what the other factor is, f16 or bf16,
which hold it exactly, and f16 beside another i8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import producer, walk

_CONVERSIONS = ("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui")
_EXTENSIONS = ("arith.extf", "arith.extsi", "arith.extui")
# The op of sums, and that of their terms.
_SUMS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
# Bits of integers that are exact in _NARROW types, whose sums are of f32.
_EXACT_BITS = 8
_NARROW = ("f16", "bf16")


@dataclass(frozen=True)
class _Factor:
    """A factor of a contraction.

    Attributes:
        number: of the operand.
        type: of its elements.
        conversion: the op of the body that converts it to floating point, or to integers; None where there is none.
    """

    number: int
    type: ir.Type
    conversion: ir.Operation | None


def convert(function: ir.Operation) -> None:
    """Replaces operands that the body of a contraction converts to floating point, or to integers, by converted ones.

    Args:
        function: a function on static tensors; it is changed where there are such contractions, named or generic, that
            matrix units may compute.
    """
    for op in [op for op in walk(function) if op.name.startswith("linalg.") and len(op.operands) == 3]:
        factors = _factors(op)
        if any(factor.conversion is not None for factor in factors) and _may_be_matmul(op):
            _replace(op, factors)


def _may_be_matmul(op: ir.Operation) -> bool:
    """Returns whether matrix units may compute a contraction.

    Others, such as batches of products of a matrix and a vector, are one kernel with their conversions
    (`tc.distribute_elements`), whose function this module sees again.
    """
    extents: dict[int, int] = {}
    loops = []
    for value, map_ in zip(op.operands, indexing_maps(op)):
        if not map_.is_projected_permutation:
            return False
        positions = [ir.AffineDimExpr(result).position for result in map_.results]
        extents |= dict(zip(positions, ir.RankedTensorType(value.type).shape))
        loops.append(set(positions))
    a, b, c = ({loop for loop in found if extents[loop] > 1} for found in loops)
    if (a ^ b) - c:  # a loop of one operand alone
        return False
    return not a & b & c or all(((a & c) - b, (b & c) - a, (a & b) - c))


def _factors(op: ir.Operation) -> list[_Factor]:
    """Returns the factors of a sum of products of two tensors; none of another op."""
    types = [value.type for value in op.operands]
    if not all(isinstance(t, ir.RankedTensorType) and t.has_static_shape for t in types) or len(op.regions) != 1:
        return []
    body = op.regions[0].blocks[0]
    end = body.operations[len(body.operations) - 1].operation
    total = producer(end.operands[0]) if len(end.operands) == 1 else None
    so_far = body.arguments[len(body.arguments) - 1]
    if total is None or total.name not in _SUMS or so_far not in total.operands or len(body.arguments) != 3:
        return []
    terms = [producer(value) for value in total.operands if value != so_far]
    if len(terms) != 1 or terms[0] is None or terms[0].name != _SUMS[total.name]:
        return []
    candidates = [_factor(value, list(body.arguments)[:2]) for value in terms[0].operands]
    factors = sorted((item for item in candidates if item is not None), key=lambda factor: factor.number)
    return factors if [factor.number for factor in factors] == [0, 1] else []


def _factor(value: ir.Value, inputs: Sequence[ir.Value]) -> _Factor | None:
    """Returns the factor that an operand of a product is; None for what is no extension of an input."""
    source, conversion = producer(value), None
    while source is not None and source.name in _EXTENSIONS:
        value = source.operands[0]
        source = producer(value)
    if source is not None and source.name in _CONVERSIONS:
        value, conversion = source.operands[0], source
    return _Factor(inputs.index(value), value.type, conversion) if value in inputs else None


def _replace(op: ir.Operation, factors: list[_Factor]) -> None:
    """Creates the contraction of converted operands in place of another one."""
    operands = list(op.operands)
    body = op.regions[0].blocks[0]
    *inner, end = [item.operation for item in body.operations]
    with ir.InsertionPoint(op), op.location:
        for factor, other_factor in (factors, factors[::-1]):
            if factor.conversion is not None:
                operands[factor.number] = _converted(operands[factor.number], factor, _element(factor, other_factor))
        new, block = create_generic(operands[:2], operands[2:], indexing_maps(op))
        values: dict[ir.Value, ir.Value] = dict(zip(body.arguments, block.arguments))
        with ir.InsertionPoint(block):
            for factor in factors:
                if factor.conversion is not None:
                    old_value, value = factor.conversion.results[0], block.arguments[factor.number]
                    is_same = old_value.type == value.type
                    values[old_value] = (
                        value
                        if is_same
                        else ir.Operation.create("arith.extf", results=[old_value.type], operands=[value]).results[0]
                    )
        conversions = [factor.conversion for factor in factors if factor.conversion is not None]
        left = [item for item in inner if item not in conversions]
        clone_ops([*left, end], values, ir.InsertionPoint(block))
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()


def _element(factor: _Factor, other_factor: _Factor) -> ir.Type:
    """Returns the type that the elements of a factor become."""
    assert factor.conversion is not None  # of every caller
    type_ = factor.conversion.results[0].type
    if str(type_) != "f32" or ir.IntegerType(factor.type).width > _EXACT_BITS:
        return type_
    if other_factor.conversion is None:
        return other_factor.type if str(other_factor.type) in _NARROW else type_
    return ir.F16Type.get() if ir.IntegerType(other_factor.type).width <= _EXACT_BITS else type_


def _converted(tensor: ir.Value, factor: _Factor, element: ir.Type) -> ir.Value:
    """Creates the converted elements of an operand, at the insertion point."""
    assert factor.conversion is not None  # of every caller
    shape = ir.RankedTensorType(tensor.type).shape
    empty = ir.Operation.create("tensor.empty", results=[ir.RankedTensorType.get(shape, element)]).results[0]
    identity = ir.AffineMap.get_identity(len(shape))
    new, body = create_generic([tensor], [empty], [identity] * 2)
    with ir.InsertionPoint(body):
        conversion = ir.Operation.create(factor.conversion.name, results=[element], operands=[body.arguments[0]])
        ir.Operation.create("linalg.yield", operands=conversion.results)
    return new.results[0]
