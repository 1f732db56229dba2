"""Modules of PyTorch that become kernels, and functions of several: layers, blocks and expressions as users write them.

Each entry of `MODULES` makes a module and its inputs, on the CPU, small, with parameters of `half`; inputs of indices
are int64, masks bool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[Callable[..., Any], tuple[Any, ...]]
HALF, BF16 = torch.float16, torch.bfloat16


def _random(*shape: int, dtype: torch.dtype = HALF) -> Tensor:
    return torch.randn(shape).to(dtype)


def _weight(*shape: int, dtype: torch.dtype = HALF) -> Tensor:
    """Returns a weight whose products with normal numbers are about as large as these."""
    return (torch.randn(shape) / shape[0] ** 0.5).to(dtype)


class _Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:  # noqa: ANN401
        return self.function(*inputs)


def _layers(*layers: nn.Module, x: Tensor) -> Made:
    return nn.Sequential(*layers).to(x.dtype).eval(), (x,)


def _of(function: Callable[..., Any], *inputs: Any) -> Made:  # noqa: ANN401
    return _Function(function), inputs


class _Attention(nn.Module):
    """Attention over heads, with a causal mask or none."""

    def __init__(self, width: int, heads: int, mask: bool) -> None:
        super().__init__()
        self.heads, self.mask = heads, mask
        self.projection, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.projection(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        if self.mask:
            later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width))


class _Gated(nn.Module):
    """A gated MLP."""

    def __init__(self, width: int, hidden: int, activation: Callable[[Tensor], Tensor], bias: bool) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden, bias), nn.Linear(width, hidden, bias)
        self.down, self.activation = nn.Linear(hidden, width, bias), activation

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.gate(x)) * self.up(x))


class _Residual(nn.Module):
    """A normalized layer beside its input."""

    def __init__(self, norm: nn.Module, layer: nn.Module) -> None:
        super().__init__()
        self.norm, self.layer = norm, layer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layer(self.norm(x))


class _Embedding(nn.Module):
    """Rows of a table by indices, and a layer on them."""

    def __init__(self, rows: int, width: int, out: int) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(rows, width), nn.Linear(width, out)

    def forward(self, ids: Tensor) -> Tensor:
        return self.layer(self.table(ids))


class _Experts(nn.Module):
    """Two layers, weighted by a router."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, 2)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.router(x).softmax(-1)
        return weights[..., :1] * self.first(x) + weights[..., 1:] * self.second(x)


class _TopExperts(nn.Module):
    """The best experts of each token, by a mask over all of them."""

    def __init__(self, width: int, hidden: int, experts: int, count: int) -> None:
        super().__init__()
        self.router, self.count = nn.Linear(width, experts, bias=False), count
        self.up = nn.Parameter(torch.randn(experts, width, hidden) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) / hidden**0.5)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.router(x).softmax(-1)
        best, places = weights.topk(self.count, -1)
        mask = torch.zeros_like(weights).scatter(-1, places, best / best.sum(-1, keepdim=True))
        hidden = functional.silu(torch.einsum("td,edh->teh", x, self.up))
        return torch.einsum("ted,te->td", torch.einsum("teh,ehd->ted", hidden, self.down), mask)


