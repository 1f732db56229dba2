"""Arguments of kernels that are numbers, which a launch passes by value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepladder.api.errors import ArgumentError
from stepladder.api.views import View
from stepladder.runtime.element_types import element_type
from stepladder.runtime.host_number import bits_of


def view_of_number(name: str, value: Any, type_: str) -> View:  # noqa: ANN401
    """Returns the view of a number, rounded to the type that the kernel takes.

    Args:
        name: of the argument, for messages.
        value: what the caller passed: a number of Python or NumPy, or an array of one element in host memory.
        type_: MLIR's name of the element type.

    Raises:
        ArgumentError: no number, or one that the type does not have: too large, or no whole one for an integer.
    """
    element = element_type(type_)
    device = getattr(value, "device", None)
    on_gpu = device is not None and str(getattr(device, "type", device)) != "cpu"
    try:
        given = None if on_gpu or isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        given = None
    if given is None:
        raise ArgumentError(
            f"argument '{name}' is a {type(value).__name__}; accepted: a number of {type_}, such as 0.5 or x.item()"
        )
    if element.is_integer:
        limit = 1 << (element.bits - 1)
        if not math.isfinite(given) or given != int(given) or not -limit <= given < limit:
            raise ArgumentError(f"argument '{name}' is {value}; accepted: whole numbers of {type_}")
    with np.errstate(over="ignore"):
        array = np.asarray(given).astype(element.dtype)
    if math.isfinite(given) and not np.isfinite(array.astype(np.float64)):
        raise ArgumentError(f"argument '{name}' is {value}, which is infinite in {type_}")
    return View(name, array.ctypes.data, (), (), type_, None, array, is_writable=False)


def word_of(view: View) -> int:
    """Returns what stands for a number among the addresses of a launch.

    Args:
        view: as `view_of_number` returns it.
    """
    return bits_of(view.array)
