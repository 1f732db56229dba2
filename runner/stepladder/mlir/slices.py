"""Slices: parts of tensors and buffers at offsets, of sizes and strides, each a constant or an operand."""

from __future__ import annotations

from stepladder.mlir.bindings import ir

_NUMBERS = ("static_offsets", "static_sizes", "static_strides")


def numbers_of(part: ir.Operation) -> tuple[list[int], list[int], list[int]]:
    """Returns the offsets, sizes and strides of a slice, `ir.ShapedType.get_dynamic_size()` for those of operands.

    Args:
        part: `tensor.extract_slice`, `tensor.insert_slice`, `memref.subview`, or another op with offsets, sizes and
            strides.
    """
    offsets, sizes, strides = (list(ir.DenseI64ArrayAttr(part.attributes[name])) for name in _NUMBERS)
    return offsets, sizes, strides
