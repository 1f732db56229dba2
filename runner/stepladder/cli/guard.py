"""The outermost layer of both command lines: turns errors into one message and an exit status.

It imports few modules, so that it can install the interrupt handler before the rest of the package is imported.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from stepladder.runtime.errors import BAD_INPUT, StepladderError, reason

INTERRUPTED = 128 + 2  # as a shell reports SIGINT
BROKEN_PIPE = 128 + 13  # and SIGPIPE

# Seconds within which interrupts are one: of the keyboard, and the same one as a process that waits passes it on.
_SAME_INTERRUPT = 0.2

_is_interrupted = False
_interrupted_at = 0.0


def run_process(command: Callable[[], int]) -> int:
    """Runs a command as all that this process does; returns its exit status as `guarded` does.

    SIGINT ends the process with status `INTERRUPTED` from here on, at any time; an ignored SIGINT remains ignored.
    Standard streams that are closed are opened: what reads or writes them fails with a message. Lines that standard
    error does not take, such as progress on a full disk, are lost and end nothing. Characters that the encoding of
    standard output has not, and bytes of file names that are no text, are printed as escapes.

    Args:
        command: returns its exit status, or raises.
    """
    _open_standard_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        status = guarded(command)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done: only Python's own end is left
        if _is_interrupted:  # also where the exception got lost, as in a destructor
            _end_interrupted()
    return status


@contextlib.contextmanager
def imports() -> Iterator[None]:
    """Excludes objects that are imported in the block from garbage collection permanently.

    The bindings bring thousands of classes, which live as long as the process: searching them again and again takes a
    fifth of a small pipeline's time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def guarded(command: Callable[[], int], *, verbose: bool = False) -> int:
    """Runs a command; returns its exit status, or the status of the error that ended it.

    Args:
        command: what to run.
        verbose: errors show the tracebacks of plug-ins.
    """
    try:
        try:
            return command()
        except BaseException:
            if _is_interrupted:  # what MLIR makes of an interrupt in a callback is any exception
                _end_interrupted()
            raise
        finally:
            sys.stdout.flush()
    except StepladderError as error:
        _say(error.render(verbose=verbose))
        return error.status
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop(1)
        return BROKEN_PIPE
    except MemoryError as error:
        _say(f"error: not enough memory{f': {error}' if str(error) else ''}")
        return BAD_INPUT
    except OSError as error:
        # Files have messages of their own where they are read and written; only the standard streams are left.
        _drop(1)
        action = f"access '{error.filename}'" if error.filename is not None else "write the output"
        _say(f"error: cannot {action}: {reason(error)}")
        return BAD_INPUT


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handles SIGINT: raises KeyboardInterrupt, so that files half written are removed.

    Ends the process at once where modules are being imported, as native ones that meet an exception while they
    initialize end in a segmentation fault, and where a second interrupt comes.
    """
    global _is_interrupted, _interrupted_at
    now = time.monotonic()
    if _is_interrupted and now - _interrupted_at < _SAME_INTERRUPT:
        return
    if _is_interrupted:
        _end_interrupted()
    _is_interrupted, _interrupted_at = True, now
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _end_interrupted()
        frame = frame.f_back
    raise KeyboardInterrupt


def _end_interrupted() -> None:
    """Ends the process without finalizing it: MLIR may be in a state that its destruction does not survive."""
    _say("interrupted")
    with contextlib.suppress(OSError, RuntimeError):  # the latter as in _say
        sys.stdout.flush()
    os._exit(INTERRUPTED)


def _open_standard_streams() -> None:
    """Opens standard streams that were closed when the process began.

    A file opened later would else take the number of a closed one, and get what is printed.
    """
    for number, (name, mode, flags) in enumerate(
        (
            ("stdin", "r", os.O_WRONLY),  # no reading: an error, not an end
            ("stdout", "w", os.O_RDONLY),  # no writing
            ("stderr", "w", os.O_WRONLY),
        )
    ):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, mode))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper):
        binary: Any = _StandardError()
        sys.stderr = io.TextIOWrapper(
            binary, sys.stderr.encoding, sys.stderr.errors, line_buffering=True, write_through=True
        )


class _StandardError(io.RawIOBase):
    """Standard error, where what cannot be written is lost: no result of a command depends on it."""

    def writable(self) -> bool:
        """Returns true."""
        return True

    def fileno(self) -> int:
        """Returns the number of the stream."""
        return 2

    def isatty(self) -> bool:
        """Returns whether it is a terminal."""
        return os.isatty(2)

    def write(self, data: bytes | memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Writes all of it, or what the stream takes.

        Args:
            data: bytes.
        """
        left = memoryview(data)
        with contextlib.suppress(OSError):
            while left:
                left = left[os.write(2, left) :]
        return len(data)


def _say(message: str) -> None:
    """Prints a message, where standard error takes it."""
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        _drop(2)
    except RuntimeError:  # an interrupt came in the middle of a write
        pass


def _drop(stream: int) -> None:
    """Leaves what is still in the buffer of a standard stream to the null device: Python flushes it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
