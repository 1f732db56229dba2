"""`stepladder emulate`: executes the IR after any step on the CPU, with a sanitizer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

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
from stepladder.runtime.errors import FAILED, OK, StepladderError, reason
from stepladder.runtime.files import make_folder, replacing

if TYPE_CHECKING:
    import numpy as np

    from stepladder.emulator.core.emulation import Emulation, Outcome
    from stepladder.emulator.hardware.counters import Counters
    from stepladder.mlir.bindings import ir

_EPILOG = """\
The function's arguments are filled from --inputs, or with random numbers (normal, or integers of -8 to 8). The threads
of a kernel's blocks run in step in NumPy arrays; asynchronous copies and products complete when the IR has waited for
them. The sanitizer reports races, deadlocks, accesses out of bounds or to memory that is still being copied, reads of
shared memory that nothing wrote, barriers that not all threads come to; the counters say what memory traffic and bank
conflicts each access costs.

What the program prints (gpu.printf, vector.print, printMemrefF32 and its family) comes first on standard output.

Arrays of bf16 and fp8 are files of two- and one-byte elements, as NumPy writes the types of ml_dtypes.

An output is checked by --expect, with files, or by --reference, with a function of the same file: a wrong number is
then a finding. Integers must be equal. The result of a reference stands for the result of the function, or for the
argument that it writes where it returns nothing.

exit status: 0 it ran and nothing was found; 1 findings (wrong numbers among them), or more than --max-steps; 2 the
input or an option is not acceptable.

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
    parser.add_argument("input", metavar="IR.mlir", help="the IR, for example a dump; - is standard input")
    parser.add_argument("--function", metavar="NAME", help="what to run (default: the only function with a body)")
    add_plugin_options(parser)
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--inputs", metavar="A.npy,B.npy,...", help="files with the arguments, in order")
    given.add_argument("--seed", type=_seed, default=0, metavar="N", help="seed of random arguments (default: 0)")
    add_output_option(
        parser, "DIR", "write what the arguments hold afterwards (argument0.npy, ...) and results (result0.npy)"
    )
    add_json_option(parser)
    expected = parser.add_mutually_exclusive_group()
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
    parser.add_argument(
        "--tolerance",
        type=_tolerance,
        metavar="X",
        help="largest relative error of floating-point outputs, with --expect and --reference (default: square root "
        "of the epsilon of the output's type)",
    )
    parser.add_argument("--sarif", metavar="FILE", help="write the findings in SARIF 2.1.0, for CI systems")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="write a timeline of warps, waits and asynchronous operations, for chrome://tracing or Perfetto",
    )
    parser.add_argument("--no-sanitize", action="store_true", help="do not look for races and the like; faster")
    parser.add_argument(
        "--max-steps",
        type=positive,
        default=MAX_STEPS,
        metavar="N",
        help=f"stop after so many ops (default: {MAX_STEPS})",
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


def _load(path: str) -> np.ndarray:
    """Returns the array in a file of NumPy.

    Raises:
        StepladderError: a file that cannot be read or is no array, or not enough memory for it.
    """
    import tokenize

    import numpy as np

    from stepladder.mlir.diagnostics import shorten
    from stepladder.runtime import host_memory

    try:
        # Mapped first: what the header says is held against the size of the file before memory is taken.
        with np.errstate(over="ignore"):  # of sizes, about which an error follows
            mapped = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise StepladderError(f"cannot read input '{path}': {reason(error)}") from None
    except (
        ValueError,
        TypeError,
        OverflowError,
        MemoryError,
        RecursionError,
        SyntaxError,
        tokenize.TokenError,
    ) as error:  # the header is parsed as Python
        raise StepladderError(f"input '{path}' is not a file of NumPy (.npy): {shorten(reason(error))}") from None
    host_memory.require(mapped.nbytes, f"input '{path}'")
    return np.array(mapped)


def _save(folder: str, arrays: dict[str, np.ndarray]) -> None:
    import numpy as np

    make_folder(folder)
    for name, array in arrays.items():
        with replacing(str(Path(folder) / f"{name}.npy")) as file:
            np.save(file, array, allow_pickle=False)


def report_of(outcome: Outcome, name: str, written: list[int]) -> dict[str, object]:
    """Returns a run as JSON data: findings, counters, steps and seconds.

    Args:
        outcome: of the run.
        name: the file of the IR.
        written: numbers of the arguments that the function wrote.
    """
    return {
        "input": name,
        "written_arguments": written,
        "passed": not outcome.findings,
        "steps": outcome.steps,
        "seconds": outcome.seconds,
        "findings": [finding.as_dict() for finding in outcome.findings],
        "counters": outcome.counters.as_dict() if outcome.counters is not None else {},
    }


def print_counters(counters: Counters, file: TextIO | None = None) -> None:
    """Prints the memory traffic of each op as a table; nothing where no kernel ran.

    Args:
        counters: of the run.
        file: None for standard output.
    """
    from stepladder.cli.tables import print_table

    rows = [
        {
            "op": row.op,
            "at": row.location,
            "memory": row.space,
            "kind": row.kind,
            "warps": row.executions,
            "bytes": row.bytes,
            "sectors": row.sectors,
            "wavefronts": row.wavefronts,
            "conflicts": row.conflicts,
        }
        for row in counters.traffic.values()
    ]
    if rows:
        for title, blocks in (("a block, on average", counters.blocks), (f"in all, {counters.blocks} blocks", 1)):
            rows.append(
                {
                    "op": title,
                    "at": "",
                    "memory": "",
                    "kind": "",
                    **{
                        column: round(counters.total(name) / blocks)
                        for column, name in (
                            ("warps", "executions"),
                            ("bytes", "bytes"),
                            ("sectors", "sectors"),
                            ("wavefronts", "wavefronts"),
                            ("conflicts", "conflicts"),
                        )
                    },
                }
            )
        print_table(rows, title="Memory traffic, by op", file=file)
    for name, count in counters.instructions.items():
        print(f"{name}: {count} by a warp, {counters.multiply_adds} multiply-adds in all", file=file)


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
    files = {number: _load(path) for number, path in _expected_files(args.expect).items()} if args.expect else {}
    if args.tolerance is not None and not (args.expect or args.reference):
        raise StepladderError("--tolerance is for --expect and --reference; give one of them")
    plugins.load_files(args.plugins)
    with mlir_context():
        module = parse_payload(text, name)
        reference = Emulation(module, args.reference, name=name) if args.reference else None
        emulation = Emulation(module, args.function or _checked_function(module, args.reference), name=name)
        given = [_load(path) for path in args.inputs.split(",")] if args.inputs else emulation.random_inputs(args.seed)
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
        _save(args.output, {**held, **{f"result{number}": array for number, array in enumerate(outcome.results)}})
    with text_for_people(args.json):
        print(outcome.output, end="")
        if outcome.counters is not None:
            print_counters(outcome.counters)
        for finding in outcome.findings:
            print(finding.render())
        if inputs and not written and not outcome.results and not outcome.output:
            print("note: no argument has changed, and nothing is returned or printed")
        print(_summary(args, emulation, outcome))
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


def _summary(args: argparse.Namespace, emulation: Emulation, outcome: Outcome) -> str:
    found = f"{len(outcome.findings)}" if outcome.findings else "none"
    if args.no_sanitize:
        found = f"{found}, races and the like not looked for" if outcome.findings else "not looked for"
    elif outcome.left_out:
        found += f", and {outcome.left_out} more that are not shown"
    return f"@{emulation.function.name}: {outcome.steps} ops in {outcome.seconds:.2f} s, findings: {found}"
