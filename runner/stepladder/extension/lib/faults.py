"""Python errors raised inside an op: one line for the diagnostic, and the traceback on request.

MLIR's diagnostics carry one message, so the traceback waits here until the runner makes an error of the diagnostic.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from stepladder.mlir.bindings import ir

# Frames in which no error of an op's author is: the bindings, what calls ops, and what loads plug-ins.
_BINDINGS = str(Path(ir.__file__).parent)
_CALLERS = (str(Path(__file__).with_name("dialect.py")), str(Path(__file__).parents[1] / "plugins.py"))

_traceback = ""


def describe(error: BaseException) -> str:
    """Returns the type of an exception, the file and line that raised it, and its message, in one line.

    The place is the innermost one outside the MLIR bindings and `transform_op`, or left out where there is none.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((_BINDINGS, *_CALLERS))]
    place = f" at {own[-1].filename}:{own[-1].lineno} in {own[-1].name}" if own else ""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}{place}" + (f": {message}" if message else "")


def text_of(error: BaseException) -> str:
    """Returns the traceback of an exception as Python prints it, without the frames of `transform_op` itself."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and frames.tb_frame.f_code.co_filename in _CALLERS:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()


def record(name: str, error: BaseException) -> str:
    """Keeps the traceback of an exception that an op raised.

    The exception itself is not kept: its frames hold payload that may not outlive the MLIR context.

    Args:
        name: the op.
        error: what it raised.

    Returns:
        The message of the diagnostic.
    """
    global _traceback
    _traceback = text_of(error)
    return f"{name} raised {describe(error)}"


def take() -> str:
    """Returns the traceback of the last Python error since the last call, or an empty string."""
    global _traceback
    taken, _traceback = _traceback, ""
    return taken
