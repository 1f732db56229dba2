"""Gradients of the resizing of PyTorch by linear and cubic interpolation: sums over what is computed from an element.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.decompositions.axis_sums import summed_along, widened
from stepladder.api.decompositions.grid_samples import Tap, cubic_taps, linear_taps


def _weights(taps: Sequence[Tap], extent: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns which elements of an axis those of the resized axis read, and by which weights: (count, extent)."""
    elements: Any = torch.arange(extent, device=taps[0].place.device).to(taps[0].place.dtype)
    hits = [tap.place.clamp(0, extent - 1)[:, None] == elements for tap in taps]
    weights = [torch.where(hit, tap.weight[:, None], 0.0) for hit, tap in zip(hits, taps)]
    is_read, weight = hits[0], weights[0]
    for hit, other in zip(hits[1:], weights[1:]):
        is_read, weight = is_read | hit, weight + other
    return is_read, weight


def _of_resizing(rank: int, *, is_cubic: bool = False) -> Callable[..., Any]:
    """Returns the gradient of a resizing along the last axes; its arguments are those of
    `aten.upsample_bilinear2d_backward`."""

    def gradient(
        of_result: torch.Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        align_corners: bool,
        *scales: float | None,
    ) -> torch.Tensor:
        terms, masks, weights = widened(of_result), [], []
        for count, extent, scale in zip(output_size, input_size[-rank:], scales or (None,) * rank):
            number = torch.arange(count, device=terms.device).to(terms.dtype)
            if align_corners:
                at = number * ((extent - 1) / (count - 1) if count > 1 else 0.0)
            else:
                at = (number + 0.5) * (1 / scale if scale else extent / count) - 0.5
            # The places that a cubic interpolation begins at are not clamped to the axis.
            is_read, weight = _weights(cubic_taps(at) if is_cubic else linear_taps(at.clamp(0.0, extent - 1.0)), extent)
            masks.append(is_read)
            weights.append(weight)
        return summed_along(terms, masks, weights).to(of_result.dtype)

    return gradient


# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.upsample_linear1d_backward.default: _of_resizing(1),
    torch.ops.aten.upsample_bilinear2d_backward.default: _of_resizing(2),
    torch.ops.aten.upsample_trilinear3d_backward.default: _of_resizing(3),
    torch.ops.aten.upsample_bicubic2d_backward.default: _of_resizing(2, is_cubic=True),
}
