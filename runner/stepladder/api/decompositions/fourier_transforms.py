"""Fourier transforms of PyTorch as products with constant matrices.

A transform of n values is a product with a matrix of n x n; of many values, two transforms of about √n, with factors
between. PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from stepladder.runtime.errors import StepladderError

# Values of which a transform is one matrix, where it can be divided, and where not.
_PREFERRED, _LARGEST = 256, 1024
_REAL_TYPES = (torch.float32, torch.float64)
# Real and imaginary parts; None for no imaginary ones.
Parts = tuple[torch.Tensor, torch.Tensor | None]


def _waves(
    count: int, others: int, like: torch.Tensor, divisor: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns cosines and sines of 2 pi j k / n, constants of (j, k).

    Args:
        count: how many j; `others`: how many k.
        like: a tensor of their type and device.
        divisor: n; None for `count`.
    """
    n = divisor or count
    # The product is reduced before it becomes an angle.
    places = np.arange(count)[:, None] * np.arange(others) % n
    angles = places * (2 * math.pi / n)
    cosines, sines = (torch.tensor(item.tolist(), dtype=like.dtype) for item in (np.cos(angles), np.sin(angles)))
    return cosines.to(like.device), sines.to(like.device)


def _divisor(n: int) -> int | None:
    """Returns the largest divisor of n up to its root, None where a transform is one matrix."""
    if n <= _PREFERRED:
        return None
    first = next(item for item in range(math.isqrt(n), 0, -1) if n % item == 0)
    if n // first <= _LARGEST and first > 1:
        return first
    if n > _LARGEST:
        raise StepladderError(
            f"the module transforms {n} elements; accepted: up to {_LARGEST}, and those with a divisor near their root"
        )
    return None


def _along_last(x: Parts, sign: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the sums of x[j] exp(sign 2 pi i j k / n) along the last axis, without a factor."""
    real, imaginary = x
    n = real.shape[-1]
    first = _divisor(n)
    if first is None:
        cosines, sines = _waves(n, n, real)
        sines = sines * sign
        if imaginary is None:
            product = torch.matmul(real, torch.cat((cosines, sines), 1))
        else:
            rows = torch.cat((torch.cat((cosines, sines), 1), torch.cat((-sines, cosines), 1)), 0)
            product = torch.matmul(torch.cat((real, imaginary), -1), rows)
        return product[..., :n], product[..., n:]
    second = n // first
    real, imaginary = (None if item is None else item.unflatten(-1, (first, second)).mT for item in (real, imaginary))
    assert real is not None
    real, imaginary = _along_last((real, imaginary), sign)  # (second, first)
    cosines, sines = _waves(second, first, real, n)
    sines = sines * sign
    real, imaginary = real * cosines - imaginary * sines, real * sines + imaginary * cosines
    real, imaginary = _along_last((real.mT, imaginary.mT), sign)  # (first, second)
    return real.mT.flatten(-2), imaginary.mT.flatten(-2)


def _scale(count: int, normalization: int) -> float:
    """Returns the factor of ATen's kinds of normalization."""
    return (1.0, 1 / math.sqrt(count), 1 / count)[normalization]


def of_complex(x: Parts, dims: Sequence[int], normalization: int, forward: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns a transform along some axes.

    Args:
        x: what is transformed.
        dims: the axes.
        normalization: of ATen's `_fft_c2c`.
        forward: whether the exponents are negative.
    """
    real, imaginary = x
    _check(real)
    count = math.prod(real.shape[dim] for dim in dims)
    for dim in dims:
        parts = real.movedim(dim, -1), None if imaginary is None else imaginary.movedim(dim, -1)
        real, imaginary = (item.movedim(-1, dim) for item in _along_last(parts, -1 if forward else 1))
    if imaginary is None:
        imaginary = torch.zeros_like(real)
    scale = _scale(count, normalization)
    return (real, imaginary) if scale == 1 else (real * scale, imaginary * scale)


def of_real(
    x: torch.Tensor, dims: Sequence[int], normalization: int, onesided: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns a transform of a real tensor.

    Args:
        x: the values.
        dims: the axes.
        normalization: of ATen's `_fft_r2c`.
        onesided: whether the last axis has the first half alone.
    """
    last = dims[-1]
    real, imaginary = of_complex((x, None), [last], 0, True)
    if onesided:
        real, imaginary = (item.narrow(last, 0, x.shape[last] // 2 + 1) for item in (real, imaginary))
    if len(dims) > 1:
        real, imaginary = of_complex((real, imaginary), dims[:-1], 0, True)
    scale = _scale(math.prod(x.shape[dim] for dim in dims), normalization)
    return (real, imaginary) if scale == 1 else (real * scale, imaginary * scale)


def to_real(x: Parts, dims: Sequence[int], normalization: int, size: int) -> torch.Tensor:
    """Returns the real tensor whose transform is given by its first half.

    Args:
        x: the transform.
        dims: the axes.
        normalization: of ATen's `_fft_c2r`.
        size: how many values the last axis has.
    """
    *other_dims, last = dims
    real, imaginary = x
    if other_dims:
        real, imaginary = of_complex((real, imaginary), other_dims, 0, False)
    if imaginary is None:
        imaginary = torch.zeros_like(real)
    real, imaginary = real.movedim(last, -1), imaginary.movedim(last, -1)
    behind = size - real.shape[-1]
    # The other half has the conjugate values in reverse order; the first one, and the middle one, occur once.
    real, imaginary = (
        torch.cat((item, item[..., 1 : 1 + behind].flip(-1) * sign), -1) if behind else item
        for item, sign in ((real, 1), (imaginary, -1))
    )
    result, _ = of_complex((real, imaginary), [-1], 0, False)
    count = math.prod((size, *(x[0].shape[dim] for dim in other_dims)))
    return result.movedim(-1, last) * _scale(count, normalization)


def _check(x: torch.Tensor) -> None:
    if x.dtype not in _REAL_TYPES:
        raise StepladderError(f"the module has a Fourier transform of {x.dtype}; accepted: of float32 and float64")


# Ops that PyTorch composes of those above.
TABLE: dict[Any, Callable[..., Any]] = {
    op: function
    for op, function in torch.export.default_decompositions().items()
    if str(op).startswith(("aten.fft_", "aten.stft", "aten.istft"))
}
