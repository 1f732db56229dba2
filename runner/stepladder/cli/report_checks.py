"""The checks of `stepladder report`: steps on the emulator, predicted times, results on the GPU, and speed."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepladder.cli.candidates import candidate_rows
from stepladder.cli.gpu_checks import check_function_bundle, check_kernel
from stepladder.cli.report_inputs import Reported
from stepladder.cli.report_page import Table
from stepladder.cli.tables import verdict
from stepladder.runtime.bundle import Bundle, FunctionBundle, PlainKernel
from stepladder.runtime.bundle.spirv import SpirvBundle
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError, cause

if TYPE_CHECKING:
    from stepladder.emulator.hardware.counters import Counters
    from stepladder.emulator.step_report import StepReport
    from stepladder.mlir.bindings import ir
    from stepladder.runtime.problem import Problem

# Limit of `--emulate small`: arithmetic operations of the matmuls, a few seconds to a minute of one core for all
# steps of a pipeline.
SMALL_FLOPS = 2**25
# Seconds after which no further step of a kernel is executed, except with `--emulate always`: few arithmetic operations
# may take long, such as the dequantization of weights of four bits.
LONGEST = 60.0

CANDIDATES = 5  # of the cost model that are shown


@dataclass
class Emulated:
    """The steps of a kernel on the emulator: reports by the names of dumps, or why there are none."""

    reports: dict[str, StepReport] = field(default_factory=dict)
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether no step is wrong; None where none was executed."""
        verdicts = [report.passed for report in self.reports.values() if report.passed is not None]
        return all(verdicts) if verdicts else None


@dataclass
class Measured:
    """A kernel on the GPU: whether its results are right (None if it was not launched), text lines, and its speed."""

    passed: bool | None = None
    lines: list[str] = field(default_factory=list)
    table: Table | None = None


def emulate_steps(reported: Reported, mode: str) -> Emulated:
    """Runs the IR after each step of a kernel or a function on the emulator, where that is asked for.

    Args:
        reported: with its dumps.
        mode: `never`, `small` or `always`.

    Returns:
        The reports; a step that changed nothing has that of the IR before it.
    """
    note = _left_out(reported, mode)
    if note:
        return Emulated(note=note)
    try:
        from stepladder.pipeline.context import mlir_context

        with mlir_context():
            emulated = Emulated()
            _run_steps(reported, emulated, time.monotonic() + LONGEST if mode == "small" else float("inf"))
            return emulated
    except StepladderError as error:
        return Emulated(note=f"The steps were not run on the emulator: {error.message}.")


def _left_out(reported: Reported, mode: str) -> str:
    """Returns why the steps are not run; empty where they are."""
    from stepladder.measure.functions import flops_of

    compiled = reported.compiled
    if mode == "never":
        return "The steps were not run on the emulator (--emulate never)."
    if not reported.dumps:
        return "There is no IR of its steps."
    if isinstance(compiled, FunctionBundle):
        flops = flops_of(compiled)
    elif reported.manifest is not None and reported.manifest.problem is not None:
        flops = reported.manifest.problem.flops
    elif isinstance(compiled, PlainKernel):
        return "The steps of this kernel are not run alone: those of the function are."
    else:
        return "What a XeTile program computes is not known: its steps were not compared with anything."
    if mode == "small" and flops > SMALL_FLOPS:
        return (
            f"The steps were not run on the emulator: {flops} arithmetic operations are more than the {SMALL_FLOPS} of "
            "--emulate small; --emulate always runs them all the same."
        )
    return ""


class _OutOfTimeError(Exception):
    """The steps of a kernel have taken as long as they may."""


