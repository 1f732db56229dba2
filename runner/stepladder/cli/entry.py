"""Entry points of the console scripts: they install the interrupt handler before they import other modules."""

from __future__ import annotations

from stepladder.cli.guard import run_process


def stepladder() -> int:
    """Runs `stepladder`; returns the exit status."""

    def command() -> int:
        from stepladder.cli.main import main

        return main()

    return run_process(command)


def stepladder_opt() -> int:
    """Runs `stepladder-opt`; returns the exit status."""

    def command() -> int:
        from stepladder.cli.opt import main

        return main()

    return run_process(command)
