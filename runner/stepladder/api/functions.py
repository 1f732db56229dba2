"""Elementwise functions for epilogues. They take the arrays of an epilogue, and NumPy's arrays too.

from stepladder import functions as F

stepladder.matmul(a, b, epilogue=lambda x: F.gelu(x + bias))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stepladder.api import operations
from stepladder.api.recording import Value as Traced

Value = Any  # a `Traced`, an array or a scalar


def _unary(op: str, otherwise: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def function(x: Value) -> Value:
        return operations.unary(op, x) if isinstance(x, Traced) else otherwise(x)

    function.__doc__ = f"Returns `{op}` of each element."
    return function


def _erf_of_arrays(x: Value) -> Value:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(np.asarray(x)), np.float64)


exp = _unary("math.exp", np.exp)
exp2 = _unary("math.exp2", np.exp2)
expm1 = _unary("math.expm1", np.expm1)
log = _unary("math.log", np.log)
log1p = _unary("math.log1p", np.log1p)
log2 = _unary("math.log2", np.log2)
sqrt = _unary("math.sqrt", np.sqrt)
rsqrt = _unary("math.rsqrt", lambda x: 1 / np.sqrt(x))
tanh = _unary("math.tanh", np.tanh)
erf = _unary("math.erf", _erf_of_arrays)
sin = _unary("math.sin", np.sin)
cos = _unary("math.cos", np.cos)
floor = _unary("math.floor", np.floor)
ceil = _unary("math.ceil", np.ceil)
rint = _unary("math.roundeven", np.rint)


def absolute(x: Value) -> Value:
    """Returns absolute values.

    Args:
        x: an array of the epilogue, one of NumPy's, or a scalar.
    """
    return operations.absolute(x) if isinstance(x, Traced) else np.abs(x)


def maximum(x: Value, y: Value) -> Value:
    """Returns the larger of two values; NaN where one is NaN.

    Args:
        x: an array of the epilogue, one of NumPy's, or a scalar.
        y: as `x`.
    """
    return operations.binary("maximum", x, y) if _any_traced(x, y) else np.maximum(x, y)


def minimum(x: Value, y: Value) -> Value:
    """Returns the smaller of two values; NaN where one is NaN.

    Args:
        x: an array of the epilogue, one of NumPy's, or a scalar.
        y: as `x`.
    """
    return operations.binary("minimum", x, y) if _any_traced(x, y) else np.minimum(x, y)


def clip(x: Value, min: Value = None, max: Value = None) -> Value:  # the names of NumPy's and PyTorch's arguments
    """Returns `x` limited to the range from `min` to `max`, of which one may be None.

    Args:
        x: an array of the epilogue, or one of NumPy's.
        min: the least value; None for none.
        max: the largest value; None for none.
    """
    low = x if min is None else maximum(x, min)
    return low if max is None else minimum(low, max)


def where(condition: Value, x: Value, y: Value) -> Value:
    """Returns `x` where a condition holds, else `y`.

    Args:
        condition: a comparison of arrays, or an array of bool of NumPy's.
        x: an array of the epilogue, one of NumPy's, or a scalar.
        y: as `x`.
    """
    return operations.select(condition, x, y) if _any_traced(condition, x, y) else np.where(condition, x, y)


def cast(x: Value, dtype: object) -> Value:
    """Returns `x` rounded to an element type, such as `"bf16"` or `np.float16`.

    Args:
        x: an array of the epilogue, or one of NumPy's.
        dtype: of floating point, or for integers a wider type too: a name, or what has one.
    """
    return x.astype(dtype)


def relu(x: Value) -> Value:
    """Returns max(x, 0).

    Args:
        x: an array of the epilogue, one of NumPy's, or a scalar.
    """
    return maximum(x, 0)


def leaky_relu(x: Value, negative_slope: float = 0.01) -> Value:
    """Returns x where it is positive, else x times the slope.

    Args:
        x: an array of the epilogue, or one of NumPy's.
        negative_slope: on values below 0.
    """
    return where(x > 0, x, x * negative_slope)


def sigmoid(x: Value) -> Value:
    """Returns 1 / (1 + exp(-x)).

    Args:
        x: an array of the epilogue, one of NumPy's, or a scalar.
    """
    return 1.0 / (exp(-x) + 1.0)


def silu(x: Value) -> Value:
    """Returns x sigmoid(x).

    Args:
        x: an array of the epilogue, one of NumPy's, or a scalar.
    """
    return x / (exp(-x) + 1.0)


def gelu(x: Value, approximate: str = "none") -> Value:
    """Returns x times the probability that a normally distributed value is below x.

    Args:
        x: the values.
        approximate: `none` for the error function, `tanh` for its approximation.

    Raises:
        ValueError: another approximation.
    """
    if approximate == "none":
        return x * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0)
    if approximate == "tanh":
        return x * 0.5 * (tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0)
    raise ValueError(f"approximate = '{approximate}': accepted are 'none' and 'tanh'")


def square(x: Value) -> Value:
    """Returns x x.

    Args:
        x: an array of the epilogue, one of NumPy's, or a scalar.
    """
    return x * x


def _any_traced(*values: Value) -> bool:
    return any(isinstance(value, Traced) for value in values)


def _binary(name: str) -> Callable[[Value, Value], Value]:
    return lambda x, y: operations.binary(name, x, y)


def _comparison(name: str) -> Callable[[Value, Value], Value]:
    return lambda x, y: operations.compare(name, x, y)


# By the names that NumPy's and PyTorch's functions have.
BY_NAME: dict[str, Callable[..., Value]] = {
    **{
        function: globals()[function]
        for function in (
            *("exp", "exp2", "expm1", "log", "log1p", "log2", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "floor"),
            *("ceil", "rint", "absolute", "maximum", "minimum", "clip", "where", "relu", "leaky_relu", "sigmoid"),
            *("silu", "gelu", "square"),
        )
    },
    "abs": absolute,
    "fabs": absolute,
    "round": rint,
    "clamp": clip,
    "add": _binary("add"),
    "subtract": _binary("sub"),
    "sub": _binary("sub"),
    "multiply": _binary("mul"),
    "mul": _binary("mul"),
    "divide": operations.divide,
    "true_divide": operations.divide,
    "div": operations.divide,
    "negative": lambda x: -x,
    "neg": lambda x: -x,
    "positive": lambda x: x,
    "less": _comparison("lt"),
    "less_equal": _comparison("le"),
    "greater": _comparison("gt"),
    "greater_equal": _comparison("ge"),
    "equal": _comparison("eq"),
    "not_equal": _comparison("ne"),
    # Operators of PyTorch's tensors, by the names that they have in `__torch_function__`.
    "__add__": _binary("add"),
    "__radd__": lambda x, y: operations.binary("add", y, x),
    "__sub__": _binary("sub"),
    "__rsub__": lambda x, y: operations.binary("sub", y, x),
    "rsub": lambda x, y: operations.binary("sub", y, x),
    "__mul__": _binary("mul"),
    "__rmul__": lambda x, y: operations.binary("mul", y, x),
    "__truediv__": operations.divide,
    "__rtruediv__": lambda x, y: operations.divide(y, x),
    "__rdiv__": lambda x, y: operations.divide(y, x),
}
