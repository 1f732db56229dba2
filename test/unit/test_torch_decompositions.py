"""Decompositions of PyTorch's ops that torch-mlir does not lower, or ends the process for, beside the ops."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest

import stepladder

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)


def _same(torch: ModuleType, name: str, *given: Any, **options: Any) -> None:  # noqa: ANN401
    """Requires of a decomposition what the op returns."""
    from stepladder.api.decompositions.table import TABLE

    packet, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, packet), overload or "default")
    wanted = op(*given, **options)
    torch.testing.assert_close(TABLE[op](*given, **options), wanted, equal_nan=True, rtol=1e-6, atol=1e-6)


def test_reductions(torch: ModuleType) -> None:
    """Of tensors without axes, along several axes, of no elements."""
    number, x, empty = torch.tensor(-3.0), torch.randn(3, 2, 1, 2), torch.randn(0, 5)
    for name, arguments in (
        *(("amax", ()), ("argmin", (0, True)), ("max.dim", (-1,)), ("any.dim", (0,)), ("prod.dim_int", (0,))),
        *(("var.correction", (None,)), ("_softmax", (0, False)), ("var_mean.correction", (None,))),
    ):
        _same(torch, name, number, *arguments)
    _same(torch, "all.dims", x > 0, [1, -1])
    _same(torch, "any.dims", x > 2, None, True)
    _same(torch, "linalg_norm", x[..., 0, :], 1, [0, 1])
    _same(torch, "linalg_norm.ord_str", x[:, :, 0, 0], "fro")
    _same(torch, "var_mean.correction", empty, [0], keepdim=True)


def test_reductions_of_bytes(torch: ModuleType) -> None:
    x = torch.tensor([[0, 1, 200], [255, 3, 128]], dtype=torch.uint8)
    for name, arguments in (("sum.dim_IntList", ([0],)), ("amin", ([1],)), ("max.dim", (1,)), ("all.dim", (1,))):
        _same(torch, name, x, *arguments)
    _same(torch, "sum.dim_IntList", x, [1], dtype=torch.uint8)
    _same(torch, "maximum", x, x.flip(1))
    _same(torch, "sqrt", x)
    _same(torch, "fmax", torch.tensor([[1.0], [float("nan")]]), torch.tensor([0.0, 3.0]))


def test_indices_without_axes(torch: ModuleType) -> None:
    number, zero, x = torch.tensor(2.0), torch.tensor(0), torch.arange(5.0)
    for given in (number, x):
        _same(torch, "gather", given, 0, zero)
        _same(torch, "scatter.value", given, 0, zero, 7.0)
        _same(torch, "scatter_reduce.two", given, 0, zero, number, "sum", include_self=False)
        _same(torch, "index_reduce", given, 0, zero.reshape(1), given[:1] if given.dim() else given, "mean")
        _same(torch, "take", given, torch.tensor(-1))
    _same(torch, "gather", number, 0, zero.expand(2))
    _same(torch, "searchsorted.Tensor", x, number)
    _same(torch, "searchsorted.Scalar", x.flip(0), 1.5, sorter=torch.arange(4, -1, -1))


def test_writes(torch: ModuleType) -> None:
    x, mask, values = torch.randn(3, 4), torch.tensor([True, False, True]), torch.arange(4.0)
    for accumulate in (False, True):
        _same(torch, "index_put", x, [mask], values, accumulate)
        _same(torch, "index_put", x, [None, mask.repeat(2)[:4]], values[:1], accumulate)
        _same(torch, "put", x, torch.tensor([[5], [-1]]), values[:2], accumulate)
    _same(torch, "put", x, torch.zeros(0, dtype=torch.int64), values[:0])


def test_copies(torch: ModuleType) -> None:
    x = torch.randn(3, 4)
    _same(torch, "as_strided", x, [], [], 5)
    _same(torch, "as_strided", x[0, 0], [1, 1], [1, 1])
    _same(torch, "as_strided_copy", x, [2, 2], [1, 2], 1)
    _same(torch, "permute_copy", x, [1, 0])
    _same(torch, "unbind_copy.int", x, 1)
    _same(torch, "resize", x, [2, 5])
    with pytest.raises(stepladder.StepladderError, match=r"'aten\.resize' of 12 elements to 15, of which"):
        _same(torch, "resize", x, [3, 5])


def test_means_of_unlike_windows(torch: ModuleType) -> None:
    _same(torch, "_adaptive_avg_pool3d", torch.randn(2, 4, 5, 3), [4, 3, 2])


def test_sums_of_products_of_integers(torch: ModuleType) -> None:
    given = torch.arange(3), torch.arange(12).reshape(2, 2, 3), torch.arange(18).reshape(2, 3, 3)
    _same(torch, "addbmm", *given, beta=2, alpha=-1)


def test_angles(torch: ModuleType) -> None:
    _same(torch, "angle", torch.tensor([1.0, -1.0, -0.0, float("nan"), -float("inf")]))


def test_a_refusal_is_one_line(torch: ModuleType) -> None:
    """PyTorch's interpreters append the op that they execute."""
    with pytest.raises(stepladder.StepladderError, match=r"^the module sorts 5000 elements; accepted[^\n]*$"):
        stepladder.compile(lambda x: x.sort()[0], [torch.zeros(5000)], device="emulator", target="sm_90a")


