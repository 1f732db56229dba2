"""`stepladder emulate`: runs the IR after any step, or a kernel in PTX, on the CPU, and looks for faults."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli import emulate_kernel, emulation_checks, function_bundle, kernel_options
from stepladder.cli.emulated_run import run_checked
from stepladder.cli.emulation_checks import Checks
from stepladder.cli.emulation_output import load_array
from stepladder.cli.guard import imports
from stepladder.cli.options import (
    Formatter,
    add_json_option,
    add_output_option,
    add_plugin_options,
    positive,
    seed,
)
from stepladder.emulator import MAX_STEPS
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.mlir.bindings import ir

_EPILOG = """\
The function's arguments are filled from --inputs, or with random numbers (normal, or integers of -8 to 8). The threads
of a kernel's blocks run in lockstep in NumPy arrays; asynchronous copies and products complete when the IR has waited
for them. The sanitizer reports races, deadlocks, accesses out of bounds or to memory that is still being copied, reads
of uninitialized shared memory, and barriers that not all threads reach. The counters show the memory traffic and the
bank conflicts of each access.

What the program prints (gpu.printf, vector.print, printMemrefF32 and its family) comes first on standard output.

--kernel, --grid and --block run a single kernel: a gpu.func or an llvm.func of a module at any level, or PTX (*.ptx).
In a bundle, or with --bundle, the manifest describes the launch of PTX, and the results are compared with
reference.json. A bundle must be whole; the PTX of a file may be edited, even in its bundle. Otherwise --arguments lists
the arguments of the kernel: 256x128xf16 is an array (for a memref, bare or expanded to a descriptor, or a pointer),
A.npy the array of a file, 256x128xf16[64x64,128b] a TMA descriptor with its box and swizzle, 7:i32 a scalar. Arrays are
random, unless a suffix sets their elements: =0 fills an array with a constant, =iota with 0, 1, ..., and =out marks an
uninitialized output, all elements of which must be written.

Outputs are checked by --expect, with files, or by --reference, with a function in MLIR: a wrong element is then a
finding. Integers must be equal. If the function returns nothing, the result of a reference is compared with the
argument that the function writes.

Arrays of bf16 and fp8 are files of two- and one-byte elements, as NumPy writes the types of ml_dtypes.

exit status: 0 no findings; 1 findings, wrong results, or more than --max-steps; 2 the input or an option is not
acceptable, and nothing is written.

