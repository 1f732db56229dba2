"""The outermost layer of both command lines: errors become one message and an exit status."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterator

from stepladder.runtime.errors import StepladderError

INTERRUPTED = 128 + 2  # as a shell reports SIGINT
BROKEN_PIPE = 128 + 13  # and SIGPIPE


@contextlib.contextmanager
def imports() -> Iterator[None]:
    """Keeps what is imported in the block out of garbage collection, for good.

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
    """Runs a command; returns its exit status, or the one that stands for what stopped it.

    Args:
        command: what to run.
        verbose: errors show the tracebacks of plug-ins.
    """
    try:
        status = command()
        sys.stdout.flush()
        return status
    except StepladderError as error:
        print(error.render(verbose=verbose), file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
