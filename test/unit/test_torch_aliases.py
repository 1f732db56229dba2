"""Tensors that a module reads through objects that are no modules, such as caches."""

from __future__ import annotations

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
            return scaled

    layer, x = Layer(), torch.randn(8, 8)
    compiled = stepladder.compile(layer, [x], device="emulator", target="sm_80")
    layer.keys.add_(1)
    close(compiled(x), layer(x), 1e-6)


@pytest.mark.parametrize(
    ("part", "message"), [(8, "writes a parameter, a buffer or an input"), (4, "a part or a view")]
)
def test_refused_aliases(torch: ModuleType, part: int, message: str) -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.randn(8, 8))
            self.cache = SimpleNamespace(keys=self.keys[:part])

        def forward(self, x: Tensor) -> Tensor:
            if part == 8:
                self.cache.keys[:, 2:4].copy_(x)
            return x @ self.cache.keys[:2]

    with pytest.raises(stepladder.StepladderError, match=message):
        stepladder.compile(Layer(), [torch.randn(8, 2)], device="emulator", target="sm_80")
