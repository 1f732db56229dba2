"""Writes by indices of PyTorch as comparisons and reductions, which torch-mlir lowers to linalg.

Each position of a tensor is compared with all indices along an axis. PyTorch is an optional package; this module
imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.decompositions.running_reductions import running_sum


def _in_range(indices: torch.Tensor, extent: int) -> torch.Tensor:
    """Returns indices that are not negative; one out of range ends the kernel, as that of a gather does."""
    return torch.arange(extent, device=indices.device)[indices]


def _written_by(hits: torch.Tensor) -> torch.Tensor:
    """Returns the last element that is written to each position, -1 for none.

    Args:
        hits: (..., positions, elements), whether an element is written to a position.
    """
    return torch.where(hits, torch.arange(hits.shape[-1], device=hits.device), -1).amax(-1)


def _like(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Returns a result with the order of a tensor's axes in memory, which `torch.export` relies on after a write."""
    order = sorted(range(x.dim()), key=lambda axis: (-x.stride(axis), axis))
    inverse = sorted(range(x.dim()), key=order.__getitem__)
    return result.permute(order).clone(memory_format=torch.contiguous_format).permute(inverse)


def _index_put(
    x: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor, accumulate: bool = False
) -> Any:  # noqa: ANN401
    """Returns a tensor with elements at indices written, those of one mask or of some axes."""
    axes = [axis for axis, item in enumerate(indices) if item is not None]
    tensors = [item for item in indices if item is not None]
    first, count = axes[0], len(axes)
    if tensors[0].dtype is torch.bool:
        inner_rank = x.dim() - first - tensors[0].dim()
        # Values of an axis for the elements of the mask would be as many as those.
        if count > 1 or any(extent != 1 for extent in values.shape[: max(0, values.dim() - inner_rank)]):
            return NotImplemented
        mask = tensors[0].reshape(*tensors[0].shape, *([1] * inner_rank))
        new = values.reshape(values.shape[max(0, values.dim() - inner_rank) :]).to(x.dtype)
        return torch.where(mask, x + new if accumulate else new, x)
    if any(item.dtype is torch.bool for item in tensors):
        return NotImplemented
    if axes != list(range(first, first + count)):  # values have the axes of the indices first
        order = [*axes, *(axis for axis in range(x.dim()) if axis not in axes)]
        inverse = sorted(range(x.dim()), key=order.__getitem__)
        return _like(x, _index_put(x.permute(order), tensors, values, accumulate).permute(inverse))
    extents = x.shape[first : first + count]
    outer, inner = list(x.shape[:first]), list(x.shape[first + count :])
    positions = torch.broadcast_tensors(*(_in_range(item, extent) for item, extent in zip(tensors, extents)))
    count_of_elements = positions[0].numel()
    new = values.expand(*outer, *positions[0].shape, *inner).reshape(*outer, count_of_elements, *inner)
    # (positions along each of the axes, elements): whether an element is written there
    hits: Any = True
    for axis, (at, extent) in enumerate(zip(positions, extents)):
        places = torch.arange(extent, device=x.device).reshape(extent, *([1] * (count - axis)))
        hits = (at.reshape(-1) == places) & hits
    ones = [1] * len(inner)
    if accumulate:
        terms = new.reshape(*outer, *([1] * count), count_of_elements, *inner)
        terms = torch.where(hits.reshape(*hits.shape, *ones), terms, 0)
        return _like(x, x + terms.sum(first + count, dtype=x.dtype))
    last = _written_by(hits)
    last_values = new.index_select(first, last.clamp(min=0).reshape(-1)).reshape(x.shape)
    return _like(x, torch.where((last >= 0).reshape(*last.shape, *ones), last_values, x))


def _scattered(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str = "",
    include_self: bool = True,
) -> Any:  # noqa: ANN401
    """Returns a tensor with elements along an axis written, or reduced with those that are there.

    Args:
        x: the tensor.
        dim: the axis.
        index: positions along it.
        source: what is written; at least as large as `index`, or of no axis.
        reduce: of `torch.scatter_reduce`; nothing to write the last element.
        include_self: whether what is there takes part.
    """
    if x.dim() <= 1 and not (x.dim() and index.dim()):
        terms = source.reshape(-1) if source.dim() else source
        return _scattered(x.reshape(-1), 0, index.reshape(-1), terms, reduce, include_self).reshape(x.shape)
    dim %= x.dim()
    at = _in_range(index.movedim(dim, -1), x.shape[dim])
    rotated = x.movedim(dim, -1)
    rows = rotated[tuple(slice(0, extent) for extent in at.shape[:-1])]
    places = torch.arange(x.shape[dim], device=x.device)
    hits = at.unsqueeze(-2) == places[:, None]
    if source.dim():
        source = source[tuple(slice(0, extent) for extent in index.shape)].movedim(dim, -1)
    else:
        source = source.to(x.dtype).expand(at.shape)
    if reduce:
        result = _reduced(rows, hits, source.unsqueeze(-2), reduce, include_self)
    else:
        last = _written_by(hits)
        result = torch.where(last >= 0, source.gather(-1, last.clamp(min=0)), rows)
    for axis in range(x.dim() - 1):  # what no index reaches along the other axes
        if result.shape[axis] < rotated.shape[axis]:
            ends = [slice(0, extent) for extent in result.shape[:-1]]
            ends[axis] = slice(result.shape[axis], None)
            ends[axis + 1 :] = [slice(0, extent) for extent in at.shape[axis + 1 : -1]]
            result = torch.cat((result, rotated[tuple(ends)]), axis)
    return _like(x, result.movedim(-1, dim))