def _run_steps(reported: Reported, emulated: Emulated, end: float) -> None:
    """Adds the reports of all steps, in the current context; none is begun or goes on after the time `end`."""
    from stepladder.mlir.text import text_of

    reports = emulated.reports
    previous: tuple[str, StepReport] | None = None
    check = _checker(reported, end)
    for number, (name, dump) in enumerate(reported.dumps.items()):
        # The payload as the steps begin with it: one function, whose constants are arguments.
        step, text = step_of(name), dump if number else text_of(_payload(reported))
        if previous is not None and previous[0] == text:
            reports[name] = dataclasses.replace(previous[1], step=step, seconds=0.0, is_unchanged=True)
            continue
        print(f"{reported.name}: emulating {name}, {number + 1} of {len(reported.dumps)}", file=sys.stderr, flush=True)
        try:
            if time.monotonic() > end:
                raise _OutOfTimeError
            reports[name] = check(step, text, name)
        except _OutOfTimeError:
            emulated.note = (
                f"The steps from {step} on were not run on the emulator: after {LONGEST:.0f} s, --emulate small ends; "
                "--emulate always runs them all."
            )
            return
        previous = text, reports[name]


def _checker(reported: Reported, end: float) -> Callable[[str, str, str], StepReport]:
    """Returns what runs the IR after a step: called with the step, the IR, and its name. Raises StepladderError."""
    from stepladder.cli.progress import LaunchProgress
    from stepladder.emulator.function_steps import FunctionChecks
    from stepladder.emulator.matmul import check_step

    compiled = reported.compiled
    if isinstance(compiled, FunctionBundle):
        return FunctionChecks(_payload(reported)).check
    problem, reference = _known(reported)

    def check(step: str, text: str, name: str) -> StepReport:
        with LaunchProgress() as launch_progress:

            def progress(done: int, total: int) -> None:
                launch_progress(done, total)
                if done < total and time.monotonic() > end:
                    raise _OutOfTimeError

            return check_step(step, text, name, problem, reference, count=True, progress=progress)

    return check


def _known(reported: Reported) -> tuple[Problem, Any]:
    """Returns the problem of a kernel, and what it computes; of a bundle without reference, as its input says it."""
    from stepladder.payload import reference_export
    from stepladder.payload.matmul import find_matmul

    compiled: Any = reported.compiled
    problem = compiled.manifest.problem
    if compiled.reference is not None:
        return problem, compiled.reference
    payload = _payload(reported)
    return problem, reference_export.export(payload, find_matmul(payload).roles)


def _payload(reported: Reported) -> ir.Module:
    """Returns the function of the input of the steps. Raises StepladderError."""
    from stepladder.payload.selection import select
    from stepladder.pipeline.context import parse_payload

    name, text = next(iter(reported.dumps.items()))
    assert not isinstance(reported.compiled, PlainKernel)  # not run alone
    return select(parse_payload(text, name), reported.compiled.manifest.function or None).module


def step_of(dump: str) -> str:
    """Returns the step of a dump's name.

    Args:
        dump: `NN-step.mlir`.
    """
    return dump.removesuffix(".mlir").partition("-")[2]


def counter_row(counters: Counters) -> dict[str, object]:
    """Returns the counters of a run in a row: traffic, bank conflicts, instructions.

    Args:
        counters: of the run.
    """
    return {
        "global bytes": counters.total("bytes", "global"),
        "global sectors": counters.total("sectors", "global"),
        "shared bytes": counters.total("bytes", "shared"),
        "shared wavefronts": counters.total("wavefronts", "shared"),
        "bank conflicts": counters.total("conflicts", "shared"),
        "matrix instructions": sum(counters.instructions.values()),
        "barriers": sum(counters.barriers.values()),
    }


def counter_tables(counters: Counters) -> list[Table]:
    """Returns the counters of each op of a step.

    Args:
        counters: of the run of the step's IR.
    """
    accesses = [
        {
            "op": row.op,
            "memory": row.space,
            "kind": row.kind,
            **{name: getattr(row, name) for name in ("executions", "bytes", "sectors", "wavefronts", "conflicts")},
        }
        for row in counters.traffic.values()
    ]
    others = [
        {"op": name, "kind": kind, "executions by a warp": count}
        for kind, counts in (("matrix units", counters.instructions), ("barrier", counters.barriers))
        for name, count in counts.items()
    ]
    return [Table("Memory traffic of each op", accesses), Table("Instructions", others)]


