"""`stepladder emulate` of a bundle's kernels: on exact inputs, checked against the payload's reference."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli.emulation_output import Run, finish
from stepladder.runtime.problem import epilogue_role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from stepladder.emulator.core.emulation import Outcome
    from stepladder.emulator.core.launched import BoundKernel
    from stepladder.emulator.core.timeline import Timeline
    from stepladder.emulator.memory.findings import Finding
    from stepladder.runtime.bundle import FrontKernel, Manifest
    from stepladder.runtime.reference import Program
    from stepladder.verify.report import CheckReport


def new_timeline(args: argparse.Namespace) -> Timeline | None:
    """Returns the timeline that --trace asks for.

    Args:
        args: of `stepladder emulate`.
    """
    from stepladder.emulator.core.timeline import Timeline

    return Timeline() if args.trace else None


def bound_front(manifest: Manifest, item: FrontKernel, folder: Path) -> Front:
    """Returns a kernel that is launched before that of the matmul, with its arguments.

    Args:
        manifest: of the bundle.
        item: the kernel, of the manifest.
        folder: of the bundle.
    """
    from stepladder.emulator.core.launched import Launch
    from stepladder.emulator.ptx.arguments import from_manifest
    from stepladder.emulator.ptx.kernel import Kernel
    from stepladder.emulator.ptx.parser import parse
    from stepladder.runtime.files import read_text

    text, name = read_text(str(folder / item.ptx))
    kernel = Kernel(parse(text, name), item.kernel_name, name)
    bound = kernel.bound(from_manifest(manifest, item.arguments), Launch(item.grid, item.block, (1, 1, 1), 0))
    return Front(bound, [argument.role for argument in item.arguments])


def run_exact(
    args: argparse.Namespace,
    name: str,
    bound: BoundKernel,
    front: Sequence[Front],
    manifest: Manifest,
    program: Program | None,
) -> int:
    """Runs a bundle's kernels on exact inputs, checks the result, and returns the exit status.

    Args:
        args: of the command line.
        name: the file that the matmul's kernel came from.
        bound: that kernel.
        front: kernels that are launched before it, in order.
        manifest: the bundle's.
        program: what the payload computes; None for a matmul alone.
    """
    from stepladder.cli.progress import LaunchProgress
    from stepladder.runtime.reference import matmul_program
    from stepladder.verify.check import check_exact

    timeline = new_timeline(args)
    with LaunchProgress() as progress:
        options = {
            "sanitize": not args.no_sanitize,
            "max_steps": args.max_steps,
            "progress": progress,
            "timeline": timeline,
            "reverses_blocks": args.reverse_blocks,
            "processes": args.jobs,
        }
        executor = _Executor(bound, [argument.role for argument in manifest.arguments], options, front)
        report: CheckReport = check_exact(
            manifest.problem, program or matmul_program(manifest.problem), executor, args.seed
        )
    outcome = replace(executor.outcome, findings=[*executor.front_findings, *executor.outcome.findings])
    return finish(args, Run(name, bound.function.name, outcome, report=report, timeline=timeline))


@dataclass(frozen=True)
class Front:
    """A kernel that is launched before that of the matmul, and the roles of its arguments."""

    bound: BoundKernel
    roles: list[str]

    def run(self, operands: Mapping[str, np.ndarray], options: dict) -> tuple[dict[str, np.ndarray], Outcome]:
        """Runs it on operands; returns the final workspaces, by role, and the outcome.

        Args:
            operands: arrays by role; others of its arguments hold what no right result is.
            options: of the emulator.
        """
        arrays = [
            operands[role] if role in operands else argument.poison()
            for role, argument in zip(self.roles, self.bound.arguments)
        ]
        outcome = self.bound.run(arrays, **options)
        by_role = {role: array for role, array in zip(self.roles, outcome.arguments) if role not in operands}
        return {role: array for role, array in by_role.items() if array is not None}, outcome


class _Executor:
    """Runs a kernel whose parameters are operands of a matmul (`verify.check.Executor`).

    Attributes:
        outcome: of the last launch.
        front_findings: of the last launches of kernels before it.
    """

    outcome: Outcome

    def __init__(self, bound: BoundKernel, roles: Sequence[str], options: dict, front: Sequence[Front] = ()) -> None:
        self.bound = bound
        self.front = list(front)
        self.front_findings: list[Finding] = []
        self.roles = list(roles)
        self.options = options
        self.operands: dict[str, np.ndarray] = {}

    def load(self, a: np.ndarray, b: np.ndarray, *further: np.ndarray) -> None:
        """Takes A, B and the operands of elementwise ops for the launches that follow."""
        self.operands = {"a": a, "b": b}
        self.operands |= {epilogue_role(number): array for number, array in enumerate(further)}

    def launch(self, c: np.ndarray) -> np.ndarray:
        """Runs the kernels with the initial C `c` and returns the final C."""
        operands = {**self.operands, "c": c}
        for role, argument in zip(self.roles, self.bound.arguments):
            if role.startswith("r"):
                operands[role] = argument.poison()
        self.front_findings = []
        for kernel in self.front:
            workspaces, outcome = kernel.run(operands, self.options)
            operands |= workspaces
            self.front_findings += outcome.findings
        self.outcome = self.bound.run([operands[role] for role in self.roles], **self.options)
        result = self.outcome.arguments[self.roles.index("c")]
        assert result is not None
        return result

    def results(self) -> list[np.ndarray]:
        """Returns the results other than C after the last launch, in the order of their roles."""
        by_role = dict(zip(self.roles, self.outcome.arguments))
        return [array for role in sorted(by_role) if role.startswith("r") and (array := by_role[role]) is not None]
