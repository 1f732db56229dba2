"""Modules of PyTorch, compiled whole, beside PyTorch: on the emulator, and on a GPU.

With STEPLADDER_TEST_PROFILE=random, all modules.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import stepladder
from combinations import sample

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)

if importlib.util.find_spec("torch") is not None:
    import torch

    from torch_corpus import MODULES
else:
    MODULES = {}

# Of the largest number, in the element type of a result.
_TOLERANCE = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 3e-3, "float64": 1e-10}


def _check(name: str, place: str, **options: Any) -> None:  # noqa: ANN401
    """Compiles a module and compares calls of it; on a GPU the last ones of a function replay a graph."""
    torch.manual_seed(0)
    module, inputs = MODULES[name]()
    inputs = tuple(item.to(place) for item in inputs)
    module = module.to(place)
    with torch.no_grad():
        compiled = stepladder.compile(module, inputs, **options)
        wanted = _tensors(module(*inputs))
        for _ in range(10 if place == "cuda" else 1):
            got = _tensors(compiled(*inputs))
            assert len(got) == len(wanted)
            for one, other in zip(got, wanted):
                _compare(one, other)


def _tensors(result: Any) -> list[torch.Tensor]:  # noqa: ANN401
    return list(result) if isinstance(result, tuple) else [result]


def _compare(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert (got.shape, got.dtype, got.device) == (wanted.shape, wanted.dtype, wanted.device)
    if not got.dtype.is_floating_point:
        assert torch.equal(got, wanted)
        return
    error = (got.double() - wanted.double()).abs().max()
    tolerance = _TOLERANCE[str(got.dtype).removeprefix("torch.")]
    assert error <= tolerance * max(1.0, wanted.abs().max().item()), error


@pytest.mark.parametrize("name", sample(list(MODULES), 14))
def test_on_the_emulator(name: str) -> None:
    _check(name, "cpu", device="emulator", target="sm_90a")


@pytest.mark.gpu
@pytest.mark.parametrize("name", sample(list(MODULES), 6))
def test_on_a_gpu(name: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    _check(name, "cuda")
