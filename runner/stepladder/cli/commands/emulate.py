"""`stepladder emulate`: runs the IR after any step, or a kernel in PTX, on the CPU, and looks for faults."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from stepladder.cli import emulate_ptx
from stepladder.cli.emulation_output import load_array, print_outcome, report_of, save_arrays, summary
from stepladder.cli.guard import imports
from stepladder.cli.options import (
    Formatter,
    add_json_option,
    add_output_option,
    add_plugin_options,
    positive,
    text_for_people,
)
from stepladder.emulator import MAX_STEPS
from stepladder.runtime.errors import FAILED, OK, StepladderError

if TYPE_CHECKING:
    from stepladder.mlir.bindings import ir

_OF_IR = ("function", "expect", "reference", "tolerance", "sarif", "trace")
_EPILOG = """\
The function's arguments are filled from --inputs, or with random numbers (normal, or integers of -8 to 8). The threads
of a kernel's blocks run in step in NumPy arrays; asynchronous copies and products complete when the IR has waited for
them. The sanitizer reports races, deadlocks, accesses out of bounds or to memory that is still being copied, reads of
shared memory that nothing wrote, barriers that not all threads come to; the counters say what memory traffic and bank
conflicts each access costs.

What the program prints (gpu.printf, vector.print, printMemrefF32 and its family) comes first on standard output.

A file of PTX (*.ptx) is run as a kernel. In a bundle, or with --bundle, the manifest says how it is launched, and its
numbers are compared with reference.json. Any other kernel needs --grid, --block and --arguments: 256x128xf16 for a
pointer to an array, 256x128xf16[64x64,128b] for a TMA descriptor with its box and swizzle, 7:i32 for a number. Findings
name lines of the PTX.

An output of IR is checked by --expect, with files, or by --reference, with a function of the same file: a wrong number
is then a finding. Integers must be equal. The result of a reference stands for the result of the function, or for the
argument that it writes where it returns nothing.

Arrays of bf16 and fp8 are files of two- and one-byte elements, as NumPy writes the types of ml_dtypes.

