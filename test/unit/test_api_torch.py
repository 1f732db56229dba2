"""PyTorch on the CPU, with kernels on the emulator: operators with gradients, and modules through torch-mlir."""

import importlib.util

import pytest

import stepladder
from stepladder.pipeline.codegen import toolchain

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")

EMULATOR = "emulator"


@pytest.fixture(scope="module")
def torch():
    import torch

    try:
        toolchain.find_tool("ptxas")
    except stepladder.StepladderError as error:
        pytest.skip(error.message)
    torch.manual_seed(0)
    return torch


def close(got, wanted, tolerance=1e-2) -> None:
    assert got.shape == wanted.shape
    assert (got.double() - wanted.double()).abs().max() <= tolerance * max(1.0, wanted.abs().max().item())


def test_gradients_of_matmul(torch) -> None:
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


def test_linear_and_its_gradients(torch) -> None:
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


def test_the_operators_are_kept_by_tracers(torch) -> None:
    fake = torch.library.opcheck(
        torch.ops.stepladder.matmul.default,
        (torch.randn(64, 64).half(), torch.randn(64, 64).half(), EMULATOR),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )
    assert set(fake.values()) == {"SUCCESS"}


def test_a_module_is_compiled(torch) -> None:
    pytest.importorskip("torch_mlir.fx")

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(64, 64, dtype=torch.float16)

        def forward(self, x):
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


def test_the_backend_takes_linear_layers(torch) -> None:
    import functools

    from stepladder.api import torch_backend

    model = torch.nn.Sequential(
        torch.nn.Linear(64, 64, dtype=torch.float16),
        torch.nn.GELU(),
        torch.nn.LayerNorm(64, dtype=torch.float16),
        torch.nn.Linear(64, 64, bias=False, dtype=torch.float16),
    )
    graphs = []

    def backend(graph_module, example_inputs):
        compiled = torch_backend.backend(graph_module, example_inputs, device=EMULATOR)
        graphs.append([str(node.target) for node in graph_module.graph.nodes if node.op == "call_function"])
        return compiled

    x = torch.randn(64, 64, dtype=torch.float16)
    with torch.no_grad():
        close(torch.compile(model, backend=backend)(x), model(x))
    assert len(graphs) == 1 and graphs[0].count("stepladder.linear.default") == 2
    assert not [name for name in graphs[0] if "gelu" in name] and [name for name in graphs[0] if "layer_norm" in name]
    # On the CPU without the emulator, nothing is taken.
    plain = torch.compile(model, backend=functools.partial(torch_backend.backend))
    with torch.no_grad():
        close(plain(x), model(x))
