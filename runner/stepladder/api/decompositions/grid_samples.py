"""Samples of images at the places of a grid, of PyTorch: those of volumes, and the gradients of both.

A sample is a sum over taps: elements near a place, each with a weight along each axis. PyTorch is an optional package;
this module imports it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.decompositions.axis_sums import widened

# Modes of interpolation, and of what is outside of an image.
_BILINEAR, _NEAREST, _CUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
# The parameter of PyTorch's cubic convolution.
_A = -0.75


@dataclass(frozen=True)
class Tap:
    """Elements along an axis that places read.

    Attributes:
        place: their indices, of floating point; some may be outside of the axis.
        weight: of each.
        slope: the derivative of the weight by the place; None if it is 0.
    """

    place: torch.Tensor
    weight: torch.Tensor
    slope: torch.Tensor | None


def linear_taps(at: torch.Tensor) -> list[Tap]:
    """Returns the two elements between which places are.

    Args:
        at: the places.
    """
    first, one = torch.floor(at), torch.ones_like(at)
    return [Tap(first, first + 1.0 - at, -one), Tap(first + 1.0, at - first, one)]


def cubic_taps(at: torch.Tensor) -> list[Tap]:
    """Returns the four elements around places, with the weights of a cubic convolution.

    Args:
        at: the places.
    """
    first = torch.floor(at)
    taps = []
    for number in range(-1, 3):
        distance = at - first - number  # from 2 to -2
        size, sign = distance.abs(), 1.0 if number < 1 else -1.0
        if number in (0, 1):
            weight = ((_A + 2.0) * size - (_A + 3.0)) * size * size + 1.0
            slope = (3.0 * (_A + 2.0) * size - 2.0 * (_A + 3.0)) * size
        else:
            weight = ((size - 5.0) * size + 8.0) * size * _A - 4.0 * _A
            slope = ((3.0 * size - 10.0) * size + 8.0) * _A
        taps.append(Tap(first + number, weight, slope * sign))
    return taps


def _bordered(at: torch.Tensor, extent: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns places within an axis, and the derivative: 0 from the border on."""
    inside = (at > 0.0) & (at < extent - 1.0)
    return at.clamp(0.0, extent - 1.0), torch.where(inside, 1.0, 0.0).to(at.dtype)


