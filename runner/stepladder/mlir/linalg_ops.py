"""Linalg ops: creates named ones and reads indexing maps, without upstream's builders, which take long to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepladder.mlir import bindings
from stepladder.mlir.bindings import ir

# Ops whose definition has one input and one output, instead of segments of them.
_ONE_INPUT = ("linalg.transpose", "linalg.broadcast")


def create_named_op(
    name: str,
    inputs: Sequence[ir.Value],
    output: ir.Value,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> ir.Operation:
    """Creates a linalg op with one output and the body that its name implies, at the insertion point.

    Args:
        name: of the op, such as `linalg.add`.
        inputs: scalars, tensors or buffers.
        output: the tensor or the buffer that the op writes.
        attributes: of the op, beside the sizes of its operand segments.

    Returns:
        The op; it has a result if the output is a tensor.
    """
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1])} if name not in _ONE_INPUT else {}
    op = ir.Operation.create(
        name,
        results=[output.type] if isinstance(output.type, ir.RankedTensorType) else [],
        operands=[*inputs, output],
        attributes={**segments, **(attributes or {})},
        regions=1,
    )
    bindings.fill_builtin_region(op)
    return op


def indexing_maps(op: ir.Operation) -> list[ir.AffineMap]:
    """Returns the indexing maps of a linalg op, one for each operand.

    Args:
        op: named or `linalg.generic`.
    """
    return [ir.AffineMapAttr(attribute).value for attribute in bindings.indexing_maps_of(op)]
