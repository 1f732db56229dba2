"""Ops of PyTorch as others that torch-mlir lowers to linalg: convolutions as matmuls, running sums as sums.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]


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
        weight: (f, c / groups, ...), of the extents of a patch.
        bias: (f,), or None.
        stride, padding, dilation, transposed, output_padding, groups: of `aten.convolution`.

    Returns:
        (n, f, ...); `NotImplemented` for a transposed one, and for one of three dimensions whose patches overlap.
    """
    if transposed or x.dim() != weight.dim():
        return NotImplemented
    patch = list(weight.shape[2:])
    is_apart = list(stride) == patch and all(step == 1 or extent == 1 for step, extent in zip(dilation, patch))
    if groups == 1 and is_apart and not any(padding):
        columns, sizes = _apart(x, patch)
    elif len(patch) <= 2:
        columns, sizes = _overlapping(x, patch, stride, padding, dilation)
    else:
        return NotImplemented
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
        (n, numbers of a patch, patches), by permuting axes alone.
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
        x: (n, c, w) or (n, c, h, w).
        patch, stride, padding, dilation: of each axis of an image.
    """
    sizes = [
        (extent + 2 * around - gap * (size - 1) - 1) // step + 1
        for extent, size, step, around, gap in zip(x.shape[2:], patch, stride, padding, dilation)
    ]
    rows = [[one, *each] for one, each in zip((1, 1, 0, 1), (patch, dilation, padding, stride))]
    both = rows if len(patch) == 1 else [list(each) for each in (patch, dilation, padding, stride)]
    image = x.unsqueeze(2) if len(patch) == 1 else x
    return torch.ops.aten.im2col(image, *both), sizes


def _running_sum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the sums of all elements up to each along an axis, each of which is computed alone.

    Args:
        x: of numbers or truth values.
        dim: the axis.
        dtype: of the sums; None for that of the numbers, int64 of integers.
    """
    type_ = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if not x.dim():
        return x.to(type_)
    x = x.to(type_).movedim(dim, -1)
    places = torch.arange(x.shape[-1], device=x.device)
    terms = torch.where(places <= places[:, None], x.unsqueeze(-2), torch.zeros((), dtype=type_, device=x.device))
    return terms.sum(-1, dtype=type_).movedim(-1, dim)


# Ops, and functions of their arguments that return the same.
TABLE = {torch.ops.aten.convolution.default: _convolution, torch.ops.aten.cumsum.default: _running_sum}
