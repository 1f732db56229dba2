"""`stepladder run`: compares the results of a bundle's kernel with the reference program."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli import function_bundle
from stepladder.cli.gpu_checks import check_kernel
from stepladder.cli.options import add_json_option, seed, text_for_people
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, OK, StepladderError, cause, printable

if TYPE_CHECKING:
    from stepladder.runtime.bundle import Bundle
    from stepladder.runtime.bundle.spirv import SpirvBundle

BACKENDS = ("auto", "gpu", "emulator")

# What `auto` gives to the emulator, in arithmetic operations. What else takes time, such as elementwise ops that make
# an operand, is in the steps that it may take (`emulator.EMULATED_STEPS`).
EMULATED_FLOPS = 2**31

# Launches of the checks on the emulator.
LAUNCHES = 2
# A note names a smaller problem if the problem takes HINTED_FLOPS arithmetic operations or more, and the smaller one
# takes at least WORTHWHILE times fewer.
HINTED_FLOPS = 2**28
WORTHWHILE = 4

EPILOG = """\
Every element of C is compared with the reference program (reference.json in the bundle, which needs no MLIR), in three
checks:
  exact       On small integers, for which every partial sum is exact, the result must equal the reference.
  random      On normal inputs, it must agree with the reference in float64 within a tolerance that follows from the
              types of products and accumulators and from K (random i8 must be equal).
  repeatable  Two launches must give the same bits. The emulator executes in a fixed order and leaves this check out.
If the kernel only writes C, C is filled with NaN or the smallest integer before the launch.

The backend `gpu` launches the machine code. The backend `emulator` runs the last IR in the bundle on the CPU, with a
sanitizer whose findings count as a failure (see `stepladder emulate --help`); it needs MLIR, but no GPU. `auto` takes a
GPU that the bundle is for, otherwise the emulator, and prints which. With `auto`, runs of more than some minutes on the
emulator are refused or stopped; --backend emulator has no limit. Progress and the estimated time go to standard error,
and for a long run also a smaller problem with the same steps.

A function with several kernels is checked as a whole, twice, with random inputs; its matmuls have separate bundles in
BUNDLE/kernels.

A bundle with SPIR-V, for an Intel GPU, is run on the CPU by Intel's OpenCL runtime, with the matrix built-ins
implemented in OpenCL C: pip install '.[opencl]'.

exit status: 0 the results are right; 1 they are wrong, or the sanitizer has findings; 2 the bundle or an option is not
acceptable; 3 nothing was executed (no GPU or driver, or a GPU that the bundle is not for, and nothing to emulate).
STEPLADDER_DEVICE chooses among several GPUs.

