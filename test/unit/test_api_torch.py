"""PyTorch on the CPU, with kernels on the emulator: operators with gradients, and modules through torch-mlir."""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import stepladder

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.fx import GraphModule

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")

EMULATOR = "emulator"


@pytest.fixture(scope="module")
def torch(needs_ptxas: None) -> ModuleType:
    import torch

    torch.manual_seed(0)
    return torch


def close(got: Tensor, wanted: Tensor, tolerance: float = 1e-2) -> None:
    assert got.shape == wanted.shape
    assert (got.double() - wanted.double()).abs().max() <= tolerance * max(1.0, wanted.abs().max().item())


def test_gradients_of_matmul(torch: ModuleType) -> None:
    a = torch.randn(64, 64, dtype=torch.float16, requires_grad=True)
    b = torch.randn(64, 64, dtype=torch.float16, requires_grad=True)
    gradient = torch.randn(64, 64, dtype=torch.float16)
    result = stepladder.pytorch.matmul(a, b, device=EMULATOR)
    result.backward(gradient)
    close(result, a.detach().double() @ b.detach().double())
    close(a.grad, gradient.double() @ b.detach().double().t())
    close(b.grad, a.detach().double().t() @ gradient.double())
    with pytest.raises(stepladder.ArgumentError, match="argument 'a' needs a gradient, which a kernel does not record"):
        stepladder.matmul(a, b, device=EMULATOR)


@pytest.mark.parametrize("guards", [True, False])
def test_tensors_that_are_known(torch: ModuleType, monkeypatch: pytest.MonkeyPatch, guards: bool) -> None:
    """Tensors of another form, at another address, or on another stream are not launched on without the checks."""
    from stepladder.api import tensors

    if not guards:
        monkeypatch.setattr(tensors, "_guards", lambda torch: None)
    launches = []
    loaded = SimpleNamespace(launcher=lambda addresses, stream: functools.partial(launches.append, stream))
    known = tensors.KnownTensors()
    a, b, out, other = torch.zeros(4, 8, 8)
    known.remember([a, b], [out], False, loaded, (), 5)
    for first in (a, a.view(8, 8)):
        assert known.launch((first, b), (out,), 5) == (out,)
    changed = a.view(8, 8)
    changed.resize_(4, 8)
    moved = a.view(8, 8)
    moved.data = other
    forms = [a.t(), a[:4], a[None], a.view(torch.int32), torch._neg_view(a), torch.nn.Parameter(a, False), changed]
    forms += [a.to_sparse(), a.to("meta"), a.numpy(), None, torch.zeros(8, 8), other, moved]
    for number, first in enumerate(forms):
        assert known.launch((first, b), (out,), 5) is None, number
    assert known.launch((a, b), (other,), 5) is None and known.launch((a, b), (out,), 6) is None
    assert known.launch((a, b), None, 5) is None and known.launch((a,), (b, out), 5) == (b, out)
    assert known.launch((a,), (out,), 5) is None and known.launch((a, a), (out,), 5) is None
    known.remember([a, a], [out], False, loaded, (), 5)  # one tensor twice
    weight = a.clone().requires_grad_()
    known.remember([weight, b], [out], False, loaded, (), 5)
    assert known.launch((a, a), (out,), 5) == (out,) and known.launch((weight, b), (out,), 5) is None
    with torch.no_grad():
        assert known.launch((weight, b), (out,), 5) == (out,)
    assert launches == [5] * 5
    with pytest.raises(stepladder.ArgumentError, match="argument 'a' is a negative view"):
        stepladder.matmul(torch._neg_view(a), b, device=EMULATOR)


def test_linear_and_its_gradients(torch: ModuleType) -> None:
    x = torch.randn(2, 32, 64, dtype=torch.float16)
    layer = torch.nn.Linear(64, 64, dtype=torch.float16)
    gradient = torch.randn(2, 32, 64, dtype=torch.float16)
    got = stepladder.pytorch.linear(x, layer.weight, layer.bias, activation="silu", device=EMULATOR)
    got.backward(gradient)
    mine = layer.weight.grad.clone(), layer.bias.grad.clone()
    layer.zero_grad()
    wanted = torch.nn.functional.silu(layer(x))
    wanted.backward(gradient)
    close(got, wanted)
    close(mine[0], layer.weight.grad)
    close(mine[1], layer.bias.grad, 2e-2)
    with pytest.raises(stepladder.ArgumentError, match="activation = 'swish'; accepted: relu, gelu"):
        stepladder.pytorch.linear(x, layer.weight, activation="swish", device=EMULATOR)


