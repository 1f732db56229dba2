"""What of PyTorch is compiled besides modules, inputs by keyword, orders of axes in memory, and complex numbers."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from torch_values import close, same

if TYPE_CHECKING:
    from torch import Tensor, nn

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)

EMULATOR = "emulator"


@pytest.mark.parametrize(
    "source_of",
    [
        lambda torch, layer, x: torch.export.export(layer, (x,)),
        lambda torch, layer, x: lambda x: layer(x),
        lambda torch, layer, x: layer.forward,
        lambda torch, layer, x: functools.partial(lambda module, x: module(x), layer),
    ],
)
def test_sources_of_a_layer(torch: ModuleType, source_of: Callable[..., object]) -> None:
    """Parameters are read where they are."""
    layer, x = torch.nn.Linear(32, 16).half(), torch.randn(4, 32).half()
    with torch.no_grad():
        compiled = stepladder.compile(source_of(torch, layer, x), [x], device=EMULATOR, target="sm_90a")
        close(compiled(x), layer(x))
        layer.weight.mul_(0.5)
        close(compiled(x), layer(x))


def test_functions(torch: ModuleType) -> None:
    x, w = torch.randn(4, 32).half(), torch.randn(32, 16).half()
    close(stepladder.compile(torch.matmul, [x, w], device=EMULATOR, target="sm_90a")(x, w), x @ w)
    with pytest.raises(stepladder.ArgumentError, match="the function captures the tensor 'w', of which a kernel"):
        stepladder.compile(lambda x: x @ w, [x], device=EMULATOR)
    with pytest.raises(stepladder.ArgumentError, match="the source is a int"):
        stepladder.compile(3, [x], device=EMULATOR)
    scripted = torch.jit.script(torch.nn.ReLU())
    with pytest.raises(stepladder.ArgumentError, match="the source is a module of TorchScript"):
        stepladder.compile(scripted, [x], device=EMULATOR)


def test_operators_of_this_package_in_a_module(torch: ModuleType) -> None:
    x, w = torch.randn(4, 32).half(), torch.randn(16, 32).half()

    def layers(x: Tensor, w: Tensor) -> Tensor:
        hidden = stepladder.pytorch.linear(x, w, activation="silu", device=EMULATOR)
        return stepladder.pytorch.matmul(hidden, w, device=EMULATOR)

    hidden = torch.nn.functional.silu(x.double() @ w.double().t()).half()
    expected = (hidden.double() @ w.double()).half()
    close(layers(x, w), expected)
    close(stepladder.compile(layers, [x, w], device=EMULATOR, target="sm_90a")(x, w), expected)


def test_inputs_by_keyword(torch: ModuleType) -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(32, 16).half()

        def forward(self, x: Tensor, *, scale: Tensor | None = None, power: int = 1) -> Tensor:
            y = self.layer(x)
            return y if scale is None else (y * scale) ** power

    layer, x, scale = Layer(), torch.randn(4, 32).half(), torch.randn(16).half()
    options: dict[str, Any] = {"device": EMULATOR, "target": "sm_90a"}
    with torch.no_grad():
        compiled = stepladder.compile(layer, [x], example_kwargs={"scale": scale, "power": 2}, **options)
        close(compiled(x, power=2, scale=scale), layer(x, scale=scale, power=2), 2e-2)
        for given, message in (({}, "in other containers"), ({"power": 3, "scale": scale}, "is 3, and the module")):
            with pytest.raises(stepladder.ArgumentError, match=message):
                compiled(x, **given)
        with pytest.raises(stepladder.ArgumentError, match="in other containers"):
            stepladder.compile(layer, [x], **options)(x, scale=scale)


def test_orders_of_axes_in_memory(torch: ModuleType) -> None:
    """Weights and images with channels last, and transposed matrices that are written, are read where they are."""
    last = torch.channels_last
    layer: nn.Module = torch.nn.Conv2d(4, 8, 3).half().to(memory_format=last)
    x = torch.randn(2, 4, 5, 5).half().to(memory_format=last)
    with torch.no_grad():
        compiled = stepladder.compile(layer, [x], device=EMULATOR, target="sm_80")
        close(compiled(x), layer(x))
        with pytest.raises(stepladder.ArgumentError, match=r"dense with the axes \(0, 2, 3, 1\) in"):
            compiled(x.contiguous())

    def doubled(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return x.mul_(2), x @ w

    given = torch.randn(32, 8).half().t(), torch.randn(16, 32).half().t()
    copies = [item.clone() for item in given]
    compiled = stepladder.compile(doubled, given, device=EMULATOR, target="sm_80")
    first, second = compiled(*given)
    wanted = doubled(*copies)
    assert first is given[0] and torch.equal(first, wanted[0])
    close(second, wanted[1])


def _complex(torch: ModuleType, *shape: int) -> Tensor:
    """Returns numbers whose products are exact."""
    return torch.complex(*(torch.randint(-4, 5, shape).double() for _ in range(2)))


@pytest.mark.parametrize(
    "form",
    [
        lambda torch, a, b: (a @ b.mT, torch.addmm(a @ b.mT, a, b.mH, beta=2), torch.einsum("ij,ij->i", a, b)),
        lambda torch, a, b: (a * (2 - 1j) + b.conj(), a - b.real, a / 4j, a == b, torch.where(a.imag > 0, a, 1.0)),
        lambda torch, a, b: (torch.cat((a, b)).sum(0), a.mT[1:], torch.stack((a, a.conj())), a.to(torch.complex64)),
        lambda torch, a, b: (torch.full_like(a, 2j) * b, torch.ones(3, dtype=a.dtype) + a[:, :3], b.real.to(a.dtype)),
        lambda torch, a, b: torch.view_as_real(
            torch.view_as_complex(a.real.contiguous().view(4, 3, 2)) * b[:, :3]
        ).flatten(1),
    ],
)
def test_complex_numbers(torch: ModuleType, form: Callable[..., object]) -> None:
    same(torch, form, _complex(torch, 4, 6), _complex(torch, 4, 6))


def test_functions_of_complex_numbers(torch: ModuleType) -> None:
    """Absolute values of large and infinite numbers, and quotients of small ones."""

    def form(x: Tensor, size: Tensor) -> tuple[Tensor, ...]:
        return x.abs(), x[:3].exp(), torch.polar(size, size), 1 / x[1:3], x.angle()

    x = torch.tensor([1e-30 - 2j, 3e30 + 4e30j, 3e-30 - 4e-30j, complex("inf"), 0j], dtype=torch.complex64)
    x[0] = 1 - 2j
    given = x, torch.rand(4)
    given[0][1:3] = torch.tensor([3e-25 - 4e-25j, 2 + 1j])
    got = stepladder.compile(form, given, device=EMULATOR, target="sm_80")(*given)
    torch.testing.assert_close(got, form(*given))
    large = torch.tensor([3e30 + 4e30j, 0j])
    got = stepladder.compile(torch.abs, [large], device=EMULATOR, target="sm_80")(large)
    torch.testing.assert_close(got, large.abs())
    with pytest.raises(stepladder.StepladderError, match=r"the module has complex numbers \('aten.tan.default'\)"):
        stepladder.compile(torch.tan, [torch.randn(4, 8).to(torch.complex64)], device=EMULATOR, target="sm_80")
    with pytest.raises(stepladder.ArgumentError, match="argument 'input 0' is a conjugated view"):
        stepladder.compile(torch.abs, [large.conj()], device=EMULATOR, target="sm_80")
