"""PyTorch: modules compiled through torch-mlir, operators with gradients, and a backend of `torch.compile`.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api import functions
from stepladder.api.errors import ArgumentError
from stepladder.api.matmul import Matmul
from stepladder.api.options import check_options

# Activations that a kernel computes, by the name of an argument of `linear`.
ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "relu": (functions.relu, torch.relu),
    "gelu": (functions.gelu, torch.nn.functional.gelu),
    "gelu_tanh": (
        functools.partial(functions.gelu, approximate="tanh"),
        functools.partial(torch.nn.functional.gelu, approximate="tanh"),
    ),
    "silu": (functions.silu, torch.nn.functional.silu),
    "sigmoid": (functions.sigmoid, torch.sigmoid),
    "tanh": (functions.tanh, torch.tanh),
}


@functools.cache
def _fused(has_bias: bool, activation: str, device: str, constant_weights: bool = False) -> Matmul:
    """Returns the matmul of `linear`, with its epilogue."""
    if not has_bias and not activation:
        return Matmul(device=device, constant_weights=constant_weights)
    function = ACTIVATIONS[activation][0] if activation else (lambda x: x)

    def with_bias(x: Any, bias: Any) -> Any:  # noqa: ANN401
        return function(x + bias)

    return Matmul(with_bias if has_bias else function, device=device, constant_weights=constant_weights)


def _check_activation(activation: str) -> None:
    if activation and activation not in ACTIVATIONS:
        raise ArgumentError(f"activation = '{activation}'; accepted: {', '.join(ACTIVATIONS)}, and '' for none")


def _check_tensors(**tensors: object) -> None:
    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor):
            raise ArgumentError(f"argument '{name}' is a {type(value).__name__}; accepted: tensors of PyTorch")


@torch.library.custom_op("stepladder::matmul", mutates_args=())
def _matmul(a: torch.Tensor, b: torch.Tensor, device: str = "auto") -> torch.Tensor:
    return _fused(False, "", device)(a.detach(), b.detach())


@_matmul.register_fake
def _(a: torch.Tensor, b: torch.Tensor, device: str = "auto") -> torch.Tensor:
    return torch.matmul(a, b).contiguous()


def _matmul_setup(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:  # noqa: ANN401
    a, b, ctx.device = inputs
    ctx.save_for_backward(a, b)


def _matmul_backward(context: Any, gradient: torch.Tensor) -> tuple:  # noqa: ANN401
    a, b = context.saved_tensors
    if a.dim() == 1 or b.dim() == 1:
        return *_vector_gradients(a, b, gradient), None
    gradient = gradient.contiguous()
    own_a = own_b = None
    if context.needs_input_grad[0]:
        own_a = _summed(_matmul(gradient, b.transpose(-1, -2), context.device), a.shape)
    if context.needs_input_grad[1]:
        if b.dim() == 2 and a.dim() > 2:
            rows = a.reshape(-1, a.shape[-1])
            own_b = _matmul(rows.t(), gradient.reshape(-1, gradient.shape[-1]), context.device)
        else:
            own_b = _summed(_matmul(a.transpose(-1, -2), gradient, context.device), b.shape)
    return own_a, own_b, None


def _vector_gradients(a: torch.Tensor, b: torch.Tensor, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the gradients of a product with a vector, which are outer products, by PyTorch's ops."""
    columns = b.unsqueeze(-1) if b.dim() == 1 else b
    rows = a.unsqueeze(0) if a.dim() == 1 else a
    gradient = gradient.unsqueeze(-1) if b.dim() == 1 else gradient
    gradient = gradient.unsqueeze(-2) if a.dim() == 1 else gradient
    own_a = (gradient @ columns.transpose(-1, -2)).sum_to_size(rows.shape)
    own_b = (rows.transpose(-1, -2) @ gradient).sum_to_size(columns.shape)
    return own_a.reshape(a.shape), own_b.reshape(b.shape)


def _summed(gradient: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Returns the gradient of an operand that a batch shared."""
    return gradient.sum_to_size(shape) if gradient.shape != shape else gradient


_matmul.register_autograd(_matmul_backward, setup_context=_matmul_setup)


@torch.library.custom_op("stepladder::linear", mutates_args=())
def _linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    activation: str = "",
    device: str = "auto",
    constant_weights: bool = False,
) -> torch.Tensor:
    # The promise is of the weights; a kernel reads the larger operand early.
    layer = _fused(bias is not None, activation, device, constant_weights and weight.numel() > x.numel())
    operands = () if bias is None else (bias.detach(),)
    return layer(x.detach(), weight.detach().t(), *operands)


@_linear.register_fake
def _(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    activation: str = "",
    device: str = "auto",
    constant_weights: bool = False,
) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def _linear_setup(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:  # noqa: ANN401
    x, weight, bias, ctx.activation, ctx.device, _ = inputs
    ctx.save_for_backward(x, weight, bias)


def _linear_backward(context: Any, gradient: torch.Tensor) -> tuple:  # noqa: ANN401
    x, weight, bias = context.saved_tensors
    if context.activation:
        # The sums before the activation are computed again, rather than stored by every forward pass.
        sums = _linear(x, weight, bias, "", context.device).detach().requires_grad_()
        with torch.enable_grad():
            output = ACTIVATIONS[context.activation][1](sums)
        (gradient,) = torch.autograd.grad(output, sums, gradient)
    rows = gradient.reshape(-1, gradient.shape[-1]).contiguous()
    own_x = _matmul(rows, weight, context.device).reshape(x.shape) if context.needs_input_grad[0] else None
    own_weight = None
    if context.needs_input_grad[1]:
        own_weight = _matmul(rows.t(), x.reshape(-1, x.shape[-1]).contiguous(), context.device)
    own_bias = rows.sum(0) if bias is not None and context.needs_input_grad[2] else None
    return own_x, own_weight, own_bias, None, None, None


_linear.register_autograd(_linear_backward, setup_context=_linear_setup)


def matmul(a: torch.Tensor, b: torch.Tensor, *, device: str = "auto") -> torch.Tensor:
    """Returns AB by the operator `stepladder::matmul`, which records gradients and which `torch.compile` keeps.

    Args:
        a, b: matrices, or batches, as for `stepladder.matmul`.
        device: `auto`, or `emulator` for tensors in host memory.

    Raises:
        StepladderError: as `stepladder.matmul`.
    """
    _check_tensors(a=a, b=b)
    return _matmul(a, b, device)


def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    activation: str = "",
    device: str = "auto",
    constant_weights: bool = False,
) -> torch.Tensor:
    """Returns f(x W^T + bias) by the operator `stepladder::linear`, one kernel, which records gradients.

    Args:
        x: (..., k), with contiguous rows.
        weight: (n, k).
        bias: (n,), or None.
        activation: `relu`, `gelu`, `gelu_tanh`, `silu`, `sigmoid`, `tanh`, or nothing.
        device: `auto`, or `emulator` for tensors in host memory.
        constant_weights: promises that no kernel that may still run at a call writes `weight`, so that a kernel for few
            rows may read it early, as of `stepladder.compile`. Backward passes do without.

    Raises:
        ArgumentError: an unknown activation, another value of `constant_weights`, or a tensor that is not accepted.
        StepladderError: no pipeline compiles this matmul.
    """
    _check_activation(activation)
    check_options({"constant_weights": constant_weights})
    _check_tensors(x=x, weight=weight, **({} if bias is None else {"bias": bias}))
    return _linear(x, weight, bias, activation, device, constant_weights)
