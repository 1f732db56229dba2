"""Running reductions of PyTorch (`cumsum`, `cummax` and others) as reductions, which torch-mlir lowers to linalg.

Each element is a reduction of its own over those up to it; of long axes, sums and products are of blocks. PyTorch is an
optional package; this module imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

# Elements of an axis, above which sums and products are those of blocks, with what the blocks before have.
_LONG = 1024


def running_sum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the sums of all elements up to each along an axis.

    Args:
        x: of values or booleans.
        dim: the axis.
        dtype: of the sums; None for that of the values, int64 of integers.
    """
    return _running(x, dim, dtype, 0, torch.Tensor.sum, torch.add)


def _running_product(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the products of all elements up to each along an axis; arguments as of `running_sum`."""
    return _running(x, dim, dtype, 1, torch.Tensor.prod, torch.mul)


def _running(
    x: torch.Tensor,
    dim: int,
    dtype: torch.dtype | None,
    neutral: int,
    reduce: Callable[..., torch.Tensor],
    join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Returns the reductions of all elements up to each along an axis; those after it count as `neutral`."""
    type_ = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if not x.dim():
        return x.to(type_)
    # Sums of blocks are rounded to f32 alone, as those of one reduction are.
    sum_type = torch.float32 if type_ in (torch.float16, torch.bfloat16) else type_
    return _of_rows(x.movedim(dim, -1).to(sum_type), neutral, reduce, join).to(type_).movedim(-1, dim)


def _of_rows(
    x: torch.Tensor,
    neutral: int,
    reduce: Callable[..., torch.Tensor],
    join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Returns the running reductions along the last axis; arguments as of `_running`."""
    extent = x.shape[-1]
    if extent <= _LONG:
        terms = torch.where(_is_before(x), x.unsqueeze(-2), neutral)
        return reduce(terms, -1, dtype=x.dtype)
    block = math.isqrt(extent - 1) + 1
    count = -(-extent // block)
    rows = torch.ops.aten.constant_pad_nd(x, [0, count * block - extent], neutral)
    in_block = _of_rows(rows.unflatten(-1, (count, block)), neutral, reduce, join)
    blocks = _of_rows(in_block[..., -1], neutral, reduce, join)
    earlier_blocks = torch.ops.aten.constant_pad_nd(blocks[..., :-1], [1, 0], neutral)
    return join(in_block, earlier_blocks.unsqueeze(-1)).flatten(-2)[..., :extent]


def _is_before(x: torch.Tensor) -> torch.Tensor:
    """Returns which elements of the last axis, along columns, are not after each, along rows."""
    places = torch.arange(x.shape[-1], device=x.device)
    return places <= places[:, None]


def _extremum(is_largest: bool) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """Returns a running extremum along an axis: its values, and their indices, which are those of the last of equal
    elements, and of the last NaN."""

    def running(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
        if not x.dim():
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        row = (x.to(torch.int64) if x.dtype is torch.bool else x).movedim(dim, -1)
        values = _extrema(row, is_largest)
        is_it = row.unsqueeze(-2) == values.unsqueeze(-1)
        if row.is_floating_point():
            is_it = is_it | (row.isnan().unsqueeze(-2) & values.isnan().unsqueeze(-1))
        places = torch.arange(row.shape[-1], device=x.device)
        indices = torch.where(is_it & _is_before(row), places, 0).amax(-1)
        return values.to(x.dtype).movedim(-1, dim), indices.movedim(-1, dim)

    return running


def _extrema(row: torch.Tensor, is_largest: bool) -> torch.Tensor:
    """Returns the extrema of all elements up to each along the last axis."""
    if row.is_floating_point():
        neutral = -math.inf if is_largest else math.inf
    else:
        limits = torch.iinfo(row.dtype)
        neutral = limits.min if is_largest else limits.max
    terms = torch.where(_is_before(row), row.unsqueeze(-2), neutral)
    return terms.amax(-1) if is_largest else terms.amin(-1)


def _running_logsumexp(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Returns the logarithms of the sums of the powers of e of all elements up to each along an axis."""
    if not x.dim():
        return x.clone()
    row = x.movedim(dim, -1)
    row = row.float() if x.dtype in (torch.float16, torch.bfloat16) else row
    largest = _extrema(row, True)
    shift = torch.where(largest.abs() == math.inf, 0.0, largest).unsqueeze(-1)
    terms = torch.where(_is_before(row), torch.exp(row.unsqueeze(-2) - shift), 0.0)
    return (terms.sum(-1).log() + shift.squeeze(-1)).to(x.dtype).movedim(-1, dim)


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    _aten.cumsum.default: running_sum,
    _aten.cumprod.default: _running_product,
    _aten.cummax.default: _extremum(True),
    _aten.cummin.default: _extremum(False),
    _aten.logcumsumexp.default: _running_logsumexp,
}