def test_a_decomposition_to_other_results_is_refused(torch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepladder.api import torch_lowering

    monkeypatch.setitem(torch_lowering.TABLE, torch.ops.aten.angle.default, lambda x: x.sum(0))
    with pytest.raises(stepladder.StepladderError, match=r"whose result 1 has the extents \[3\] instead of \[2, 3\]"):
        stepladder.compile(lambda x: (x, x.angle()), [torch.ones(2, 3)], device="emulator", target="sm_90a")


def test_numbers_at_equal_distances(torch: ModuleType) -> None:
    """Integers are between the integers of both ends."""
    for type_ in (torch.int32, torch.float64):
        _same(torch, "linspace", 4.3, -7.9, 50, dtype=type_)
        _same(torch, "linspace.Tensor_Scalar", torch.tensor(-1.7), 7, 5, dtype=type_)
    _same(torch, "linspace", 3, 7, 1, dtype=torch.int64)


def test_places_of_repeated_rows(torch: ModuleType) -> None:
    _same(torch, "repeat_interleave.Tensor", torch.tensor([1, 0, 3]), output_size=4)


def test_writes_beside_a_view(torch: ModuleType) -> None:
    """What is in the memory of a view, and not in the view, is left out."""
    rows, block = torch.arange(15).reshape(5, 3)[1:-1], -torch.ones(2, 2, dtype=torch.int64)
    for offset in (None, 0, 3, 9):
        _same(torch, "as_strided_scatter", rows, block, (2, 2), (1, 2), offset)


def test_reductions_of_conditions(torch: ModuleType) -> None:
    """A sum of two is no remainder, and extrema start from the other condition."""
    x, y = torch.tensor([[True, True], [False, False]]), torch.tensor([[True, True], [True, False]])
    _same(torch, "sum.dim_IntList", x, [1], dtype=torch.bool)
    for name in ("amax", "amin"):
        _same(torch, "scatter_reduce.two", x, 1, torch.zeros(2, 2, dtype=torch.int64), y, name, include_self=False)


def test_fractional_factors_of_integers(torch: ModuleType) -> None:
    """Factors are rounded towards 0, as PyTorch does."""
    x, a, b = torch.ones(2, 4, dtype=torch.int32), torch.ones(3, 2, 5).int(), torch.ones(3, 5, 4).int()
    _same(torch, "addbmm", x, a, b, beta=1.6, alpha=-2.5)
