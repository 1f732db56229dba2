"""Pooling of PyTorch as elementwise ops on slices, which torch-mlir lowers to linalg.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._decomp import decomposition_table  # pyright: ignore[reportMissingImports]

from stepladder.api.decompositions.axis_sums import summed_along, widened


@dataclass(frozen=True)
class Axis:
    """Windows along an axis.

    Attributes:
        size: elements of a window.
        step: from a window to the next one.
        before: elements that are padded before the first one.
        gap: from an element of a window to the next one.
        extent: of the axis.
        count: windows.
    """

    size: int
    step: int
    before: int
    gap: int
    extent: int
    count: int

    @property
    def after(self) -> int:
        """Elements that are padded after the last one."""
        return max(0, (self.count - 1) * self.step + (self.size - 1) * self.gap + 1 - self.extent - self.before)

    def slice(self, number: int) -> slice:
        """Returns the positions of the windows' elements with an index.

        Args:
            number: below `size`.
        """
        first = number * self.gap
        return slice(first, first + (self.count - 1) * self.step + 1, self.step)


def axes_of(
    shape: Sequence[int],
    rank: int,
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    is_ceiling: bool,
) -> list[Axis]:
    """Returns the windows along the last axes of a tensor.

    Args:
        shape: of the tensor.
        rank: axes of a window.
        window, stride, padding, dilation, is_ceiling: as of PyTorch's poolings.
    """

    def each(extents: Sequence[int]) -> list[int]:
        return [*extents] * rank if len(extents) == 1 else [*extents]

    axes = []
    of_each = zip(each(window), each(stride or window), each(padding), each(dilation), shape[-rank:])
    for size, step, before, gap, extent in of_each:
        room = extent + 2 * before - gap * (size - 1) - 1
        count = room // step + 1
        # A further window begins in the image, or in what is padded before it.
        if is_ceiling and room % step and count * step < extent + before:
            count += 1
        axes.append(Axis(size, step, before, gap, extent, count))
    return axes


def _padded(x: torch.Tensor, axes: Sequence[Axis], value: float) -> torch.Tensor:
    around = [extent for axis in reversed(axes) for extent in (axis.before, axis.after)]
    return torch.ops.aten.constant_pad_nd(x, around, value) if any(around) else x


def _along(x: torch.Tensor, rank: int, axis: int, part: slice) -> torch.Tensor:
    """Returns a part of a tensor along one of its last `rank` axes."""
    return x[(..., *(part if number == axis else slice(None) for number in range(rank)))]


def _pooled(
    x: torch.Tensor,
    axes: Sequence[Axis],
    fold: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    reduce: Callable[[torch.Tensor, int], torch.Tensor],
) -> torch.Tensor:
    """Returns what folds the elements of each window, along one axis after the other.

    Args:
        x: with its padding.
        axes: the windows.
        fold: of two tensors.
        reduce: folds an axis.
    """
    rank = len(axes)
    for number, axis in enumerate(axes):
        if axis.size == 1 and axis.step == 1:
            continue
        if axis.size == axis.step and axis.gap == 1:  # windows that do not overlap are rows of another shape
            place = x.dim() - rank + number
            windows = _along(x, rank, number, slice(0, axis.count * axis.size))
            shape = (*x.shape[:place], axis.count, axis.size, *x.shape[place + 1 :])
            x = reduce(windows.reshape(shape), place + 1)
        else:
            x = functools.reduce(fold, (_along(x, rank, number, axis.slice(item)) for item in range(axis.size)))
    return x


def _places(x: torch.Tensor, axes: Sequence[Axis]) -> torch.Tensor:
    """Returns where in an image each window has its largest element.

    Args:
        x: with its padding.
        axes: the windows.
    """
    strides = [math.prod(axis.extent for axis in axes[number + 1 :]) for number in range(len(axes))]
    first = torch.zeros((), dtype=torch.int64, device=x.device)
    for axis, stride in zip(axes, strides):
        offsets = (torch.arange(axis.count, device=x.device) * axis.step - axis.before) * stride
        first = first[..., None] + offsets
    largest: Any = None
    place: Any = None
    for numbers in itertools.product(*(range(axis.size) for axis in axes)):
        value = x[(..., *(axis.slice(number) for axis, number in zip(axes, numbers)))]
        at = first + sum(axis.gap * number * stride for axis, number, stride in zip(axes, numbers, strides))
        if largest is None:
            largest, place = value, at.expand_as(value)
        else:
            # The first of equal values, and the last NaN, as PyTorch has it.
            is_larger = (value > largest) | (value.isnan() if value.is_floating_point() else False)
            place = torch.where(is_larger, at, place)
            largest = torch.maximum(largest, value)
    return place


def _maximum(rank: int) -> Callable[..., Any]:
    """Returns the pooling of the largest values, and of their indices, along the last axes."""

    def pooled(
        x: torch.Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:  # noqa: ANN401
        axes = axes_of(x.shape, rank, kernel_size, stride, padding, dilation, ceil_mode)
        least = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
        padded = _padded(x, axes, least)
        # Indices that no op reads are not computed.
        return _pooled(padded, axes, torch.maximum, torch.amax), _places(padded, axes)

    return pooled


def _mean(rank: int) -> Callable[..., Any]:
    """Returns the pooling of means along the last axes."""

    def pooled(
        x: torch.Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:  # noqa: ANN401
        axes = axes_of(x.shape, rank, kernel_size, stride, padding, (1,), ceil_mode)
        terms = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        total = _pooled(_padded(terms, axes, 0.0), axes, torch.add, torch.sum)
        if divisor_override is not None:
            return (total / divisor_override).to(x.dtype)
        for counts in window_counts(axes, count_include_pad, x.device):
            total = total / (counts if isinstance(counts, int) else counts.to(total.dtype))
        return total.to(x.dtype)

    return pooled


def window_counts(axes: Sequence[Axis], with_padding: bool, device: torch.device) -> list[Any]:
    """Returns the numbers of elements of windows, whose products means divide by.

    Args:
        axes: the windows.
        with_padding: whether what is padded counts too.
        device: of tensors.

    Returns:
        One number if it is the same for all windows, else a tensor for each axis, which broadcasts to theirs.
    """
    numbers = [_counts(axis, with_padding) for axis in axes]
    if all(len(set(count)) == 1 for count in numbers):
        return [math.prod(count[0] for count in numbers)]
    counts = []
    for number, axis in enumerate(axes):
        # As an expression: a tensor of constants would be an argument of the exported function.
        first = torch.arange(axis.count, device=device) * axis.step - axis.before
        last = first + axis.size
        if with_padding:
            length = last.clamp(max=axis.extent + axis.before) - first
        else:
            length = last.clamp(max=axis.extent) - first.clamp(min=0)
        counts.append(length.reshape(-1, *([1] * (len(axes) - 1 - number))))
    return counts


def _counts(axis: Axis, with_padding: bool) -> list[int]:
    """Returns the elements of each window that a mean is of."""
    counts = []
    for number in range(axis.count):
        first = number * axis.step - axis.before
        last = min(first + axis.size, axis.extent + axis.before)
        counts.append(last - first if with_padding else min(last, axis.extent) - max(first, 0))
    return counts


def windows_to_extents(count: int, extent: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns which elements the windows of an adaptive pooling have, (count, extent), and the sizes of windows,
    (count, 1): unlike ones, some of which overlap, where the count does not divide the extent.

    Args:
        count: of the windows along an axis.
        extent: of the axis.
        device: of the tensors.
    """
    number = torch.arange(count, device=device)[:, None]
    first, last = number * extent // count, -(-(number + 1) * extent // count)
    place = torch.arange(extent, device=device)
    return (place >= first) & (place < last), last - first


