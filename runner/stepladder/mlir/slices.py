"""Slices: parts of tensors and buffers at offsets, of sizes and strides, each a constant or an operand."""

from __future__ import annotations

from collections.abc import Sequence

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


def static_numbers(
    offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int] | None = None
) -> dict[str, ir.Attribute]:
    """Returns the attributes of a slice whose offsets, sizes and strides are constants; an insertion has other operand
    segments.

    Args:
        offsets, sizes: of each dimension.
        strides: likewise; 1 if None.
    """
    numbers = (offsets, sizes, [1] * len(sizes) if strides is None else strides)
    attributes: dict[str, ir.Attribute] = {
        name: ir.DenseI64ArrayAttr.get(list(values)) for name, values in zip(_NUMBERS, numbers)
    }
    return attributes | {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0])}


def kept_axes(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Returns the dimensions of a slice that its result has: the others have one element.

    Args:
        sizes: of the slice.
        shape: of the result.
    """
    axes = []
    dropped_count = len(sizes) - len(shape)
    for axis, size in enumerate(sizes):
        expected_size = shape[len(axes)] if len(axes) < len(shape) else 0
        if dropped_count and size == 1 and expected_size != 1:
            dropped_count -= 1
        else:
            axes.append(axis)
    return axes
