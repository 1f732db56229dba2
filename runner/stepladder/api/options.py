"""Checks of the arguments that say how a payload is compiled."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from stepladder.api.errors import ArgumentError

_PATH = (str, os.PathLike)
# The accepted types of each argument, and their text in messages.
_ONE = {
    "pipeline": (_PATH, "the name or the file of a pipeline"),
    "target": (str, "the name of a GPU architecture, such as 'sm_90a'"),
    "device": ((str, int), "'auto', 'emulator', and the ordinal of a GPU"),
    "function": ((str, type(None)), "the name of a function, or None"),
    "constant_weights": (bool, "True and False"),
}
_SEVERAL = {"without": (str, "a sequence of names of steps"), "plugins": (_PATH, "a sequence of files")}


def plain(value: Any) -> object:  # noqa: ANN401
    """Returns a scalar, a boolean or a text of NumPy as one of Python, and another value as it is.

    Args:
        value: of an option, such as `numpy.int64(2)`.
    """
    numpy: Any = sys.modules.get("numpy")  # a value of NumPy has imported it
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def check_options(options: Mapping[str, object]) -> None:
    """Checks the types of arguments.

    Args:
        options: values by name, of arguments of `stepladder.compile`.

    Raises:
        ArgumentError: a value of another type; names the argument.
    """
    for name, value in options.items():
        if name in _SEVERAL:
            types, accepted = _SEVERAL[name]
            is_sequence = isinstance(value, (list, tuple))
            if not is_sequence or not all(isinstance(item, types) for item in value):
                raise ArgumentError(f"argument '{name}' is {value!r}; accepted: {accepted}")
        else:
            types, accepted = _ONE[name]
            is_wrong = isinstance(value, bool) and types is not bool
            if not isinstance(value, types) or is_wrong or (isinstance(value, int) and value < 0):
                raise ArgumentError(f"argument '{name}' is {value!r}; accepted: {accepted}")
