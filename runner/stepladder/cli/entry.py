"""Entry points of the console scripts: they install the interrupt handler before they import other modules."""

from __future__ import annotations

import sys

from stepladder.cli.guard import run_process
from stepladder.cli.supervision import supervised

# Commands that run MLIR over the user's IR, and use no GPU: a profiler of kernels sees the process that it starts.
_SUPERVISED = frozenset({"compile", "emulate", "explain"})


def stepladder() -> int:
    """Runs `stepladder`; returns the exit status."""

    def command() -> int:
        from stepladder.cli.main import main

        return main()

    return run_process(lambda: supervised(command) if _SUPERVISED.intersection(sys.argv[1:2]) else command())


def stepladder_opt() -> int:
    """Runs `stepladder-opt`; returns the exit status."""

    def command() -> int:
        from stepladder.cli.opt import main

        return main()

    return run_process(lambda: supervised(command))
