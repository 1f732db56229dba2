"""Python errors raised inside an op: one line for the diagnostic, and the traceback on request.

An MLIR diagnostic carries one message. The traceback is stored here until the runner converts the diagnostic to an
error.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from stepladder.mlir.bindings import ir

# Files whose frames are not part of an op's implementation: the bindings, the caller of ops, and the plug-in loader.
_BINDINGS = str(Path(ir.__file__).parent)
_CALLERS = (str(Path(__file__).with_name("dialect.py")), str(Path(__file__).parents[1] / "plugins.py"))

_traceback = ""


def describe(error: BaseException) -> str:
    """Returns the type of an exception, the file and line that raised it, and its message, in one line.

    File and line are those of the innermost frame outside the MLIR bindings and `transform_op`, if there is one.

    Args:
        error: with its traceback.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((_BINDINGS, *_CALLERS))]
    place = f" at {own[-1].filename}:{own[-1].lineno} in {own[-1].name}" if own else ""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}{place}" + (f": {message}" if message else "")


def text_of(error: BaseException) -> str:
    """Returns the traceback of an exception as Python prints it, without the frames of `transform_op` itself.

    Args:
        error: with its traceback.
    """
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and frames.tb_frame.f_code.co_filename in _CALLERS:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()


def record(name: str, error: BaseException) -> str:
    """Stores the traceback of an exception that an op raised.

    The exception itself is not stored: its frames refer to payload ops that may not outlive the MLIR context.

    Args:
        name: of the op.
        error: the exception.

    Returns:
        The message of the diagnostic.
    """
    global _traceback
    _traceback = text_of(error)
    return f"{name} raised {describe(error)}"


def take() -> str:
    """Returns the traceback of the last Python error since the last call, or an empty string."""
    global _traceback
    text, _traceback = _traceback, ""
    return text
