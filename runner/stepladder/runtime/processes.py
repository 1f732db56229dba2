"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from stepladder.runtime.errors import FAILED

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_STARTER = "_STEPLADDER_STARTED_BY"  # that no user sets


def end_with(parent: int) -> None:
    """Has this process killed when the one that forked it ends; on Linux only.

    Args:
        parent: number of that process.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(FAILED)


def environment_of_module() -> dict[str, str]:
    """Returns the environment of a process of Python that runs a module of this package, from wherever this one has
    imported it, and that calls `end_with_starter`."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), _STARTER: str(os.getpid())}


def end_with_starter() -> None:
    """Has this process, which has an `environment_of_module`, killed when the one that started it ends, as `end_with`;
    does nothing in one that was started otherwise."""
    starter = os.environ.pop(_STARTER, None)  # those that this one starts have another
    if starter is not None:
        end_with(int(starter))


def end_with_pool() -> None:
    """Ends this process, of a pool, when the one that made the pool ends: nothing else would wake it.

    As the initializer of a `ProcessPoolExecutor`; a pool may fork its processes from one that is not its own.
    """
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(FAILED)
