"""Reductions of PyTorch that torch-mlir does not lower: of tensors without axes or elements, along several axes, and of
uint8, which it takes as int8.

Its lowering of some of tensors without axes does not end. PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._refs import linalg  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]


def _with_axis(op: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an op that takes a tensor without axes as one with an axis, and reduces bytes in i32."""

    def computed(x: torch.Tensor, *arguments: object, **options: object) -> Any:  # noqa: ANN401
        if x.dtype is torch.uint8:
            results = op(x.to(torch.int32), *arguments, **options)
            return pytree.tree_map(lambda item: item if item.dtype is torch.int64 else item.to(x.dtype), results)
        if x.dim():
            return NotImplemented
        return pytree.tree_map(lambda result: result.reshape(()), op(x.reshape(1), *arguments, **options))

    return computed


def _of_all(op: Callable[..., Any], along: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """Returns an extremum of all elements, by the op along axes for int8, for which torch-mlir ends the process."""
    with_axis = _with_axis(op)
    return lambda x: along(x) if x.dtype is torch.int8 else with_axis(x)


def _along_each(op: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Returns a reduction along several axes, one after the other, by the op along one."""

    def computed(x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> Any:  # noqa: ANN401
        if dim is not None and not len(dim):
            return NotImplemented
        axes = [*(range(x.dim()) if dim is None else dim)]
        for axis in axes:
            x = op(x, axis, True)
        return x if keepdim else x.squeeze(axes)

    return computed


def _sum(
    x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:  # noqa: ANN401
    if dtype is torch.bool:  # torch-mlir's is modulo 2
        bits = x.to(torch.bool)
        return torch.any(bits, list(range(x.dim())) if not dim else list(dim), keepdim) if x.dim() else bits
    if x.dtype is not torch.uint8:
        return NotImplemented
    return torch.sum(x.to(torch.int32), dim, keepdim, dtype=torch.int32 if dtype is x.dtype else dtype).to(
        dtype or torch.int64
    )


def _variance_and_mean(
    x: torch.Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Any:  # noqa: ANN401
    """Returns variances and means of tensors without elements, or without axes, by ops of their own."""
    if x.numel() and x.dim():
        return NotImplemented
    return torch.var(x, dim, correction=1 if correction is None else correction, keepdim=keepdim), x.mean(dim, keepdim)


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    **{
        (op := getattr(getattr(_aten, name), overload)): _with_axis(op)
        for name, overload in (
            *((name, "default") for name in ("all", "amax", "amin", "any", "argmax", "argmin", "prod", "_softmax")),
            *((name, "dim") for name in ("all", "any", "max", "min")),
            *(("prod", "dim_int"), ("var", "correction")),
        )
    },
    _aten.max.default: _of_all(_aten.max.default, torch.amax),
    _aten.min.default: _of_all(_aten.min.default, torch.amin),
    _aten.sum.dim_IntList: _sum,
    _aten.all.dims: _along_each(torch.all),
    _aten.any.dims: _along_each(torch.any),
    _aten.linalg_norm.default: linalg.norm,
    _aten.linalg_norm.ord_str: linalg.norm,
    _aten.var_mean.correction: _variance_and_mean,
}
