"""Special functions of PyTorch, by those that torch-mlir lowers, and matmuls of fp8 with scales.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.payload import special_functions

# 2^s + 1, of s bits that are half of those of the significand.
_SPLIT = {torch.float32: 4097.0, torch.float64: 134217729.0}
_FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


class _Functions:
    """Functions of PyTorch."""

    where = staticmethod(torch.where)
    exp = staticmethod(torch.exp)
    log = staticmethod(torch.log)
    log1p = staticmethod(torch.log1p)
    sqrt = staticmethod(torch.sqrt)
    abs = staticmethod(torch.abs)
    floor = staticmethod(torch.floor)
    sin = staticmethod(torch.sin)
    cos = staticmethod(torch.cos)
    erf = staticmethod(torch.erf)


def _in_f32(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns a function that computes narrow types in f32, and integers too.

    Args:
        function: of f32 or f64 values.
    """

    def computed(x: torch.Tensor) -> torch.Tensor:
        if x.dtype in _SPLIT:
            return function(x)
        return function(x.float()).to(torch.result_type(x, 1.0))

    return computed


def _scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Any:  # noqa: ANN401
    """Returns a product of fp8 by scales, of the whole or of rows of A and columns of B; another result than fp8.

    `use_fast_accum` is a permission for one product, and the knob is one of all kernels of a module: sums are of f32,
    unless the caller of `compile` sets `fast_accum`.
    """
    rows, columns = (a.shape[0], 1), (1, b.shape[1])
    is_plain = (scale_a.numel() == 1 or scale_a.shape == rows) and (scale_b.numel() == 1 or scale_b.shape == columns)
    if not is_plain or out_dtype is None or out_dtype in _FP8:
        return NotImplemented
    result = torch.mm(a.float(), b.float()) * _scale(scale_a, rows) * _scale(scale_b, columns)
    return (result if bias is None else result + bias).to(out_dtype)


def _scale(scale: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    return scale.reshape((1, 1) if scale.numel() == 1 else shape)


_aten = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE: dict[Any, Callable[..., Any]] = {
    _aten.lgamma.default: _in_f32(lambda x: special_functions.lgamma(x, _Functions())),
    _aten.digamma.default: _in_f32(lambda x: special_functions.digamma(x, _Functions())),
    _aten.erfc.default: _in_f32(lambda x: special_functions.erfc(x, _Functions(), _SPLIT[x.dtype])),
    _aten.erfinv.default: _in_f32(
        lambda x: special_functions.erfinv(x, _Functions(), 2 if x.dtype is torch.float64 else 0)
    ),
    _aten._scaled_mm.default: _scaled_mm,
}
