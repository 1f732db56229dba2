"""`stepladder emulate` of a kernel in PTX: how it is launched, what it is given, and whether its numbers are right."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli.emulation_output import load_array, print_outcome, report_of, save_arrays, summary
from stepladder.cli.guard import imports
from stepladder.cli.options import positive, text_for_people
from stepladder.runtime.errors import FAILED, OK, StepladderError
from stepladder.runtime.problem import epilogue_role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from stepladder.emulator.core.emulation import Outcome
    from stepladder.emulator.memory.findings import Finding
    from stepladder.emulator.ptx.kernel import BoundKernel, Kernel
    from stepladder.runtime.bundle import FrontKernel, Manifest
    from stepladder.runtime.reference import Program
    from stepladder.verify.report import CheckReport

_PTX = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*\.version\b", re.DOTALL)
_LAUNCH = ("grid", "block", "arguments")
_OPTIONS = ("bundle", "kernel", *_LAUNCH, "cluster", "dynamic_shared")
_MANIFEST = "manifest.json"
_ARGUMENT = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")  # a box in brackets has commas


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of kernels in PTX."""
    group = parser.add_argument_group("kernels in PTX")
    group.add_argument(
        "--bundle", metavar="BUNDLE", help="launch and reference of this bundle (default: the one that the PTX is in)"
    )
    group.add_argument("--kernel", metavar="NAME", help="the kernel (default: the bundle's, or the only one)")
    group.add_argument("--grid", type=_extents, metavar="X,Y,Z", help="blocks")
    group.add_argument("--block", type=_extents, metavar="X,Y,Z", help="threads of a block")
    group.add_argument("--cluster", type=_extents, metavar="X,Y,Z", help="blocks of a cluster (default: 1)")
    group.add_argument(
        "--dynamic-shared", type=_bytes, metavar="N", help="bytes of dynamic shared memory a block (default: 0)"
    )
    group.add_argument(
        "--arguments", type=_arguments, metavar="A,B,...", help="what the kernel takes, in order: see below"
    )


