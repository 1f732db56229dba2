"""Elementwise ops of PyTorch as other ops, where torch-mlir has no lowering, or one with other results.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.runtime.errors import StepladderError

Number = float | int | bool
# A tensor, or a scalar.
Operand = Any
# Types that PyTorch computes in f32.
_NARROW = (torch.float16, torch.bfloat16)
_BYTES = (torch.int8, torch.uint8)
# Functions of one real number.
_UNARY = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "exp2", "expm1", "log"),
    *("log10", "log1p", "log2", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"),
)


def _wrapped(number: Number, type_: torch.dtype) -> Number:
    """Returns a number as tensors of an element type have it: integers wrap, and others may be infinite."""
    if type_ is torch.bool:
        return bool(number)
    if not type_.is_floating_point:
        limits = torch.iinfo(type_)
        return (int(number) - limits.min) % (1 << limits.bits) + limits.min
    limits = torch.finfo(type_)
    is_above = limits.max < abs(number) < math.inf
    size = limits.max if is_above and abs(number) < limits.max * (1 + limits.eps / 4) else math.inf
    return math.copysign(size, number) if is_above else number


def _promoted(a: Operand, b: Operand) -> tuple[torch.Tensor, Operand]:
    """Returns two operands in the element type of their result; a scalar on the right stays one."""
    type_ = torch.result_type(a, b)
    if not isinstance(a, torch.Tensor):
        a = torch.full_like(b, _wrapped(a, type_), dtype=type_)
    return a.to(type_), b.to(type_) if isinstance(b, torch.Tensor) else b


def _alike(a: torch.Tensor, b: Operand) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns two operands as tensors of the element type of their result."""
    a, b = _promoted(a, b)
    return a, b if isinstance(b, torch.Tensor) else torch.full_like(a, _wrapped(b, a.dtype))


