"""Strides of slices along axes of which they have one element: 1, as upstream's lowering of views expects."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import walk


def normalize(function: ir.Operation) -> None:
    """Gives each slice of a tensor, and each insertion of one, a stride of 1 where it has one element of an axis.

    Args:
        function: a function; it is changed where there are such ops.
    """
    dynamic = ir.ShapedType.get_dynamic_size()
    for op in walk(function, "tensor.extract_slice", "tensor.insert_slice"):
        _, sizes, strides = numbers_of(op)
        unit_strides = [1 if size == 1 and stride != dynamic else stride for size, stride in zip(sizes, strides)]
        if unit_strides != strides:
            op.attributes["static_strides"] = ir.DenseI64ArrayAttr.get(unit_strides)
