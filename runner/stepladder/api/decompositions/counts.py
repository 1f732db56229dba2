"""Counts of PyTorch as comparisons and reductions, which torch-mlir lowers to linalg.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.decompositions.orders import moved_to_end


def _histogram(x: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    """Returns how many values are in each of some bins of one width; in the last one also those at its end."""
    flat = x.flatten()
    if min == max == 0:
        low, high = flat.amin(), flat.amax()
        is_one = low == high
        low, high = torch.where(is_one, low - 1, low), torch.where(is_one, high + 1, high)
        is_inside = torch.ones_like(flat, dtype=torch.bool)
    else:
        low, high = (min - 1, max + 1) if min == max else (min, max)
        is_inside = (flat >= low) & (flat <= high)
    place = torch.floor((flat - low) * bins / (high - low)).clamp(0, bins - 1)
    numbers = torch.arange(bins, device=x.device, dtype=x.dtype)
    return ((place == numbers[:, None]) & is_inside).sum(-1).to(x.dtype)


def _mode(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the most frequent number along an axis, of several the least, and its last index."""
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    rows = moved_to_end(x, dim)
    counts = (rows.unsqueeze(-1) == rows.unsqueeze(-2)).sum(-1)
    is_most = counts == counts.amax(-1, keepdim=True)
    highest = rows.amax(-1, keepdim=True)
    value = torch.where(is_most, rows, highest).amin(-1)
    places = torch.arange(rows.shape[-1], device=x.device)
    place = torch.where(rows == value.unsqueeze(-1), places, 0).amax(-1)
    results = value.to(x.dtype), place
    return (
        results
        if not keepdim
        else (results[0].unsqueeze(-1).movedim(-1, dim), results[1].unsqueeze(-1).movedim(-1, dim))
    )


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {_aten.histc.default: _histogram, _aten.mode.default: _mode}
