"""Products of groups of rows with a matrix each, in the forms that `grouped_mm` of PyTorch takes."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import stepladder

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)


def _products(torch: ModuleType, x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """Returns the products group by group, 0 where there is none."""
    bounds = [0, *ends.tolist()]
    groups = list(zip(bounds, bounds[1:]))
    if x.dim() == y.dim():
        return torch.stack([x[:, first:last] @ y[first:last] for first, last in groups])
    if x.dim() == 3:
        return _products(torch, y.T, x.transpose(1, 2), ends).T
    result = x.new_zeros(x.shape[0], y.shape[2])
    for matrix, (first, last) in zip(y, groups):
        result[first:last] = x[first:last] @ matrix
    return result


@pytest.mark.parametrize(
    ("first", "second", "ends"),
    [
        ((9, 16), (3, 16, 8), [2, 2, 8]),  # an empty group, and a row of none
        ((2, 16), (3, 16, 8), [0, 1, 2]),  # fewer rows than groups
        ((3, 8, 16), (16, 8), [4, 4, 8]),
        ((8, 16), (16, 8), [0, 5, 16]),
    ],
)
def test_grouped_products(torch: ModuleType, first: tuple[int, ...], second: tuple[int, ...], ends: list[int]) -> None:
    """An infinite element is in the products of its own group only."""

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
            return torch.nn.functional.grouped_mm(x, y, offs=ends)

    torch.manual_seed(0)
    x, y = torch.randn(first, dtype=torch.bfloat16), torch.randn(second, dtype=torch.bfloat16)
    (x if x.dim() == 2 else y.T)[0, 0] = torch.inf
    offsets = torch.tensor(ends, dtype=torch.int32)
    got = stepladder.compile(Layer(), [x, y, offsets], device="emulator", target="sm_90a")(x, y, offsets)
    wanted = _products(torch, x.float(), y.float(), offsets)
    torch.testing.assert_close(got.float(), wanted, rtol=2**-7, atol=1e-4, equal_nan=True)


def test_the_op_of_transformers(torch: ModuleType) -> None:
    """Where PyTorch has no `grouped_mm` for a type, `transformers` has an op of its own, with gradients."""
    from stepladder.api.decompositions.grouped_products import table

    with torch.library._scoped_library("transformers", "FRAGMENT") as library:
        if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):
            library.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")
        function = table()[torch.ops.transformers.grouped_mm_fallback.default]
        x, y, ends = torch.randn(5, 4), torch.randn(2, 4, 3), torch.tensor([2, 5])
        torch.testing.assert_close(function(x, y, ends), _products(torch, x, y, ends))