exit status: 0 it ran and nothing was found; 1 findings, wrong numbers, or more than --max-steps; 2 the input or an
option is not acceptable.

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
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser."""
    parser = subparsers.add_parser(
        "emulate",
        formatter_class=Formatter,
        epilog=_EPILOG,
        description=__doc__,
        help="run the IR after any step, or PTX, on the CPU, with a sanitizer",
    )
    parser.add_argument(
        "input", metavar="IR.mlir|KERNEL.ptx", help="the IR, for example a dump, or PTX; - is standard input"
    )
    add_plugin_options(parser)
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--inputs", metavar="A.npy,B.npy,...", help="files with the arguments, in order")
    given.add_argument("--seed", type=_seed, default=0, metavar="N", help="seed of random arguments (default: 0)")
    add_output_option(
        parser, "DIR", "write what the arguments hold afterwards (argument0.npy, ...) and results (result0.npy)"
    )
    add_json_option(parser)
    parser.add_argument("--no-sanitize", action="store_true", help="do not look for races and the like; faster")
    parser.add_argument(
        "--max-steps",
        type=positive,
        default=MAX_STEPS,
        metavar="N",
        help=f"stop after so many ops (default: {MAX_STEPS})",
    )
    _add_ir_options(parser)
    emulate_ptx.add_options(parser)


def _add_ir_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("IR")
    group.add_argument("--function", metavar="NAME", help="what to run (default: the only function with a body)")
    expected = group.add_mutually_exclusive_group()
    expected.add_argument(
        "--expect",
        metavar="N=FILE.npy,...",
        help="arrays that arguments must hold afterwards, by number; results are numbered after the arguments",
    )
    expected.add_argument(
        "--reference",
        metavar="NAME",
        help="function of the same file, for example in linalg form, that takes the same arguments and computes what "
        "is expected",
    )
    group.add_argument(
        "--tolerance",
        type=_tolerance,
        metavar="X",
        help="largest relative error of floating-point outputs, with --expect and --reference (default: square root "
        "of the epsilon of the output's type)",
    )
    group.add_argument("--sarif", metavar="FILE", help="write the findings in SARIF 2.1.0, for CI systems")
    group.add_argument(
        "--trace",
        metavar="FILE",
        help="write a timeline of warps, waits and asynchronous operations, for chrome://tracing or Perfetto",
    )


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a non-negative integer, got '{text}'")
    return int(text)


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got '{text}'")
    return value


def _expected_files(text: str) -> dict[int, str]:
    """Returns the files of `--expect` by the number of the argument or result.

    Raises:
        StepladderError: something else than NUMBER=FILE, or a number given twice.
    """
    files: dict[int, str] = {}
    for item in text.split(","):
        number, equals, path = item.partition("=")
        if not (number.isdecimal() and equals and path):
            raise StepladderError(f"--expect takes NUMBER=FILE.npy, separated by commas, got '{item}'")
        if int(number) in files:
            raise StepladderError(f"--expect has two files for {number}")
        files[int(number)] = path
    return files


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status. Raises StepladderError."""
    with imports():
        from stepladder.emulator.core.emulation import Emulation
        from stepladder.extension import plugins
        from stepladder.pipeline.context import mlir_context, parse_payload
    from stepladder.cli.progress import LaunchProgress
    from stepladder.emulator.core import expected
    from stepladder.emulator.core.timeline import Timeline
    from stepladder.emulator.memory.sarif import sarif_log
    from stepladder.runtime.files import check_writable, read_text, write_json

    text, name = read_text(args.input)
    for path in filter(None, (args.json, args.sarif, args.trace)):
        check_writable(path)
    if emulate_ptx.is_ptx(text, name):
        for option in _OF_IR:
            if getattr(args, option) is not None:
                raise StepladderError(f"--{option} is for IR, and '{args.input}' is PTX")
        if args.plugins:
            raise StepladderError(f"--plugin is for IR, and '{args.input}' is PTX")
        return emulate_ptx.run(args, text, name)
    files = {number: load_array(path) for number, path in _expected_files(args.expect).items()} if args.expect else {}
    if args.tolerance is not None and not (args.expect or args.reference):
        raise StepladderError("--tolerance is for --expect and --reference; give one of them")
    emulate_ptx.check_unused(args)
    plugins.load_files(args.plugins)
    with mlir_context():
        module = parse_payload(text, name)
        reference = Emulation(module, args.reference, name=name) if args.reference else None
        emulation = Emulation(module, args.function or _checked_function(module, args.reference), name=name)
        given = (
            [load_array(path) for path in args.inputs.split(",")] if args.inputs else emulation.random_inputs(args.seed)
        )
        inputs = emulation.check_inputs(given)
        timeline = Timeline() if args.trace else None
        with LaunchProgress() as progress:
            outcome = emulation.run(
                inputs,
                sanitize=not args.no_sanitize,
                max_steps=args.max_steps,
                progress=progress,
                timeline=timeline,
            )
        written = expected.written_arguments(inputs, outcome)
        if reference is not None:
            outputs = expected.reference_outputs(emulation, reference, inputs)
            outcome.findings += expected.compare_with_reference(outcome, inputs, outputs, args.tolerance)
    outcome.findings += expected.compare_with_files(outcome, files, args.tolerance)
    if args.output:
        held = {f"argument{number}": array for number, array in enumerate(outcome.arguments) if array is not None}
        save_arrays(args.output, {**held, **{f"result{number}": array for number, array in enumerate(outcome.results)}})
    with text_for_people(args.json):
        print_outcome(outcome)
        if inputs and not written and not outcome.results and not outcome.output:
            print("note: no argument has changed, and nothing is returned or printed")
        print(summary(emulation.function.name, outcome, sanitized=not args.no_sanitize))
    if args.json:
        write_json(args.json, report_of(outcome, name, written))
    if timeline is not None:
        write_json(args.trace, timeline.to_json())
    if args.sarif:
        write_json(args.sarif, sarif_log(outcome.findings, name))
    return FAILED if outcome.findings else OK


def _checked_function(module: ir.Module, reference: str | None) -> str | None:
    """Returns the function beside the reference, where there is exactly one other with a body; else None."""
    from stepladder.mlir.bindings import ir
    from stepladder.mlir.traverse import walk

    if reference is None:
        return None
    functions = [op for op in walk(module, "func.func") if op.regions[0].blocks]
    names = [ir.StringAttr(op.attributes["sym_name"]).value for op in functions]
    others = [name for name in names if name != reference]
    return others[0] if len(others) == 1 else None
