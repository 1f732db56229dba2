"""Gradients of PyTorch's poolings as sums over the windows that have an element, which torch-mlir lowers to linalg.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.decompositions.axis_sums import summed_along, widened
from stepladder.api.decompositions.pooling import Axis, axes_of, window_counts, windows_to_extents


def _covering(axis: Axis, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns numbers of windows along an axis, and whether they have an element of it: (extent, candidates) both."""
    place = torch.arange(axis.extent, device=device)[:, None] + axis.before
    if axis.gap == 1:  # as many windows as begin within the size of one
        window = place // axis.step - torch.arange(-(-axis.size // axis.step), device=device)
        has_element = place - window * axis.step < axis.size
    else:
        first = place - torch.arange(axis.size, device=device) * axis.gap
        window = first // axis.step
        has_element = first == window * axis.step
    has_element = has_element & (window >= 0) & (window < axis.count)
    return window.clamp(0, axis.count - 1), has_element


def _of_windows(axes: Sequence[Axis], device: torch.device) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Returns indices of windows, one tensor an axis, and whether they have an element: of extents and candidates of
    one axis after the other."""
    rank, indices, are_covering = len(axes), [], None
    for number, axis in enumerate(axes):
        shape = [1] * (2 * rank)
        shape[2 * number : 2 * number + 2] = axis.extent, -1
        window, has_element = (item.reshape(shape) for item in _covering(axis, device))
        indices.append(window)
        are_covering = has_element if are_covering is None else are_covering & has_element
    return indices, are_covering


def _summed(terms: torch.Tensor, are_covering: torch.Tensor, rank: int, type_: torch.dtype) -> torch.Tensor:
    """Returns the sums over windows of terms that windows have."""
    wide = terms.float() if type_ in (torch.float16, torch.bfloat16) else terms
    return torch.where(are_covering, wide, 0.0).sum([-2 * number - 1 for number in range(rank)]).to(type_)


def _at(x: torch.Tensor, indices: Sequence[torch.Tensor]) -> torch.Tensor:
    return x[(*[slice(None)] * (x.dim() - len(indices)), *indices)]


def _are_apart(axes: Sequence[Axis]) -> bool:
    """Returns whether windows follow each other from the first element on, so that each element is in one at most."""
    return all(
        axis.size == axis.step and axis.gap == 1 and not axis.before and axis.count * axis.size <= axis.extent
        for axis in axes
    )


def _spread(of_windows: torch.Tensor, axes: Sequence[Axis]) -> torch.Tensor:
    """Returns values of windows with an axis of one element after each axis of windows."""
    lead = of_windows.shape[: -len(axes)]
    return of_windows.reshape(*lead, *(extent for axis in axes for extent in (axis.count, 1)))


def _joined(of_elements: torch.Tensor, axes: Sequence[Axis]) -> torch.Tensor:
    """Returns values of the elements of windows that follow each other as an image, with zeros after them."""
    lead = of_elements.shape[: -2 * len(axes)]
    image = of_elements.reshape(*lead, *(axis.count * axis.size for axis in axes))
    left = [extent for axis in reversed(axes) for extent in (0, axis.extent - axis.count * axis.size)]
    return torch.ops.aten.constant_pad_nd(image, left, 0.0) if any(left) else image


def _of_maximum(rank: int) -> Callable[..., Any]:
    """Returns the gradient of the pooling of the largest values along the last axes."""

    def gradient(
        of_result: torch.Tensor,
        x: torch.Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool,
        indices: torch.Tensor,
    ) -> Any:  # noqa: ANN401
        axes = axes_of(x.shape, rank, kernel_size, stride, padding, dilation, ceil_mode)
        are_apart = _are_apart(axes)
        place: Any = 0
        for number, axis in enumerate(axes):
            shape = [1] * (2 * rank)
            shape[2 * number : 2 * number + 2] = (axis.count, axis.size) if are_apart else (axis.extent, 1)
            along = torch.arange(shape[2 * number] * shape[2 * number + 1], device=x.device)
            place = place * axis.extent + along.reshape(shape)
        if are_apart:
            return _joined(torch.where(_spread(indices, axes) == place, _spread(of_result, axes), 0.0), axes)
        windows, are_covering = _of_windows(axes, x.device)
        is_largest = are_covering & (_at(indices, windows) == place)
        return _summed(_at(of_result, windows), is_largest, rank, x.dtype)

    return gradient


def _of_mean(rank: int) -> Callable[..., Any]:
    """Returns the gradient of the pooling of means along the last axes."""

    def gradient(
        of_result: torch.Tensor,
        x: torch.Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:  # noqa: ANN401
        axes = axes_of(x.shape, rank, kernel_size, stride, padding, (1,), ceil_mode)
        terms = of_result.float() if x.dtype in (torch.float16, torch.bfloat16) else of_result
        if divisor_override is not None:
            terms = terms / divisor_override
        else:
            for counts in window_counts(axes, count_include_pad, x.device):
                terms = terms / (counts if isinstance(counts, int) else counts.to(terms.dtype))
        if _are_apart(axes):
            lead = x.shape[:-rank]
            elements = _spread(terms, axes).expand(*lead, *(n for axis in axes for n in (axis.count, axis.size)))
            return _joined(elements, axes).to(x.dtype)
        windows, are_covering = _of_windows(axes, x.device)
        return _summed(_at(terms, windows), are_covering, rank, x.dtype)

    return gradient


def _whole_windows(of_result: torch.Tensor, x: torch.Tensor, rank: int) -> list[int] | None:
    """Returns the size of windows that divide the extents of a tensor; None if none do."""
    pairs = list(zip(x.shape[-rank:], of_result.shape[-rank:]))
    return None if any(extent % size for extent, size in pairs) else [extent // size for extent, size in pairs]


def _of_adaptive_mean(rank: int) -> Callable[..., Any]:
    """Returns the gradient of the pooling of means to given extents."""

    def gradient(of_result: torch.Tensor, x: torch.Tensor) -> Any:  # noqa: ANN401
        size = _whole_windows(of_result, x, rank)
        if size is not None:
            return _of_mean(rank)(of_result, x, size, size, (0,), False, True, None)
        terms, masks = widened(of_result), []
        for axis in range(-rank, 0):
            has_element, sizes = windows_to_extents(of_result.shape[axis], x.shape[axis], x.device)
            terms = terms / sizes.reshape(-1, *[1] * (-axis - 1))
            masks.append(has_element)
        return summed_along(terms, masks).to(x.dtype)

    return gradient


def _of_adaptive_maximum(rank: int) -> Callable[..., Any]:
    """Returns the gradient of the pooling of the largest values to given extents."""

    def gradient(of_result: torch.Tensor, x: torch.Tensor, indices: torch.Tensor) -> Any:  # noqa: ANN401
        size = _whole_windows(of_result, x, rank)
        if size is None:  # windows of unlike sizes, some of which overlap
            zeros = x.new_zeros(x.shape).flatten(-rank)
            return zeros.scatter_add(-1, indices.flatten(-rank), of_result.flatten(-rank)).reshape(x.shape)
        return _of_maximum(rank)(of_result, x, size, size, (0,), (1,), False, indices)

    return gradient


# Names of ops, and functions of their arguments that return the same.
_OPS: dict[str, Callable[..., Any]] = {
    "max_pool2d_with_indices_backward": _of_maximum(2),
    "max_pool3d_with_indices_backward": _of_maximum(3),
    "avg_pool2d_backward": _of_mean(2),
    "avg_pool3d_backward": _of_mean(3),
    "_adaptive_avg_pool2d_backward": _of_adaptive_mean(2),
    "_adaptive_avg_pool3d_backward": _of_adaptive_mean(3),
    "adaptive_max_pool2d_backward": _of_adaptive_maximum(2),
    "adaptive_max_pool3d_backward": _of_adaptive_maximum(3),
}
# Ops, and these functions.
TABLE: dict[Any, Callable[..., Any]] = {getattr(torch.ops.aten, name).default: form for name, form in _OPS.items()}
