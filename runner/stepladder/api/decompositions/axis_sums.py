"""Sums along axes of the terms that belong to an element: gradients of ops that copy or average elements.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch  # pyright: ignore[reportMissingImports]


def widened(x: torch.Tensor) -> torch.Tensor:
    """Returns a tensor in the type that its sums have: f32 for one of 16 bits.

    Args:
        x: the tensor.
    """
    return x.float() if x.element_size() == 2 else x


def summed_along(
    terms: torch.Tensor, masks: Sequence[torch.Tensor], weights: Sequence[torch.Tensor] | None = None
) -> torch.Tensor:
    """Returns sums along the last axes of the terms that masks select, in the type of the terms.

    A product with the mask would be NaN for an infinite term that an element does not have.

    Args:
        terms: of any shape; those of 16 bits are summed in f32.
        masks: for each of these axes, of shape (terms, elements): which terms an element has.
        weights: by which terms are multiplied, of the same shapes; None for none.
    """
    sums = widened(terms)
    for place, is_term in enumerate(masks):
        axis = place - len(masks)
        of_elements = sums.movedim(axis, -1).unsqueeze(-1)
        of_elements = of_elements if weights is None else of_elements * weights[place]
        sums = torch.where(is_term, of_elements, 0.0).sum(-2).movedim(-1, axis)
    return sums.to(terms.dtype)
