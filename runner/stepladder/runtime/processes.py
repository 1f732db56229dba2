"""Processes that end with the one that forked them, however that ends."""

from __future__ import annotations

import os
import signal
import sys

from stepladder.runtime.errors import FAILED

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


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
