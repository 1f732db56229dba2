"""The arrays that `stepladder emulate` reads and writes, and the report of a run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from stepladder.cli.options import text_for_people
from stepladder.runtime.errors import FAILED, OK, StepladderError, reason
from stepladder.runtime.files import make_folder, replacing

if TYPE_CHECKING:
    import numpy as np

    from stepladder.emulator.core.emulation import Outcome
    from stepladder.emulator.core.timeline import Timeline
    from stepladder.emulator.hardware.counters import Counters
    from stepladder.verify.report import CheckReport


def load_array(path: str) -> np.ndarray:
    """Returns the array in a file of NumPy.

    Args:
        path: of a file `.npy`.

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
            array = np.lib.format.open_memmap(path, mode="r")
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
    host_memory.require(array.nbytes, f"input '{path}'")
    return np.array(array)


def save_arrays(folder: str, arrays: dict[str, np.ndarray]) -> None:
    """Writes arrays to files of NumPy in a folder, by name.

    Args:
        folder: is made where it is not there.
        arrays: by the names of their files, without `.npy`.

    Raises:
        StepladderError: the folder or a file cannot be written.
    """
    import numpy as np

    make_folder(folder)
    for name, array in arrays.items():
        with replacing(str(Path(folder) / f"{name}.npy")) as file:
            # To a file itself NumPy writes by C, and does not say why it cannot.
            writer: Any = SimpleNamespace(write=file.write)
            np.save(writer, array, allow_pickle=False)


def report_of(outcome: Outcome, name: str, written: list[int] | None = None) -> dict[str, object]:
    """Returns a run as JSON data: findings, counters, steps and seconds.

    Args:
        outcome: of the run.
        name: the file of the IR.
        written: indices of the arguments that the function wrote; None where that is not known.
    """
    return {
        "input": name,
        **({} if written is None else {"written_arguments": written}),
        "passed": not outcome.findings,
        "steps": outcome.steps,
        "seconds": outcome.seconds,
        "findings": [finding.as_dict() for finding in outcome.findings],
        "counters": outcome.counters.as_dict() if outcome.counters is not None else {},
    }


def print_counters(counters: Counters) -> None:
    """Prints the memory traffic of each op as a table; nothing where no kernel ran.

    Args:
        counters: of the run.
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
        print_table(rows, title="Memory traffic, by op")
    for name, count in counters.instructions.items():
        print(f"{name}: {count} by a warp, {counters.multiply_adds} multiply-adds in all")


def print_outcome(outcome: Outcome) -> None:
    """Prints a program's output, its memory traffic and its findings.

    Args:
        outcome: of the run.
    """
    print(outcome.output, end="")
    if outcome.counters is not None:
        print_counters(outcome.counters)
    for finding in outcome.findings:
        print(finding.render())


def summary(name: str, outcome: Outcome, *, sanitized: bool) -> str:
    """Returns the summary line of a run: function, ops, time and number of findings.

    Args:
        name: of the function or the kernel.
        outcome: of the run.
        sanitized: whether races and the like were looked for.
    """
    findings = f"{len(outcome.findings)}" if outcome.findings else "none"
    if not sanitized:
        findings = f"{findings}, races and the like not looked for" if outcome.findings else "not looked for"
    elif outcome.left_out:
        findings += f", and {outcome.left_out} more that are not shown"
    return f"@{name}: {outcome.steps} ops in {outcome.seconds:.2f} s, findings: {findings}"


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    Attributes:
        file: of the program.
        name: of the function or the kernel.
        outcome: of the run, with all findings.
        written: indices of the arguments that it wrote; None where that is not known.
        report: of a check against the reference of a bundle.
        timeline: for `--trace`.
        note: a line before the summary.
    """

    file: str
    name: str
    outcome: Outcome
    written: list[int] | None = None
    report: CheckReport | None = None
    timeline: Timeline | None = None
    note: str = ""


def finish(args: argparse.Namespace, run: Run) -> int:
    """Writes the outputs that options select, prints the outcome, and returns the exit status.

    Args:
        args: of `stepladder emulate`.
        run: what was executed, and what it is compared with.

    Raises:
        StepladderError: a file cannot be written.
    """
    from stepladder.emulator.memory.sarif import sarif_log
    from stepladder.runtime.files import write_json

    outcome, report = run.outcome, run.report
    if args.output:
        arrays = {f"argument{number}": array for number, array in enumerate(outcome.arguments) if array is not None}
        save_arrays(
            args.output, {**arrays, **{f"result{number}": array for number, array in enumerate(outcome.results)}}
        )
    passed = not outcome.findings and (report is None or report.passed)
    with text_for_people(args.json):
        print_outcome(outcome)
        if report is not None:
            print(report.describe())
        if run.note:
            print(run.note)
        print(summary(run.name, outcome, sanitized=not args.no_sanitize))
    if args.json:
        checks = {} if report is None else {"checks": [report.to_json()]}
        write_json(args.json, {**report_of(outcome, run.file, run.written), "passed": passed, **checks})
    if run.timeline is not None:
        write_json(args.trace, run.timeline.to_json())
    if args.sarif:
        write_json(args.sarif, sarif_log(outcome.findings, run.file))
    return OK if passed else FAILED
