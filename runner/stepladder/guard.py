"""The outermost layer of both command lines: errors become one message and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from stepladder.errors import StepladderError

_INTERRUPTED = 130


def guarded(command: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Runs a command; returns its exit status, or the one of the error it raised."""
    try:
        return command(args)
    except StepladderError as error:
        print(error.render(), file=sys.stderr)
        return error.status
    except BrokenPipeError:
        # Whoever read standard output has seen enough; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
