"""Copies of views of PyTorch as the views and a copy, and resized tensors, which torch-mlir lowers to linalg.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from stepladder.runtime.errors import StepladderError

_aten = torch.ops.aten


def _copied(view: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of the arguments of a view that returns a copy of it."""

    def copied(*arguments: object, **options: object) -> Any:  # noqa: ANN401
        return pytree.tree_map(torch.clone, view(*arguments, **options))

    return copied


def _strided(x: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:  # noqa: ANN401
    """Returns elements of a tensor's memory where it or the result has no axes: torch-mlir ends the process."""
    if not x.dim():
        is_beside = storage_offset not in (None, x.storage_offset())
        if is_beside or any(extent > 1 and step for extent, step in zip(size, stride)):
            raise StepladderError("the module has 'aten.as_strided' of elements beside a tensor without axes")
        return x.expand(size).clone()
    if size or not x.is_contiguous():
        return NotImplemented
    place = (storage_offset or 0) - (0 if storage_offset is None else x.storage_offset())
    return x.reshape(-1)[place : place + 1].reshape(())


def _resized(x: torch.Tensor, size: Sequence[int], *, memory_format: torch.memory_format | None = None) -> torch.Tensor:
    """Returns the first elements of a tensor in another shape."""
    count = math.prod(size)
    if count > x.numel():
        raise StepladderError(
            f"the module has 'aten.resize' of {x.numel()} elements to {count}, of which PyTorch does not set the last "
            "ones",
            notes=["accepted: sizes of at most as many elements, and torch.nn.functional.pad"],
        )
    return x.reshape(-1)[:count].reshape(size)


# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    **{
        getattr(getattr(_aten, f"{name}_copy"), overload): _copied(getattr(getattr(_aten, name), overload))
        for name, overload in (
            *((name, "default") for name in ("alias", "as_strided", "detach", "diagonal", "expand", "narrow")),
            *((name, "default") for name in ("permute", "split_with_sizes", "squeeze", "t", "unfold", "unsqueeze")),
            *(("view", "default"), ("select", "int"), ("slice", "Tensor"), ("split", "Tensor")),
            *(("squeeze", "dim"), ("squeeze", "dims"), ("transpose", "int"), ("unbind", "int")),
        )
    },
    _aten.as_strided.default: _strided,
    _aten.resize.default: _resized,
    _aten.resize_as.default: lambda x, like, *, memory_format=None: _resized(x, like.shape),
}
