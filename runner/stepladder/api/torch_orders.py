"""Sorts and writes by indices of PyTorch as comparisons and reductions, which torch-mlir lowers to linalg.

An element of a result depends on all elements along its axis: n² comparisons for n elements. PyTorch is an optional
package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.runtime.errors import StepladderError

# Elements of an axis that is sorted by comparisons of all with all.
LONGEST = 4096


def _ranks(x: torch.Tensor, is_descending: bool) -> torch.Tensor:
    """Returns the place of each element along the last axis in the sorted one; equal elements keep their order, and NaN
    is larger than all numbers."""
    here, other = x.unsqueeze(-1), x.unsqueeze(-2)
    is_before = other > here if is_descending else other < here
    is_equal = other == here
    if x.is_floating_point():
        nan, other_nan = here.isnan(), other.isnan()
        is_before = is_before | (other_nan & ~nan if is_descending else nan & ~other_nan)
        is_equal = is_equal | (nan & other_nan)
    places = torch.arange(x.shape[-1], device=x.device)
    return (is_before | (is_equal & (places < places[:, None]))).sum(-1)


def _first(x: torch.Tensor, count: int, dim: int, is_descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the first elements of the sorted ones along an axis, and their indices."""
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    extent = x.shape[dim]
    if extent > LONGEST:
        raise StepladderError(
            f"the module sorts {extent} numbers; accepted: up to {LONGEST}, which are compared with each other"
        )
    moved = x.movedim(dim, -1)
    ranks = _ranks(moved.to(torch.int64) if x.dtype is torch.bool else moved, is_descending)
    places = torch.arange(count, device=x.device)
    numbers = torch.arange(extent, device=x.device)
    indices = torch.where(ranks.unsqueeze(-2) == places[:, None], numbers, 0).sum(-1)
    return moved.gather(-1, indices).movedim(-1, dim), indices.movedim(-1, dim)


def _sort(x: torch.Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:  # noqa: ANN401
    return _first(x, x.shape[dim] if x.dim() else 1, dim, descending)


def _topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: ANN401
    return _first(x, k, dim, largest)


def _in_range(indices: torch.Tensor, extent: int) -> torch.Tensor:
    """Returns indices that are not negative; one out of range ends the kernel, as that of a gather does."""
    return torch.arange(extent, device=indices.device)[indices]


def _written_by(hits: torch.Tensor) -> torch.Tensor:
    """Returns the last element that is written to each place, -1 for none.

    Args:
        hits: (..., places, elements), whether an element is written to a place.
    """
    return torch.where(hits, torch.arange(hits.shape[-1], device=hits.device), -1).amax(-1)


def _like(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Returns a result with the order of a tensor's axes in memory, which `torch.export` relies on behind a write."""
    order = sorted(range(x.dim()), key=lambda axis: (-x.stride(axis), axis))
    inverse = sorted(range(x.dim()), key=order.__getitem__)
    return result.permute(order).clone(memory_format=torch.contiguous_format).permute(inverse)


def _index_put(
    x: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor, accumulate: bool = False
) -> Any:  # noqa: ANN401
    """Returns a tensor with elements at indices written, those of one mask or of neighboring axes."""
    axes = [axis for axis, item in enumerate(indices) if item is not None]
    found = [item for item in indices if item is not None]
    first, count = axes[0], len(axes)
    if found[0].dtype is torch.bool:
        if count > 1 or values.numel() != 1:
            return NotImplemented
        mask = found[0].reshape(*found[0].shape, *([1] * (x.dim() - first - found[0].dim())))
        value = values.reshape(()).to(x.dtype)
        return torch.where(mask, x + value if accumulate else value, x)
    if axes != list(range(first, first + count)) or any(item.dtype is torch.bool for item in found):
        return NotImplemented
    extents = x.shape[first : first + count]
    before, after = list(x.shape[:first]), list(x.shape[first + count :])
    each = torch.broadcast_tensors(*(_in_range(item, extent) for item, extent in zip(found, extents)))
    written = each[0].numel()
    new = values.expand(*before, *each[0].shape, *after).reshape(*before, written, *after)
    # (places along each of the axes, elements): whether an element is written there
    hits: Any = True
    for axis, (at, extent) in enumerate(zip(each, extents)):
        places = torch.arange(extent, device=x.device).reshape(extent, *([1] * (count - axis)))
        hits = (at.reshape(-1) == places) & hits
    ones = [1] * len(after)
    if accumulate:
        terms = new.reshape(*before, *([1] * count), written, *after)
        terms = torch.where(hits.reshape(*hits.shape, *ones), terms, 0)
        return _like(x, x + terms.sum(first + count, dtype=x.dtype))
    last = _written_by(hits)
    taken = new.index_select(first, last.clamp(min=0).reshape(-1)).reshape(x.shape)
    return _like(x, torch.where((last >= 0).reshape(*last.shape, *ones), taken, x))


def _scattered(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, is_sum: bool) -> Any:  # noqa: ANN401
    """Returns a tensor with elements along an axis written, or added; the extents of the other axes are the same."""
    if not x.dim() or index.dim() != x.dim():
        return NotImplemented
    others = [axis for axis in range(x.dim()) if axis != dim % x.dim()]
    if any(index.shape[axis] != x.shape[axis] for axis in others):
        return NotImplemented
    extent = x.shape[dim]
    places = torch.arange(extent, device=x.device)
    at = _in_range(index.movedim(dim, -1), extent)
    rows = x.movedim(dim, -1)
    hits = at.unsqueeze(-2) == places[:, None]
    if source.dim():
        source = source[tuple(slice(0, size) for size in index.shape)].movedim(dim, -1)
    else:
        source = source.to(x.dtype).expand(at.shape)
    if is_sum:
        result = rows + torch.where(hits, source.unsqueeze(-2), 0).sum(-1, dtype=x.dtype)
    else:
        last = _written_by(hits)
        result = torch.where(last >= 0, source.gather(-1, last.clamp(min=0)), rows)
    return _like(x, result.movedim(-1, dim))


def _scatter(x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> Any:  # noqa: ANN401
    return _scattered(x, dim, index, src, False)


def _scatter_value(x: torch.Tensor, dim: int, index: torch.Tensor, value: complex) -> Any:  # noqa: ANN401
    return _scattered(x, dim, index, torch.full((), value, dtype=x.dtype, device=x.device), False)


def _scatter_add(x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> Any:  # noqa: ANN401
    return _scattered(x, dim, index, src, True)


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    _aten.sort.default: _sort,
    _aten.sort.stable: lambda x, *, stable=None, dim=-1, descending=False: _sort(x, dim, descending),
    _aten.topk.default: _topk,
    _aten.index_put.default: _index_put,
    _aten.scatter.src: _scatter,
    _aten.scatter.value: _scatter_value,
    _aten.scatter_add.default: _scatter_add,
}
