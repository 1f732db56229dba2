"""`stepladder emulate` of a single kernel: its launch, its arguments, and the check of its results."""

from __future__ import annotations

import argparse
import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli import kernel_options
from stepladder.cli.emulate_bundle import bound_front, run_exact
from stepladder.cli.emulated_run import run_checked
from stepladder.cli.emulation_checks import Checks
from stepladder.cli.emulation_output import load_array
from stepladder.cli.guard import imports
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    import numpy as np

    from stepladder.emulator.core.launched import BoundKernel
    from stepladder.emulator.core.module_kernel import ModuleKernel
    from stepladder.emulator.ptx.arguments import Argument
    from stepladder.emulator.ptx.kernel import Kernel
    from stepladder.mlir.bindings import ir

_PTX = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*\.version\b", re.DOTALL)
_MANIFEST = "manifest.json"


def is_ptx(text: str, name: str) -> bool:
    """Whether a text is PTX, by the name of its file or by how it begins.

    Args:
        text: of the file.
        name: of the file.
    """
    return name.endswith(".ptx") or _PTX.match(text) is not None


def _bundle_of(args: argparse.Namespace) -> str | None:
    """Returns the bundle that says how a kernel is launched, None where the options say it."""
    options = [option for option in kernel_options.given(args) if option != "--kernel"]
    if args.bundle is not None and options:
        raise StepladderError(f"--bundle gives the launch of the kernel: leave out {options[0]}")
    if options or args.bundle is not None:
        return args.bundle
    folder = Path(args.input).parent
    if args.input != "-" and (folder / _MANIFEST).is_file():
        return str(folder)
    raise StepladderError(
        f"'{args.input}' is in no bundle: give the launch by --bundle BUNDLE, or by --grid, --block and --arguments"
    )


def run_ptx(args: argparse.Namespace, text: str, name: str) -> int:
    """Runs a kernel in PTX; returns the exit status.

    Args:
        args: of `stepladder emulate`.
        text: the PTX.
        name: of the file, for messages.

    Raises:
        StepladderError: options that do not go together, or PTX that the emulator does not know.
    """
    with imports():
        from stepladder.emulator.core.launched import Launch
        from stepladder.emulator.ptx.arguments import from_manifest
        from stepladder.emulator.ptx.kernel import Kernel
        from stepladder.emulator.ptx.parser import parse
        from stepladder.pipeline.context import mlir_context
    from stepladder.runtime.bundle import read_launch

    checks = Checks(args)
    bundle = _bundle_of(args)
    module = parse(text, name)
    manifest = program = None
    arrays: dict[int, np.ndarray] = {}
    if bundle is not None:
        manifest, program = read_launch(bundle)
        kernel = Kernel(module, args.kernel or manifest.kernel_name, name)
        launch = Launch.of_manifest(manifest)
        arguments = from_manifest(manifest)
    else:
        kernel = Kernel(module, args.kernel, name)
        launch, arguments, arrays = _launch_of(args, kernel, None)
    bound = kernel.bound(arguments, launch)
    if manifest is not None and not checks.is_given and not args.inputs:
        front = [bound_front(manifest, item, Path(bundle or "")) for item in manifest.front]
        return run_exact(args, name, bound, front, manifest, program)
    with mlir_context() if checks.is_given else contextlib.nullcontext():
        return _run(args, name, bound, arrays, checks, None)


def run_module(args: argparse.Namespace, module: ir.Module, name: str, checks: Checks) -> int:
    """Runs a kernel of a module alone; returns the exit status.

    Args:
        args: of `stepladder emulate`.
        module: with the kernel.
        name: of the file, for messages.
        checks: what outputs are compared with.

    Raises:
        StepladderError: options that do not go together, or an op that the emulator does not know.
    """
    from stepladder.emulator.core.module_kernel import ModuleKernel

    kernel = ModuleKernel(module, args.kernel, name)
    launch, arguments, arrays = _launch_of(args, kernel, kernel.default_arguments())
    return _run(args, name, kernel.bound(arguments, launch), arrays, checks, module)


def _launch_of(args: argparse.Namespace, kernel: Kernel | ModuleKernel, default: list[Argument] | None) -> tuple:
    """Returns the launch, the arguments and their arrays that options give; refuses where some are missing."""
    from stepladder.emulator.core.launched import Launch
    from stepladder.emulator.ptx.arguments import from_texts

    required = ("grid", "block") if default is not None else ("grid", "block", "arguments")
    missing = [name for name in required if getattr(args, name) is None]
    if missing:
        raise StepladderError(
            f"kernel {kernel.name} needs {' and '.join(f'--{name}' for name in missing)} too",
            location=kernel.location,
            notes=[f"its parameters: {kernel.describe_parameters()}"],
        )
    launch = Launch(args.grid, args.block, args.cluster or (1, 1, 1), args.dynamic_shared or 0)
    if args.arguments is None:
        return launch, default, {}
    texts, arrays = kernel_options.read_files(args.arguments)
    if arrays and args.inputs:
        raise StepladderError("--inputs and files in --arguments are two ways to say the same: give one of them")
    return launch, from_texts(texts), arrays


def _run(
    args: argparse.Namespace,
    name: str,
    bound: BoundKernel,
    arrays: dict[int, np.ndarray],
    checks: Checks,
    module: ir.Module | None,
) -> int:
    """Runs a kernel on given or random inputs, compares what is expected, and returns the exit status."""
    reference = checks.reference(module, name)
    if args.inputs:
        inputs = bound.check_inputs([load_array(path) for path in args.inputs.split(",")])
    else:
        inputs = bound.random_inputs(args.seed)
        for number, array in arrays.items():
            inputs[number] = array
    return run_checked(args, name, bound, inputs, checks, reference)
