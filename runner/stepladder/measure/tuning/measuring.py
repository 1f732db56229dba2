"""The second half of `stepladder tune`: measures the kernels that the first half built, and stores the fastest in the
database.

Kernels run in another process (`worker`), so that one that hangs, or that breaks the GPU's context, costs that process
and no more: it is named, excluded, and the others are measured anew.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from stepladder.measure.tuning.database import FAILED_CHECK, PASSED, Candidate, Database, Entry
from stepladder.measure.tuning.plan import REFUSED, WRONG_RESULTS, Plan, Problem, Setting, read_plan
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.processes import environment_of_module

# Seconds without a line from the process that measures, after which what it said it would run counts as hanging.
PATIENCE = 60.0
_WORKER = (sys.executable, "-m", "stepladder.measure.tuning.worker")


@dataclass
class Measured:
    """The outcome of measuring a problem: the result of the process, and settings that were excluded, with why."""

    result: dict[str, Any]
    excluded: dict[str, str] = field(default_factory=dict)


class _Lines:
    """Lines of a process, read by a thread, so that waiting for the next one can end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def next(self, seconds: float) -> str | None:
        """Returns the next line, None at the end; raises queue.Empty after so many seconds."""
        return self._lines.get(timeout=seconds)


def measure_problem(
    folder: Path, number: int, *, worker: Sequence[str] = _WORKER, patience: float = PATIENCE
) -> Measured:
    """Measures the settings of one problem of a plan.

    Args:
        folder: of the plan.
        number: of the problem in it.
        worker: the command that measures.
        patience: seconds without a line after which a kernel counts as hanging.

    Returns:
        What the worker measured, and the settings that were excluded.

    Raises:
        StepladderError: nothing could be executed, or no setting is left.
    """
    excluded: dict[str, str] = {}
    while True:
        outcome = _run_worker([*worker, str(folder), str(number), *excluded], patience, excluded)
        if outcome is not None:
            return Measured(outcome, excluded)


def _run_worker(command: Sequence[str], patience: float, excluded: dict[str, str]) -> dict[str, Any] | None:
    """Runs the process that measures once; returns its result, or None where it has to run again without a setting,
    which is then among `excluded`."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment_of_module())
    running = ""
    try:
        lines = _Lines(process)
        while (line := lines.next(patience)) is not None:
            message = json.loads(line)
            running = message.get("candidate", running)
            if "excluded" in message:
                excluded[message["excluded"]] = message["reason"]
            if "error" in message:
                raise StepladderError(message["error"], status=message["status"])
            if "result" in message:
                return message["result"]
        reason = f"its process ended with status {process.wait()}"
    except queue.Empty:
        reason = f"no result within {patience:.0f} s"
    finally:
        process.kill()
        process.wait()
    if not running or running in excluded or running == "cublas":
        raise StepladderError(
            f"the process that measures does not come back: {running or 'at its start'}, {reason}", status=FAILED
        )
    excluded[running] = reason
    return None


def measure_plan(
    folder: Path,
    database: Database,
    *,
    again: bool = False,
    progress: Callable[[str], None],
    worker: Sequence[str] = _WORKER,
    patience: float = PATIENCE,
) -> list[Entry]:
    """Measures all problems of a plan, and adds each winner to the database as soon as it is known.

    Args:
        folder: of the plan, with its bundles.
        database: where winners go.
        again: measure problems too that the database has from the same tools.
        progress: called with a line after every problem.
        worker: as in `measure_problem`.
        patience: likewise.

    Returns:
        The entries of the plan's problems, those that the database had among them.

    Raises:
        StepladderError: nothing could be executed, or the database cannot be written; what was measured is kept.
    """
    plan = read_plan(folder)
    entries: list[Entry] = []
    for number, problem in enumerate(plan.problems):
        place = f"{number + 1} of {len(plan.problems)}: {problem.name}"
        stored = [
            entry
            for entry in database.find(problem.key, plan.digest, plan.target)
            if entry.tool_versions == plan.tool_versions
        ]
        if stored and not again:
            progress(f"{place}: measured before, {stored[0].date}: {_verdict(stored[0])}")
            entries.append(stored[0])
            continue
        measurement = measure_problem(folder, number, worker=worker, patience=patience)
        for name, reason in measurement.excluded.items():
            progress(f"{place}: excluded: {_setting(problem, name).describe()}: {reason}")
        entry = _entry(folder, plan, problem, measurement)
        database.add(entry)
        entries.append(entry)
        default_time = measurement.result["medians"].get(problem.settings[0].bundle)
        speedup = f", {default_time / entry.microseconds:.2f} x the default knobs" if default_time else ""
        progress(f"{place}: {_verdict(entry)}{speedup}")
    return entries


def _setting(problem: Problem, name: str) -> Setting:
    return next(setting for setting in problem.settings if setting.bundle == name)


def _candidate(folder: Path, setting: Setting, measurement: Measured) -> Candidate:
    """Returns the measured time of a setting, or the reason why it has none."""
    microseconds = measurement.result["medians"].get(setting.bundle)
    reason = measurement.excluded.get(setting.bundle, "")
    check = PASSED if microseconds is not None else FAILED_CHECK if reason.startswith(WRONG_RESULTS) else None
    if microseconds is None and not reason:
        refusal = folder / f"{setting.bundle}{REFUSED}"
        reason = f"cannot be built: {refusal.read_text().strip()}" if refusal.exists() else "not built"
    return Candidate(setting.knobs, setting.microseconds, microseconds, check, reason)


def _entry(folder: Path, plan: Plan, problem: Problem, measurement: Measured) -> Entry:
    result = measurement.result
    reasons = {_setting(problem, name).describe(): reason for name, reason in measurement.excluded.items()}
    return Entry(
        result["gpu"],
        plan.target,
        problem.key,
        plan.pipeline,
        plan.digest,
        _setting(problem, result["winner"]).knobs,
        result["microseconds"],
        result["of_cublas"],
        result["measured"],
        datetime.now(timezone.utc).isoformat(timespec="seconds"),
        plan.tool_versions,
        reasons,
        tuple(_candidate(folder, setting, measurement) for setting in problem.settings),
    )


def _verdict(entry: Entry) -> str:
    ratio = f", {entry.of_cublas:.3f} of cuBLAS" if entry.of_cublas is not None else ""
    knobs = " ".join(f"{name}={value}" for name, value in entry.knobs.items())
    return f"{entry.microseconds:.1f} us{ratio}: {knobs}"
