"""Elementwise ops of PyTorch in compiled modules: special numbers, narrow types and integers."""

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

NAN, INF = float("nan"), float("inf")
NUMBERS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, 1.35, -2.5, 3.0, -7.25, 1e-3, -1e-3, 6e4]


@pytest.mark.parametrize(
    "form",
    [
        lambda torch, x, y: (x.clamp(-1, 1), x.clamp(min=0.5), torch.clamp(x, max=y), torch.nn.functional.relu6(x)),
        lambda torch, x, y: (torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.nn.functional.relu(x)),
        lambda torch, x, y: (1 / x, x.reciprocal(), x.isfinite(), torch.isclose(x, y), x.round(decimals=1)),
        lambda torch, x, y: (torch.fmod(x, y), torch.fmod(x, 1.5), x // y, x // 0.5, torch.remainder(x, y)),
        lambda torch, x, y: (torch.copysign(x, torch.where(y.isnan(), 1.0, y)), torch.signbit(x) & (x == x)),
    ],
)
@pytest.mark.parametrize("type_", ["float32", "float16"])
def test_special_numbers(torch: ModuleType, form: Callable[..., object], type_: str) -> None:
    x = torch.tensor(NUMBERS, dtype=getattr(torch, type_))
    same(torch, form, *(item.contiguous() for item in torch.broadcast_tensors(x[:, None], x[None])))


@pytest.mark.parametrize("type_", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "elu", "hypot", "logaddexp"])
def test_narrow_types_are_computed_in_f32(torch: ModuleType, name: str, type_: str) -> None:
    """The relative error is that of the rounding, also where a sum inside of the function cancels."""
    forms = {
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "elu": torch.nn.functional.elu,
        "hypot": lambda x: torch.hypot(x, 2 * x),
        "logaddexp": lambda x: torch.logaddexp(x, -x),
    }
    x = torch.cat((torch.linspace(-2.5, 4, 200), -torch.logspace(-3, -1, 56))).to(getattr(torch, type_))
    got = stepladder.compile(forms[name], [x], device="emulator", target="sm_80")(x).double()
    wanted = forms[name](x.double())
    assert ((got - wanted).abs() <= 32 * torch.finfo(x.dtype).eps * wanted.abs()).all()
    if type_ != "float32":
        assert ((got - wanted).abs() <= torch.finfo(x.dtype).eps * wanted.abs()).all()


