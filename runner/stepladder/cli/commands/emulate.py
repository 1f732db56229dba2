"""`stepladder emulate`: runs the IR after any step on the CPU, and looks for what it does wrong."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stepladder.cli.options import Formatter, positive
from stepladder.emulator import MAX_STEPS
from stepladder.runtime.errors import FAILED, OK, StepladderError

_EPILOG = """\
The function's arguments are filled from --inputs, or with random numbers (normal, or integers of -8 to 8). The threads
of a kernel's blocks run in step in NumPy arrays; asynchronous copies and products complete when the IR has waited for
them. The sanitizer reports races, deadlocks, accesses out of bounds or to memory that is still being copied, reads of
shared memory that nothing wrote, barriers that not all threads come to; the counters say what memory traffic and bank
conflicts each access costs.

What the program prints (gpu.printf, vector.print, printMemrefF32 and its family) comes first on standard output.

Arrays of bf16 and fp8 are files of two- and one-byte elements, as NumPy writes the types of ml_dtypes.

exit status: 0 it ran and nothing was found; 1 findings, or more than --max-steps; 2 the input or an option is not
acceptable.

examples:
  stepladder emulate dumps/14-hoist_accumulators.mlir
  stepladder emulate dumps/19-outline_kernel.mlir --inputs a.npy,b.npy,c.npy --output after
  stepladder emulate dumps/09-convert_to_wgmma.mlir --report wgmma.json --seed 7
  stepladder-opt matmul.mlir --pipeline wmma --without pad_shared_memory --through hoist_accumulators \\
    | stepladder emulate -
"""


def add_parser(subparsers) -> None:
    """Adds the command's parser."""
    parser = subparsers.add_parser(
        "emulate",
        formatter_class=Formatter,
        epilog=_EPILOG,
        description=__doc__,
        help="run the IR after any step on the CPU, with a sanitizer",
    )
    parser.add_argument("input", metavar="IR.mlir", help="the IR, for example a dump; - is standard input")
    parser.add_argument("--function", metavar="NAME", help="what to run; the only function with a body unless told")
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--inputs", metavar="A.npy,B.npy,...", help="files with the arguments, in order")
    given.add_argument("--seed", type=_seed, default=0, metavar="N", help="seed of random arguments (default: 0)")
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="write what the arguments hold afterwards (argument0.npy, ...) and results (result0.npy)",
    )
    parser.add_argument("--report", metavar="FILE.json", help="write findings and counters")
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


def _load(path: str):
    import numpy as np

    try:
        with open(path, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise StepladderError(f"cannot read input '{path}': {error.strerror}") from None
    except ValueError as error:
        raise StepladderError(f"input '{path}' is not a file of NumPy (.npy): {error}") from None


def _save(folder: str, arrays: dict) -> None:
    import numpy as np

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            np.save(Path(folder) / f"{name}.npy", array, allow_pickle=False)
    except OSError as error:
        raise StepladderError(f"cannot write to '{folder}': {error.strerror}") from None


def report_of(outcome, name: str) -> dict:
    """Returns a run for JSON: findings, counters, steps and seconds."""
    return {
        "input": name,
        "passed": not outcome.findings,
        "steps": outcome.steps,
        "seconds": outcome.seconds,
        "findings": [finding.as_dict() for finding in outcome.findings],
        "counters": outcome.counters.as_dict(),
    }


def print_counters(counters, file=None) -> None:
    """Prints what each access costs as a table; nothing where there was no kernel."""
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
    from stepladder.emulator.core.emulation import Emulation
    from stepladder.pipeline import engine
    from stepladder.runtime.files import check_writable, read_text, write_json

    text, name = read_text(args.input)
    if args.report:
        check_writable(args.report)
    with engine.mlir_context():
        emulation = Emulation(engine.parse_payload(text, name), args.function, name=name)
        given = [_load(path) for path in args.inputs.split(",")] if args.inputs else emulation.random_inputs(args.seed)
        outcome = emulation.run(
            emulation.check_inputs(given), sanitize=not args.no_sanitize, max_steps=args.max_steps, progress=blocks_done
        )
    if args.output:
        held = {f"argument{number}": array for number, array in enumerate(outcome.arguments) if array is not None}
        _save(args.output, {**held, **{f"result{number}": array for number, array in enumerate(outcome.results)}})
    if args.report:
        write_json(args.report, report_of(outcome, name))
    print(outcome.output, end="")
    print_counters(outcome.counters)
    for finding in outcome.findings:
        print(finding.render())
    found = f"{len(outcome.findings)}" if outcome.findings else "none"
    if args.no_sanitize:
        found = "not looked for"
    elif outcome.left_out:
        found += f", and {outcome.left_out} more that are not shown"
    print(f"@{emulation.function.name}: {outcome.steps} ops in {outcome.seconds:.2f} s, findings: {found}")
    return FAILED if outcome.findings else OK


def blocks_done(done: int, total: int) -> None:
    """Shows, on a terminal, how many blocks of a grid have run."""
    if sys.stderr.isatty():
        print(f"\r{done} of {total} blocks", end="\n" if done == total else "", file=sys.stderr, flush=True)
