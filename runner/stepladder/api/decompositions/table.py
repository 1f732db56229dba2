"""Ops of PyTorch as others that torch-mlir lowers to linalg: those of this module, and of the others.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch import _refs as refs  # pyright: ignore[reportMissingImports]

from stepladder.api import pytorch
from stepladder.api.decompositions import (
    convolutions,
    copies,
    counts,
    distances,
    elementwise,
    fake_quantization,
    fourier_transforms,
    gradients,
    grid_samples,
    orders,
    pooling,
    pooling_gradients,
    recurrent_layers,
    reductions,
    resizing_gradients,
    running_reductions,
    scatters,
    special_functions,
)

# Integers that torch-mlir shifts, and others.
_WIDE = (torch.int32, torch.int64)
_NARROW = (torch.int8, torch.int16, torch.uint8)
_BOTH_ENDS = 2


def _linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str = "", device: str = "auto"
) -> torch.Tensor:
    """Returns what the operator of this package computes, by ops of PyTorch."""
    sums = torch.nn.functional.linear(x, weight, bias)
    return pytorch.ACTIVATIONS[activation][1](sums) if activation else sums


def _padded(x: torch.Tensor, extents: Sequence[int], value: float = 0) -> Any:  # noqa: ANN401
    """Returns a padding of less than nothing along some axes as a part of the tensor, and what is left to pad; of uint8
    in i32, as torch-mlir takes the number for one of int8."""
    if x.dtype == torch.uint8:
        return torch.ops.aten.constant_pad_nd(x.to(torch.int32), extents, value).to(x.dtype)
    if min(extents) >= 0:
        return NotImplemented
    for number, (before, after) in enumerate(zip(extents[::2], extents[1::2])):
        axis, first, last = x.dim() - 1 - number, max(0, -before), max(0, -after)
        x = x.narrow(axis, first, x.shape[axis] - first - last)
    rest = [max(0, extent) for extent in extents]
    return torch.ops.aten.constant_pad_nd(x, rest, value) if any(rest) else x.clone()


def _shifted(shift: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], *, is_own: bool) -> Callable[..., Any]:
    """Returns a shift of integers by other integers, as bytes and words of several weights are unpacked; bytes in i32,
    as torch-mlir takes uint8 as int8.

    Args:
        shift: the op that torch-mlir lowers.
        is_own: whether it is the op itself that is replaced.
    """

    def shifted(x: torch.Tensor, places: torch.Tensor) -> Any:  # noqa: ANN401
        type_ = torch.result_type(x, places)
        if not {x.dtype, places.dtype} <= {*_NARROW, *_WIDE} or (is_own and type_ in _WIDE):
            return NotImplemented
        computed = type_ if type_ in _WIDE else torch.int32
        return shift(x.to(computed), places.to(computed)).to(type_)

    return shifted


def _range(start: float, end: float, step: float = 1, *, dtype: torch.dtype | None = None, **options: Any) -> Any:  # noqa: ANN401
    """Returns a range of bytes as one of i64 whose elements are cast: torch-mlir ends the process for one of bytes."""
    if dtype not in (torch.uint8, torch.int8):
        return NotImplemented
    return torch.ops.aten.arange.start_step(start, end, step, dtype=torch.int64, **options).to(dtype)


def _at(x: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> Any:  # noqa: ANN401
    """Returns elements at indices of i32, which torch-mlir does not lower, by those of i64."""
    if not any(index is not None and index.dtype == torch.int32 for index in indices):
        return NotImplemented
    wide = [index.long() if index is not None and index.dtype == torch.int32 else index for index in indices]
    return torch.ops.aten.index.Tensor(x, wide)


def _gathered(x: torch.Tensor, dim: int, index: torch.Tensor, *, sparse_grad: bool = False) -> Any:  # noqa: ANN401
    """Returns elements along an axis where a tensor or its indices have no axes, by those along an axis."""
    if x.dim() and index.dim():
        return NotImplemented
    return torch.gather(x.reshape(-1), 0, index.reshape(-1)).reshape(index.shape)


def _taken(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.index.Tensor(x.reshape(-1), [index.reshape(-1)]).reshape(index.shape)


def _spaced(
    start: Any,  # noqa: ANN401
    end: Any,  # noqa: ANN401
    steps: int,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **options: Any,  # noqa: ANN401
) -> torch.Tensor:
    """Returns numbers at equal distances; integers are between the integers of both ends, as on a CPU."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex or steps < _BOTH_ENDS:
        return refs.linspace(start, end, steps, dtype=dtype, device=device or "cpu", **options)
    start, end = (item.to(dtype).double() if isinstance(item, torch.Tensor) else int(item) for item in (start, end))
    places = torch.arange(steps, device=device)
    step, numbers = (end - start) / (steps - 1), places.double()
    return torch.where(places < steps // 2, start + numbers * step, end - (steps - 1 - numbers) * step).to(dtype)


def _repeated(repeats: torch.Tensor, *, output_size: int | None = None) -> Any:  # noqa: ANN401
    """Returns for each row of a result of known size the index of the one that it repeats."""
    if output_size is None:
        return NotImplemented
    places = torch.arange(output_size, device=repeats.device)
    return (repeats.cumsum(0) <= places[:, None]).sum(-1).to(repeats.dtype)


# Ops, and functions of their arguments that return the same.
TABLE = {
    torch.ops.aten.__rshift__.Tensor: _shifted(torch.bitwise_right_shift, is_own=False),
    torch.ops.aten.__lshift__.Tensor: _shifted(torch.bitwise_left_shift, is_own=False),
    torch.ops.aten.bitwise_right_shift.Tensor: _shifted(torch.bitwise_right_shift, is_own=True),
    torch.ops.aten.bitwise_left_shift.Tensor: _shifted(torch.bitwise_left_shift, is_own=True),
    torch.ops.aten.index.Tensor: _at,
    torch.ops.aten.gather.default: _gathered,
    torch.ops.aten.take.default: _taken,
    torch.ops.aten.arange.start_step: _range,
    torch.ops.aten.repeat_interleave.Tensor: _repeated,
    **{
        getattr(torch.ops.aten.linspace, overload): _spaced
        for overload in ("default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
    },
    torch.ops.prims.scalar_tensor.default: lambda number, *, dtype=None, **_: torch.full((), number, dtype=dtype),
    torch.ops.stepladder.linear.default: _linear,
    torch.ops.stepladder.matmul.default: lambda a, b, device="auto": torch.matmul(a, b),
    torch.ops.aten.constant_pad_nd.default: _padded,
    torch.ops.aten.convolution.default: convolutions.convolution,
    **copies.TABLE,
    **counts.TABLE,
    **distances.TABLE,
    **elementwise.TABLE,
    **fake_quantization.TABLE,
    **orders.TABLE,
    **pooling.TABLE,
    **pooling_gradients.TABLE,
    **recurrent_layers.TABLE,
    **reductions.TABLE,
    **running_reductions.TABLE,
    **scatters.TABLE,
    **special_functions.TABLE,
    **fourier_transforms.TABLE,
    **gradients.TABLE,
    **grid_samples.TABLE,
    **resizing_gradients.TABLE,
}
