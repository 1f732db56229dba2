"""Modules of PyTorch, compiled whole, beside PyTorch: on the emulator, and on a GPU.

With STEPLADDER_TEST_PROFILE=random, all modules.
"""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepladder
from combinations import sample
from stepladder.verify.function_check import largest_errors
from stepladder.verify.function_tolerance import error_of_matmuls, error_of_sums

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)

if importlib.util.find_spec("torch") is not None:
    import torch

    from torch_corpus import MODULES
else:
    MODULES = {}


def _check(name: str, place: str, **options: Any) -> None:  # noqa: ANN401
    """Compiles a module and compares calls of it with the module in f64, by tolerances of its own; on a GPU the last
    calls of a function replay a graph."""
    torch.manual_seed(0)
    module, inputs = MODULES[name]()
    wide = copy.deepcopy(module).double()
    inputs = tuple(item.to(place) for item in inputs)
    module = module.to(place)
    with torch.no_grad():
        compiled = stepladder.compile(module, inputs, **options)
        like = _tensors(module(*(item.clone() for item in inputs)))
        wanted = _tensors(wide(*(item.cpu().double() if item.is_floating_point() else item.cpu() for item in inputs)))
        limits = _limits(compiled, [*module.parameters(), *module.buffers(), *inputs])
        for _ in range(10 if place == "cuda" else 1):
            got = _tensors(compiled(*inputs))
            for one, kind, exact, limit in zip(got, like, wanted, limits, strict=True):
                assert (one.shape, one.dtype, one.device) == (kind.shape, kind.dtype, kind.device)
                _compare(one.cpu(), exact, limit)


def _limits(compiled: stepladder.Kernel | stepladder.Function, arrays: list[torch.Tensor]) -> list[float]:
    """Returns the largest errors that results may have."""
    inputs = [_array(item.detach().cpu()) for item in arrays]
    if isinstance(compiled, stepladder.Function):
        bundle: Any = compiled.bundle
        problems = [item for launch in bundle.manifest.launches for item in launch.grouped]
        problems += [bundle.matmul(item).manifest.problem for item in bundle.manifest.launches if item.kernel is None]
        numbers = [item.number for _, item in bundle.manifest.of_kind("argument")]
        given = dict(zip(numbers, inputs)) | {
            item.number: bundle.constant(item) for _, item in bundle.manifest.of_kind("constant")
        }
    else:
        bundle, problems, given = compiled.built.bundle, [compiled.manifest.problem], dict(enumerate(inputs))
    extra = error_of_matmuls(problems) + error_of_sums(bundle.reference, in_f32=True)
    return largest_errors(bundle.reference, given, extra)


def _array(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.view(torch.int8).numpy() if tensor.dtype is torch.uint8 else tensor.numpy()


def _tensors(result: Any) -> list[torch.Tensor]:  # noqa: ANN401
    return list(result) if isinstance(result, tuple) else [result]


def _compare(got: torch.Tensor, wanted: torch.Tensor, limit: float) -> None:
    """Requires the same infinite numbers and integers, and others within a limit."""
    finite = torch.isfinite(wanted)
    assert torch.equal(got[~finite].double(), wanted[~finite].double())
    error = (got[finite].double() - wanted[finite].double()).abs().max().item() if finite.any() else 0.0
    assert error <= limit, (error, limit)


@pytest.mark.parametrize("name", sample(list(MODULES), 14))
def test_on_the_emulator(name: str) -> None:
    _check(name, "cpu", device="emulator", target="sm_90a")


@pytest.mark.gpu
@pytest.mark.parametrize("name", sample(list(MODULES), 6))
def test_on_a_gpu(name: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    _check(name, "cuda")