def predicted(reported: Reported) -> tuple[Table | None, str]:
    """Returns the cost model's first choices for a matmul's payload, and a note; no table where it has none.

    Args:
        reported: of a kernel, or anything else, for which there is nothing.
    """
    manifest = reported.manifest
    if not isinstance(reported.compiled, Bundle) or manifest is None or not reported.dumps:
        return None, ""
    try:
        from stepladder.pipeline import explanation
        from stepladder.pipeline.automatic import AUTO
        from stepladder.pipeline.context import mlir_context
        from stepladder.pipeline.request import Request

        # Of a bundle it is not known which knobs were set.
        base_request = reported.request or Request(
            manifest.pipeline, {}, without=manifest.without, constant_weights=True
        )
        request = dataclasses.replace(
            base_request,
            pipeline=manifest.pipeline if base_request.pipeline == AUTO else base_request.pipeline,
            settings={**base_request.settings, "target": manifest.target},
            function=manifest.function or None,
            tuned=True,
        )
        with mlir_context():
            name, text = next(iter(reported.dumps.items()))
            (ranking,) = explanation.explain(text, name, request, CANDIDATES)
    except StepladderError as error:
        return None, f"No predicted times: {error.message}."
    shared, rows = candidate_rows(ranking.candidates)
    title = f"Predicted times on {ranking.found.gpu.name} in us, the first of {ranking.settings} settings"
    return Table(f"{title}; all have {shared}" if shared else title, rows), ranking.found.note


def measure(reported: Reported, *, launches: bool) -> Measured:
    """Checks and times a kernel, or a function, on the GPU, where there is one that it is for.

    Args:
        reported: of a bundle, of a payload, or of a kernel in a function, which is measured as a part of it.
        launches: whether to use the GPU.

    Returns:
        The verdict, the speed, and why there is none.
    """
    compiled = reported.compiled
    if reported.is_part:
        return Measured()
    if not launches:
        return Measured(lines=["No kernel was launched, and speed was not measured (--no-gpu)."])
    if isinstance(compiled, SpirvBundle):
        target = compiled.manifest.target
        return Measured(lines=[f"Speed was not measured: the kernel is for {target}, not for NVIDIA's GPUs."])
    assert not isinstance(compiled, PlainKernel)  # a part of a function
    print(f"{reported.name}: looking for a GPU", file=sys.stderr, flush=True)
    try:
        reports, details = (
            check_kernel(compiled, 0) if isinstance(compiled, Bundle) else check_function_bundle(compiled, 0)
        )
        measured = Measured(all(report.passed for report in reports), [report.describe() for report in reports])
        card = details["card"]
        measured.lines.insert(0, f"Numbers on {card['name']}, driver {card['driver_version']}:")
    except StepladderError as error:
        if error.status == NOT_EXECUTED:
            return Measured(lines=[f"No kernel was launched, and speed was not measured: {cause(error)}."])
        return Measured(False, [f"The kernel failed on the GPU: {error.message}."])
    if measured.passed:
        print(f"{reported.name}: measuring", file=sys.stderr, flush=True)
        try:
            _time(compiled, measured)
        except StepladderError as error:
            measured.lines.append(f"Speed was not measured: {cause(error)}.")
    return measured


def _time(compiled: Bundle | FunctionBundle, measured: Measured) -> None:
    """Adds the speed beside the baseline, or alone where there is none. Raises StepladderError."""
    from stepladder.measure.bench import bench_bundles
    from stepladder.measure.functions import bench_function, rows_of
    from stepladder.measure.report import table_rows, table_title

    if isinstance(compiled, FunctionBundle):
        result = bench_function(compiled, check=False)
        measured.table = Table(f"Speed: @{result['function']}; {result['card']['name']}", rows_of(result))
        return
    try:
        result = bench_bundles([compiled], check=False)
    except StepladderError as error:  # types that the library does not have, or no library
        measured.lines.append(f"There is no baseline: {error.message}.")
        result = bench_bundles([compiled], baseline="none", check=False)
    measured.table = Table(f"Speed: {table_title(result)}", table_rows(result))


def word(*answers: bool | None) -> str:
    """Returns the verdict of several checks; empty where none was made.

    Args:
        answers: whether a check passed, None for one that was not made.
    """
    verdicts = [answer for answer in answers if answer is not None]
    return verdict(all(verdicts)) if verdicts else ""
