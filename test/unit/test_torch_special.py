"""Functions of special numbers, counts, Fourier transforms, branches, and products with scales of PyTorch's modules, on
the emulator."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from torch_values import close, same

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)


def _compared(torch: ModuleType, form: Callable[..., Any], *given: Tensor, tolerance: float) -> None:
    """Requires PyTorch's numbers of f64, but for a share of the largest one."""

    class Layer(torch.nn.Module):
        def forward(self, *given: Tensor) -> object:
            return form(*given)

    got = stepladder.compile(Layer(), given, device="emulator", target="sm_80")(*given)
    wanted = form(*(item.double() if item.is_floating_point() else item for item in given))
    assert got.dtype == form(*given).dtype
    finite = torch.isfinite(wanted)
    assert torch.equal(got[~finite].nan_to_num(), wanted[~finite].to(got.dtype).nan_to_num())
    close(got[finite], wanted[finite], tolerance)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "erfc", "erfinv"])
def test_functions_of_special_numbers(torch: ModuleType, name: str) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([-1.5, -1, -0.75, -0.0, 0.0, 1e-3, 0.5, 0.99, 1, 2, 3.5, 7, inf, nan])
    _compared(torch, getattr(torch, name), x, tolerance=2e-6)


@pytest.mark.parametrize(
    "form",
    [
        lambda torch, x: torch.fft.rfft(x, norm="ortho").abs(),
        lambda torch, x: torch.fft.irfft2(torch.fft.rfft2(x), s=x.shape[-2:]),
        lambda torch, x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real,
        lambda torch, x: torch.fft.ifft(torch.fft.fft(x, n=9)).imag,
        lambda torch, x: torch.fft.fftshift(torch.fft.hfft(torch.fft.rfft(x))),
    ],
)
def test_fourier_transforms(torch: ModuleType, form: Callable[..., Any]) -> None:
    _compared(torch, lambda x: form(torch, x), torch.randn(2, 5, 6), tolerance=1e-6)


def test_a_long_transform_is_divided(torch: ModuleType) -> None:
    from stepladder.api.decompositions import fourier_transforms

    for shape in ((2, 1024), (1, 300)):  # divided once
        x, y = torch.randn(*shape).double(), torch.randn(*shape).double()
        wanted = torch.fft.fft(torch.complex(x, y))
        real, imaginary = fourier_transforms.of_complex((x, y), [-1], 0, True)
        assert max((real - wanted.real).abs().max(), (imaginary - wanted.imag).abs().max()) < 1e-10
    with pytest.raises(stepladder.StepladderError, match="transforms 4099 elements; accepted: up to 1024"):
        fourier_transforms.of_complex((torch.randn(4099), None), [0], 0, True)


def test_counts(torch: ModuleType) -> None:
    x = torch.tensor([-3, -2, -1.5, -0.1, 0.0, 0.4, 1.9, 2.0, 2.1])
    same(torch, lambda torch, x: (torch.histc(x, 8, -2, 2), torch.histc(x, 5)), x)
    same(torch, lambda torch, x: torch.mode(x, 0), torch.tensor([[1, 5], [2, 5], [1, 3], [2, 3], [0, 4]]))


def test_branches(torch: ModuleType) -> None:
    x = torch.randn(4, 4).abs()

    class Layer(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda x: x @ x, lambda x: x - 1, (x,))

    compiled = stepladder.compile(Layer(), [x], device="emulator", target="sm_80")
    close(compiled(x), x @ x, 1e-5)
    close(compiled(-x), -x - 1, 1e-6)


def test_products_of_fp8_with_scales(torch: ModuleType) -> None:
    a, b = (torch.randn(16, 32).to(torch.float8_e4m3fn) for _ in range(2))
    scales = torch.rand(16, 1), torch.rand(1, 16)

    class Layer(torch.nn.Module):
        def forward(self, a: Tensor, b: Tensor, one: Tensor, other: Tensor) -> Tensor:
            return torch._scaled_mm(a, b.t(), one, other, out_dtype=torch.bfloat16)

    given = [a, b, *scales]
    got = stepladder.compile(Layer(), given, device="emulator", target="sm_90a")(*given)
    close(got, (a.double() @ b.double().t()) * scales[0] * scales[1], 1e-2)


def test_conditions_on_data_are_refused_with_their_line(torch: ModuleType) -> None:
    class Layer(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(stepladder.StepladderError, match="has a condition or a number that depends on data") as error:
        stepladder.compile(Layer(), [torch.randn(4)], device="emulator", target="sm_80")
    assert (error.value.location or "").startswith(__file__)

    with pytest.raises(stepladder.StepladderError, match=r"has 'aten\.equal\.default', a condition or a number"):
        stepladder.compile(lambda x: x * torch.equal(x, x + 1), [torch.ones(4)], device="emulator", target="sm_80")

    with pytest.raises(stepladder.StepladderError, match="has a condition or a number that depends on data"):
        stepladder.compile(lambda x, i: x.narrow(0, i, 2), [torch.ones(4), torch.tensor(1)], device="emulator")

    class Row(torch.nn.Module):
        def forward(self, x: Tensor, place: Tensor) -> Tensor:
            return x[place]

    with pytest.raises(stepladder.StepladderError, match="at an index that depends on data") as error:
        stepladder.compile(Row(), [torch.randn(4, 4), torch.tensor(2)], device="emulator", target="sm_80")
    assert "index_select" in error.value.notes[0]

    class Inverse(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.linalg.inv(x)

    with pytest.raises(stepladder.StepladderError, match="linalg"):
        stepladder.compile(Inverse(), [torch.eye(4)], device="emulator", target="sm_80")


def test_loops_of_graphs_and_gradients_are_refused_and_empty_results_are_not(torch: ModuleType) -> None:
    from torch._higher_order_ops.while_loop import while_loop

    class Powers(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (torch.tensor(0), x))[1]

    with pytest.raises(stepladder.StepladderError, match="has 'while_loop', which torch-mlir does not lower") as error:
        stepladder.compile(Powers(), [torch.randn(4)], device="emulator", target="sm_80")
    assert "a loop of Python" in error.value.notes[0]

    class Slope(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                return torch.autograd.grad(self.layer(x).sum(), x)[0]

    with pytest.raises(stepladder.StepladderError, match=r"torch\.export does not trace"):
        stepladder.compile(Slope(), [torch.randn(4)], device="emulator", target="sm_80")

    class Empty(torch.nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x + 1, x[:0]

    x = torch.randn(3, 4)
    more, empty = stepladder.compile(Empty(), [x], device="emulator", target="sm_80")(x)
    assert torch.equal(more, x + 1) and empty.shape == (0, 4)


def test_unsigned_words_are_refused(torch: ModuleType) -> None:
    x = torch.ones(4, dtype=torch.uint16)
    with pytest.raises(stepladder.StepladderError, match=r"elements of torch\.uint16 \(an input\), which torch-mlir"):
        stepladder.compile(lambda x: x.float(), [x], device="emulator", target="sm_80")
