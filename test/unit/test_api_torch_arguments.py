"""Tensors of PyTorch that no kernel takes, each refused by the name of the argument; on the CPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import stepladder

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")

Call = Callable[..., object]


@pytest.fixture(scope="module")
def kernel(torch: ModuleType) -> stepladder.Kernel:
    made = stepladder.compile(stepladder.MatmulSpec(8, 8, 8), device="emulator", target="sm_80")
    assert isinstance(made, stepladder.Kernel)
    return made


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, k, a: k(a, a.float()), "'b' has elements of f32; accepted: f16"),
        (lambda t, k, a: k(a, a.to(t.complex64)), "'b' has elements of complex64; accepted: float16"),
        (lambda t, k, a: k(a[:4], a), "'a' is 4 x 8; accepted: 8 x 8"),
        (lambda t, k, a: k(a[:0], a), "'a' is 0 x 8; accepted: 8 x 8"),
        (lambda t, k, a: k(a[0, 0], a), "'a' is a single element without axes; accepted: 8 x 8"),
        (lambda t, k, a: k(a.t(), a), r"'a' has strides \(1, 8\) in elements; accepted: contiguous"),
        (lambda t, k, a: k(a.clone().requires_grad_(), a), "'a' needs a gradient, which a kernel does not record"),
        (lambda t, k, a: k(a.to("meta"), a), "'a' is on the device 'meta'; accepted: tensors on 'cuda'"),
        (lambda t, k, a: k(a.to_sparse(), a), "'a' has no dense memory"),
        (lambda t, k, a: k(a, a.to_sparse_csr()), "'b' has no dense memory"),
        (lambda t, k, a: k(t.zeros(8, 8, dtype=t.complex32).conj().imag, a), "'a' is a negative view"),
        (
            lambda t, k, a: k(a, a, out=t.zeros(8, 16)[:, ::2]),
            "'out' has strides .16, 2. in elements; accepted: contig",
        ),
        (lambda t, k, a: k(a, a, out=t.zeros(8, 8).t()), "'out' has strides .1, 8. in elements; accepted: contiguous"),
        (lambda t, k, a: k(a, a, out=t.zeros(8, 1).expand(8, 8)), "'out' has strides .1, 0. in elements"),
        (lambda t, k, a: k(a, a, out=t.zeros(4, 8)), "'out' is 4 x 8; accepted: 8 x 8"),
        (lambda t, k, a: k(a, a, out=t.zeros(8, 8).requires_grad_()), "'out' needs a gradient"),
        (lambda t, k, a: k(*_overlapping(t, a)), "'out' overlaps argument 'a' in memory"),
        (lambda t, k, a: stepladder.matmul(a, a), "'a' is a tensor in host memory; accepted: tensors on 'cuda'"),
    ],
)
def test_tensors_that_are_refused(torch: ModuleType, kernel: stepladder.Kernel, call: Call, message: str) -> None:
    with pytest.raises(stepladder.ArgumentError, match=f"argument {message}"):
        call(torch, kernel, torch.ones(8, 8, dtype=torch.float16))


def test_tensors_without_memory(torch: ModuleType, kernel: stepladder.Kernel) -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(), pytest.raises(stepladder.ArgumentError, match="argument 'a' is a FakeTensor without memory"):
        kernel(*[torch.empty(8, 8, dtype=torch.float16)] * 2)


def _overlapping(torch: ModuleType, b: Tensor) -> tuple[Tensor, ...]:
    memory = torch.zeros(128, dtype=torch.float16)
    return memory[64:].view(8, 8), b, memory.view(torch.float32).view(8, 8)


def test_functions_refuse_tensors_in_host_memory(torch: ModuleType) -> None:
    text = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %c = arith.addf %a, %a : tensor<4xf32>\n"
    function = stepladder.compile(text + "  return %c : tensor<4xf32>\n}\n", target="sm_80")
    with pytest.raises(stepladder.ArgumentError, match="argument 'argument 0' is a tensor in host memory"):
        function(torch.ones(4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, m, x: m(), "0 inputs were passed, and the module takes 1"),
        (lambda t, m, x: m(x, x.new_zeros(4, 8)), "2 inputs were passed, and the module takes 1"),
        (lambda t, m, x: m(x[:2]), "argument 'input 0' is 2 x 16; accepted: 4 x 16"),
        (lambda t, m, x: m(x.half()), "argument 'input 0' has elements of f16; accepted: f32"),
        (lambda t, m, x: m(x.clone().requires_grad_()), "argument 'input 0' needs a gradient"),
        (lambda t, m, x: m(x, out=x), "argument 'out' is 4 x 16; accepted: 4 x 8"),
        (lambda t, m, x: stepladder.compile(t.nn.ReLU(), x), "argument 'example_inputs' is a Tensor; accepted"),
        (lambda t, m, x: stepladder.compile(t.nn.ReLU(), [x.numpy()]), "argument 'input 0' is a ndarray; accepted"),
        (lambda t, m, x: stepladder.compile(t.nn.ReLU(), [x.to("meta")]), "argument 'input 0' is on the device 'meta'"),
        (
            lambda t, m, x: stepladder.compile(t.nn.ReLU(), [x.to_sparse()]),
            "argument 'input 0' is a tensor of the layout",
        ),
        (lambda t, m, x: stepladder.compile(t.nn.ReLU(), [x[:0]]), "argument 'input 0' is 0 x 16; accepted: extents"),
        (
            lambda t, m, x: stepladder.compile(t.nn.Linear(16, 8, device="meta"), [x]),
            "argument 'weight' is on the device 'meta'",
        ),
    ],
)
def test_inputs_of_modules_that_are_refused(torch: ModuleType, call: Call, message: str) -> None:
    pytest.importorskip("torch_mlir.fx")
    x = torch.ones(4, 16)
    module = stepladder.compile(torch.nn.Linear(16, 8), [x], device="emulator", target="sm_80")
    with pytest.raises(stepladder.ArgumentError, match=message):
        call(torch, module, x)
