"""Ops of PyTorch that become comparisons and reductions: sorts, writes by indices, running extrema, distances."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import stepladder
from torch_values import same

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)

EMULATOR = "emulator"


def _edges(torch: ModuleType) -> Tensor:
    """Returns numbers of which some are equal, infinite or no numbers."""
    rows = [[1, math.nan, math.inf, -1, -math.inf, math.nan], [0, -0.0, 3, 3, 3, 2], [5, 4, 3, 2, 1, 0]]
    return torch.tensor(rows, dtype=torch.float16)


@pytest.mark.parametrize(
    "form",
    [
        lambda torch, x: (*x.sort(dim=-1, stable=True), *x.sort(dim=0, descending=True, stable=True)),
        lambda torch, x: (*x[2].topk(2), *x[2:].topk(3, -1, largest=False), x[1].bool().sort()[0]),
        lambda torch, x: torch.argsort(x, dim=1, stable=True),
    ],
)
def test_sorts(torch: ModuleType, form: Callable[..., object]) -> None:
    """Equal numbers keep their order, and NaN is larger than all numbers; results are the same bits."""
    pytest.importorskip("torch_mlir.fx")
    same(torch, form, _edges(torch))


@pytest.mark.parametrize(
    "form",
    [
        lambda torch, x: (*x.cummax(-1), *x.cummin(0), *x.bool().cummax(1), *(x[1:] * 2).int().cummin(1)),
        lambda torch, x: (x.median(-1).values, x.median(0).values, x[1:].median(), x.nanmedian(), x[2].median(0)[1]),
        lambda torch, x: (*x[2].kthvalue(2), x.kthvalue(5, 1, True).values, x[1:].int().kthvalue(1, 0)[0]),
        lambda torch, x: (*x.nanmedian(1, True)[:1], torch.searchsorted(x[1:2].sort()[0], x[2:], right=True)),
        lambda torch, x: torch.searchsorted(x[2].flip(0).contiguous(), x, out_int32=True),
        lambda torch, x: x.masked_scatter(x > 0, x.flip(0)),
    ],
)
def test_running_extrema_medians_and_searches(torch: ModuleType, form: Callable[..., object]) -> None:
    """Of equal numbers, as of NaN, a running extremum has the place of the last."""
    same(torch, form, _edges(torch).float())


def test_long_running_sums(torch: ModuleType) -> None:
    """Blocks of elements, with what the blocks before have."""
    x = torch.randint(-3, 4, (2, 1500)).float()
    same(torch, lambda torch, x: (x.cumsum(-1), (x > 0).cumsum(1), x.sign().cumprod(1)), x)


def test_running_logsumexp(torch: ModuleType) -> None:
    x = torch.tensor([[1.0, -90, 89, 88], [-math.inf, -math.inf, 3, 3], [0, math.inf, 1, math.nan]])

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.logcumsumexp(1)

    got = stepladder.compile(Layer(), [x], device=EMULATOR, target="sm_80")(x)
    torch.testing.assert_close(got, x.logcumsumexp(1), equal_nan=True)


def _assigned(x: Tensor, at: Tensor) -> Tensor:
    x = x.clone().reshape(2, 2, 6)
    x[:, at[1:2], at[1:2] + 3] = x[:, 1, :1]
    x[..., 2] = 7
    return x


@pytest.mark.parametrize(
    "form",
    [
        lambda torch, x, at: x.index_copy(1, at, x[:, :3] + 1),
        lambda torch, x, at: x.index_add(1, at, x[:, 1:4]),
        lambda torch, x, at: x.scatter(1, at.expand(4, 3), x[:, 2:]),
        lambda torch, x, at: x.scatter_add(0, at.expand(4, 3).t().expand(3, 4)[:, :1].expand(3, 6) % 4, x[:3]),
        lambda torch, x, at: x.index_put((at % 4, at - 6), x[0, :3]),
        lambda torch, x, at: x.index_put((x > 0,), torch.tensor(2.0)),
        lambda torch, x, at: x.index_put((at % 4,), x[:3], accumulate=True),
        lambda torch, x, at: x.clone().reshape(2, 2, 6).transpose(0, 1).index_put_((at % 2, at[:1] % 2), x[:3]),
        lambda torch, x, at: _assigned(x, at),
    ],
)
def test_writes_by_indices(torch: ModuleType, form: Callable[..., object]) -> None:
    pytest.importorskip("torch_mlir.fx")
    same(torch, form, torch.randint(-8, 8, (4, 6)).float(), torch.tensor([4, 0, 3]))


def test_an_index_of_a_write_out_of_range(torch: ModuleType) -> None:
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor, at: Tensor) -> Tensor:
            return x.index_copy(0, at, x[:2])

    x, at = torch.randn(4, 3), torch.tensor([1, 3])
    compiled = stepladder.compile(Layer(), [x, at], device=EMULATOR, target="sm_80")
    compiled(x, at)
    with pytest.raises(stepladder.StepladderError, match=r"the emulator found \d faults"):
        compiled(x, at + 1)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_reductions_by_indices(torch: ModuleType, reduce: str) -> None:
    """Of indices that do not reach all of the tensor, with and without what is there."""

    def form(torch: ModuleType, x: Tensor, at: Tensor) -> tuple[Tensor, ...]:
        rows = at[:, None].expand(3, 4)
        return (
            x.scatter_reduce(0, rows, x[1:], reduce),
            x.scatter_reduce(0, rows, x[1:], reduce, include_self=False),
            x.int().index_reduce(1, at, x.int()[:, :3], reduce) if reduce not in ("sum",) else x,
            x.scatter(1, rows, x.flip(0)[:3], reduce="multiply") if reduce == "prod" else x,
        )

    same(torch, form, torch.randint(1, 8, (4, 6)).float(), torch.tensor([3, 0, 3]))


def test_parts_of_a_tensor_are_written(torch: ModuleType) -> None:
    def form(torch: ModuleType, x: Tensor, at: Tensor) -> tuple[Tensor, ...]:
        x = x.reshape(2, 3, 4)
        places = at[:, None].expand(1, 2, 3)
        return x.scatter(1, places, -x), x.scatter_add(2, places, x), x.scatter(0, places[..., :1] % 2, 9.0)

    same(torch, form, torch.arange(24.0), torch.tensor([2, 0]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_embeddings(torch: ModuleType, mode: str) -> None:
    def form(torch: ModuleType, ids: Tensor, table: Tensor, offsets: Tensor) -> tuple[Tensor, ...]:
        bag = torch.nn.functional.embedding_bag
        weights = {"per_sample_weights": table[ids, 0]} if mode == "sum" else {}
        return (
            bag(ids, table, offsets, mode=mode, **weights),
            bag(ids.reshape(2, 3), table, mode=mode, padding_idx=4),
            bag(ids, table, offsets, mode=mode, include_last_offset=True),
        )

    table = torch.randint(-4, 5, (5, 4)).double()
    table[1, 2] = math.inf
    same(torch, form, torch.tensor([4, 0, 2, 3, 4, 4]), table, torch.tensor([0, 3, 3, 6]))


def test_distances(torch: ModuleType) -> None:
    def form(torch: ModuleType, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        found = [torch.cdist(x, y, p=p) for p in (0.0, 1.0, 2.0, math.inf)]
        return (*found, torch.nn.functional.pdist(x[0]))

    same(torch, form, torch.randint(-4, 5, (2, 5, 3)).double(), torch.randint(-4, 5, (4, 3)).double())


def test_shifts_and_blocks(torch: ModuleType) -> None:
    def form(torch: ModuleType, x: Tensor) -> tuple[Tensor, ...]:
        return x.roll(5), torch.block_diag(x, x[0], x[:2, :3]), torch.addmv(x[0, :4], x, x[1], beta=2)

    same(torch, form, torch.randint(-4, 5, (4, 6)).double())


def test_indices_of_i32(torch: ModuleType) -> None:
    """As tables of 16 values are indexed by weights of 4 bits."""
    x = torch.arange(24.0).reshape(6, 4)
    same(
        torch, lambda torch, x, i: (x[i], x[i, i], x[:, i[:, None]], x[i.long(), i]), x, torch.tensor([3, 0, -1]).int()
    )
