"""Gradients of convolutions, attentions and resized images of PyTorch as ops that torch-mlir lowers to linalg.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch._decomp.decompositions import (  # pyright: ignore[reportMissingImports]
    scaled_dot_product_flash_attention_for_cpu,
)

from stepladder.api.decompositions.axis_sums import summed_along
from stepladder.api.decompositions.convolutions import convolution, patches_of


def _of_convolution(
    of_result: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:  # noqa: ANN401
    """Returns the gradients of a convolution with groups, or of a transposed one; arguments as of
    `aten.convolution_backward`.

    That of the weight is a matmul of patches: those of the images, or of a transposed convolution, of the result.
    """
    if (groups == 1 and not transposed) or x.dim() != weight.dim():
        return NotImplemented
    rank = weight.dim() - 2
    window, places = list(weight.shape[2:]), (list(stride), list(padding), list(dilation))
    of_x = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_x = convolution(of_result, weight, None, *places, False, [0] * rank, groups)
    elif output_mask[0]:
        left = [
            extent - ((count - 1) * step - 2 * around + gap * (size - 1) + 1)
            for extent, count, size, step, around, gap in zip(x.shape[2:], of_result.shape[2:], window, *places)
        ]
        of_x = convolution(of_result, weight, None, *places, True, left, groups)
    if output_mask[1]:
        read, written = (of_result, x) if transposed else (x, of_result)
        columns = patches_of(read, window, *places)
        columns = columns.reshape(x.shape[0], groups, -1, columns.shape[-1])
        rows = written.reshape(x.shape[0], groups, written.shape[1] // groups, -1)[..., : columns.shape[-1]]
        of_weight = torch.einsum("bgfp,bgkp->gfk", rows, columns).reshape(weight.shape)
    if output_mask[2]:
        of_bias = of_result.sum([0, *range(2, of_result.dim())])
    return of_x, of_weight, of_bias


def _of_shared(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Returns the rows of the heads of queries that share keys and values as those of one head."""
    return x if x.shape[1] == k.shape[1] else x.reshape(*k.shape[:2], -1, x.shape[-1])


def _scores(
    q: torch.Tensor, k: torch.Tensor, factor: float, attn_mask: torch.Tensor | None, *, is_causal: bool
) -> torch.Tensor:
    """Returns what the weights of an attention are the softmax of."""
    scores = torch.matmul(_of_shared(q, k), k.transpose(-1, -2)).reshape(*q.shape[:-1], k.shape[-2])
    scores = (scores.float() if q.element_size() == 2 else scores) * factor
    if is_causal:
        rows, columns = (torch.arange(extent, device=q.device) for extent in scores.shape[-2:])
        scores = torch.where(columns <= rows[:, None], scores, -math.inf)
    if attn_mask is None:
        return scores
    return torch.where(attn_mask, scores, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask


def _attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns an attention, and the logarithms of the sums of its weights, in whose place PyTorch's decomposition
    returns the weights; arguments as of `aten._scaled_dot_product_flash_attention_for_cpu`."""
    result, _ = scaled_dot_product_flash_attention_for_cpu(
        q, k, v, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return result, torch.logsumexp(_scores(q, k, factor, attn_mask, is_causal=is_causal), -1)


def _of_attention(
    of_result: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    result: torch.Tensor,
    log_of_sums: torch.Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> Any:  # noqa: ANN401
    """Returns the gradients of an attention, whose weights are computed again; arguments as of
    `aten._scaled_dot_product_flash_attention_for_cpu_backward`."""
    if dropout_p:
        return NotImplemented
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    shape = (*q.shape[:-1], k.shape[-2])

    def of_shared(x: torch.Tensor) -> torch.Tensor:
        return _of_shared(x, k)

    weights = torch.softmax(_scores(q, k, factor, attn_mask, is_causal=is_causal), -1)
    of_v = torch.matmul(of_shared(weights.to(q.dtype)).transpose(-1, -2), of_shared(of_result))
    of_weights = torch.matmul(of_shared(of_result), v.transpose(-1, -2)).reshape(shape).to(weights.dtype)
    means = (of_result.to(weights.dtype) * result.to(weights.dtype)).sum(-1, keepdim=True)
    of_scores = of_shared((weights * (of_weights - means) * factor).to(q.dtype))
    of_q = torch.matmul(of_scores, k).reshape(q.shape)
    gradients = (of_q, torch.matmul(of_scores.transpose(-1, -2), of_shared(q)), of_v)
    # Heads are next to each other in memory, as views after the op require.
    return tuple(gradient.transpose(1, 2).contiguous().transpose(1, 2) for gradient in gradients)


def _nearest(count: int, extent: int, scale: float | None, device: torch.device, *, is_exact: bool) -> torch.Tensor:
    """Returns whether an element of a resized axis is that of the axis, in f32 as PyTorch has it: (count, extent)."""
    number = torch.arange(count, device=device).to(torch.float32) + (0.5 if is_exact else 0.0)
    step = float(np.float32(1 / scale) if scale else np.float32(extent) / np.float32(count))
    sources = torch.floor(number * step).clamp(max=extent - 1.0)
    return sources[:, None] == torch.arange(extent, device=device).to(torch.float32)


def _of_nearest(rank: int, *, is_exact: bool) -> Callable[..., Any]:
    """Returns the gradient of a resizing to the nearest elements; torch-mlir's is that of whole factors alone.

    Args:
        rank: axes that are resized.
        is_exact: whether elements are nearest to the middle of those of the result.
    """

    def of_nearest(
        of_result: torch.Tensor, output_size: Sequence[int], input_size: Sequence[int], *scales: float | None
    ) -> torch.Tensor:
        axes = zip(output_size, input_size[-rank:], scales or (None,) * rank)
        return summed_along(of_result, [_nearest(*axis, of_result.device, is_exact=is_exact) for axis in axes])

    return of_nearest


def _of_replication(rank: int) -> Callable[..., Any]:
    """Returns the gradient of a padding by copies of the elements at the edges: sums of those of all copies."""

    def gradient(of_result: torch.Tensor, x: torch.Tensor, padding: Sequence[int]) -> torch.Tensor:
        masks = []
        for axis in range(-rank, 0):  # the padding of the last axis comes first
            count, extent, before = of_result.shape[axis], x.shape[axis], padding[-2 * axis - 2]
            source = (torch.arange(count, device=x.device)[:, None] - before).clamp(0, extent - 1)
            masks.append(source == torch.arange(extent, device=x.device))
        return summed_along(of_result, masks)

    return gradient


# Names of ops, and functions of their arguments that return the same.
_OPS: dict[str, Callable[..., Any]] = {
    "convolution_backward": _of_convolution,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _of_attention,
    **{f"replication_pad{rank}d_backward": _of_replication(rank) for rank in (1, 2, 3)},
    **{f"upsample_nearest{rank}d_backward": _of_nearest(rank, is_exact=False) for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d_backward": _of_nearest(rank, is_exact=True) for rank in (1, 2, 3)},
}
# Ops, and these functions.
TABLE: dict[Any, Callable[..., Any]] = {getattr(torch.ops.aten, name).default: form for name, form in _OPS.items()}
