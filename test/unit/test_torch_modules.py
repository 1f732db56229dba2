"""Modules of PyTorch on the CPU, compiled through torch-mlir, with kernels on the emulator."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import stepladder
from torch_values import close, same

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")

EMULATOR = "emulator"


def test_a_module_is_compiled(torch: ModuleType) -> None:
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(64, 64, dtype=torch.float16)

        def forward(self, x: Tensor) -> Tensor:
            return torch.nn.functional.silu(self.linear(x))

    layer, x = Layer(), torch.randn(64, 64, dtype=torch.float16)
    with pytest.raises(stepladder.ArgumentError, match="argument 'example_inputs' is missing"):
        stepladder.compile(layer)
    kernel = stepladder.compile(layer, [x], device=EMULATOR, target="sm_90a")
    with torch.no_grad():
        close(kernel(x), layer(x))
        layer.linear.weight.mul_(0.5)  # parameters are read where they are
        close(kernel(x), layer(x))
    with pytest.raises(stepladder.StepladderError, match=r"the module is not lowered by torch\.export"):
        stepladder.compile(layer, [torch.randn(8, 3)], device=EMULATOR, target="sm_90a")


@pytest.mark.parametrize("error", [ValueError, AssertionError])
def test_a_module_that_fails_is_refused_with_its_line(torch: ModuleType, error: type[Exception]) -> None:
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if torch.compiler.is_exporting():
                raise error("no mask")
            return x

    with pytest.raises(stepladder.StepladderError, match="no mask") as caught:
        stepladder.compile(Layer(), [torch.ones(4)], device=EMULATOR, target="sm_90a")
    assert caught.value.location is not None
    assert caught.value.location.startswith(__file__)


def test_parameters_are_the_weights_of_a_promise(torch: ModuleType) -> None:
    """A function reads parameters early, and inputs only where their examples are parameters."""
    pytest.importorskip("torch_mlir.fx")

    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(64, 32, dtype=torch.float16)
            self.register_buffer("scale", torch.ones(32, dtype=torch.float16))

        def forward(self, x: Tensor, w: Tensor) -> Tensor:
            return torch.relu(self.first(x) * self.scale) @ w

    x, w = torch.randn(4, 64, dtype=torch.float16), torch.randn(32, 48, dtype=torch.float16)
    for given, weights in ((w, {0, 1}), (torch.nn.Parameter(w, requires_grad=False), {0, 1, 4})):
        for promised in (False, True):
            made = stepladder.compile(Layers(), [x, given], device=EMULATOR, target="sm_90a", constant_weights=promised)
            assert isinstance(made, stepladder.Function)
            assert [item.name for item in made.inputs] == ["first.weight", "first.bias", "scale", "input 0", "input 1"]
            assert made.constant_weights is promised and made.kept == (weights if promised else set())


def test_parameters_that_a_module_writes_are_no_weights(torch: ModuleType) -> None:
    """A kernel of PyTorch writes them behind those of a call, and the next call may follow at once."""
    pytest.importorskip("torch_mlir.fx")

    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            values = [torch.randn(32, 32, dtype=torch.float16) for _ in range(2)]
            self.w, self.v = (torch.nn.Parameter(value, requires_grad=False) for value in values)

        def forward(self, x: Tensor) -> Tensor:
            y = torch.relu(x @ self.w) @ self.v
            self.w.mul_(0.5)
            return y

    x = torch.randn(4, 32, dtype=torch.float16)
    made = stepladder.compile(Layers(), [x], device=EMULATOR, target="sm_90a", constant_weights=True)
    assert isinstance(made, stepladder.Function) and made.kept == {1}


def test_a_module_is_called_as_it_is(torch: ModuleType) -> None:
    """Containers of inputs and results, constants among the inputs, weights of uint8, and a convolution of patches."""
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("packed", torch.randint(0, 256, (16, 12), dtype=torch.uint8))
            self.patches = torch.nn.Conv2d(3, 16, 2, stride=2, dtype=torch.float16)

        def forward(self, inputs: dict[str, Tensor], keep: Tensor, scale: float) -> dict[str, object]:
            x = self.patches(inputs["image"]).flatten(2).transpose(1, 2).reshape(-1, 16)
            weight = torch.stack((self.packed & 15, self.packed >> 4), -1).reshape(16, 24).to(x.dtype) - 8
            y = (x @ weight).masked_fill(~keep, 0) * scale
            return {"y": y, "rest": [None, keep.any(), 3]}

    layer, keep = Layer(), torch.rand(8, 24) < 0.5
    inputs = {"image": torch.randn(2, 3, 4, 5).half()}
    compiled = stepladder.compile(layer, [inputs, keep, 0.5], device=EMULATOR, target="sm_90a")
    with torch.no_grad():
        got, wanted = compiled(inputs, keep, 0.5), layer(inputs, keep, 0.5)
    close(got["y"], wanted["y"])
    assert got["rest"] == wanted["rest"] == [None, True, 3]
    assert [item.name for item in compiled.inputs] == ["patches.weight", "patches.bias", "packed", "input 0", "input 1"]
    with (
        torch.no_grad(),
        pytest.raises(stepladder.ArgumentError, match=r"input 2 is 0\.25, and the module"),
    ):
        compiled(inputs, keep, 0.25)
    with torch.no_grad(), pytest.raises(stepladder.ArgumentError, match="'input 1' has elements of i8; accepted: i1"):
        compiled(inputs, keep.to(torch.int8), 0.5)
    with torch.no_grad(), pytest.raises(stepladder.ArgumentError, match="in other containers"):
        compiled(inputs["image"], keep, 0.5)


def test_modules_on_a_gpu_are_exported(torch: ModuleType) -> None:
    """Their ops name the GPU; tensors without memory stand for its tensors."""
    pytest.importorskip("torch_mlir.fx")
    if torch.version.cuda is None:
        pytest.skip("needs PyTorch with CUDA, and no GPU")
    from torch._subclasses import FakeTensorMode

    from stepladder.api import torch_export

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor, keep: Tensor, weight: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
            later = torch.ones(16, 16, dtype=torch.bool, device=x.device).triu(1)
            scores = torch.where(keep, x @ weight, -1.0).masked_fill(later, float("-inf"))
            heads = torch.nn.functional.scaled_dot_product_attention(*[scores.softmax(-1)[None]] * 3)
            return heads, torch.nn.functional.cross_entropy(x @ weight, classes)

    with FakeTensorMode():
        x, weight = (torch.empty(16, 16, device="cuda:0") for _ in range(2))
        keep, classes = (torch.ones(*shape, device="cuda:0", dtype=torch.int64) for shape in ((16, 16), (16,)))
        given = [x, keep.bool(), weight, classes]
    text, module = torch_export.export(Layer(), given)
    assert "linalg.matmul" in text and [item.device.type for item in module.arrays(given)] == ["cuda"] * 4


def test_a_loss_by_indices(torch: ModuleType) -> None:
    pytest.importorskip("torch_mlir.fx")

    class Loss(torch.nn.Module):
        def forward(self, x: Tensor, weight: Tensor, classes: Tensor) -> Tensor:
            return torch.nn.functional.cross_entropy(x @ weight, classes)

    given = torch.randn(8, 16), torch.randn(16, 12), torch.randint(0, 12, (8,))
    close(stepladder.compile(Loss(), given, device=EMULATOR, target="sm_90a")(*given), Loss()(*given), 1e-4)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (lambda torch, x: torch.nn.functional.dropout(x @ x), "the module has random numbers"),
        (lambda torch, x: (x @ x).i0(), r"the module has 'aten\.i0', which torch-mlir does not lower"),
        (lambda torch, x: (x @ x).sum().expand(5000).sort(), "the module sorts 5000 elements; accepted: up to 4096"),
        (lambda torch, x: x[(x @ x) > 0], r"the module has 'aten\.index\.Tensor', whose result has a size that"),
        (lambda torch, x: x.frexp().mantissa, r"the module has 'aten\.frexp\.Tensor', which torch-mlir does not lower"),
        (lambda torch, x: torch.complex(x, x).tan().real, r"the module has complex numbers \('aten\.tan"),
        (lambda torch, x: None, "the module returns no tensor"),
    ],
)
def test_modules_that_are_refused(torch: ModuleType, form: Callable[..., object], message: str) -> None:
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor) -> object:
            return form(torch, x)

    with pytest.raises(stepladder.StepladderError, match=message):
        stepladder.compile(Layer(), [torch.randn(16, 16)], device=EMULATOR, target="sm_90a")


@pytest.mark.parametrize(
    "form",
    [
        # patches that overlap, in groups, along one axis
        lambda f, x: f.conv2d(x[:, :4], x.reshape(-1)[:72].reshape(4, 2, 3, 3), stride=2, padding=1, groups=2),
        lambda f, x: f.conv1d(x[..., 0], x.reshape(-1)[:48].reshape(3, 4, 4), x[0, 0, :3, 0], padding=2, dilation=2),
        lambda f, x: (x[0, :, :, 0] > 0).cumsum(-1) - x[1, :, :, 0].cumsum(0),
        lambda f, x: x[0].roll((1, -2), (0, 1)).flip(-1),
        lambda f, x: f.pad(x[0], (2, 1), mode="reflect").abs().argmax(-1),
        lambda f, x: f.pad(x, (-1, 2, 0, -3), value=2.0),
        lambda f, x: f.fold(x.reshape(2, 12, 10)[..., :6], (4, 5), (2, 3), padding=(0, 1), stride=(2, 2)),
    ],
)
def test_ops_by_others(torch: ModuleType, form: Callable[..., object]) -> None:
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor) -> object:
            return form(torch.nn.functional, x)

    x = torch.randn(2, 4, 6, 5)
    close(stepladder.compile(Layer(), [x], device=EMULATOR, target="sm_80")(x), Layer()(x), 1e-5)


@pytest.mark.parametrize(
    "form",
    [
        lambda f, x: f.max_pool2d(x, 3, 2, 1, return_indices=True),
        lambda f, x: (f.max_pool2d(x, 3, 2, ceil_mode=True), f.max_pool2d(x, 2, 1, dilation=2), f.max_pool1d(x[0], 2)),
        lambda f, x: (f.avg_pool2d(x, 2), f.avg_pool2d(x, 3, 2, 1, True), f.avg_pool2d(x, 2, divisor_override=4)),
        lambda f, x: (f.avg_pool2d(x, 2, 2, 1, count_include_pad=False), f.adaptive_avg_pool2d(x, (3, 2))),
        lambda f, x: (f.adaptive_max_pool2d(x, (3, 1)), f.max_pool3d(x, 2), f.adaptive_avg_pool2d(x, (4, 4))),
        lambda f, x: f.conv_transpose2d(x, x.reshape(-1)[:32].reshape(4, 2, 2, 2), stride=2),
        lambda f, x: f.conv_transpose2d(x, x.reshape(-1)[:48].reshape(4, 2, 2, 3), x[0, 0, 0, :4], 2, 1, 1, 2, (1, 2)),
        lambda f, x: f.conv_transpose1d(x[..., 0], x.reshape(-1)[:12].reshape(4, 3, 1), stride=2, padding=1),
        lambda f, x: f.conv3d(x[None], x.reshape(-1)[:48].reshape(2, 2, 3, 2, 2), padding=1),
    ],
)
def test_poolings_and_transposed_convolutions(torch: ModuleType, form: Callable[..., object]) -> None:
    pytest.importorskip("torch_mlir.fx")
    x = torch.randint(-4, 5, (2, 4, 6, 4)).double()
    same(torch, lambda torch, x: form(torch.nn.functional, x), x)


def test_inputs_and_buffers_that_are_written(torch: ModuleType) -> None:
    """A cache of an input, another one in a buffer, and buffers that are replaced."""
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.zeros(2, 6, 4))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

        def forward(self, x: Tensor, keys: Tensor, at: Tensor) -> tuple[Tensor, ...]:
            keys.index_copy_(1, at, x * 2)
            self.cache[:, at] = x
            self.count = self.count + at.shape[0]
            return self.cache @ keys.transpose(1, 2), self.cache, self.count

    x, keys, at = torch.randn(2, 2, 4), torch.randn(2, 6, 4), torch.tensor([1, 4])
    layer, same, other = Layer(), Layer(), keys.clone()
    compiled = stepladder.compile(layer, [x, keys, at], device=EMULATOR, target="sm_80")
    assert not layer.cache.any() and torch.equal(keys, other)
    for step in range(2):
        got, wanted = compiled(x, keys, at + step), same(x, other, at + step)
        close(got[0], wanted[0], 1e-5)
        assert torch.equal(keys, other) and torch.equal(layer.cache, same.cache)
        assert got[1] is layer.cache and got[2] is layer.count and layer.count == same.count
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' is for modules that write none"):
        compiled(x, keys, at, out=torch.empty(2, 6, 6))

    class Growing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.zeros(2, 4))

        def forward(self, x: Tensor) -> Tensor:
            self.cache = torch.cat((self.cache, x))
            return self.cache

    with pytest.raises(stepladder.StepladderError, match="the module replaces 'cache' by one of another shape"):
        stepladder.compile(Growing(), [torch.randn(1, 4)], device=EMULATOR, target="sm_80")


def test_batch_norms_in_training_mode_are_refused(torch: ModuleType) -> None:
    pytest.importorskip("torch_mlir.fx")
    layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    with pytest.raises(stepladder.StepladderError, match="the module has batch norms in training mode"):
        stepladder.compile(layer, [torch.randn(4, 8)], device=EMULATOR, target="sm_80")


def test_a_step_of_training(torch: ModuleType) -> None:
    """The gradients of an MLP as autograd computes them: transposed operands, and sums over the rows for the biases."""
    pytest.importorskip("torch_mlir.fx")

    class Gradients(torch.nn.Module):
        def forward(self, x: Tensor, w: Tensor, b: Tensor, v: Tensor, target: Tensor) -> tuple[Tensor, ...]:
            sums = x @ w.t() + b
            hidden = torch.relu(sums)
            of_result = 2 * (hidden @ v.t() - target) / target.numel()
            of_sums = (of_result @ v) * (sums > 0)
            return of_sums.t() @ x, of_sums.sum(0), of_result.t() @ hidden

    x, target = torch.randn(16, 24), torch.randn(16, 8)
    parameters = [torch.randn(shape).requires_grad_() for shape in ((32, 24), (32,), (8, 32))]
    w, b, v = parameters
    torch.nn.functional.mse_loss(torch.relu(x @ w.t() + b) @ v.t(), target).backward()
    given = x, w.detach(), b.detach(), v.detach(), target
    got = stepladder.compile(Gradients(), given, device=EMULATOR, target="sm_80")(*given)
    for mine, parameter in zip(got, parameters):
        close(mine, parameter.grad, 1e-4)


def test_a_state_of_zeros(torch: ModuleType) -> None:
    pytest.importorskip("torch_mlir.fx")
    layer, x = torch.nn.RNN(16, 16, batch_first=True).half(), torch.randn(2, 2, 16).half()
    with torch.no_grad():
        got, last = stepladder.compile(layer, [x], device=EMULATOR, target="sm_80")(x)
        wanted = layer(x)
    close(got, wanted[0])
    close(last, wanted[1])
