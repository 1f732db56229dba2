"""Convolutions of PyTorch as matmuls of their patches.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]


def convolution(
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
        (n, f, ...); `NotImplemented` for images without a batch, and for none.
    """
    if x.dim() != weight.dim() or 0 in x.shape:
        return NotImplemented
    if transposed:
        return _transposed(x, weight, bias, stride, padding, dilation, output_padding, groups)
    patch = list(weight.shape[2:])
    columns, sizes = _patches(x, patch, stride, padding, dilation, groups)
    images = x.shape[0]
    if groups == 1:
        result = torch.matmul(weight.reshape(weight.shape[0], -1), columns)
    else:
        of_group = columns.reshape(images, groups, -1, columns.shape[-1])
        result = torch.matmul(weight.reshape(groups, weight.shape[0] // groups, -1), of_group)
        result = result.reshape(images, weight.shape[0], -1)
    return (result if bias is None else result + bias[:, None]).reshape(images, -1, *sizes)


def patches_of(
    x: torch.Tensor, patch: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> torch.Tensor:
    """Returns the patches of images.

    Args:
        x: (n, c, ...), the images.
        patch: its extents.
        stride, padding, dilation: of each axis of an image.

    Returns:
        (n, values of a patch, patches), the values of each channel together.
    """
    return _patches(x, patch, stride, padding, dilation, 1)[0]


def _patches(
    x: torch.Tensor,
    patch: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> tuple[torch.Tensor, list[int]]:
    """Returns patches as `patches_of`, and how many there are along each axis."""
    is_apart = list(stride) == patch and all(step == 1 or extent == 1 for step, extent in zip(dilation, patch))
    if groups == 1 and is_apart and not any(padding):
        return _apart(x, patch)
    return _overlapping(x, patch, stride, padding, dilation)


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
    return convolution(x, filters, bias, ones, zeros, dilation, False, zeros, groups)
