"""Exceptions of the Python interface. All are `StepladderError`s: `render()` is the text of the command line."""

from __future__ import annotations

from typing import NoReturn

from stepladder.runtime.errors import StepladderError


class ArgumentError(StepladderError, ValueError):
    """An array that a kernel does not take: wrong shape, strides, type, device or alignment, or an overlap with `out`.

    The message names the argument and what is accepted.
    """


class EpilogueError(StepladderError):
    """An epilogue that cannot be traced, or has side effects; `location` is its file and line."""


def shape_text(shape: tuple[int, ...]) -> str:
    """Returns a shape as messages show it: `128 x 64`, or `a single element without axes`.

    Args:
        shape: extents, the outermost first.
    """
    return " x ".join(map(str, shape)) or "a single element without axes"


def not_copied(compiled: object) -> NoReturn:
    """Refuses copies of compiled objects by `pickle` or `copy`: they own GPU code and memory of a module.

    Args:
        compiled: a kernel or a function.

    Raises:
        StepladderError: always.
    """
    raise StepladderError(
        f"a {type(compiled).__name__} is neither copied nor pickled",
        notes=[
            "accepted: save(path), and stepladder.load(path) in another process; or to compile again, from the cache"
        ],
    )
