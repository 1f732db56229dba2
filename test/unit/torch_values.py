"""Comparison of PyTorch's tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def close(got: Tensor, wanted: Tensor, tolerance: float = 1e-2) -> None:
    """Requires that no element differs by more than a share of the largest one, or of 1."""
    assert got.shape == wanted.shape
    assert (got.double() - wanted.double()).abs().max() <= tolerance * max(1.0, wanted.abs().max().item())
