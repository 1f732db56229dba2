"""Views of buffers as ops on tensors: reading a view, and the buffer after a view of it is written."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import producer
from stepladder.payload.refusal import refuse

VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.subview", "memref.transpose")
_DYNAMIC = -(2**63)


def tensor_of(type_: ir.Type) -> ir.RankedTensorType:
    """Returns the type of the tensor that a buffer holds.

    Args:
        type_: of the buffer, of static shape.
    """
    memref = ir.MemRefType(type_)
    return ir.RankedTensorType.get(memref.shape, memref.element_type)


def read_view(view: ir.Operation, source: ir.Value) -> ir.Value:
    """Returns the tensor that a view of a buffer holds, created at the insertion point.

    Args:
        view: one of VIEWS.
        source: the tensor that the buffer holds.

    Raises:
        StepladderError: a slice that is not static.
    """
    type_ = tensor_of(view.results[0].type)
    made = producer(source)
    if made is not None and made.name == "linalg.fill":
        empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        return create_named_op("linalg.fill", [made.operands[0]], empty).results[0]
    match view.name:
        case "memref.cast":
            return source
        case "memref.subview":
            return _slice("tensor.extract_slice", view, [source], type_)
        case "memref.transpose":
            return _transposed(source, _permutation(view), type_)
    return _reshaped(source, type_, view.attributes["reassociation"])


def write_view(view: ir.Operation, value: ir.Value, source: ir.Value) -> ir.Value:
    """Returns the tensor that a buffer holds after a view of it is written, created at the insertion point.

    Args:
        view: one of VIEWS.
        value: the tensor that is written to the view.
        source: the tensor that the buffer holds before.

    Raises:
        StepladderError: as `read_view`.
    """
    match view.name:
        case "memref.cast":
            return value
        case "memref.subview":
            return _slice("tensor.insert_slice", view, [value, source], source.type)
        case "memref.transpose":
            order = _permutation(view)
            return _transposed(value, [order.index(axis) for axis in range(len(order))], source.type)
    return _reshaped(value, source.type, view.attributes["reassociation"])


def element_order(op: ir.Operation) -> list[ir.AffineMap]:
    """Returns the indexing maps of a `linalg.map`: each operand is accessed in the order of the loops.

    Args:
        op: the `linalg.map`.
    """
    rank = ir.ShapedType(op.operands[0].type).rank
    return [ir.AffineMap.get_identity(rank)] * len(op.operands)


def _permutation(view: ir.Operation) -> list[int]:
    """Returns the axis of the source that each axis of a `memref.transpose` is."""
    map_ = ir.AffineMapAttr(view.attributes["permutation"]).value
    return [ir.AffineDimExpr(axis).position for axis in map_.results]


def _transposed(value: ir.Value, order: Sequence[int], type_: ir.Type) -> ir.Value:
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    permutation = {"permutation": ir.DenseI64ArrayAttr.get(list(order))}
    return create_named_op("linalg.transpose", [value], empty, permutation).results[0]


def _reshaped(value: ir.Value, type_: ir.Type, groups: ir.Attribute) -> ir.Value:
    """Returns a reshape of a tensor to a type of more, or fewer, dimensions."""
    shape = ir.RankedTensorType(type_).shape
    attributes: dict[str, ir.Attribute] = {"reassociation": groups}
    name = "tensor.collapse_shape"
    if len(shape) > ir.RankedTensorType(value.type).rank:
        name = "tensor.expand_shape"
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(shape))
    return ir.Operation.create(name, results=[type_], operands=[value], attributes=attributes).results[0]


def _slice(name: str, view: ir.Operation, operands: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """Returns the slice of a tensor, or the tensor with a slice replaced, that a static `memref.subview` is."""
    fields = ("static_offsets", "static_sizes", "static_strides")
    if any(_DYNAMIC in list(ir.DenseI64ArrayAttr(view.attributes[field])) for field in fields):
        raise refuse(view, "a memref.subview whose offsets, sizes or strides are not static", "accepted: static ones")
    attributes: dict[str, ir.Attribute] = {field: view.attributes[field] for field in fields}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1] * len(operands) + [0, 0, 0])
    return ir.Operation.create(name, results=[type_], operands=list(operands), attributes=attributes).results[0]
