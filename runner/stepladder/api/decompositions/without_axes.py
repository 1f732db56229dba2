"""Reductions of a tensor without axes as those of one element along an axis.

torch-mlir does not lower them, and for some its lowering does not end. PyTorch is an optional package; this module
imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]


def _with_axis(op: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an op that takes a tensor without axes as one with an axis."""

    def computed(x: torch.Tensor, *arguments: object, **options: object) -> Any:  # noqa: ANN401
        if x.dim():
            return NotImplemented
        return pytree.tree_map(lambda result: result.reshape(()), op(x.reshape(1), *arguments, **options))

    return computed


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    op: _with_axis(op)
    for op in (
        *(_aten.amax.default, _aten.amin.default, _aten.argmax.default, _aten.argmin.default),
        *(_aten.max.dim, _aten.min.dim, _aten.all.dim, _aten.all.dims, _aten.any.dim, _aten.any.dims),
        *(_aten.prod.dim_int, _aten.var.correction, _aten._softmax.default),
    )
}
