"""Products of groups of rows with a matrix each, such as those of experts, as matmuls that torch-mlir lowers.

The sizes of the groups depend on data, and those of kernels do not: each row is multiplied by the matrices of all
groups, of which its own is taken, or where there are fewer rows than groups, by a copy of the matrix of its group.
PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

_aten = torch.ops.aten


def _groups(ends: torch.Tensor, count: int) -> torch.Tensor:
    """Returns the group of each position; that of positions behind the last one is the number of groups.

    Args:
        ends: the end of each group, which is the start of the next one.
        count: of positions.
    """
    return (torch.arange(count, device=ends.device)[:, None] >= ends.long()).sum(-1)


def _rows(x: torch.Tensor, matrices: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Returns the products of rows with the matrices of their groups, 0 for rows of none."""
    count, groups = x.shape[0], matrices.shape[0]
    group = _groups(ends, count)
    known = group.clamp(max=groups - 1)
    if count < groups:
        products = torch.bmm(x[:, None], matrices.index_select(0, known))[:, 0]
    else:
        all_products = torch.matmul(x, matrices)
        products = all_products[known, torch.arange(count, device=x.device)]
    return torch.where((group < groups)[:, None], products, 0)


def _parts(x: torch.Tensor, y: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Returns the product of each group of columns with its rows, as gradients of matrices are."""
    group, groups = _groups(ends, x.shape[1]), torch.arange(ends.shape[0], device=x.device)
    is_in = group == groups[:, None]
    # Both are masked: what is 0 in one of them may be infinite in the other.
    return torch.bmm(torch.where(is_in[:, None], x, 0), torch.where(is_in[:, :, None], y, 0))


def _grouped_mm(
    x: torch.Tensor,
    y: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:  # noqa: ANN401
    """Returns what `torch.nn.functional.grouped_mm` does, in each of its four forms."""
    if bias is not None or out_dtype not in (None, x.dtype):
        return NotImplemented
    if offs is None:
        return torch.bmm(x, y)
    if x.dim() == 3:
        return _rows(y.T, x.transpose(1, 2), offs).T
    return _rows(x, y, offs) if y.dim() == 3 else _parts(x, y, offs)


def _gradients(
    x: torch.Tensor, matrices: torch.Tensor, ends: torch.Tensor, gradient: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the gradients of `_rows` for rows and matrices."""
    return _rows(gradient, matrices.transpose(1, 2), ends), _parts(x.T, gradient, ends)


def table() -> dict[Any, Callable[..., Any]]:
    """Returns ops, and functions of their arguments that return the same; those of `transformers` if it is loaded,
    which it has for types and versions of PyTorch without `grouped_mm`."""
    result: dict[Any, Callable[..., Any]] = {_aten._grouped_mm.default: _grouped_mm}
    for name, function in (("grouped_mm_fallback", _rows), ("grouped_mm_fallback_backward", _gradients)):
        op = getattr(torch.ops.transformers, name, None)
        if op is not None:
            result[op.default] = function
    return result