def test_the_operators_are_kept_by_tracers(torch: ModuleType) -> None:
    fake = torch.library.opcheck(
        torch.ops.stepladder.matmul.default,
        (torch.randn(64, 64).half(), torch.randn(64, 64).half(), EMULATOR),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )
    assert set(fake.values()) == {"SUCCESS"}


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
    assert "linalg.matmul" in text and [item.device.type for item in module.arrays([x])] == ["cuda"]


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
        (lambda torch, x: x.add_(1) @ x, "the module writes 'input 0' in place"),
        (lambda torch, x: torch.nn.functional.dropout(x @ x), "the module has random numbers"),
        (
            lambda torch, x: torch.sort(x @ x),
            r"the module has 'aten\.sort\.default', an op that is neither elementwise",
        ),
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
    ],
)
def test_ops_by_others(torch: ModuleType, form: Callable[..., object]) -> None:
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor) -> object:
            return form(torch.nn.functional, x)

    x = torch.randn(2, 4, 6, 5)
    close(stepladder.compile(Layer(), [x], device=EMULATOR, target="sm_80")(x), Layer()(x), 1e-5)


@pytest.fixture
def compiled(
    torch: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[list[str], list[str]]]:
    """Compiles a module by the backend, on the emulator, and compares its results with PyTorch's.

    Returns the names of what the graph calls, and the reasons for what is left.
    """
    from stepladder.api import torch_backend

    caplog.set_level(logging.DEBUG, "stepladder.api.torch_backend")

    def run(module: nn.Module, *inputs: Tensor, **options: object) -> tuple[list[str], list[str]]:
        names = []

        def backend(graph_module: GraphModule, example_inputs: list[Tensor]) -> Callable[..., object]:
            made = torch_backend.backend(graph_module, example_inputs, device=EMULATOR)
            names.extend(str(node.target) for node in graph_module.graph.nodes if node.op.startswith("call"))
            return made

        torch.compiler.reset()
        caplog.clear()
        copies = [item.clone() for item in inputs]
        with torch.set_grad_enabled(any(item.requires_grad for item in inputs)):
            got, wanted = torch.compile(module, backend=backend, **options)(*inputs), module(*copies)
        for one, other in zip(*[item if isinstance(item, tuple) else (item,) for item in (got, wanted)]):
            close(one, other)
            assert one.dtype == other.dtype and one.stride() == other.stride()
        for one, other in zip(inputs, copies):
            close(one, other)
        return names, caplog.text

    return run


def half(torch: ModuleType, *shape: int) -> Tensor:
    return torch.randn(shape).half()


def test_the_backend_takes_parts_of_a_graph(
    torch: ModuleType, compiled: Callable[..., tuple[list[str], list[str]]]
) -> None:
    pytest.importorskip("torch_mlir.fx")
    functional = torch.nn.functional

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(64)
            self.query, self.key, self.out = (torch.nn.Linear(64, 64) for _ in range(3))
            self.gate, self.up, self.down = (torch.nn.Linear(*sizes) for sizes in ((64, 96), (64, 96), (96, 64)))

        def forward(self, x: Tensor) -> Tensor:
            h = self.norm(x)
            query, key = (f(h).view(2, 8, 2, 32).transpose(1, 2) for f in (self.query, self.key))
            heads = functional.scaled_dot_product_attention(query, key, key)
            x = x + self.out(heads.transpose(1, 2).reshape(2, 8, 64))
            return x + self.down(functional.silu(self.gate(x)) * self.up(x))

    names, text = compiled(Block().half(), half(torch, 2, 8, 64))
    assert [name for name in names if "stepladder" in name] == ["stepladder_part_1", "stepladder_part_0"], text
    assert "@main: 2 matmuls and 0 other kernels" in text and "@main: 3 matmuls and 0 other" in text
    assert "layer_norm" in " ".join(names) and "scaled_dot_product_attention" in " ".join(names)
    relu = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(inplace=True), torch.nn.Linear(64, 64)).half()
    assert compiled(relu, half(torch, 16, 64))[0] == ["stepladder_part_0"]


