"""Ops of PyTorch as others that torch-mlir lowers to linalg: convolutions as matmuls, and those of other modules.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api import pytorch
from stepladder.api.decompositions import (
    counts,
    distances,
    elementwise,
    fourier_transforms,
    orders,
    pooling,
    running_reductions,
    scatters,
    special_functions,
)

# Integers that torch-mlir shifts, and others.
_WIDE = (torch.int32, torch.int64)
_NARROW = (torch.int8, torch.int16, torch.uint8)


def _convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:  # noqa: ANN401
    """Returns a convolution as a matmul of its patches.

    Args:
        x: (n, c, ...), the images.
        weight: (f, c / groups, ...), of the extents of a patch; of a transposed one (c, f / groups, ...).
        bias: (f,), or None.
        stride, padding, dilation, transposed, output_padding, groups: of `aten.convolution`.

    Returns:
        (n, f, ...); `NotImplemented` for images without a batch.
    """
    if x.dim() != weight.dim():
        return NotImplemented
    if transposed:
        return _transposed(x, weight, bias, stride, padding, dilation, output_padding, groups)
    patch = list(weight.shape[2:])
    is_apart = list(stride) == patch and all(step == 1 or extent == 1 for step, extent in zip(dilation, patch))
    if groups == 1 and is_apart and not any(padding):
        columns, sizes = _apart(x, patch)
    else:
        columns, sizes = _overlapping(x, patch, stride, padding, dilation)
    images = x.shape[0]
    if groups == 1:
        result = torch.matmul(weight.reshape(weight.shape[0], -1), columns)
    else:
        of_group = columns.reshape(images, groups, -1, columns.shape[-1])
        result = torch.matmul(weight.reshape(groups, weight.shape[0] // groups, -1), of_group)
        result = result.reshape(images, weight.shape[0], -1)
    return (result if bias is None else result + bias[:, None]).reshape(images, -1, *sizes)


def _apart(x: torch.Tensor, patch: Sequence[int]) -> tuple[torch.Tensor, list[int]]:
    """Returns patches that do not overlap, of one pixel each for example, and how many there are along each axis.

    Args:
        x: (n, c, ...), the images.
        patch: its extents.

    Returns:
        (n, values of a patch, patches), by permuting axes alone.
    """
    sizes = [extent // step for extent, step in zip(x.shape[2:], patch)]
    for axis, (size, step) in enumerate(zip(sizes, patch), 2):
        x = x.narrow(axis, 0, size * step)
    images, channels = x.shape[:2]
    x = x.reshape(images, channels, *(extent for pair in zip(sizes, patch) for extent in pair))
    places = range(2, x.dim(), 2)
    x = x.permute(0, 1, *(place + 1 for place in places), *places)
    return x.reshape(images, -1, _product(sizes)), sizes


def _product(numbers: Sequence[int]) -> int:
    return int(torch.Size(numbers).numel())


def _overlapping(
    x: torch.Tensor, patch: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> tuple[torch.Tensor, list[int]]:
    """Returns patches that may overlap, as `_apart`: a copy of each, which indices gather.

    Args:
        x: (n, c, ...), the images.
        patch, stride, padding, dilation: of each axis of an image.
    """
    sizes = [
        (extent + 2 * around - gap * (size - 1) - 1) // step + 1
        for extent, size, step, around, gap in zip(x.shape[2:], patch, stride, padding, dilation)
    ]
    if any(padding):
        x = torch.ops.aten.constant_pad_nd(x, [around for around in reversed(padding) for _ in range(2)], 0.0)
    rank = len(patch)
    places = []
    for axis, (size, step, gap, count) in enumerate(zip(patch, stride, dilation, sizes)):
        element, first = (torch.arange(extent, device=x.device) for extent in (size, count))
        at = (element * gap)[:, None] + first * step
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = size, count
        places.append(at.reshape(shape))
    patches = x[(slice(None), slice(None), *places)]
    return patches.reshape(x.shape[0], -1, _product(sizes)), sizes


def _transposed(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
) -> Any:  # noqa: ANN401
    """Returns a transposed convolution; arguments and result as of `_convolution`.

    Where the patches that the pixels become do not overlap, it is a matmul. Else it is the convolution of the images,
    with zeros between their pixels, by the reversed patches.
    """
    patch = list(weight.shape[2:])
    is_apart = list(stride) == patch and all(step == 1 or extent == 1 for step, extent in zip(dilation, patch))
    if groups == 1 and is_apart and not any(padding) and not any(output_padding):
        sizes = list(x.shape[2:])
        pixels = torch.matmul(weight.flatten(1).t(), x.flatten(2)).reshape(x.shape[0], -1, *patch, *sizes)
        rank = len(patch)
        pixels = pixels.permute(0, 1, *(axis for number in range(rank) for axis in (2 + rank + number, 2 + number)))
        result = pixels.reshape(*pixels.shape[:2], *(step * size for step, size in zip(patch, sizes)))
        return result if bias is None else result + bias.reshape(-1, *([1] * rank))
    for axis, (size, step, gap, around, extra) in enumerate(zip(patch, stride, dilation, padding, output_padding), 2):
        extent = x.shape[axis]
        if step > 1:
            apart = x.unsqueeze(axis + 1)
            zeros = [0, 0] * (apart.dim() - axis - 2) + [0, step - 1]
            x = torch.ops.aten.constant_pad_nd(apart, zeros, 0.0).flatten(axis, axis + 1)
            x = x.narrow(axis, 0, (extent - 1) * step + 1)
        margin = gap * (size - 1) - around
        ends = [max(0, margin), max(0, margin + extra)]
        if any(ends):
            x = torch.ops.aten.constant_pad_nd(x, [0, 0] * (x.dim() - axis - 1) + ends, 0.0)
        crop = max(0, -margin)
        x = x.narrow(axis, crop, x.shape[axis] - crop - max(0, -margin - extra))
    reversed_ = weight.flip(list(range(2, weight.dim())))
    of_groups = reversed_.reshape(groups, -1, *reversed_.shape[1:]).transpose(1, 2)
    ones, zeros = [1] * len(patch), [0] * len(patch)
    filters = of_groups.reshape(-1, *of_groups.shape[2:])
    return _convolution(x, filters, bias, ones, zeros, dilation, False, zeros, groups)


def _linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str = "", device: str = "auto"
) -> torch.Tensor:
    """Returns what the operator of this package computes, by ops of PyTorch."""
    sums = torch.nn.functional.linear(x, weight, bias)
    return pytorch.ACTIVATIONS[activation][1](sums) if activation else sums


def _padded(x: torch.Tensor, extents: Sequence[int], value: float = 0) -> Any:  # noqa: ANN401
    """Returns a padding of less than nothing along some axes as a part of the tensor, and what is left to pad; of uint8
    in i32, as torch-mlir takes the number for one of int8."""
    if x.dtype == torch.uint8:
        return torch.ops.aten.constant_pad_nd(x.to(torch.int32), extents, value).to(x.dtype)
    if min(extents) >= 0:
        return NotImplemented
    for number, (before, after) in enumerate(zip(extents[::2], extents[1::2])):
        axis, first, last = x.dim() - 1 - number, max(0, -before), max(0, -after)
        x = x.narrow(axis, first, x.shape[axis] - first - last)
    rest = [max(0, extent) for extent in extents]
    return torch.ops.aten.constant_pad_nd(x, rest, value) if any(rest) else x.clone()


def _shifted(shift: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], *, is_own: bool) -> Callable[..., Any]:
    """Returns a shift of integers by other integers, as bytes and words of several weights are unpacked; bytes in i32,
    as torch-mlir takes uint8 as int8.

    Args:
        shift: the op that torch-mlir lowers.
        is_own: whether it is the op itself that is replaced.
    """

    def shifted(x: torch.Tensor, places: torch.Tensor) -> Any:  # noqa: ANN401
        type_ = torch.result_type(x, places)
        if not {x.dtype, places.dtype} <= {*_NARROW, *_WIDE} or (is_own and type_ in _WIDE):
            return NotImplemented
        computed = type_ if type_ in _WIDE else torch.int32
        return shift(x.to(computed), places.to(computed)).to(type_)

    return shifted


def _range(start: float, end: float, step: float = 1, *, dtype: torch.dtype | None = None, **options: Any) -> Any:  # noqa: ANN401
    """Returns a range of bytes as one of i64 whose elements are cast: torch-mlir ends the process for one of bytes."""
    if dtype not in (torch.uint8, torch.int8):
        return NotImplemented
    return torch.ops.aten.arange.start_step(start, end, step, dtype=torch.int64, **options).to(dtype)


def _at(x: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> Any:  # noqa: ANN401
    """Returns elements at indices of i32, which torch-mlir does not lower, by those of i64."""
    if not any(index is not None and index.dtype == torch.int32 for index in indices):
        return NotImplemented
    wide = [index.long() if index is not None and index.dtype == torch.int32 else index for index in indices]
    return torch.ops.aten.index.Tensor(x, wide)


# Ops, and functions of their arguments that return the same.
TABLE = {
    torch.ops.aten.__rshift__.Tensor: _shifted(torch.bitwise_right_shift, is_own=False),
    torch.ops.aten.__lshift__.Tensor: _shifted(torch.bitwise_left_shift, is_own=False),
    torch.ops.aten.bitwise_right_shift.Tensor: _shifted(torch.bitwise_right_shift, is_own=True),
    torch.ops.aten.bitwise_left_shift.Tensor: _shifted(torch.bitwise_left_shift, is_own=True),
    torch.ops.aten.index.Tensor: _at,
    torch.ops.aten.arange.start_step: _range,
    torch.ops.stepladder.linear.default: _linear,
    torch.ops.stepladder.matmul.default: lambda a, b, device="auto": torch.matmul(a, b),
    torch.ops.aten.constant_pad_nd.default: _padded,
    torch.ops.aten.convolution.default: _convolution,
    **counts.TABLE,
    **distances.TABLE,
    **elementwise.TABLE,
    **orders.TABLE,
    **pooling.TABLE,
    **running_reductions.TABLE,
    **scatters.TABLE,
    **special_functions.TABLE,
    **fourier_transforms.TABLE,
}