def _widened(op: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Returns an op that computes integers of eight bits in i32, and with a floating-point number in its type:
    torch-mlir ends the process for some, and takes uint8 as int8.
    """

    def computed(*operands: Operand, **options: object) -> Any:  # noqa: ANN401
        type_ = torch.result_type(operands[0], operands[1])
        if not any(isinstance(item, torch.Tensor) and item.dtype in _BYTES for item in operands):
            return NotImplemented
        is_quotient = op is torch.div and options.get("rounding_mode") is None
        wide_type = type_ if type_ not in _BYTES else torch.float32 if is_quotient else torch.int32
        arguments = [
            item.to(wide_type) if isinstance(item, torch.Tensor) else item if is_quotient else _wrapped(item, type_)
            for item in operands
        ]
        result = op(*arguments, **options)
        return result.to(type_) if type_ in _BYTES and not is_quotient else result

    return computed


def _broadcast(of_bytes: Callable[..., Any], op: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Returns an op of tensors of one shape, of which torch-mlir does not lower all that broadcast.

    Args:
        of_bytes: the op of integers of eight bits.
        op: of others.
    """

    def computed(a: torch.Tensor, b: torch.Tensor) -> Any:  # noqa: ANN401
        result = of_bytes(a, b)
        if result is not NotImplemented or a.shape == b.shape:
            return result
        return op(*torch.broadcast_tensors(*_promoted(a, b)))

    return computed


def _of_bytes(op: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """Returns a function of real numbers that computes those of uint8, which torch-mlir takes as int8, in f32."""
    return lambda x: op(x.float()) if x.dtype is torch.uint8 else NotImplemented


def _compared(op: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Returns a comparison of integers with a number that wraps to their type, as PyTorch's does; torch-mlir compares
    with the nearest one, and takes uint8 as int8.
    """

    def computed(x: torch.Tensor, number: Number) -> Any:  # noqa: ANN401
        if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype is torch.bool:
            return NotImplemented
        if isinstance(number, float):
            return op(x.float(), number) if x.dtype in _BYTES else NotImplemented
        wrapped = _wrapped(number, x.dtype)
        if x.dtype in _BYTES:
            return op(x.to(torch.int32), wrapped)
        return NotImplemented if wrapped == number else op(x, wrapped)

    return computed


def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    """Returns 1 / x; torch-mlir's op ends the program at 0."""
    x, _ = _promoted(x, 1.0)
    return torch.ops.aten.div.Tensor(torch.ones_like(x), x)


def _rounded(x: torch.Tensor, *, decimals: int) -> torch.Tensor:
    """Returns a value to some decimals, which torch-mlir ignores; of narrow types in f32, beyond whose range it is."""
    if x.dtype in _NARROW:
        return _rounded(x.float(), decimals=decimals).to(x.dtype)
    scale = 10.0 ** abs(decimals)
    return torch.round(x * scale) / scale if decimals >= 0 else torch.round(x / scale) * scale


def _is_finite(x: torch.Tensor) -> torch.Tensor:
    return x.abs() < math.inf if x.dtype.is_floating_point else torch.ones_like(x, dtype=torch.bool)


def _is_negative(x: torch.Tensor) -> torch.Tensor:
    """Returns whether the sign bit of a value is set; NaN has none."""
    if not x.dtype.is_floating_point:
        return x < 0
    return (x < 0) | ((x == 0) & (_reciprocal(x) < 0))


def _with_sign(a: torch.Tensor, b: Operand) -> torch.Tensor:
    if isinstance(b, torch.Tensor):
        a, b = _promoted(a.to(torch.result_type(a, 1.0)), b)
        return torch.where(_is_negative(b), -a.abs(), a.abs())
    a = a.to(torch.result_type(a, 1.0)).abs()
    return -a if math.copysign(1.0, b) < 0 else a


def _fmod(a: torch.Tensor, b: Operand) -> Any:  # noqa: ANN401
    """Returns the remainder with the sign of a, of that of positive values, which is right for infinite ones too."""
    a, b = _promoted(a, b)
    if a.dtype in _BYTES:
        return _widened(torch.fmod)(a, b)
    if not a.dtype.is_floating_point:
        return NotImplemented if isinstance(b, torch.Tensor) else torch.fmod(a, torch.full_like(a, b))
    remainder = torch.remainder(a.abs(), abs(b))
    return torch.where(a < 0, -remainder, remainder)


def _divided(a: Operand, b: Operand, *, rounding_mode: str | None = None) -> Any:  # noqa: ANN401
    """Returns a floor division: of integers without rounding to f64, and else by PyTorch's own rule, so that a quotient
    that is rounded up to an integer is none too many.
    """
    a, b = _promoted(a, b)
    if a.dtype in _BYTES:
        return _widened(torch.div)(a, b, rounding_mode=rounding_mode)
    if rounding_mode != "floor":
        return NotImplemented
    if a.dtype in _NARROW:
        wide = b.float() if isinstance(b, torch.Tensor) else b
        return _divided(a.float(), wide, rounding_mode=rounding_mode).to(a.dtype)
    if not a.dtype.is_floating_point:
        a, divisor = _alike(a, b)
        quotient = torch.div(a, divisor, rounding_mode="trunc")
        rest = a - quotient * divisor
        return torch.where((rest != 0) & ((rest < 0) != (divisor < 0)), quotient - 1, quotient)
    rest = _fmod(a, b)
    quotient = (a - rest) / b
    is_below = b < 0 if isinstance(b, torch.Tensor) else torch.full_like(rest, b < 0, dtype=torch.bool)
    quotient = torch.where((rest != 0) & (is_below != (rest < 0)), quotient - 1, quotient)
    floor = torch.floor(quotient)
    floor = torch.where(quotient - floor > 0.5, floor + 1, floor)
    plain = a / b
    floor = torch.where(quotient == 0, _with_sign(torch.zeros_like(floor), plain), floor)
    return torch.where(b == 0, plain, floor) if isinstance(b, torch.Tensor) else plain if b == 0 else floor


def _floor_divided(a: Operand, b: Operand) -> Any:  # noqa: ANN401
    return _divided(a, b, rounding_mode="floor")


def _negative(x: torch.Tensor) -> Any:  # noqa: ANN401
    """Returns -x; torch-mlir computes that of integers in f32."""
    return NotImplemented if x.dtype.is_floating_point else torch.zeros_like(x) - x


def _of_integers(x: torch.Tensor, exponent: Number) -> Any:  # noqa: ANN401
    """Returns a power of integers by products, which torch-mlir does not lower; it ends the process for int8 ** 2.5."""
    if x.dtype in _BYTES and isinstance(exponent, float):
        return torch.pow(x.float(), exponent)
    if x.dtype.is_floating_point or not isinstance(exponent, int) or not 0 <= exponent <= _LARGEST_POWER:
        return NotImplemented
    x, _ = _promoted(x, exponent)
    result = torch.ones_like(x)
    for _ in range(exponent):
        result = result * x
    return result


def _shifted_by(shift: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], *, is_own: bool) -> Callable[..., Any]:
    """Returns a shift of integers by a number of places, which may be negative or more than they have bits.

    Args:
        shift: by tensors.
        is_own: whether torch-mlir lowers the op where it has as many bits.
    """

    def computed(x: torch.Tensor, places: Number) -> Any:  # noqa: ANN401
        type_ = torch.result_type(x, places)
        if type_.is_floating_point or type_ is torch.bool:
            return NotImplemented
        bits = torch.iinfo(type_).bits
        if not 0 <= places < bits:
            if shift is torch.bitwise_left_shift or type_ is torch.uint8:
                return x.to(type_) & 0
            places = bits - 1
        elif is_own:
            return NotImplemented
        return shift(*_alike(x, places))

    return computed


def _clamped(x: torch.Tensor, low: Number | None = None, high: Number | None = None) -> Any:  # noqa: ANN401
    """Returns integers between bounds that are none, in their type; torch-mlir compares them as they are, and does not
    lower bounds of bool.
    """
    given = [bound for bound in (low, high) if bound is not None]
    type_ = torch.result_type(x, next((bound for bound in given if isinstance(bound, float)), given[0]))
    bounds = [int(bound) if isinstance(bound, bool) else bound for bound in (low, high)]
    for bound in bounds:
        if isinstance(bound, int) and not type_.is_floating_point and _wrapped(bound, type_) != bound:
            raise StepladderError(
                f"the module has 'aten.clamp' of elements of {type_} by {bound}, which is none of them"
            )
    if type_ is torch.uint8:
        return torch.clamp(x.to(torch.int32), *bounds).to(type_)
    is_plain = type_ == x.dtype and not any(isinstance(bound, bool) for bound in (low, high))
    return NotImplemented if is_plain else torch.clamp(x.to(type_), *bounds)


def _clamped_by_tensors(x: torch.Tensor, low: torch.Tensor | None = None, high: torch.Tensor | None = None) -> Any:  # noqa: ANN401
    """Returns values between bounds of other types, in the type of all; torch-mlir compares them as they are."""
    type_ = x.dtype
    for bound in (low, high):
        type_ = type_ if bound is None else torch.result_type(torch.empty_like(x, dtype=type_), bound)
    if type_ is not torch.uint8 and all(item is None or item.dtype == type_ for item in (x, low, high)):
        return NotImplemented
    computed = torch.int32 if type_ is torch.uint8 else type_
    bounds = [None if bound is None else bound.to(computed) for bound in (low, high)]
    return torch.clamp(x.to(computed), *bounds).to(type_)


def _power(a: torch.Tensor, b: torch.Tensor) -> Any:  # noqa: ANN401
    """Returns a power in the type of the result; torch-mlir computes one with an exponent of integers in f64."""
    if a.dtype == b.dtype or not torch.result_type(a, b).is_floating_point:
        return NotImplemented
    return torch.pow(*_promoted(a, b))


def _hypotenuse(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the root of a² + b², whose squares may be beyond the range of the type."""
    a, b = (item.abs() for item in _promoted(a, b))
    larger, smaller = torch.maximum(a, b), torch.minimum(a, b)
    is_plain = (larger > 0) & (larger < math.inf)
    ratio = torch.where(is_plain, smaller / torch.where(is_plain, larger, 1.0), 0.0)
    return torch.where((a == math.inf) | (b == math.inf), math.inf, larger * torch.sqrt(1 + ratio * ratio))


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> Any:  # noqa: ANN401
    """Returns the GELU: narrow types in f32, and by a tanh with PyTorch's root of 2 / pi, of which torch-mlir has four
    digits.
    """
    if x.dtype in _NARROW:
        return torch.nn.functional.gelu(x.float(), approximate=approximate).to(x.dtype)
    if approximate == "none":
        return NotImplemented
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _elu(x: torch.Tensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> torch.Tensor:
    """Returns the ELU by expm1; torch-mlir's exp(x) - 1 is 0 of small values."""
    if x.dtype in _NARROW:
        return _elu(x.float(), alpha, scale, input_scale).to(x.dtype)
    return torch.where(x > 0, x * scale, torch.expm1(x * input_scale) * (alpha * scale))


def _log_add_exp(a: torch.Tensor, b: torch.Tensor, base: float = math.e) -> torch.Tensor:
    """Returns log(base^a + base^b); torch-mlir makes an infinite b of NaN and it."""
    a, b = _promoted(a, b)
    if a.dtype in _NARROW:
        return _log_add_exp(a.float(), b.float(), base).to(a.dtype)
    powers = torch.exp(-(a - b).abs() * math.log(base))
    return torch.where((a == b) & (a.abs() == math.inf), a, torch.maximum(a, b) + torch.log1p(powers) / math.log(base))


def _is_close(
    a: torch.Tensor, b: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> torch.Tensor:
    """Returns whether values are close to those of b; torch-mlir compares b with itself where they are narrow."""
    a, b = _promoted(a, b)
    if not a.dtype.is_floating_point or a.dtype in _NARROW:
        a, b = a.float(), b.float()
    is_close = a == b
    if equal_nan:
        is_close = is_close | ((a != a) & (b != b))
    difference = (a - b).abs()
    return is_close | ((difference < math.inf) & (difference <= atol + rtol * b.abs()))


def _sum_of_products(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Number = 1, alpha: Number = 1) -> Any:  # noqa: ANN401
    """Returns a sum of products of integers, by integral factors, which torch-mlir does not lower."""
    if x.dtype.is_floating_point:
        return NotImplemented
    return x * int(beta) + torch.bmm(a, b).sum(0, dtype=x.dtype) * int(alpha)


def _angle(x: torch.Tensor) -> Any:  # noqa: ANN401
    """Returns the angle of a real number, which is 0 or pi."""
    if x.is_complex():
        return NotImplemented
    x, _ = _promoted(x, 1.0)
    return torch.where(x < 0, math.pi, torch.where(x.isnan(), x, 0.0))


def _distance(a: torch.Tensor, b: torch.Tensor, p: Number = 2) -> torch.Tensor:
    return torch.linalg.vector_norm(a - b, ord=p)


def _of_shrinking(of_result: torch.Tensor, x: torch.Tensor, bound: float) -> torch.Tensor:
    """Returns the gradient of `hardshrink` or `softshrink`, which is 0 within bounds."""
    return torch.where(x.abs() <= bound, 0.0, of_result)


_LARGEST_POWER = 8
_ATEN = torch.ops.aten
# Ops, and functions of their arguments that return the same.
TABLE = {
    _ATEN.reciprocal.default: _reciprocal,
    _ATEN.round.decimals: _rounded,
    _ATEN.isfinite.default: _is_finite,
    _ATEN.signbit.default: _is_negative,
    _ATEN.copysign.Tensor: _with_sign,
    _ATEN.copysign.Scalar: _with_sign,
    _ATEN.fmod.Tensor: _fmod,
    _ATEN.fmod.Scalar: _fmod,
    _ATEN.div.Tensor_mode: _divided,
    _ATEN.div.Scalar_mode: _divided,
    _ATEN.floor_divide.default: _floor_divided,
    _ATEN.floor_divide.Scalar: _floor_divided,
    **{
        getattr(getattr(_ATEN, name), overload): _widened(getattr(torch, name))
        for name in ("add", "sub", "mul", "div", "remainder")
        for overload in ("Tensor", "Scalar")
    },
    **{getattr(_ATEN, name).Scalar: _compared(getattr(torch, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{
        getattr(_ATEN, name).default: _broadcast(_widened(getattr(torch, name)), getattr(torch, name))
        for name in ("fmax", "fmin")
    },
    **{getattr(_ATEN, name).default: _widened(getattr(torch, name)) for name in ("maximum", "minimum")},
    **{getattr(_ATEN, name).default: _of_bytes(getattr(torch, name)) for name in _UNARY},
    _ATEN.mm.default: _widened(torch.mm),
    _ATEN.bmm.default: _widened(torch.bmm),
    _ATEN.addbmm.default: _sum_of_products,
    _ATEN.neg.default: _negative,
    _ATEN.clamp.default: _clamped,
    _ATEN.clamp.Tensor: _clamped_by_tensors,
    _ATEN.remainder.Scalar_Tensor: lambda a, b: torch.remainder(*_promoted(a, b)),
    _ATEN.__lshift__.Scalar: _shifted_by(torch.bitwise_left_shift, is_own=True),
    _ATEN.__rshift__.Scalar: _shifted_by(torch.bitwise_right_shift, is_own=True),
    _ATEN.bitwise_left_shift.Tensor_Scalar: _shifted_by(torch.bitwise_left_shift, is_own=False),
    _ATEN.bitwise_right_shift.Tensor_Scalar: _shifted_by(torch.bitwise_right_shift, is_own=False),
    _ATEN.bitwise_or.Scalar: lambda x, bits: torch.bitwise_or(*_alike(x, bits)),
    _ATEN.bitwise_xor.Scalar: lambda x, bits: torch.bitwise_xor(*_alike(x, bits)),
    _ATEN.pow.Tensor_Scalar: _of_integers,
    _ATEN.pow.Tensor_Tensor: _power,
    _ATEN.hypot.default: _hypotenuse,
    _ATEN.elu.default: _elu,
    _ATEN.gelu.default: _gelu,
    _ATEN.logaddexp.default: _log_add_exp,
    _ATEN.logaddexp2.default: lambda a, b: _log_add_exp(a, b, 2.0),
    _ATEN.isclose.default: _is_close,
    _ATEN.angle.default: _angle,
    _ATEN.dist.default: _distance,
    _ATEN.hardshrink_backward.default: _of_shrinking,
    _ATEN.softshrink_backward.default: _of_shrinking,
}