def _reflected(at: torch.Tensor, extent: int, align_corners: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns places that the borders of an axis reflect, and the derivative."""
    low, high = (0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)
    span = high - low
    if not span:
        return torch.zeros_like(at), torch.zeros_like(at)
    size = (at - low).abs()
    flips = torch.floor(size / span)
    rest = size - flips * span
    is_even = flips - 2.0 * torch.floor(flips / 2.0) == 0.0
    sign = torch.where(at < low, -1.0, 1.0).to(at.dtype)
    reflected = torch.where(is_even, rest, span - rest) + low
    bordered, slope = _bordered(reflected, extent)
    return bordered, torch.where(is_even, sign, -sign) * slope


def _padded(at: torch.Tensor, extent: int, padding: int, align_corners: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns places as a mode moves those outside of an axis, and the derivative."""
    if padding == _BORDER:
        return _bordered(at, extent)
    if padding == _REFLECTION:
        return _reflected(at, extent, align_corners)
    return at, torch.ones_like(at)


def _taps(grid: torch.Tensor, extent: int, mode: int, padding: int, align_corners: bool) -> tuple[list[Tap], Any]:
    """Returns the elements along an axis that samples read, and the derivative of their places by those of the grid.

    Args:
        grid: places along the axis, from -1 to 1.
        extent: of the axis.
        mode, padding: numbers of the modes.
        align_corners: whether -1 and 1 are the middles of the elements at the ends.
    """
    factor = (extent - 1) / 2 if align_corners else extent / 2
    at = (grid + 1.0) * factor - (0.0 if align_corners else 0.5)
    if mode == _CUBIC:  # the elements are moved, not the place
        taps = [
            Tap(_padded(tap.place, extent, padding, align_corners)[0], tap.weight, tap.slope) for tap in cubic_taps(at)
        ]
        return taps, factor
    at, slope = _padded(at, extent, padding, align_corners)
    if mode == _NEAREST:
        return [Tap(torch.round(at), torch.ones_like(at), None)], 0.0
    return linear_taps(at), factor * slope


@dataclass(frozen=True)
class _Element:
    """An element that each sample reads.

    Attributes:
        taps: one of each axis of the images.
        index: of the element in its image, (images, samples).
        is_inside: whether the image has it.
    """

    taps: tuple[Tap, ...]
    index: torch.Tensor
    is_inside: torch.Tensor

    @property
    def weight(self) -> torch.Tensor:
        """The product of the weights along the axes."""
        return functools.reduce(torch.mul, (tap.weight for tap in self.taps))


def _elements(taps: Sequence[Sequence[Tap]], extents: Sequence[int]) -> list[_Element]:
    """Returns the elements of all combinations of taps."""
    elements = []
    for combination in itertools.product(*taps):
        index: Any = 0
        is_inside: Any = True
        for tap, extent in zip(combination, extents):
            is_inside = is_inside & (tap.place >= 0.0) & (tap.place <= extent - 1.0)
            index = index * extent + tap.place.clamp(0.0, extent - 1.0).to(torch.int64)
        elements.append(_Element(combination, index, is_inside))
    return elements


def _places(
    x: torch.Tensor, grid: torch.Tensor, mode: int, padding: int, align_corners: bool
) -> tuple[list[_Element], list[Any]]:
    """Returns what the samples of images read, and the derivatives of the places along each axis; the last axis of a
    grid has the places along the last axis of the images first."""
    flat = widened(grid).flatten(1, -2)
    along = [
        _taps(flat[..., -1 - axis], extent, mode, padding, align_corners) for axis, extent in enumerate(x.shape[2:])
    ]
    return _elements([taps for taps, _ in along], x.shape[2:]), [slope for _, slope in along]


def _read(x: torch.Tensor, element: _Element) -> torch.Tensor:
    """Returns an element of the images for each sample, (images, channels, samples), and zeros outside."""
    index = element.index[:, None].expand(-1, x.shape[1], -1)
    return torch.where(element.is_inside[:, None], torch.gather(widened(x).flatten(2), 2, index), 0.0)


def _sampled(x: torch.Tensor, grid: torch.Tensor, mode: int, padding: int, align_corners: bool) -> torch.Tensor:
    """Returns samples; arguments as of `aten.grid_sampler_3d`."""
    elements, _ = _places(x, grid, mode, padding, align_corners)
    terms = [_read(x, item) * item.weight[:, None] for item in elements]
    return sum(terms[1:], terms[0]).reshape(*x.shape[:2], *grid.shape[1:-1]).to(x.dtype)


def _of_samples(
    of_result: torch.Tensor,
    x: torch.Tensor,
    grid: torch.Tensor,
    mode: int,
    padding: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> Any:  # noqa: ANN401
    """Returns the gradients of images and of a grid; arguments as of `aten.grid_sampler_2d_backward`."""
    elements, slopes = _places(x, grid, mode, padding, align_corners)
    gradient = widened(of_result).flatten(2)
    of_x = None
    if output_mask[0]:
        terms = [torch.where(item.is_inside[:, None], gradient * item.weight[:, None], 0.0) for item in elements]
        index = torch.cat([item.index for item in elements], -1)[:, None].expand(-1, x.shape[1], -1)
        zeros = torch.zeros(x.shape, dtype=gradient.dtype, device=x.device).flatten(2)
        of_x = zeros.scatter_add(2, index, torch.cat(terms, -1)).reshape(x.shape).to(x.dtype)
    if mode == _NEAREST:
        return of_x, torch.zeros_like(grid)
    products = [(gradient * _read(x, item)).sum(1) for item in elements]
    along = []
    for axis, slope in enumerate(slopes):
        sums: Any = 0.0
        for item, product in zip(elements, products):
            for number, tap in enumerate(item.taps):
                product = product * (tap.slope if number == axis else tap.weight)
            sums = sums + product
        along.append(sums * slope)
    return of_x, torch.stack(along[::-1], -1).reshape(grid.shape).to(grid.dtype)


# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.grid_sampler_3d.default: _sampled,
    torch.ops.aten.grid_sampler_2d_backward.default: _of_samples,
    torch.ops.aten.grid_sampler_3d_backward.default: _of_samples,
}
