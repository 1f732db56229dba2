"""Sorts, medians and searches of PyTorch as comparisons and reductions, which torch-mlir lowers to linalg.

An element of a result depends on all elements along its axis: n² comparisons for n elements. PyTorch is an optional
package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.runtime.errors import StepladderError

# Elements of an axis that is sorted by comparisons of all with all.
LONGEST = 4096


def _ranks(x: torch.Tensor, is_descending: bool) -> torch.Tensor:
    """Returns the index of each element along the last axis in the sorted one; equal elements keep their order, and NaN
    is larger than all values."""
    element, other = x.unsqueeze(-1), x.unsqueeze(-2)
    is_before = other > element if is_descending else other < element
    is_equal = other == element
    if x.is_floating_point():
        nan, other_nan = element.isnan(), other.isnan()
        is_before = is_before | (other_nan & ~nan if is_descending else nan & ~other_nan)
        is_equal = is_equal | (nan & other_nan)
    places = torch.arange(x.shape[-1], device=x.device)
    return (is_before | (is_equal & (places < places[:, None]))).sum(-1)


def _first(x: torch.Tensor, count: int, dim: int, is_descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the first elements of the sorted ones along an axis, and their indices."""
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    rows = moved_to_end(x, dim)
    places = torch.arange(count, device=x.device)
    values, indices = _at(rows, _ranks(rows, is_descending), places)
    return values.to(x.dtype).movedim(-1, dim), indices.movedim(-1, dim)


def moved_to_end(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Returns a tensor with the axis that is sorted at its end; booleans become integers.

    Args:
        x: of one axis or more.
        dim: the axis.

    Raises:
        StepladderError: the axis is too long.
    """
    if x.shape[dim] > LONGEST:
        raise StepladderError(
            f"the module sorts {x.shape[dim]} elements; accepted: up to {LONGEST}, which are compared with each other"
        )
    return (x.to(torch.int64) if x.dtype is torch.bool else x).movedim(dim, -1)


def _at(rows: torch.Tensor, ranks: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the elements at ranks of the sorted ones, and their indices.

    Args:
        rows: sorted along its last axis.
        ranks: the index of each element.
        places: ranks of those that are returned.
    """
    numbers = torch.arange(rows.shape[-1], device=rows.device)
    indices = torch.where(ranks.unsqueeze(-2) == places.unsqueeze(-1), numbers, 0).sum(-1)
    return rows.gather(-1, indices), indices


def _sort(x: torch.Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:  # noqa: ANN401
    return _first(x, x.shape[dim] if x.dim() else 1, dim, descending)


def _topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: ANN401
    return _first(x, k, dim, largest)


def _kth_value(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:  # noqa: ANN401
    return _one(x, dim, keepdim, lambda x: torch.full((1,), k - 1, device=x.device))


def _median(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:  # noqa: ANN401
    """Returns the lower median along an axis, the first NaN where there is one, and its index."""

    def place(x: torch.Tensor) -> torch.Tensor:
        middle = torch.full((1,), (x.shape[-1] - 1) // 2, device=x.device)
        if not x.is_floating_point():
            return middle
        nans = x.isnan().sum(-1, keepdim=True)
        return torch.where(nans > 0, x.shape[-1] - nans, middle)

    return _one(x, dim, keepdim, place)


def _median_of_numbers(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:  # noqa: ANN401
    """Returns the lower median of what is a value along an axis, and its index."""

    def place(x: torch.Tensor) -> torch.Tensor:
        count = (~x.isnan()).sum(-1, keepdim=True)
        return torch.where(count > 0, (count - 1) >> 1, 0)

    return _one(x, dim, keepdim, place)


def _one(x: torch.Tensor, dim: int, keepdim: bool, place: Callable[[torch.Tensor], torch.Tensor]) -> Any:  # noqa: ANN401
    """Returns one of the sorted elements along an axis, and its index.

    Args:
        x: any tensor.
        dim: the axis.
        keepdim: whether the results have the axis.
        place: of the element among the sorted ones, (..., 1), of the tensor with the axis at its end.
    """
    if not x.dim():
        return _first(x, 1, dim, False)
    rows = moved_to_end(x, dim)
    results = _at(rows, _ranks(rows, False), place(rows))
    values, indices = (item.movedim(-1, dim) if keepdim else item.squeeze(-1) for item in results)
    return values.to(x.dtype), indices


def _search(
    sorted_values: torch.Tensor,
    x: torch.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> Any:  # noqa: ANN401
    """Returns how many of the sorted values are before each of others.

    Args:
        sorted_values: sorted along the last axis; one row, or as many as `x`.
        x: the values.
        out_int32, right, side, sorter: of `torch.searchsorted`.
    """
    if sorter is not None:
        sorted_values = sorted_values.gather(-1, sorter)
    rows = sorted_values.unsqueeze(-2) if sorted_values.dim() > 1 else sorted_values
    columns = x.unsqueeze(-1)
    is_behind = rows > columns if right or side == "right" else rows >= columns
    return (~is_behind).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    _aten.sort.default: _sort,
    _aten.sort.stable: lambda x, *, stable=None, dim=-1, descending=False: _sort(x, dim, descending),
    _aten.topk.default: _topk,
    _aten.kthvalue.default: _kth_value,
    _aten.median.dim: _median,
    _aten.median.default: lambda x: _median(x.flatten(), 0)[0],
    _aten.nanmedian.dim: _median_of_numbers,
    _aten.nanmedian.default: lambda x: _median_of_numbers(x.flatten(), 0)[0],
    _aten.searchsorted.Tensor: _search,
    _aten.searchsorted.Scalar: lambda values, x, **options: _search(values, torch.full((), x), **options),
}