examples:
  stepladder emulate dumps/*-hoist_accumulators.mlir --seed 7 --output first     # first/argument0.npy, ...
  stepladder emulate dumps/*-outline_kernel.mlir --output again \\
    --inputs first/argument0.npy,first/argument1.npy,first/argument2.npy
  stepladder emulate dumps/*-lower_transfers.mlir --json report.json           # findings and counters as JSON
  stepladder emulate test/emulator/reference.mlir --function scale --reference golden --sarif findings.sarif
  stepladder emulate dumps/*-hoist_prefetch.mlir --trace trace.json
  stepladder emulate dumps/*-lower_transfers.mlir --expect 2=again/argument2.npy --tolerance 1e-3 \\
    --inputs first/argument0.npy,first/argument1.npy,first/argument2.npy
  stepladder-opt matmul.mlir --pipeline wmma --without pad_shared_memory --through hoist_accumulators \\
    | stepladder emulate -
  stepladder emulate matmul.bundle/kernel.ptx                                  # launch and reference of the bundle
  sed '/^\\/\\//d' matmul.bundle/kernel.ptx > edited.ptx
  stepladder emulate edited.ptx --bundle matmul.bundle
  stepladder emulate test/inputs/emulator/scale.ptx --kernel scale --grid 4 --block 128 --output out \\
    --arguments 512xf32,512xf32,2.5:f32,512:i32
  stepladder emulate test/inputs/emulator/kernels.mlir --kernel axpy --grid 2 --block 64 --reference golden \\
    --arguments 100xf32,100xf32,2.5:f32,100:index --sarif findings.sarif --trace trace.json
  stepladder emulate test/inputs/emulator/scale.ptx --grid 2 --block 100 \\
    --arguments 200xf32,200xf32=out,2:f32,200:i32 --reference test/inputs/emulator/scaled.mlir:golden
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "emulate",
        formatter_class=Formatter,
        epilog=_EPILOG,
        description="Runs the IR after any step, or a kernel in PTX, on the CPU, with a sanitizer.",
        help="run the IR after any step, or PTX, on the CPU, with a sanitizer",
    )
    parser.add_argument(
        "input",
        metavar="IR.mlir|KERNEL.ptx|BUNDLE",
        help="IR, such as a dump, or PTX, or a bundle, whose PTX is run; - is standard input",
    )
    add_plugin_options(parser)
    arguments = parser.add_mutually_exclusive_group()
    arguments.add_argument("--inputs", metavar="A.npy,B.npy,...", help="files of the arguments, in order")
    arguments.add_argument("--seed", type=seed, default=0, metavar="N", help="seed of random arguments (default: 0)")
    add_output_option(
        parser, "DIR", "write the arguments after the run (argument0.npy, ...) and the results (result0.npy, ...)"
    )
    add_json_option(parser)
    parser.add_argument("--no-sanitize", action="store_true", help="run without the sanitizer; faster")
    parser.add_argument(
        "--max-steps",
        type=positive,
        default=MAX_STEPS,
        metavar="N",
        help=f"stop after N ops (default: {MAX_STEPS})",
    )
    parser.add_argument(
        "--reverse-blocks",
        action="store_true",
        help="run the blocks of a launch from the last to the first; without it, a program whose blocks wait for each "
        "other and that has no finding runs in both orders",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes that run the blocks of a long launch, where these are independent (default: one per core)",
    )
    parser.add_argument("--sarif", metavar="FILE", help="write the findings in SARIF 2.1.0, for CI systems")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="write a timeline of warps, waits and asynchronous operations, for chrome://tracing or Perfetto",
    )
    _add_ir_options(parser)
    emulation_checks.add_options(parser)
    kernel_options.add_options(parser)


def _add_ir_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("functions of IR")
    group.add_argument("--function", metavar="NAME", help="function to run (default: the only one with a body)")


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.

    Raises:
        StepladderError: input that cannot be read or run, or options that do not go together.
    """
    with imports():
        from stepladder.emulator.launch_fields import check_launch
        from stepladder.extension import plugins
        from stepladder.pipeline.context import mlir_context, parse_payload
    from stepladder.runtime.bundle import MANIFEST, PTX, is_function, read_bundle, read_function
    from stepladder.runtime.bundle.spirv import is_spirv_bundle
    from stepladder.runtime.files import check_writable, read_text

    for path in filter(None, (args.json, args.sarif, args.trace)):
        check_writable(path)
    if is_function(args.input):
        return function_bundle.emulate(args, read_function(args.input))
    if (Path(args.input) / MANIFEST).is_file():  # of one kernel
        if is_spirv_bundle(args.input):
            raise StepladderError(f"'{args.input}' has SPIR-V, which the emulator does not run: give a file of its ir/")
        with mlir_context():
            check_launch(read_bundle(args.input))  # refuses one that is not whole
        args.input = str(Path(args.input) / PTX)
    text, name = read_text(args.input)
    if emulate_kernel.is_ptx(text, name):
        for option in ("function", "plugins"):
            if getattr(args, option):
                raise StepladderError(f"--{option.removesuffix('s')} is for IR, and '{args.input}' is PTX")
        return emulate_kernel.run_ptx(args, text, name)
    if args.bundle is not None:
        raise StepladderError(f"--bundle is for PTX, and '{args.input}' is none")
    options = kernel_options.given(args)
    if args.function is not None and options:
        raise StepladderError(f"--function runs a host function, and {options[0]} is for single kernels")
    checks = Checks(args)
    plugins.load_files(args.plugins)
    with mlir_context():
        module = parse_payload(text, name)
        if options:
            return emulate_kernel.run_module(args, module, name, checks)
        return _run_function(args, module, name, checks)


def _run_function(args: argparse.Namespace, module: ir.Module, name: str, checks: Checks) -> int:
    """Runs a function of the host; returns the exit status. Raises StepladderError."""
    from stepladder.emulator.core.emulation import Emulation

    reference = checks.reference(module, name)
    emulation = Emulation(module, args.function or _checked_function(module, checks.reference_name), name=name)
    arrays = (
        [load_array(path) for path in args.inputs.split(",")] if args.inputs else emulation.random_inputs(args.seed)
    )
    inputs = emulation.check_inputs(arrays)
    return run_checked(args, name, emulation, inputs, checks, reference)


def _checked_function(module: ir.Module, reference: str | None) -> str | None:
    """Returns the function beside the reference, where there is exactly one other with a body; else None."""
    from stepladder.mlir.bindings import ir
    from stepladder.mlir.traverse import walk

    if reference is None:
        return None
    functions = [op for op in walk(module, "func.func") if op.regions[0].blocks]
    names = [ir.StringAttr(op.attributes["sym_name"]).value for op in functions]
    candidates = [name for name in names if name != reference]
    return candidates[0] if len(candidates) == 1 else None