examples:
  stepladder run matmul.bundle
  stepladder run matmul.bundle --seed 7 --json results.json
  stepladder run matmul.bundle --backend emulator
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "run",
        help="check the results of a bundle's kernel",
        description="Compares the results of a bundle's kernel with the reference program.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bundle", metavar="BUNDLE", help="folder that `stepladder compile` made")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="seed of the random inputs (default: 0)")
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="auto",
        help="where the kernel runs: on a GPU, on the emulator, or on a GPU if there is one (default: auto)",
    )
    add_json_option(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.

    Raises:
        StepladderError: a bundle that cannot be read, or no kernel was launched.
    """
    from dataclasses import asdict

    from stepladder.cli.tables import verdict
    from stepladder.runtime.bundle import Bundle, FunctionBundle, read_any
    from stepladder.runtime.bundle.spirv import is_spirv_bundle, read_spirv_bundle
    from stepladder.runtime.files import check_writable, write_json

    bundle = read_spirv_bundle(args.bundle) if is_spirv_bundle(args.bundle) else read_any(args.bundle)
    if args.json:
        check_writable(args.json)
    if isinstance(bundle, FunctionBundle):
        return function_bundle.run(args, bundle)
    with text_for_people(args.json):
        reports, details, findings = _checked(args, bundle) if isinstance(bundle, Bundle) else _by_opencl(args, bundle)
        passed = all(report.passed for report in reports) and not findings
        for report in reports:
            print(report.describe())
        for finding in findings:
            print(finding.render())
        if findings:
            print(f"{len(findings)} findings")
        print(f"result: {verdict(passed)}")
    if args.json:
        write_json(
            args.json,
            {
                "bundle": args.bundle,
                "problem": asdict(bundle.manifest.problem) if bundle.manifest.problem is not None else None,
                "seed": args.seed,
                **details,
                "passed": passed,
                "checks": [report.to_json() for report in reports],
            },
        )
    return OK if passed else FAILED


def _by_opencl(args: argparse.Namespace, bundle: SpirvBundle) -> tuple[list, dict, list]:
    """Returns what `_checked` does, of a kernel for Intel's GPUs, which Intel's OpenCL runtime runs on the CPU."""
    from stepladder.emulator.launch_fields import check_work_groups
    from stepladder.pipeline.context import mlir_context
    from stepladder.verify.check import check_matmul
    from stepladder.verify.opencl import OpenClExecutor, runtime

    if args.backend != "auto":
        raise StepladderError(
            f"--backend {args.backend} does not run a kernel for {bundle.manifest.target}: leave it out, and Intel's "
            "OpenCL runtime runs it on the CPU"
        )
    problem, constants = bundle.manifest.problem, bundle.constants()
    if problem is None or bundle.reference is None:
        raise StepladderError(
            f"'{args.bundle}' is of a XeTile program and has no reference program: `stepladder emulate` compares "
            "the program with a reference in its file"
        )
    with mlir_context():
        check_work_groups(Path(args.bundle), bundle.manifest)
    runtime()  # before anything is computed
    print(
        f"{printable(args.bundle)}: {problem.describe()}, seed {args.seed}, on the CPU by Intel's OpenCL runtime",
        flush=True,
    )
    executor = OpenClExecutor(bundle.spirv, bundle.manifest, constants)
    return check_matmul(problem, bundle.reference, executor, args.seed, constants=constants), {"backend": "opencl"}, []


def _checked(args: argparse.Namespace, bundle: Bundle) -> tuple[list, dict, list]:
    """Returns the reports of the checks, what is to be said of how they ran, and the emulator's findings."""
    if args.backend == "emulator":
        return _on_emulator(args, bundle, "--backend emulator")
    try:
        return _on_gpu(args, bundle)
    except StepladderError as error:
        if args.backend == "gpu" or error.status != NOT_EXECUTED or not (bundle.path / "ir").is_dir():
            raise
        problem = bundle.manifest.problem
        if problem.flops > EMULATED_FLOPS:
            note = f"{problem.describe()} is too long for the emulator as a fallback; --backend emulator has no limit"
            raise StepladderError(error.message, notes=[*error.notes, note], status=NOT_EXECUTED) from None
        from stepladder.emulator import EMULATED_STEPS
        from stepladder.emulator.core.fibers import TooManySteps

        try:
            return _on_emulator(args, bundle, cause(error), EMULATED_STEPS)
        except TooManySteps as second_error:
            notes = [*error.notes, f"{second_error.message}; --backend emulator runs it all"]
            raise StepladderError(error.message, notes=notes, status=NOT_EXECUTED) from None
        except StepladderError as second_error:
            if second_error.status != NOT_EXECUTED:
                raise
            raise StepladderError(
                error.message, notes=[*error.notes, second_error.message], status=NOT_EXECUTED
            ) from None


def _on_gpu(args: argparse.Namespace, bundle: Bundle) -> tuple[list, dict, list]:
    def begun(gpu: str) -> None:
        print(f"{printable(args.bundle)}: {bundle.manifest.problem.describe()}, seed {args.seed}, on {gpu}", flush=True)

    return *check_kernel(bundle, args.seed, begun), []


def _on_emulator(
    args: argparse.Namespace, bundle: Bundle, reason: str, max_steps: int | None = None
) -> tuple[list, dict, list]:
    from stepladder.cli.progress import LaunchProgress
    from stepladder.emulator import MAX_STEPS
    from stepladder.emulator.launch_fields import check_launch
    from stepladder.emulator.matmul import EmulatedExecutor, lowest
    from stepladder.pipeline.context import mlir_context
    from stepladder.verify.check import check_matmul

    problem = bundle.manifest.problem
    with mlir_context():
        check_launch(bundle)
        name, emulation, roles = lowest(bundle)
        print(
            f"{printable(args.bundle)}: {problem.describe()}, seed {args.seed}, on the emulator ({reason})", flush=True
        )
        print(f"running ir/{name}, the last IR that can be run", file=sys.stderr, flush=True)
        hint = _smaller(bundle)
        if hint:
            print(hint, file=sys.stderr, flush=True)
        with LaunchProgress(LAUNCHES) as progress:
            executor = EmulatedExecutor(emulation, roles, progress=progress, max_steps=max_steps or MAX_STEPS)
            constants = bundle.constants()
            reports = check_matmul(problem, bundle.expected(), executor, args.seed, constants=constants, repeats=False)
    assert executor.counters is not None  # of the last launch
    details = {
        "backend": "emulator",
        "ir": name,
        "findings": [finding.as_dict() for finding in executor.findings],
        "counters": executor.counters.as_dict(),
        "seconds": executor.seconds,
        "steps": executor.steps,
    }
    return reports, details, executor.findings


def _smaller(bundle: Bundle) -> str:
    """Returns a note that names a smaller problem for the same kernel, where that is worth the while; else nothing."""
    import math

    from stepladder.emulator.matmul import small_problem

    manifest = bundle.manifest
    smaller = small_problem(manifest.problem, manifest.knobs)
    if manifest.problem.flops < HINTED_FLOPS or smaller.flops * WORTHWHILE > manifest.problem.flops:
        return ""
    return (
        f"note: {LAUNCHES} launches of {math.prod(manifest.grid)} blocks; a payload of {smaller.m} x {smaller.n} x "
        f"{smaller.k}, compiled with the same knobs, checks the same steps in 1/"
        f"{manifest.problem.flops // smaller.flops} of the arithmetic"
    )
