"""Reshapes: the same elements, in row-major order, in another shape."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.types import reassociation

TENSOR_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
# Ops whose result has all elements of a tensor, or of a buffer, in its order.
TENSOR_VIEWS = (*TENSOR_RESHAPES, "tensor.cast")
BUFFER_VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast")


def groups_of(reshape: ir.Operation) -> list[list[int]]:
    """Returns, for each dimension of the smaller rank, those of the larger one.

    Args:
        reshape: a `collapse_shape` or `expand_shape`.
    """
    return [[ir.IntegerAttr(axis).value for axis in group] for group in reshape.attributes["reassociation"]]


def reshaped(tensor: ir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> ir.Value:
    """Returns a tensor in a shape of more, or fewer, dimensions, at the insertion point.

    Args:
        tensor: of static shape.
        shape: of the result.
        groups: for each dimension of the smaller rank, those of the larger one.
    """
    source = ir.RankedTensorType(tensor.type)
    attributes: dict[str, ir.Attribute] = {"reassociation": reassociation(groups)}
    name = "tensor.collapse_shape"
    if len(shape) > source.rank:
        name = "tensor.expand_shape"
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(shape))
    type_ = ir.RankedTensorType.get(list(shape), source.element_type)
    return ir.Operation.create(name, results=[type_], operands=[tensor], attributes=attributes).results[0]
