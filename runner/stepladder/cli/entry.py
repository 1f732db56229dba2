"""Entry points of the console scripts: interrupts are seen to before the rest of the package is imported."""

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
