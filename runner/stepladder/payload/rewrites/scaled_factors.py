"""Matmuls in f32 of narrow operands that are scaled by constants: the sums are scaled, and matrix units multiply the
narrow elements.

PyTorch's exported attention extends queries and keys to f32, and multiplies both by the root of the scale. The product
of the scaled operands has the same rounding errors as the scaled product, or larger ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.constant_numbers import constant_number, repeated_number
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import origin, producer, users_of, walk
from stepladder.mlir.types import element_of
from stepladder.payload.linalg_bodies import multiplies_and_adds

_GENERIC = "linalg.generic"
_MATMULS = ("linalg.matmul", "linalg.batch_matmul", "linalg.contract", _GENERIC)
_MOVED = (*TENSOR_VIEWS, "linalg.transpose")
_NARROW = (ir.F16Type, ir.BF16Type)
# Scales with other magnitudes may decide whether sums of large elements, or of small ones, fit in f32.
_LEAST, _LARGEST = 2.0**-16, 2.0**16


@dataclass(frozen=True)
class _Scaling:
    """An op that multiplies the elements of an operand by a constant.

    Attributes:
        op: elementwise; nothing but the matmul reads its result.
        product: of its body; the op yields it.
        unscaled: what is multiplied.
        scale: the constant.
    """

    op: ir.Operation
    product: ir.Operation
    unscaled: ir.Value
    scale: float


def hoist(function: ir.Operation) -> None:
    """Replaces the constant scales of operands by one of the result.

    Args:
        function: a function on tensors; it is changed where such operands are multiplied and added to zeros.
    """
    for op in walk(function, *_MATMULS):
        if not _starts_from_zeros(op) or not multiplies_and_adds(op):
            continue
        factors = list(op.operands)[:2]
        scalings = [scaling for value in factors if (scaling := _scaling(value)) is not None]
        scale = math.prod(scaling.scale for scaling in scalings)
        if scalings and _LEAST <= abs(scale) <= _LARGEST and all(map(_is_extended, factors)):
            for scaling in scalings:
                _remove(scaling)
            _scale(op, scale)


def _starts_from_zeros(op: ir.Operation) -> bool:
    """Returns whether an op of two inputs adds to zeros in f32."""
    if len(op.operands) != 3 or len(op.results) != 1 or not isinstance(element_of(op.results[0].type), ir.F32Type):
        return False
    start = repeated_number(op.operands[2])
    return start is not None and start.value == 0


def _scaling(value: ir.Value) -> _Scaling | None:
    """Returns the op that scales an operand in f32, which views and transposes may follow; None if there is none."""
    op = producer(value)
    while op is not None and len(users_of(op.results[0])) == 1:
        if op.name == _GENERIC:
            return _scaling_of(op)
        if op.name not in _MOVED:
            return None
        op = producer(op.operands[0])
    return None


def _scaling_of(op: ir.Operation) -> _Scaling | None:
    if len(op.operands) != 2 or "reduction" in str(op.attributes["iterator_types"]):
        return None
    body = op.regions[0].blocks[0]
    product = producer(body.operations[len(body.operations) - 1].operands[0])
    if product is None or product.name != "arith.mulf" or not isinstance(product.results[0].type, ir.F32Type):
        return None
    for unscaled, factor in (product.operands, reversed(list(product.operands))):
        number = constant_number(origin(factor, ("arith.truncf",)))
        if isinstance(number, ir.FloatAttr):
            return _Scaling(op, product, unscaled, number.value)
    return None


def _is_extended(value: ir.Value) -> bool:
    """Returns whether the elements of an operand are f16 or bf16, extended to f32, and maybe scaled."""
    op = producer(origin(value, _MOVED))
    if op is None or op.name != _GENERIC or len(op.operands) != 2:
        return isinstance(element_of(value.type), _NARROW)
    body = op.regions[0].blocks[0]
    scaling = _scaling_of(op)
    element = scaling.unscaled if scaling is not None else body.operations[len(body.operations) - 1].operands[0]
    element = origin(element, ("arith.extf",))
    return element == body.arguments[0] and (isinstance(element.type, _NARROW) or _is_extended(op.operands[0]))


def _remove(scaling: _Scaling) -> None:
    """Has an op yield what it multiplied."""
    body = scaling.op.regions[0].blocks[0]
    body.operations[len(body.operations) - 1].operation.operands[0] = scaling.unscaled
    if not users_of(scaling.product.results[0]):
        scaling.product.erase()
    # An op that moves nothing and computes nothing is its operand.
    maps = indexing_maps(scaling.op)
    if scaling.unscaled == body.arguments[0] and maps[0] == maps[1]:
        scaling.op.results[0].replace_all_uses_with(scaling.op.operands[0])
        scaling.op.erase()


def _scale(op: ir.Operation, scale: float) -> None:
    """Scales the result of an op."""
    type_ = ir.RankedTensorType(op.results[0].type)
    with ir.InsertionPoint.after(op), op.location:
        factor = arith.constant(type_.element_type, scale)
        empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        scaled, body = create_generic([op.results[0]], [empty], [ir.AffineMap.get_identity(type_.rank)] * 2)
        with ir.InsertionPoint(body):
            ir.Operation.create("linalg.yield", operands=[arith.mulf(body.arguments[0], factor)])
    op.results[0].replace_all_uses_except(scaled.results[0], [scaled])
