"""PyTorch on the CPU, with kernels on the emulator: operators with gradients, and the backend of `torch.compile`."""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import stepladder
from torch_values import close

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.fx import GraphModule

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")

EMULATOR = "emulator"


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


@pytest.mark.parametrize(("a", "b"), [((16, 64), (64,)), ((64,), (64, 16)), ((64,), (64,)), ((2, 8, 64), (64,))])
def test_gradients_of_products_with_vectors(torch: ModuleType, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    given = [torch.randn(shape).half().requires_grad_() for shape in (a, b)]
    wide = [item.detach().double().requires_grad_() for item in given]
    result, wanted = stepladder.pytorch.matmul(*given, device=EMULATOR), torch.matmul(*wide)
    close(result, wanted)
    gradient = torch.randn(wanted.shape).half()
    result.backward(gradient)
    wanted.backward(gradient.double())
    for mine, other in zip(given, wide):
        close(mine.grad, other.grad)


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


def test_linear_with_constant_weights(torch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise reaches the matmul where the weight is the larger operand, which kernels read early."""
    promised = []
    module = importlib.import_module("stepladder.api.pytorch")
    fused = module._fused
    monkeypatch.setattr(module, "_fused", lambda *given: promised.append((*given, False)[3]) or fused(*given))
    layer = torch.nn.Linear(64, 64, dtype=torch.float16)
    gradient = torch.randn(4, 64, dtype=torch.float16)
    for rows in (4, 128):
        x = torch.randn(rows, 64, dtype=torch.float16)
        with torch.no_grad():
            got = stepladder.pytorch.linear(x, layer.weight, device=EMULATOR, constant_weights=True)
        close(got, x.double() @ layer.weight.double().t())
    assert promised == [True, False]
    got = stepladder.pytorch.linear(x[:4].contiguous(), layer.weight, device=EMULATOR, constant_weights=True)
    got.backward(gradient)
    assert layer.weight.grad is not None and promised[2] is True
    with pytest.raises(stepladder.ArgumentError, match="argument 'constant_weights' is 1; accepted: True and False"):
        stepladder.pytorch.linear(x, layer.weight, device=EMULATOR, constant_weights=1)


def test_operands_that_are_no_tensors(torch: ModuleType) -> None:
    x = torch.ones(4, 8).half()
    with pytest.raises(stepladder.ArgumentError, match="argument 'b' is a int; accepted: tensors of PyTorch"):
        stepladder.pytorch.matmul(x, 3, device=EMULATOR)
    with pytest.raises(stepladder.ArgumentError, match="argument 'bias' is a list; accepted: tensors of PyTorch"):
        stepladder.pytorch.linear(x, x, [1.0], device=EMULATOR)


def test_the_operators_are_kept_by_tracers(torch: ModuleType) -> None:
    fake = torch.library.opcheck(
        torch.ops.stepladder.matmul.default,
        (torch.randn(64, 64).half(), torch.randn(64, 64).half(), EMULATOR),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )
    assert set(fake.values()) == {"SUCCESS"}


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
    assert (
        "@main: 0 matmuls and 0 other kernels, groups of 2 matmuls" in text and "@main: 3 matmuls and 0 other" in text
    )
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
        names, text = compiled(layer, half(torch, 8, 64))
        assert "autocast is on" in text and not any("stepladder" in name for name in names)

    def casts(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(x)

    names, text = compiled(casts, half(torch, 8, 64))
    assert "autocast is on" in text and not any("stepladder" in name for name in names)

    def gradient(x: Tensor, w: Tensor) -> Tensor:
        return torch.func.grad(lambda w: torch.tanh(x @ w).sum())(w)

    names, text = compiled(gradient, half(torch, 8, 64), half(torch, 64, 8))
    assert "in a transformation of torch.func" in text and not any("stepladder" in name for name in names)


def test_the_backend_compiles_for_each_size(
    torch: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph with dynamic shapes, also with sizes as inputs of a part; beyond a number of sizes it runs eagerly."""
    pytest.importorskip("torch_mlir.fx")
    from stepladder.api import torch_backend, torch_part

    caplog.set_level(logging.DEBUG, "stepladder.api.torch_backend")
    monkeypatch.setattr(torch_part, "_MAX", 2)

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


def test_the_option_of_the_backend(torch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `constant_weights`, parts read parameters early, and no other inputs, also of parts of one structure."""
    pytest.importorskip("torch_mlir.fx")
    from stepladder.api import torch_backend, torch_parts

    parts: list[torch_parts.Part] = []
    made = torch_parts.Part
    monkeypatch.setattr(torch_parts, "Part", lambda *given: parts.append(made(*given)) or parts[-1])

    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.v = (torch.nn.Parameter(half(torch, 32, 32)) for _ in range(2))

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            z = torch.softmax(torch.relu(x @ self.w) @ self.v, 1)
            return torch.relu(z @ self.w) @ y

    layers, x, y = Layers(), half(torch, 4, 32), half(torch, 32, 32)
    plan = functools.partial(torch_backend.backend, device=EMULATOR)
    for options, kept in ({}, [0, 0]), ({"constant_weights": True}, [2, 1]):
        torch.compiler.reset()
        parts.clear()
        with torch.no_grad():
            close(torch.compile(layers, backend=plan, options=options)(x, y), layers(x, y))
        assert [len(part._kernels.kept) for part in parts] == kept
    graph = torch.fx.symbolic_trace(torch.nn.ReLU())
    for options, message in (
        ({"constant": True}, "option 'constant' is unknown; accepted: 'constant_weights'"),
        ({"constant_weights": 1}, "argument 'constant_weights' is 1; accepted: True and False"),
    ):
        with pytest.raises(stepladder.ArgumentError, match=message):
            plan(graph, [], options=options)
    with pytest.raises(stepladder.ArgumentError, match="mode = 'max-autotune'; accepted: 'default'"):
        plan(graph, [], mode="max-autotune")


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
