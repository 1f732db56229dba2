"""Tensors that a module reads and writes through objects that are no modules, such as caches."""

from __future__ import annotations

import copy
import importlib.util
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import stepladder
from torch_values import close

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)


def test_a_buffer_is_read_where_it_is(torch: ModuleType) -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.randn(8, 8))
            self.cache = SimpleNamespace(keys=self.keys)

        def forward(self, x: Tensor) -> Tensor:
            scaled = self.cache.keys * 2
            scaled += x  # writes no buffer
            return torch.cond(x[0, 0] > 0, lambda y: y + self.cache.keys, lambda y: y * 2, (scaled,))

    layer, x = Layer(), torch.randn(8, 8)
    compiled = stepladder.compile(layer, [x], device="emulator", target="sm_80")
    layer.keys.add_(1)
    for given in (x.abs(), -x.abs()):
        close(compiled(given), layer(given), 1e-6)


def test_writes_of_a_cache_that_is_no_module(torch: ModuleType) -> None:
    """Of tensors that are buffers too, and of others, among which one of one element, which PyTorch writes while it
    traces."""

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.zeros(6, 4))
            self.cache = SimpleNamespace(keys=self.keys, values=torch.zeros(6, 4), length=torch.tensor(0))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            cache = self.cache
            place = torch.arange(2) + cache.length
            cache.keys.index_copy_(0, place, x)
            cache.values[:, 1:] += x[0, 0]
            cache.length += 2
            return x @ cache.keys.T, cache.values

    layer = Layer()
    reference, cache = copy.deepcopy(layer), layer.cache
    compiled = stepladder.compile(layer, [torch.ones(2, 4)], device="emulator", target="sm_80")
    assert not cache.length and not cache.values.any()
    for x in torch.randn(3, 2, 4):
        product, values = compiled(x)
        assert values is cache.values is layer.cache.values
        close(product, reference(x)[0], 1e-6)
    close(layer.keys, reference.keys, 1e-6)
    close(cache.values, reference.cache.values, 1e-6)
    assert cache.length == 6


def test_a_cache_that_a_function_captures(torch: ModuleType) -> None:
    linear, cache = torch.nn.Linear(4, 4), SimpleNamespace(sums=torch.zeros(4))

    def step(x: Tensor) -> Tensor:
        y = linear(x)
        cache.sums.add_(y.sum(0))
        return y

    x = torch.randn(3, 4)
    compiled = stepladder.compile(step, [x], device="emulator", target="sm_80")
    for _ in range(2):
        compiled(x)
    close(cache.sums, 2 * linear(x).sum(0), 1e-5)


@pytest.mark.parametrize(
    ("attribute", "message"), [("count", r"changes 'cache\.count' .* from 0 to 1"), ("keys", r"replaces 'cache\.keys'")]
)
def test_refused_changes_of_objects(torch: ModuleType, attribute: str, message: str) -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cache = SimpleNamespace(count=0, keys=None)

        def forward(self, x: Tensor) -> Tensor:
            setattr(self.cache, attribute, {"count": self.cache.count + 1, "keys": x + 1}[attribute])
            return x + self.cache.count

    layer = Layer()
    with pytest.raises(stepladder.StepladderError, match=message):
        stepladder.compile(layer, [torch.ones(2, 4)], device="emulator", target="sm_80")
    assert layer.cache == SimpleNamespace(count=0, keys=None)


def test_refused_aliases(torch: ModuleType) -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.randn(8, 8))
            self.cache = SimpleNamespace(keys=self.keys[:4])

        def forward(self, x: Tensor) -> Tensor:
            return x @ self.cache.keys[:2]

    with pytest.raises(stepladder.StepladderError, match="a part or a view"):
        stepladder.compile(Layer(), [torch.randn(8, 2)], device="emulator", target="sm_80")
