"""`stepladder emulate`: runs the IR after any step, or a kernel in PTX, on the CPU, and looks for faults."""

from __future__ import annotations

import argparse

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
from stepladder.runtime.errors import FAILED, OK

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

Arrays of bf16 and fp8 are files of two- and one-byte elements, as NumPy writes the types of ml_dtypes.

exit status: 0 it ran and nothing was found; 1 findings, wrong numbers, or more than --max-steps; 2 the input or an
option is not acceptable.

examples:
  stepladder emulate dumps/*-hoist_accumulators.mlir --seed 7 --output first     # first/argument0.npy, ...
  stepladder emulate dumps/*-outline_kernel.mlir --output again \\
    --inputs first/argument0.npy,first/argument1.npy,first/argument2.npy
  stepladder emulate dumps/*-lower_transfers.mlir --json report.json           # findings and counters as JSON
  stepladder-opt matmul.mlir --pipeline wmma --without pad_shared_memory --through hoist_accumulators \\
    | stepladder emulate -
  stepladder emulate matmul.bundle/kernel.ptx                                  # launch and reference of the bundle
  stepladder emulate edited.ptx --bundle matmul.bundle
  stepladder emulate scale.ptx --kernel scale --grid 4 --block 128 --arguments 512xf32,2.5:f32 --output out
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser."""
    parser = subparsers.add_parser(
        "emulate",
        formatter_class=Formatter,
        epilog=_EPILOG,
        description=__doc__,
        help="run the IR after any step on the CPU, with a sanitizer",
    )
    parser.add_argument(
        "input", metavar="IR.mlir|KERNEL.ptx", help="the IR, for example a dump, or PTX; - is standard input"
    )
    parser.add_argument("--function", metavar="NAME", help="what to run (default: the only function with a body)")
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
    emulate_ptx.add_options(parser)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a non-negative integer, got '{text}'")
    return int(text)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status. Raises StepladderError."""
    with imports():
        from stepladder.emulator.core.emulation import Emulation
        from stepladder.extension import plugins
        from stepladder.pipeline.context import mlir_context, parse_payload
    from stepladder.cli.progress import LaunchProgress
    from stepladder.runtime.files import check_writable, read_text, write_json

    text, name = read_text(args.input)
    if args.json:
        check_writable(args.json)
    if emulate_ptx.is_ptx(text, name):
        return emulate_ptx.run(args, text, name)
    emulate_ptx.check_unused(args)
    plugins.load_files(args.plugins)
    with mlir_context():
        emulation = Emulation(parse_payload(text, name), args.function, name=name)
        given = (
            [load_array(path) for path in args.inputs.split(",")] if args.inputs else emulation.random_inputs(args.seed)
        )
        inputs = emulation.check_inputs(given)
        with LaunchProgress() as progress:
            outcome = emulation.run(inputs, sanitize=not args.no_sanitize, max_steps=args.max_steps, progress=progress)
    if args.output:
        held = {f"argument{number}": array for number, array in enumerate(outcome.arguments) if array is not None}
        save_arrays(args.output, {**held, **{f"result{number}": array for number, array in enumerate(outcome.results)}})
    with text_for_people(args.json):
        print_outcome(outcome)
        print(summary(emulation.function.name, outcome, sanitized=not args.no_sanitize))
    if args.json:
        write_json(args.json, report_of(outcome, name))
    return FAILED if outcome.findings else OK
