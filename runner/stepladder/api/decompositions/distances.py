"""Distances, sums of embeddings and other ops of PyTorch as broadcasts and reductions.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._decomp import decomposition_table  # pyright: ignore[reportMissingImports]


def _norm(difference: torch.Tensor, p: float) -> torch.Tensor:
    """Returns the p-norms along the last axis."""
    size = difference.abs()
    if p == 0:
        return (difference != 0).to(difference.dtype).sum(-1)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return difference.square().sum(-1).sqrt()
    return size.amax(-1) if math.isinf(p) else (size**p).sum(-1) ** (1 / p)


def _distances(x: torch.Tensor, y: torch.Tensor, p: float = 2.0, compute_mode: int | None = None) -> torch.Tensor:
    """Returns the distance of each row to each of others; it is that of their differences, whatever the mode is."""
    return _norm(x.unsqueeze(-2) - y.unsqueeze(-3), p)


def _slopes(difference: torch.Tensor, distance: torch.Tensor, p: float) -> torch.Tensor:
    """Returns the derivatives of p-norms along the last axis; 0 where a distance is 0, as PyTorch has it."""
    if p == 0:
        return torch.zeros_like(difference)
    distance, sign, size = distance.unsqueeze(-1), difference.sign(), difference.abs()
    if p == 1:
        return sign
    if math.isinf(p):
        return torch.where(size == distance, sign, 0.0)
    if p == 2:
        return torch.where(distance == 0.0, 0.0, difference / distance)
    is_flat = (distance == 0.0) | (difference == 0.0) if p < 1 else distance == 0.0
    return torch.where(is_flat, 0.0, sign * size ** (p - 1) / distance ** (p - 1))


def _of_distances(
    of_result: torch.Tensor, x: torch.Tensor, y: torch.Tensor, p: float, distances: torch.Tensor
) -> torch.Tensor:
    """Returns the gradient of the first rows, for all batches of the others; arguments as of `aten._cdist_backward`."""
    slopes = _slopes(x.unsqueeze(-2) - y.unsqueeze(-3), distances, p)
    return (of_result.unsqueeze(-1) * slopes).sum(-2)


def _of_own_distances(of_result: torch.Tensor, x: torch.Tensor, p: float, distances: torch.Tensor) -> torch.Tensor:
    """Returns the gradient of rows; arguments as of `aten._pdist_backward`."""
    row = torch.arange(x.shape[0], device=x.device)
    first, second = torch.minimum(row[:, None], row), torch.maximum(row[:, None], row)
    is_pair = first < second
    pair = torch.where(is_pair, first * (2 * x.shape[0] - first - 1) // 2 + second - first - 1, 0)
    slopes = _slopes(x.unsqueeze(-2) - x, distances[pair], p)
    return torch.where(is_pair.unsqueeze(-1), of_result[pair].unsqueeze(-1) * slopes, 0.0).sum(-2)


def _own_distances(x: torch.Tensor, p: float = 2.0) -> torch.Tensor:
    """Returns the distances of each row to those after it."""
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    return _norm(x[first] - x[second], p)


def _embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:  # noqa: ANN401
    """Returns sums, means or maxima of rows of a table, those between two offsets each; arguments as of PyTorch's op.

    Returns:
        Those and, for the other results of the op, what no forward pass reads.
    """
    places = torch.arange(indices.shape[0], device=indices.device)
    first = offsets if not include_last_offset else offsets[:-1]
    last = (
        torch.cat((offsets[1:], offsets.new_full((1,), indices.shape[0]))) if not include_last_offset else offsets[1:]
    )
    hits = (places >= first[:, None]) & (places < last[:, None])
    if padding_idx is not None and padding_idx >= -weight.shape[0]:
        hits = hits & (indices != padding_idx % weight.shape[0])
    counts = hits.sum(-1)
    rows = weight[indices]
    if mode == 2:
        bags = torch.where(hits.unsqueeze(-1), rows, -math.inf).amax(1)
        bags = torch.where(counts[:, None] > 0, bags, 0.0)
    else:
        rows = rows if per_sample_weights is None else rows * per_sample_weights[:, None]
        bags = torch.where(hits.unsqueeze(-1), rows, 0.0).sum(1)
        if mode == 1:
            bags = bags / counts.clamp(min=1)[:, None].to(weight.dtype)
    return bags, indices.clone(), counts, offsets.clone()


def _roll(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:  # noqa: ANN401
    """Returns a tensor whose elements are shifted; without axes, along all of them as one."""
    return NotImplemented if dims else x.flatten().roll(shifts, 0).reshape(x.shape)


def _block_diagonal(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns matrices along a diagonal, with zeros around them."""
    matrices = [item.reshape(1, -1) if item.dim() < 2 else item for item in tensors]
    width = sum(item.shape[1] for item in matrices)
    rows, column = [], 0
    for item in matrices:
        around = [column, width - column - item.shape[1]]
        rows.append(torch.ops.aten.constant_pad_nd(item, around, 0) if any(around) else item)
        column += item.shape[1]
    return torch.cat(rows)


_aten = torch.ops.aten
# By name: an underscore begins the names of ATen's ops without a function of PyTorch.
_NAMED = {
    "_cdist_backward": _of_distances,
    "_cdist_forward": _distances,
    "_pdist_backward": _of_own_distances,
    "_pdist_forward": _own_distances,
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
}
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    **{getattr(_aten, name).default: function for name, function in _NAMED.items()},
    _aten.addmv.default: decomposition_table[_aten.addmv.default],
    _aten.block_diag.default: _block_diagonal,
    _aten.embedding_bag.padding_idx: _embedding_bag,
    _aten.roll.default: _roll,
}
