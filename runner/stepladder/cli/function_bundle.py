"""`stepladder run`, `bench` and `emulate` of the bundle of a function with several kernels."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from stepladder.cli.gpu_checks import check_function_bundle
from stepladder.cli.kernel_options import KERNEL
from stepladder.cli.options import text_for_people
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, OK, StepladderError, cause, printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from stepladder.runtime.bundle import FunctionBundle
    from stepladder.verify.report import CheckReport

# Limit up to which `run` chooses the emulator, in arithmetic operations of the matmuls.
EMULATED_FLOPS = 2**31

# Options of `stepladder emulate` that a function's bundle has no use for.
_OF_ONE_KERNEL = (
    *("inputs", "output", "trace", "sarif", "function", "plugins", "expect", "reference", "tolerance", "bundle"),
    *KERNEL,
)


def run(args: argparse.Namespace, bundle: FunctionBundle) -> int:
    """Compares a function's results with its reference program; returns the exit status.

    Args:
        args: of `stepladder run`.
        bundle: the function's.

    Raises:
        StepladderError: no kernel was launched.
    """
    with text_for_people(args.json):
        reports, details = _checked(args, bundle)
        return _finish(args, bundle, reports, details)


def emulate(args: argparse.Namespace, bundle: FunctionBundle) -> int:
    """Runs a function's kernels in PTX on the emulator, checked against its reference; returns the exit status.

    Args:
        args: of `stepladder emulate`.
        bundle: the function's.

    Raises:
        StepladderError: an option that is for a single kernel, or PTX that the emulator does not know.
    """
    for option in _OF_ONE_KERNEL:
        if getattr(args, option) not in (None, []):
            name = option.removesuffix("s" if option == "plugins" else "").replace("_", "-")
            raise StepladderError(f"--{name} is for one kernel or for IR, and '{args.input}' is a function's bundle")
    options = {"sanitize": not args.no_sanitize, "max_steps": args.max_steps, "reverses_blocks": args.reverse_blocks}
    with text_for_people(args.json):
        reports, details = _on_emulator(args, bundle, "--backend emulator", options)
        return _finish(args, bundle, reports, details)


def _finish(
    args: argparse.Namespace, bundle: FunctionBundle, reports: Sequence[CheckReport], details: dict[str, Any]
) -> int:
    """Prints and writes what checks found; returns the exit status."""
    from stepladder.cli.tables import verdict
    from stepladder.runtime.files import write_json

    findings = details.get("findings", [])
    for line in (*(report.describe() for report in reports), *findings):
        print(line)
    if findings:
        print(f"{len(findings)} findings")
    passed = all(report.passed for report in reports) and not findings
    print(f"result: {verdict(passed)}")
    if args.json:
        write_json(
            args.json,
            {
                "bundle": str(bundle.path),
                "function": bundle.manifest.function,
                "seed": args.seed,
                **details,
                "passed": passed,
                "checks": [report.to_json() for report in reports],
            },
        )
    return OK if passed else FAILED


def _checked(args: argparse.Namespace, bundle: FunctionBundle) -> tuple[list[CheckReport], dict[str, Any]]:
    """Returns the reports of the checks, and how they ran."""
    from stepladder.measure.functions import flops_of

    if args.backend == "emulator":
        return _on_emulator(args, bundle, "--backend emulator")
    try:
        return _on_gpu(args, bundle)
    except StepladderError as error:
        if args.backend == "gpu" or error.status != NOT_EXECUTED:
            raise
        if flops_of(bundle) > EMULATED_FLOPS:
            note = f"the emulator takes long for {bundle.manifest.describe()}; --backend emulator runs it all the same"
            raise StepladderError(error.message, notes=[*error.notes, note], status=NOT_EXECUTED) from None
        from stepladder.emulator import EMULATED_STEPS
        from stepladder.emulator.core.fibers import TooManySteps

        try:
            return _on_emulator(args, bundle, cause(error), {"max_steps": EMULATED_STEPS})
        except TooManySteps as second_error:
            notes = [*error.notes, f"{second_error.message}; --backend emulator runs it all"]
            raise StepladderError(error.message, notes=notes, status=NOT_EXECUTED) from None


def _on_gpu(args: argparse.Namespace, bundle: FunctionBundle) -> tuple[list[CheckReport], dict[str, Any]]:
    def begun(gpu: str) -> None:
        print(f"{printable(bundle.path)}: {bundle.manifest.describe()}, seed {args.seed}, on {gpu}", flush=True)

    return check_function_bundle(bundle, args.seed, begun)


def _on_emulator(
    args: argparse.Namespace, bundle: FunctionBundle, reason: str, options: dict[str, Any] | None = None
) -> tuple[list[CheckReport], dict[str, Any]]:
    from stepladder.emulator.functions import EmulatedFunction
    from stepladder.emulator.launch_fields import check_launches
    from stepladder.pipeline.context import mlir_context
    from stepladder.verify.function_check import check_function

    with mlir_context():
        check_launches(bundle)
    print(
        f"{printable(bundle.path)}: {bundle.manifest.describe()}, seed {args.seed}, on the emulator, in PTX ({reason})",
        flush=True,
    )
    function = EmulatedFunction(bundle, options)
    reports = check_function(bundle, function, args.seed)
    findings = list(dict.fromkeys(finding.render() for finding in function.findings))
    return reports, {
        "backend": "emulator",
        "findings": findings,
        "seconds": function.seconds,
        "steps": function.steps,
    }


def bench(args: argparse.Namespace, bundles: Sequence[FunctionBundle]) -> int:
    """Measures functions, one after the other; returns the exit status.

    Args:
        args: of `stepladder bench`.
        bundles: one at least, in the order of the command line.

    Raises:
        StepladderError: options that are for single kernels, no GPU, or wrong results.
    """
    from stepladder.cli.tables import print_table
    from stepladder.measure.functions import bench_function, rows_of
    from stepladder.runtime.files import check_writable, write_json

    for option in ("ceiling", "rotate"):
        if getattr(args, option):
            raise StepladderError(f"--{option} is for bundles of one matmul, and '{bundles[0].path}' is a function's")
    if args.json:
        check_writable(args.json)
    modes = ("burst", "sustained") if args.mode == "both" else (args.mode,)
    command = ["stepladder", *sys.argv[1:]]
    results = []
    with text_for_people(args.json):
        for bundle in bundles:
            results.append(
                bench_function(bundle, modes=modes, rounds=args.rounds, check=not args.no_check, command=command)
            )
        for result in results:
            print_table(rows_of(result), title=f"@{result['function']}; {result['card']['name']}")
    if args.json:
        write_json(args.json, {"results": results} if len(results) > 1 else results[0])
    return OK