def test_the_backend_leaves_the_rest_to_pytorch(
    torch: ModuleType, compiled: Callable[..., tuple[list[str], list[str]]]
) -> None:
    pytest.importorskip("torch_mlir.fx")
    layer = torch.nn.Linear(64, 64)
    assert (
        "elements of torch.float32; accepted: torch.float16, torch.bfloat16" in compiled(layer, torch.randn(8, 64))[1]
    )
    layer = layer.half()
    wide = half(torch, 8, 64).requires_grad_()
    names, text = compiled(layer, wide, dynamic=True)  # layers that record gradients are taken of static shapes
    assert "a dynamic shape, (s" in text and not [name for name in names if "stepladder" in name]

    class InPlace(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor) -> Tensor:
            before = self.layer(x)
            x.add_(1)
            return before + self.layer(x)

    names, text = compiled(InPlace(), half(torch, 8, 64))
    assert "changes memory or a mode, and ops do not move across it" in text
    assert names.count("stepladder.linear.default") == 2

    def batches(a: Tensor, b: Tensor) -> Tensor:
        return torch.bmm(a, b.transpose(1, 2))

    names, text = compiled(batches, half(torch, 2, 8, 16), half(torch, 2, 16, 8).transpose(1, 2).contiguous())
    assert names == ["stepladder_part_0"], text
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert "autocast is on" in compiled(layer.float(), torch.randn(8, 64))[1]


def test_the_backend_compiles_for_each_size(
    torch: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph with dynamic shapes, also with sizes as inputs of a part; beyond a number of sizes it runs eagerly."""
    pytest.importorskip("torch_mlir.fx")
    from stepladder.api import torch_backend, torch_part

    caplog.set_level(logging.DEBUG, "stepladder.api.torch_backend")
    monkeypatch.setattr(torch_part, "_MOST", 2)

    class Heads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.out = torch.nn.Linear(32, 64), torch.nn.Linear(32, 16)

        def forward(self, x: Tensor) -> Tensor:
            batch, tokens, _ = x.shape
            return self.out(torch.relu(self.layer(x)).view(batch, tokens, 2, 32)).reshape(batch * tokens, 32) * tokens

    model = Heads().half()
    torch.compiler.reset()
    plan = functools.partial(torch_backend.backend, device=EMULATOR)
    module = torch.compile(model, backend=plan, dynamic=True)
    with torch.no_grad():
        for shape in ((2, 3, 32), (3, 5, 32), (2, 3, 32), (4, 2, 32)):
            x = half(torch, *shape)
            close(module(x), model(x))
    assert caplog.text.count("compiled for") == 2
    assert "runs in eager mode: kernels of 2 sets of sizes are compiled" in caplog.text


def test_the_backend_where_an_address_is_odd(
    torch: ModuleType, compiled: Callable[..., tuple[list[str], list[str]]]
) -> None:
    """Nothing guards the alignment of an address; a call on another one runs in eager mode."""
    pytest.importorskip("torch_mlir.fx")
    from stepladder.api import torch_backend

    layer = torch.nn.Linear(64, 64).half()
    module = torch.compile(layer, backend=functools.partial(torch_backend.backend, device=EMULATOR))
    memory = half(torch, 8 * 64 + 1)
    with torch.no_grad():
        for x in (memory[:-1].view(8, 64), memory[1:].view(8, 64)):
            close(module(x), layer(x))


def test_the_backend_records_gradients(torch: ModuleType, compiled: Callable[..., tuple[list[str], list[str]]]) -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 64, bias=False)
    ).half()
    x = half(torch, 64, 64).requires_grad_()
    names, text = compiled(model, x)
    assert "gradients are recorded" in text and names.count("stepladder.linear.default") == 2
    assert not [name for name in names if "gelu" in name] and [name for name in names if "layer_norm" in name]

    def gradients(module: nn.Module) -> list[Tensor]:
        model.zero_grad()
        x.grad = None
        module(x).float().square().sum().backward()
        return [parameter.grad.clone() for parameter in (*model.parameters(), x)]

    from stepladder.api import torch_backend

    plan = functools.partial(torch_backend.backend, device=EMULATOR)
    for mine, other in zip(gradients(torch.compile(model, backend=plan)), gradients(model)):
        close(mine, other, 2e-2)
    # On the CPU without the emulator, nothing is taken.
    with torch.no_grad():
        close(torch.compile(model, backend=torch_backend.backend)(x), model(x))