def _largest_of_windows(x: torch.Tensor, counts: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the largest values of the unlike windows of an adaptive pooling along the last axes, and where they are:
    the first of equal values, and the last NaN, as PyTorch has it."""
    rank = len(counts)
    hits: Any = True
    place: Any = 0
    for number, (count, extent) in enumerate(zip(counts, x.shape[-rank:])):
        has_element, _ = windows_to_extents(count, extent, x.device)
        shape = [1] * (2 * rank)
        shape[number], shape[rank + number] = count, extent
        hits = hits & has_element.reshape(shape)
        place = place * extent + torch.arange(extent, device=x.device).reshape(-1, *[1] * (rank - 1 - number))
    axes = list(range(-rank, 0))
    images = x.reshape(*x.shape[:-rank], *[1] * rank, *x.shape[-rank:])
    least = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    values = torch.where(hits, images, least).amax(axes)
    is_largest = hits & (images == values[(..., *[None] * rank)])
    places = torch.where(is_largest, place, math.prod(x.shape[-rank:])).amin(axes)
    if not x.is_floating_point():
        return values, places
    last = torch.where(hits & images.isnan(), place, -1).amax(axes)
    return values, torch.where(last < 0, places, last)


def _mean_of_windows(x: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
    """Returns the means of the unlike windows of an adaptive pooling along the last axes."""
    rank = len(counts)
    windows = [windows_to_extents(count, extent, x.device) for count, extent in zip(counts, x.shape[-rank:])]
    means = summed_along(widened(x), [has_element.t() for has_element, _ in windows])
    for number, (_, sizes) in enumerate(windows):
        means = means / sizes.reshape(-1, *[1] * (rank - 1 - number)).to(means.dtype)
    return means.to(x.dtype)


def _adaptive(
    name: str, rank: int, pooling: Callable[..., Any], otherwise: Callable[..., Any] | None = None
) -> dict[Any, Callable[..., Any]]:
    """Returns an op that pools to given extents, and a function of its arguments that returns the same.

    Args:
        name: of the op.
        rank: axes.
        pooling: of windows of one size.
        otherwise: of windows of unlike sizes; None for PyTorch's own decomposition, if there is one.
    """
    op = getattr(torch.ops.aten, name).default

    def pooled(x: torch.Tensor, output_size: Sequence[int]) -> Any:  # noqa: ANN401
        extents = x.shape[-rank:]
        if all(extent % size == 0 for extent, size in zip(extents, output_size)):
            return pooling(x, [extent // size for extent, size in zip(extents, output_size)])
        general = otherwise or decomposition_table.get(op)
        return NotImplemented if general is None else general(x, output_size)

    return {op: pooled}


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    _aten.max_pool2d_with_indices.default: _maximum(2),
    _aten.max_pool3d_with_indices.default: _maximum(3),
    _aten.avg_pool2d.default: _mean(2),
    _aten.avg_pool3d.default: _mean(3),
    **_adaptive("_adaptive_avg_pool2d", 2, _mean(2)),
    **_adaptive("_adaptive_avg_pool3d", 3, _mean(3), _mean_of_windows),
    **_adaptive("adaptive_max_pool2d", 2, _maximum(2), _largest_of_windows),
    **_adaptive("adaptive_max_pool3d", 3, _maximum(3), _largest_of_windows),
}