@pytest.mark.parametrize(
    "form",
    [
        lambda torch, x: (-x, x**2, x**3, x // 3, x // -3, 7 // (x.abs().clamp(1, 9)), x | 6, x ^ 6),
        lambda torch, x: (x + 0.5, x * 3, x / 3, x % 3, x % -3, torch.fmod(x, 3), x.clamp(-0.5, 7.5)),
    ],
)
@pytest.mark.parametrize("type_", ["int32", "int64", "int8"])
def test_integers(torch: ModuleType, form: Callable[..., object], type_: str) -> None:
    type_ = getattr(torch, type_)
    limits = torch.iinfo(type_)
    x = torch.tensor([0, 1, 2, 3, 100, -1, -2, -3, -100, limits.max, limits.max - 1, limits.min + 1], dtype=type_)
    same(torch, form, x)


@pytest.mark.parametrize(
    ("type_", "form"),
    [
        (
            "int8",
            lambda torch, x, y: (x.max(), x.min(), x // 300, torch.fmod(x, 300), x.clamp(1, 7.5), x.clamp(max=True)),
        ),
        ("int8", lambda torch, x, y: (x / y.half(), torch.clamp(x, y.int(), y[0]), 300 // x.clamp(1), x + 300)),
        ("int8", lambda torch, x, y: (torch.bitwise_left_shift(x, 2), -x >> 9, x << -1, x**2.0)),
        ("uint8", lambda torch, x, y: (x / 300, x // 300, x.prod(), x.clamp(min=1) / y.bfloat16())),
        ("bool", lambda torch, x, y: (x.sum(dtype=x.dtype), x[None].sum(0, dtype=x.dtype), x.sum())),
        ("float16", lambda torch, x, y: (torch.fmax(x, y[0].float()), torch.fmin(y[1].double(), x), torch.xlogy(x, 1))),
        ("float16", lambda torch, x, y: (x // 0.1, x.bfloat16() // 0.3, x.clamp(True, 50), 1e10 // x, 1e5 % x)),
    ],
)
def test_operands_of_other_types(torch: ModuleType, type_: str, form: Callable[..., object]) -> None:
    """Results have PyTorch's types, and numbers that a type does not have wrap or are infinite."""
    x = torch.tensor([1, 2, 100, 127]).to(getattr(torch, type_))
    same(torch, form, x, x.flip(0))


def test_bounds_beyond_a_type_are_refused(torch: ModuleType) -> None:
    x = torch.ones(4, dtype=torch.int8)
    with pytest.raises(stepladder.StepladderError, match=r"'aten\.clamp' of elements of torch\.int8 by 300"):
        stepladder.compile(lambda x: x.clamp(max=300), [x], device="emulator", target="sm_80")


def test_bytes(torch: ModuleType) -> None:
    """Elements of uint8 have no sign, and are returned as such."""
    x = torch.tensor([0, 1, 7, 127, 128, 200, 255], dtype=torch.uint8)
    same(torch, lambda torch, x: (x * 3, x + 0.5, x / 3, x % 3, x >> 4, x & 15, x.float(), x > 2, x.flip(0)), x)
    with pytest.raises(
        stepladder.StepladderError, match=r"'aten\.sign\S*' of elements of uint8, which torch-mlir takes"
    ):
        stepladder.compile(lambda x: x.sign(), [x], device="emulator", target="sm_80")


def test_constants_of_bytes_are_refused(torch: ModuleType) -> None:
    with pytest.raises(stepladder.StepladderError, match="has a constant tensor of uint8, or one without elements"):
        stepladder.compile(lambda: torch.full((2,), 3, dtype=torch.uint8), [], device="emulator", target="sm_80")


def test_words_of_weights_are_shifted_by_tensors(torch: ModuleType) -> None:
    """As GPTQ and AWQ unpack eight weights of 4 bits from an int32."""
    words = torch.tensor([-(2**31), -1, 0, 5, 2**31 - 1, 0x12345678], dtype=torch.int32)
    places = torch.arange(0, 32, 4, dtype=torch.int32)
    same(torch, lambda torch, x, y: (x[:, None] >> y) & 15, words, places)


@pytest.mark.parametrize("type_", ["uint8", "int8", "int16"])
def test_bytes_are_shifted_by_tensors(torch: ModuleType, type_: str) -> None:
    """As bits of weights are unpacked from bytes, of which those of uint8 have no sign."""
    x = torch.arange(256).to(getattr(torch, type_))
    places = torch.arange(8).to(x.dtype)
    same(
        torch,
        lambda torch, x, y: (x[:, None] >> y, x[:, None] << y, torch.bitwise_right_shift(x[:, None], y)),
        x,
        places,
    )


def test_bytes_are_stored_in_parts(torch: ModuleType) -> None:
    """To every second element, as weights of 4 bits are unpacked."""

    def form(torch: ModuleType, x: Tensor) -> Tensor:
        numbers = torch.zeros(4, 16, dtype=torch.uint8)
        numbers[:, ::2], numbers[:, 1::2] = x >> 4, x & 15
        return numbers

    same(torch, form, torch.arange(100, 132).reshape(4, 8).to(torch.uint8))


def _compared(x: Tensor, number: float) -> tuple[Tensor, ...]:
    return x == number, x != number, x < number, x <= number, x > number, x >= number


def test_numbers_of_bytes(torch: ModuleType) -> None:
    """Those above 127 are no negative ones, and ranges of bytes do not end the process."""
    x = torch.tensor([[0, 1, 127, 128, 200, 255]] * 2, dtype=torch.uint8)
    same(
        torch,
        lambda torch, x: (
            torch.nn.functional.pad(x, (1, 2), value=200),
            torch.nn.functional.pad(x, (-1, 2), value=3),
            x ^ torch.arange(6, dtype=torch.uint8),
            x.to(torch.int8) ^ torch.arange(0, 12, 2, dtype=torch.int8),
            x.repeat(2, 1),
            *(comparison for number in (128, 200, 300, -1, 127.5) for comparison in _compared(x, number)),
            *_compared(x.to(torch.int8), 200),
        ),
        x,
    )
    with pytest.raises(stepladder.StepladderError, match=r"elements of torch\.uint8 as torch\.int32, which torch-mlir"):
        stepladder.compile(lambda x: x.view(torch.int32), [x[:, :4].contiguous()], device="emulator", target="sm_80")
