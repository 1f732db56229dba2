"""Comparison of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import stepladder

if TYPE_CHECKING:
    from torch import Tensor


def close(got: Tensor, wanted: Tensor, tolerance: float = 1e-2) -> None:
    """Requires that no element differs by more than a share of the largest one, or of 1."""
    assert got.shape == wanted.shape
    assert (got.double() - wanted.double()).abs().max() <= tolerance * max(1.0, wanted.abs().max().item())


def same(torch: ModuleType, form: Callable[..., object], *given: Tensor) -> None:
    """Requires the numbers of PyTorch, but for the rounding of quotients."""

    class Layer(torch.nn.Module):
        def forward(self, *given: Tensor) -> object:
            return form(torch, *given)

    got = stepladder.compile(Layer(), given, device="emulator", target="sm_80")(*given)
    wanted = form(torch, *given)
    for one, other in zip(*((item if isinstance(item, tuple) else (item,)) for item in (got, wanted)), strict=True):
        rounding = 4 * torch.finfo(one.dtype).eps if one.dtype is torch.float64 else 0
        torch.testing.assert_close(one, other, rtol=rounding, atol=0, equal_nan=True)
