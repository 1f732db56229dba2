"""PyTorch modules with tensors without elements, and with tensors of one number, of which torch-mlir folds ops."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import stepladder
from torch_values import same

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")


def _of_none(torch: ModuleType, x: Tensor, weight: Tensor, images: Tensor) -> tuple[Tensor, ...]:
    products = x.reshape(2, 3, 0) @ weight, x @ weight + 1, (x @ weight > 0).sum(1)
    convolved = torch.nn.functional.conv2d(images, torch.ones(3, 2, 2, 2))
    sums = torch.addbmm(torch.ones(3, 4), x.reshape(2, 3, 0), weight.expand(2, 0, 4), beta=2)
    return *products, convolved, sums, torch.cat((x, torch.ones(6, 2)), 1), weight.sum(0)


def _of_one_number(torch: ModuleType, x: Tensor) -> tuple[Tensor, ...]:
    zeros, ones = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.int64)
    return zeros + (-1), zeros > 0, zeros * -1 == 0, ones.sum(), (ones - 2) ** 2, (zeros - 1).abs().log(), x + zeros


def test_tensors_without_elements(torch: ModuleType) -> None:
    same(torch, _of_none, torch.ones(6, 0), torch.ones(0, 4), torch.ones(0, 2, 5, 5))
    same(torch, lambda torch, x: torch.masked.softmin(x, -1, mask=x > 0), torch.ones(2, 0))


def test_a_softmax_without_axes(torch: ModuleType) -> None:
    """torch-mlir's lowering does not end."""
    same(torch, lambda torch, x: x.softmax(0), torch.tensor(-3.0))


def test_modules_without_inputs(torch: ModuleType) -> None:
    same(torch, lambda torch: (torch.arange(3.0) * 2, torch.eye(2)))


def test_tensors_of_one_number(torch: ModuleType) -> None:
    same(torch, _of_one_number, torch.ones(2, 3))


@pytest.mark.parametrize(
    ("form", "name"),
    [
        # torch-mlir's diagnostic names a constant operand.
        (lambda torch, x: torch.nonzero_static(x, size=6), r"aten\.nonzero_static"),
        (
            lambda torch, x: torch.ops.quantized_decomposed.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)[0],
            r"quantized_decomposed\.choose_qparams\.tensor",
        ),
    ],
)
def test_ops_that_are_not_lowered_are_named(torch: ModuleType, form: Callable[..., object], name: str) -> None:
    pytest.importorskip("torch_mlir.fx")
    pytest.importorskip("torch.ao.quantization.fx._decomposed")
    with pytest.raises(stepladder.StepladderError, match=rf"the module has '{name}', which torch-mlir does not lower"):
        stepladder.compile(lambda x: form(torch, x), [torch.ones(4)], device="emulator", target="sm_90a")


def test_random_numbers_are_no_constants(torch: ModuleType) -> None:
    """Also one number, of the shape of a constant tensor."""
    from stepladder.api.torch_constants import fold_constants

    class Noise(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand_like(torch.zeros(1)) * (torch.ones(3) * 2)

    program = torch.export.export(Noise(), (torch.zeros(3),)).run_decompositions()
    fold_constants(program)
    (noise,) = [node for node in program.graph.nodes if node.target == torch.ops.aten.rand_like.default]
    (twos,) = [node for node in program.graph.nodes if node.args == ([3], 2.0)]
    assert noise.users and twos.users
