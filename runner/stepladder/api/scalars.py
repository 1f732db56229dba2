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
    given = None if on_gpu else _number(value)
    if given is None:
        raise ArgumentError(
            f"argument '{name}' is a {type(value).__name__}; accepted: a number of {type_}, such as 0.5 or x.item()"
        )
    if element.is_integer:
        least, end = (0, 2) if type_ == BOOLEAN else (-1 << element.bits - 1, 1 << element.bits - 1)
        if not math.isfinite(given) or given != int(given) or not least <= given < end:
            raise ArgumentError(f"argument '{name}' is {value}; accepted: integers of {type_}")
    with np.errstate(over="ignore"):
        array = np.asarray(given if element.is_integer else float(given)).astype(element.dtype)
    if math.isfinite(given) and not np.isfinite(array.astype(np.float64)):
        raise ArgumentError(f"argument '{name}' is {value}, which is infinite in {type_}")
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


def is_number(value: object) -> bool:
    """Tells whether a value is a scalar: it is no array, or one of NumPy without axes.

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