def _extents(text: str) -> tuple[int, int, int]:
    sizes = [positive(part) for part in text.split(",")]
    if len(sizes) > 3:
        raise argparse.ArgumentTypeError(f"'{text}' has more than three sizes")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _bytes(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number of bytes, got '{text}'")
    return int(text)


def _arguments(text: str) -> list[str]:
    return [part.strip() for part in _ARGUMENT.findall(text)]


def is_ptx(text: str, name: str) -> bool:
    """Whether a text is PTX, by the name of its file or by how it begins."""
    return name.endswith(".ptx") or _PTX.match(text) is not None


def check_unused(args: argparse.Namespace) -> None:
    """Refuses options of kernels in PTX for other input.

    Raises:
        StepladderError: an option that is given.
    """
    for name in _OPTIONS:
        if getattr(args, name) is not None:
            raise StepladderError(f"--{name.replace('_', '-')} is for PTX, and '{args.input}' is none")


def _bundle_of(args: argparse.Namespace) -> str | None:
    """Returns the bundle that says how a kernel is launched, None where the options say it."""
    given = [name for name in (*_LAUNCH, "cluster", "dynamic_shared") if getattr(args, name) is not None]
    if args.bundle is not None and given:
        raise StepladderError(f"--bundle says how the kernel is launched: leave out --{given[0].replace('_', '-')}")
    if given or args.bundle is not None:
        return args.bundle
    folder = Path(args.input).parent
    if args.input != "-" and (folder / _MANIFEST).is_file():
        return str(folder)
    raise StepladderError(
        f"'{args.input}' is in no bundle: --bundle BUNDLE says how its kernel is launched, or --grid, --block and "
        "--arguments do"
    )


def run(args: argparse.Namespace, text: str, name: str) -> int:
    """Runs a kernel; returns the exit status. Raises StepladderError."""
    with imports():
        from stepladder.emulator.ptx.arguments import from_manifest, from_texts
        from stepladder.emulator.ptx.kernel import Kernel, Launch
        from stepladder.emulator.ptx.parser import parse
    from stepladder.cli.progress import LaunchProgress
    from stepladder.runtime.bundle import read_launch
    from stepladder.runtime.files import write_json

    found = _bundle_of(args)
    module = parse(text, name)
    manifest = reference = None
    front = []
    if found is not None:
        manifest, reference = read_launch(found)
        kernel = Kernel(module, args.kernel or manifest.kernel_name, name)
        launch = Launch(manifest.grid, manifest.block, manifest.cluster, manifest.dynamic_shared_memory)
        arguments = from_manifest(manifest)
        front = [_bound_front(manifest, item, Path(found)) for item in manifest.front]
    else:
        kernel = Kernel(module, args.kernel, name)
        _check_given(args, kernel)
        launch = Launch(args.grid, args.block, args.cluster or (1, 1, 1), args.dynamic_shared or 0)
        arguments = from_texts(args.arguments)
    bound = kernel.bound(arguments, launch)
    with LaunchProgress() as progress:
        outcome, report = _run(args, bound, front, manifest, reference, progress)
    if args.output:
        arrays = {
            f"argument{number}": array
            for number, (array, argument) in enumerate(zip(outcome.arguments, arguments))
            if array is not None and argument.is_memory
        }
        save_arrays(args.output, arrays)
    passed = not outcome.findings and (report is None or report.passed)
    with text_for_people(args.json):
        print_outcome(outcome)
        if report is not None:
            print(report.describe())
        print(summary(kernel.name, outcome, sanitized=not args.no_sanitize))
    if args.json:
        checks = [] if report is None else [report.to_json()]
        write_json(args.json, {**report_of(outcome, name), "passed": passed, "checks": checks})
    return OK if passed else FAILED


def _bound_front(manifest: Manifest, item: FrontKernel, folder: Path) -> _Front:
    """Returns a kernel that is launched before that of the matmul, with its arguments."""
    from stepladder.emulator.ptx.arguments import from_manifest
    from stepladder.emulator.ptx.kernel import Kernel, Launch
    from stepladder.emulator.ptx.parser import parse
    from stepladder.runtime.files import read_text

    file = str(folder / item.ptx)
    text, name = read_text(file)
    kernel = Kernel(parse(text, name), item.kernel_name, name)
    bound = kernel.bound(from_manifest(manifest, item.arguments), Launch(item.grid, item.block, (1, 1, 1), 0))
    return _Front(bound, [argument.role for argument in item.arguments])


def _check_given(args: argparse.Namespace, kernel: Kernel) -> None:
    missing = [name for name in _LAUNCH if getattr(args, name) is None]
    if missing:
        raise StepladderError(
            f"kernel {kernel.name} needs {' and '.join(f'--{name}' for name in missing)} too",
            notes=[f"its parameters: {kernel.describe_parameters()}"],
        )


def _run(
    args: argparse.Namespace,
    bound: BoundKernel,
    front: Sequence[_Front],
    manifest: Manifest | None,
    reference: Program | None,
    progress: Callable[[int, int], None],
) -> tuple[Outcome, CheckReport | None]:
    """Runs a kernel on given or random inputs; where the payload is known, on exact ones, and checks the result."""
    options = {"sanitize": not args.no_sanitize, "max_steps": args.max_steps, "progress": progress}
    if args.inputs:
        inputs = bound.check_inputs([load_array(path) for path in args.inputs.split(",")])
        return bound.run(inputs, **options), None
    if manifest is None:
        return bound.run(bound.random_inputs(args.seed), **options), None
    from stepladder.runtime.reference import matmul_program
    from stepladder.verify.check import check_exact

    executor = _Executor(bound, [argument.role for argument in manifest.arguments], options, front)
    report = check_exact(manifest.problem, reference or matmul_program(manifest.problem), executor, args.seed)
    outcome = executor.outcome
    return replace(outcome, findings=[*executor.front_findings, *outcome.findings]), report


@dataclass(frozen=True)
class _Front:
    """A kernel that is launched before that of the matmul, and the roles of its arguments."""

    bound: BoundKernel
    roles: list[str]

    def run(self, operands: Mapping[str, np.ndarray], options: dict) -> tuple[dict[str, np.ndarray], Outcome]:
        """Runs it on operands; returns what workspaces hold afterwards, by role, and the outcome."""
        arrays = [
            operands[role] if role in operands else argument.poison()
            for role, argument in zip(self.roles, self.bound.arguments)
        ]
        outcome = self.bound.run(arrays, **options)
        held = {role: array for role, array in zip(self.roles, outcome.arguments) if role not in operands}
        return {role: array for role, array in held.items() if array is not None}, outcome


class _Executor:
    """Runs a kernel whose parameters are operands of a matmul (`verify.check.Executor`).

    Attributes:
        outcome: of the last launch.
        front_findings: of the last launches of kernels before it.
    """

    outcome: Outcome

    def __init__(self, bound: BoundKernel, roles: Sequence[str], options: dict, front: Sequence[_Front] = ()) -> None:
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
        """Runs the kernel with C holding `c` and returns what C holds afterwards."""
        operands = {**self.operands, "c": c}
        self.front_findings = []
        for kernel in self.front:
            written, outcome = kernel.run(operands, self.options)
            operands |= written
            self.front_findings += outcome.findings
        self.outcome = self.bound.run([operands[role] for role in self.roles], **self.options)
        held = self.outcome.arguments[self.roles.index("c")]
        assert held is not None
        return held
