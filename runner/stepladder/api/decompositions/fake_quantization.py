"""Rounding of PyTorch to the values of integers, of quantization-aware training, as elementwise ops.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]


def _rounded(x: torch.Tensor, scale: Any, zero_point: Any, least: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: ANN401
    """Returns values rounded to those of integers, and which integers are not clamped."""
    number = torch.round(x * (1.0 / scale)) + zero_point
    return (number.clamp(least, most) - zero_point) * scale, (number >= least) & (number <= most)


def _of_tensor(x: torch.Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Any:  # noqa: ANN401
    return _rounded(x, scale, zero_point, quant_min, quant_max)


def _of_tensor_parameters(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    fake_quant_enabled: torch.Tensor,
    quant_min: int,
    quant_max: int,
) -> Any:  # noqa: ANN401
    """Returns what `_rounded` does, or the values as they are where the caller passes 0 as `fake_quant_enabled`."""
    is_on = fake_quant_enabled != 0
    values, are_inside = _rounded(x, scale, zero_point.to(x.dtype), quant_min, quant_max)
    return torch.where(is_on, values, x), are_inside | ~is_on


def _of_channels(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int, quant_min: int, quant_max: int
) -> Any:  # noqa: ANN401
    shape = [1] * x.dim()
    shape[axis] = -1
    return _rounded(x, scale.reshape(shape), zero_point.to(x.dtype).reshape(shape), quant_min, quant_max)


# Names of ops, and functions of their arguments that return the same.
_OPS: dict[str, Callable[..., Any]] = {
    "fake_quantize_per_tensor_affine_cachemask": _of_tensor,
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": _of_tensor_parameters,
    "fake_quantize_per_channel_affine_cachemask": _of_channels,
}
# Ops, and these functions.
TABLE: dict[Any, Callable[..., Any]] = {getattr(torch.ops.aten, name).default: form for name, form in _OPS.items()}