def _reduced(
    rows: torch.Tensor, hits: torch.Tensor, terms: torch.Tensor, reduce: str, include_self: bool
) -> torch.Tensor:
    """Returns the reduction of what is written to each position.

    Args:
        rows: (..., positions), what is there.
        hits: (..., positions, elements), whether an element is written to a position.
        terms: (..., 1, elements), the elements.
        reduce: of `torch.scatter_reduce`.
        include_self: whether what is there takes part.
    """
    type_ = rows.dtype
    if reduce in ("sum", "add", "mean"):
        result = torch.where(hits, terms, 0).sum(-1, dtype=type_)
        result = rows + result if include_self else result
        if reduce == "mean":
            counts = hits.sum(-1) + include_self
            counts = torch.where(counts > 0, counts, 1).to(type_)
            result = result / counts if type_.is_floating_point else result // counts
    elif reduce in ("prod", "multiply"):
        result = torch.where(hits, terms, 1).prod(-1, dtype=type_)
        result = rows * result if include_self else result
    else:
        is_largest = reduce == "amax"
        neutral = least(type_) if is_largest else greatest(type_)
        result = (torch.Tensor.amax if is_largest else torch.Tensor.amin)(torch.where(hits, terms, neutral), -1)
        if include_self:
            result = (torch.maximum if is_largest else torch.minimum)(rows, result)
    return result if include_self else torch.where(hits.any(-1), result, rows)


def least(type_: torch.dtype) -> float:
    """Returns the value below all others of a type.

    Args:
        type_: of floats, integers or bool.
    """
    return -math.inf if type_.is_floating_point else type_ is not torch.bool and torch.iinfo(type_).min


def greatest(type_: torch.dtype) -> float:
    """Returns the value above all others of a type.

    Args:
        type_: of floats, integers or bool.
    """
    return math.inf if type_.is_floating_point else type_ is torch.bool or torch.iinfo(type_).max


def _scatter_value(x: torch.Tensor, dim: int, index: torch.Tensor, value: complex, *, reduce: str = "") -> Any:  # noqa: ANN401
    return _scattered(x, dim, index, torch.full((), value, dtype=x.dtype, device=x.device), reduce)


def _index_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> Any:  # noqa: ANN401
    if not x.dim():
        return _scattered(x, 0, index, source, reduce, include_self)
    shape = [-1 if axis == dim % x.dim() else 1 for axis in range(x.dim())]
    return _scattered(x, dim, index.reshape(shape).expand(source.shape), source, reduce, include_self)


def _masked_scatter(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Returns a tensor whose elements in a mask are those of another one, in order."""
    x, mask = torch.broadcast_tensors(x, mask)
    places = running_sum(mask.flatten(), 0) - 1
    elements = source.flatten()[places.clamp(min=0)].reshape(x.shape)
    return torch.where(mask, elements, x)


def _diagonal_scatter(x: torch.Tensor, source: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:  # noqa: ANN401
    """Returns a tensor with a diagonal replaced."""
    matrices = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = (torch.arange(extent, device=x.device) for extent in matrices.shape[-2:])
    place = (rows + min(offset, 0)).clamp(0, source.shape[-1] - 1)
    of_rows = source.index_select(-1, place).unsqueeze(-1)
    return torch.where(rows[:, None] + offset == columns, of_rows, matrices).movedim((-2, -1), (dim1, dim2))


def _put(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    """Returns a tensor with elements at places in row-major order written, or added to."""
    if not index.numel():
        return x.clone()
    return _index_put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate).reshape(x.shape)


def _as_strided_scatter(
    x: torch.Tensor, source: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:  # noqa: ANN401
    """Returns a tensor whose elements at places in its memory are replaced; those beside it in memory are left out."""
    if not x.is_contiguous():
        return NotImplemented
    first = (storage_offset or 0) - (0 if storage_offset is None else x.storage_offset())
    before = max(0, -first)
    last = first + sum((extent - 1) * step for extent, step in zip(size, stride))
    places: Any = first + before
    for axis, (extent, step) in enumerate(zip(size, stride)):
        along = torch.arange(extent, device=x.device) * step
        places = places + along.reshape(extent, *([1] * (len(size) - axis - 1)))
    if not size:
        places = torch.full((1,), places, device=x.device)
    elements = torch.constant_pad_nd(x.flatten(), [before, max(0, last + 1 - x.numel())])
    return elements.scatter(0, places.flatten(), source.flatten())[before : before + x.numel()].reshape(x.shape)


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    _aten.as_strided_scatter.default: _as_strided_scatter,
    _aten.diagonal_scatter.default: _diagonal_scatter,
    _aten.index_put.default: _index_put,
    _aten.index_reduce.default: _index_reduce,
    _aten.put.default: _put,
    _aten.masked_scatter.default: _masked_scatter,
    _aten.scatter.src: _scattered,
    _aten.scatter.reduce: lambda x, dim, index, src, *, reduce: _scattered(x, dim, index, src, reduce),
    _aten.scatter.value: _scatter_value,
    _aten.scatter.value_reduce: _scatter_value,
    _aten.scatter_add.default: lambda x, dim, index, src: _scattered(x, dim, index, src, "sum"),
    _aten.scatter_reduce.two: lambda x, dim, index, src, reduce, *, include_self=True: _scattered(
        x, dim, index, src, reduce, include_self
    ),
}
