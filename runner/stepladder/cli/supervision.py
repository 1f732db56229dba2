"""Commands that run MLIR run in a process of their own: a crash of native code ends in a message and an exit status.

The process that was started waits, passes signals on, and ends as the other one does.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from types import FrameType

from stepladder.runtime import activity
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.processes import end_with

# Set to run a command in the process that is started, which debuggers and profilers attach to.
IN_PROCESS = "STEPLADDER_IN_PROCESS"

_CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def supervised(command: Callable[[], int]) -> int:
    """Runs a command in a forked process; returns its exit status, in both processes.

    Args:
        command: returns its exit status, or raises.

    Raises:
        StepladderError: in the process that waits: the other one crashed or was killed (status FAILED).
    """
    if not hasattr(os, "fork") or os.environ.get(IN_PROCESS):
        return command()
    activity.share()
    # A signal that comes before it can be passed on waits.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    parent = os.getpid()
    child = os.fork()
    if child:
        _forward_signals(child)
    else:
        end_with(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return _wait_for(child) if child else command()


def _forward_signals(child: int) -> None:
    """Passes signals on, except those that this process ignores, as the other one does then.

    Of an interrupt by the keyboard, the other process gets two, which it takes for one, or has ended by the first
    when the second comes.
    """

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)


def _wait_for(child: int) -> int:
    """Returns the exit status of a process; ends by the signal that it ended by, if that is one of `_FORWARDED`."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    number = signal.Signals(-code)
    if number in _FORWARDED:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    during = f" in {activity.current()}" if activity.current() else ""
    if number not in _CRASHES:
        raise StepladderError(
            f"the command was ended{during}: {number.name}",
            status=FAILED,
            notes=["the system ends a process by SIGKILL where memory runs out"] if number == signal.SIGKILL else [],
        )
    raise StepladderError(
        f"native code crashed{during}: {number.name}",
        status=FAILED,
        notes=[
            "the IR is of a form that an op or a pass of MLIR does not expect and does not refuse",
            f"{IN_PROCESS}=1 runs the command in one process, for a debugger",
        ],
    )
