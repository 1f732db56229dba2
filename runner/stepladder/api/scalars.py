"""Scalar arguments of kernels, which a launch passes by value."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from stepladder.api.errors import ArgumentError
from stepladder.api.views import View, is_array
from stepladder.runtime.element_types import BOOLEAN, element_type
from stepladder.runtime.host_number import bits_of

_LONGEST = 256  # bits of an integer that messages show


def view_of_number(name: str, value: Any, type_: str) -> View:  # noqa: ANN401
    """Returns the view of a scalar, rounded to the type of the kernel's parameter.

    Args:
        name: of the argument, for messages.
        value: what the caller passed: a number of Python or NumPy, or an array of one element in host memory.
        type_: MLIR's name of the element type.

    Raises:
        ArgumentError: no scalar, or one that the type does not have: too large, or no whole one for an integer.
    """
    element = element_type(type_)
    device = getattr(value, "device", None)
    on_gpu = device is not None and str(getattr(device, "type", device)) != "cpu"
    number = None if on_gpu else _number(value)
    if number is None:
        raise ArgumentError(
            f"argument '{name}' is a {type(value).__name__}; accepted: a number of {type_}, such as 0.5 or x.item()"
        )
    is_whole = isinstance(number, int) or number.is_integer()
    if element.is_integer:
        least, end = (0, 2) if type_ == BOOLEAN else (-1 << element.bits - 1, 1 << element.bits - 1)
        if not is_whole or not least <= number < end:
            raise ArgumentError(f"argument '{name}' is {_shown(value)}; accepted: integers of {type_}")
    else:
        number = _as_float(number)
    with np.errstate(over="ignore"):
        array = np.asarray(number).astype(element.dtype)
    if (is_whole or math.isfinite(number)) and not np.isfinite(array.astype(np.float64)):
        raise ArgumentError(f"argument '{name}' is {_shown(value)}, which is infinite in {type_}")
    return View(name, array.ctypes.data, (), (), type_, None, array, is_writable=False)


def _number(value: Any) -> float | None:  # noqa: ANN401
    """Returns a number of Python, a whole one exactly; None for what is none."""
    if isinstance(value, (str, bytes)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        pass
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _as_float(number: float) -> float:
    """Returns a scalar in double precision, infinite where it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number > 0 or -1)


def _shown(value: object) -> str:
    """Returns a scalar for a message; Python refuses to write integers of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


def is_number(value: object) -> bool:
    """Returns whether a value is a scalar: it is no array, or one of NumPy without axes.

    Args:
        value: what a caller passed.
    """
    return not is_array(value) or (isinstance(value, np.ndarray) and value.ndim == 0)


def word_of(view: View) -> int:
    """Returns the word that represents a scalar among the addresses of a launch.

    Args:
        view: as `view_of_number` returns it.
    """
    return bits_of(view.array)
