"""Runs of `stepladder emulate`: a function or a kernel on inputs, compared with the expected outputs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from stepladder.cli.emulation_checks import Checks
from stepladder.cli.emulation_output import Run, finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from stepladder.emulator.core.emulation import Emulation, Outcome
    from stepladder.emulator.core.launched import BoundKernel
    from stepladder.emulator.memory.findings import Finding

_REVERSED = "with the blocks from the last to the first (--reverse-blocks)"


def run_checked(
    args: argparse.Namespace,
    file: str,
    program: Emulation | BoundKernel,
    inputs: Sequence[np.ndarray],
    checks: Checks,
    reference: Emulation | None,
) -> int:
    """Runs a function or a kernel, compares its outputs with the expected ones, and returns the exit status.

    Where blocks wait for each other, what is wrong may show in one order of the blocks alone: the program runs again
    from the last block to the first, and what is found then is added.

    Args:
        args: of the command line.
        file: of the program.
        program: the function or the kernel.
        inputs: its arguments.
        checks: what its outputs are compared with.
        reference: what computes the expected outputs, None where nothing does.

    Raises:
        StepladderError: a form of an op that the emulator does not know; more than `--max-steps`.
    """
    from stepladder.cli.progress import LaunchProgress
    from stepladder.emulator.core.expected import written_arguments
    from stepladder.emulator.core.timeline import Timeline

    timeline = Timeline() if args.trace else None
    sanitize = not args.no_sanitize
    with LaunchProgress() as progress:
        outcome = program.run(
            inputs,
            sanitize=sanitize,
            max_steps=args.max_steps,
            progress=progress,
            timeline=timeline,
            reverses_blocks=args.reverse_blocks,
            processes=args.jobs,
        )
    written = written_arguments(inputs, outcome)
    outcome.findings += checks.compare(outcome, program, reference, inputs)
    if sanitize and outcome.blocks_meet and not args.reverse_blocks and not outcome.findings:
        with LaunchProgress() as progress:
            second = program.run(inputs, count=False, max_steps=args.max_steps, progress=progress, reverses_blocks=True)
        outcome.findings += _reversed([*second.findings, *checks.compare(second, program, reference, inputs)])
        outcome.left_out += second.left_out
    return finish(
        args,
        Run(
            file,
            program.function.name,
            outcome,
            written=written,
            timeline=timeline,
            note=_note(inputs, outcome, written),
        ),
    )


def _reversed(findings: Sequence[Finding]) -> list[Finding]:
    for finding in findings:
        finding.notes.append(_REVERSED)
    return list(findings)


def _note(inputs: Sequence[np.ndarray], outcome: Outcome, written: Sequence[int]) -> str:
    if inputs and not written and not outcome.results and not outcome.output:
        return "note: no argument has changed, and nothing is returned or printed"
    return ""