def _window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    places = torch.arange(q.shape[-2], device=q.device)
    mask = (places[:, None] >= places) & (places[:, None] - places < 4)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _rope(x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    q = x @ weight
    left, right = q.chunk(2, -1)
    return q * cos + torch.cat((-right, left), -1) * sin


def _rms(x: Tensor, scale: Tensor, weight: Tensor) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * scale @ weight


def _masked_mean(x: Tensor, keep: Tensor, weight: Tensor) -> Tensor:
    kept = x.masked_fill(~keep[..., None], 0)
    return (kept.sum(1) / keep.sum(1, keepdim=True)) @ weight


def _quantized(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return x @ (weight.to(x.dtype) * scale)


def _ids(*shape: int, below: int) -> Tensor:
    return torch.randint(0, below, shape)


MODULES: dict[str, Callable[[], Made]] = {
    "linear": lambda: _layers(nn.Linear(48, 72), x=_random(24, 48)),
    "linear_bf16": lambda: _layers(nn.Linear(48, 72), x=_random(24, 48, dtype=BF16)),
    "linear_f32": lambda: _layers(nn.Linear(48, 72), x=_random(24, 48, dtype=torch.float32)),
    "linear_f64": lambda: _layers(nn.Linear(48, 72), x=_random(24, 48, dtype=torch.float64)),
    "linear_no_bias": lambda: _layers(nn.Linear(48, 72, bias=False), x=_random(24, 48)),
    "linear_of_odd_sizes": lambda: _layers(nn.Linear(33, 29), x=_random(7, 33)),
    "linear_3d": lambda: _layers(nn.Linear(48, 72), x=_random(2, 5, 48)),
    "linear_of_one_row": lambda: _layers(nn.Linear(48, 72), x=_random(1, 48)),
    "linear_relu": lambda: _layers(nn.Linear(48, 72), nn.ReLU(), x=_random(24, 48)),
    "linear_gelu": lambda: _layers(nn.Linear(48, 72), nn.GELU(), x=_random(24, 48)),
    "linear_gelu_tanh": lambda: _layers(nn.Linear(48, 72), nn.GELU("tanh"), x=_random(24, 48)),
    "linear_silu": lambda: _layers(nn.Linear(48, 72), nn.SiLU(), x=_random(24, 48)),
    "linear_sigmoid": lambda: _layers(nn.Linear(48, 72), nn.Sigmoid(), x=_random(24, 48)),
    "linear_tanh": lambda: _layers(nn.Linear(48, 72), nn.Tanh(), x=_random(24, 48)),
    "linear_hardswish": lambda: _layers(nn.Linear(48, 72), nn.Hardswish(), x=_random(24, 48)),
    "linear_leaky_relu": lambda: _layers(nn.Linear(48, 72), nn.LeakyReLU(), x=_random(24, 48)),
    "linear_elu": lambda: _layers(nn.Linear(48, 72), nn.ELU(), x=_random(24, 48)),
    "linear_softplus": lambda: _layers(nn.Linear(48, 72), nn.Softplus(), x=_random(24, 48)),
    "linear_softmax": lambda: _layers(nn.Linear(48, 72), nn.Softmax(-1), x=_random(24, 48)),
    "linear_log_softmax": lambda: _layers(nn.Linear(48, 72), nn.LogSoftmax(-1), x=_random(24, 48)),
    "linear_layer_norm": lambda: _layers(nn.Linear(48, 72), nn.LayerNorm(72), x=_random(24, 48)),
    "layer_norm_linear": lambda: _layers(nn.LayerNorm(48), nn.Linear(48, 72), x=_random(24, 48)),
    "group_norm_linear": lambda: _layers(nn.GroupNorm(4, 48), nn.Linear(48, 72), x=_random(24, 48)),
    "batch_norm_linear": lambda: _layers(nn.BatchNorm1d(48), nn.Linear(48, 72), x=_random(24, 48)),
    "mlp": lambda: _layers(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 40), x=_random(24, 48)),
    "mlp_bf16": lambda: _layers(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 40), x=_random(24, 48, dtype=BF16)),
    "mlp_f32": lambda: _layers(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 40), x=_random(24, 48, dtype=torch.float32)),
    "mlp_of_three": lambda: _layers(
        nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 8), x=_random(40, 32)
    ),
    "gated_silu": lambda: (_Gated(48, 96, functional.silu, False).half(), (_random(24, 48),)),
    "gated_gelu_bias": lambda: (_Gated(48, 96, functional.gelu, True).half(), (_random(2, 12, 48),)),
    "gated_one_token": lambda: (_Gated(64, 96, functional.silu, False).bfloat16(), (_random(1, 64, dtype=BF16),)),
    "residual_layer_norm": lambda: (
        _Residual(nn.LayerNorm(48), _Gated(48, 96, functional.silu, False)).half(),
        (_random(24, 48),),
    ),
    "residual_mlp": lambda: (
        _Residual(nn.Identity(), nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48))).half(),
        (_random(24, 48),),
    ),
    "attention": lambda: (_Attention(32, 2, False).half(), (_random(2, 12, 32),)),
    "causal_attention": lambda: (_Attention(32, 2, True).half(), (_random(2, 12, 32),)),
    "attention_f32": lambda: (_Attention(32, 2, False), (_random(2, 12, 32, dtype=torch.float32),)),
    "attention_block": lambda: (_Residual(nn.LayerNorm(32), _Attention(32, 2, True)).half(), (_random(1, 16, 32),)),
    "sdpa": lambda: _of(functional.scaled_dot_product_attention, *(_random(2, 2, 12, 16) for _ in range(3))),
    "embedding": lambda: (_Embedding(20, 32, 24).half(), (_ids(2, 6, below=20),)),
    "embedding_of_one": lambda: (_Embedding(20, 32, 24).half(), (_ids(1, below=20),)),
    "experts": lambda: (_Experts(48).half(), (_random(24, 48),)),
    "matmul": lambda: _of(torch.matmul, _random(24, 48), _weight(48, 72)),
    "matmul_transposed": lambda: _of(lambda a, b: a.t() @ b.t(), _random(48, 24), _weight(72, 48)),
    "matmul_of_vector": lambda: _of(torch.matmul, _random(24, 48), _weight(48)),
    "bmm": lambda: _of(torch.bmm, _random(3, 12, 16), _weight(3, 16, 24)),
    "batches_of_batches": lambda: _of(torch.matmul, _random(2, 3, 12, 16), _weight(2, 3, 16, 24)),
    "batch_by_matrix": lambda: _of(torch.matmul, _random(3, 12, 16), _weight(16, 24)),
    "addmm": lambda: _of(torch.addmm, _random(72), _random(24, 48), _weight(48, 72)),
    "addmm_scaled": lambda: _of(
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0), _random(24, 72), _random(24, 48), _weight(48, 72)
    ),
    "baddbmm": lambda: _of(torch.baddbmm, _random(3, 12, 24), _random(3, 12, 16), _weight(3, 16, 24)),
    "einsum": lambda: _of(
        lambda a, b: torch.einsum("bqhd,bkhd->bhqk", a, b), _random(2, 6, 2, 16), _weight(2, 5, 2, 16)
    ),
    "chain": lambda: _of(lambda a, b, c: a @ b @ c, _random(24, 48), _weight(48, 32), _weight(32, 40)),
    "int8": lambda: _of(
        lambda a, b: torch.ops.aten._int_mm(a, b.t()),
        torch.randint(-8, 8, (24, 48), dtype=torch.int8),
        torch.randint(-8, 8, (72, 48), dtype=torch.int8),
    ),
    "quantized": lambda: _of(
        _quantized, _random(24, 48), torch.randint(-8, 8, (48, 72), dtype=torch.int8), _random(72) / 32
    ),
    "rope": lambda: _of(_rope, _random(12, 48), _weight(48, 32), _random(12, 32), _random(12, 32)),
    "rms_norm": lambda: _of(_rms, _random(24, 48), _random(48), _weight(48, 72)),
    "masked_mean": lambda: _of(_masked_mean, _random(4, 6, 48), torch.rand(4, 6) < 0.8, _weight(48, 24)),
    "where": lambda: _of(
        lambda x, keep, w: torch.where(keep, x @ w, -1.0), _random(24, 48), torch.rand(24, 72) < 0.5, _weight(48, 72)
    ),
    "gathered_rows": lambda: _of(lambda x, ids, w: x[ids] @ w, _random(24, 48), _ids(9, below=24), _weight(48, 72)),
    "index_select": lambda: _of(
        lambda x, ids, w: torch.index_select(x @ w, 1, ids), _random(24, 48), _ids(5, below=72), _weight(48, 72)
    ),
    "sums_of_columns": lambda: _of(lambda x, w: (x @ w).sum(0), _random(24, 48), _weight(48, 72)),
    "means_of_rows": lambda: _of(lambda x, w: (x @ w).mean(-1), _random(24, 48), _weight(48, 72)),
    "largest_of_rows": lambda: _of(lambda x, w: (x @ w).amax(-1, keepdim=True), _random(24, 48), _weight(48, 72)),
    "variance": lambda: _of(lambda x, w: (x @ w).float().var(-1), _random(24, 48), _weight(48, 72)),
    "two_results": lambda: _of(lambda x, w: (x @ w, (x @ w).relu()), _random(24, 48), _weight(48, 72)),
    "projections": lambda: _of(
        lambda x, q, k, v: (x @ q, x @ k, x @ v), _random(24, 48), _weight(48, 48), _weight(48, 16), _weight(48, 16)
    ),
    "counts": lambda: _of(
        lambda x, w, ids: (x @ w, ids.sum(-1), (ids > 3).any(-1)), _random(8, 48), _weight(48, 24), _ids(8, 6, below=9)
    ),
    "cross_entropy": lambda: _of(
        lambda x, w, classes: functional.cross_entropy(x @ w, classes),
        _random(8, 16, dtype=torch.float32),
        _weight(16, 12, dtype=torch.float32),
        _ids(8, below=12),
    ),
    "patches": lambda: _layers(nn.Conv2d(3, 16, 4, stride=4), nn.Flatten(2), x=_random(2, 3, 8, 8)),
    "convolution_1x1": lambda: _layers(nn.Conv2d(8, 16, 1), nn.SiLU(), x=_random(2, 8, 6, 6)),
    "cosine": lambda: _of(
        lambda a, b: functional.normalize(a, dim=-1) @ functional.normalize(b, dim=-1).t(),
        _random(12, 48),
        _random(20, 48),
    ),
    "low_rank": lambda: _of(
        lambda x, w, down, up: x @ w + (x @ down) @ up * 0.5,
        *(_random(24, 48), _weight(48, 72), _weight(48, 8), _weight(8, 72)),
    ),
    "top_experts": lambda: (_TopExperts(32, 48, 4, 2), (_random(12, 32, dtype=torch.float32),)),
    "cache": lambda: _of(
        lambda keys, at, x, w: keys.index_copy(1, at, x @ w),
        *(_random(2, 8, 16), torch.tensor([3, 4]), _random(2, 2, 32), _weight(32, 16)),
    ),
    "scattered": lambda: _of(
        lambda x, w, ids: torch.zeros_like(x).scatter_add(1, ids, x) @ w,
        *(_random(6, 16), _weight(16, 12), _ids(6, 16, below=16)),
    ),
    "sorted": lambda: _of(lambda x, w: (x @ w).sort(-1, descending=True)[0], _random(6, 16), _weight(16, 12)),
    "sliding_window": lambda: _of(_window, *(_random(1, 2, 9, 16) for _ in range(3))),
    "softmax_of_a_slice": lambda: _of(lambda x, w: (x @ w)[:, 2:9].softmax(-1), _random(8, 16), _weight(16, 12)),
    "grouped_queries": lambda: _of(
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        *(_random(1, heads, 9, 16) for heads in (4, 2, 2)),
    ),
    "stem": lambda: _layers(nn.Conv2d(3, 8, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), x=_random(1, 3, 16, 16)),
    "pooled": lambda: _layers(
        nn.Conv2d(3, 8, 3),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
        x=_random(2, 3, 10, 10),
    ),
    "adaptive": lambda: _layers(nn.Conv2d(3, 8, 1), nn.AdaptiveAvgPool2d((3, 3)), x=_random(2, 3, 10, 7)),
    "transposed_convolution": lambda: _layers(nn.ConvTranspose2d(8, 4, 2, stride=2), x=_random(1, 8, 5, 5)),
    "transposed_convolution_overlapping": lambda: _layers(
        nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1), x=_random(1, 8, 5, 5)
    ),
    "convolution_3d": lambda: _layers(nn.Conv3d(2, 4, 3, padding=1), x=_random(1, 2, 4, 5, 5)),
    "low_rank_layer": lambda: _of(
        lambda x, w, a, b: functional.linear(x, w) + x @ a.t() @ b.t() * 2,
        *(_random(3, 7, 48), _weight(64, 48) / 2, _weight(8, 48) / 2, _random(64, 8)),
    ),
    "squared_relu": lambda: _of(
        lambda x, w, v: functional.relu(x @ w).square() @ v, _random(24, 48), _weight(48, 96), _weight(96, 48)
    ),
}
