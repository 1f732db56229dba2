"""What the emulator counts on each rung of the climbs, and how long it takes: docs/results/emulator.json.

    python docs/measure/emulator.py          no GPU needed; seconds are those of the machine at hand
"""

from __future__ import annotations

import json
import os
import platform
from datetime import datetime, timezone

from pieces import DOCS, said_command

from stepladder import build, climb, engine
from stepladder.emulator import matmul
from stepladder.payload import find_problem, matmul_text

SIZE = (256, 256, 128)
CLIMBS = ("wmma", "mma_sync")


def checked_steps(request: engine.Request, text: str) -> list[matmul.StepReport]:
    """Returns the reports of all steps of a pipeline, the input's first."""
    reports = []
    with engine.mlir_context():
        problem = build.problem_of(find_problem(engine.parse_payload(text, "payload.mlir")))

        def check(step: str, dumped: str) -> None:
            reports.append(matmul.check_step(step, dumped, f"{step}.mlir", problem, {0: "a", 1: "b", 2: "c"}))

        engine.run(text, "payload.mlir", request, begun=lambda dumped: check("input", dumped),
                   progress=lambda step: check(step.name, step.text))
    return reports


def main() -> None:
    """Runs the climbs and writes the result."""
    text = matmul_text(*SIZE)
    climbs: dict[str, list] = {}
    seconds: dict[str, dict[str, float]] = {}
    for name in CLIMBS:
        rungs = climb.CLIMBS[name]
        climbs[name] = []
        for title, without in rungs.rungs.items():
            reports = checked_steps(engine.Request(rungs.pipeline, rungs.settings, without=without), text)
            last = next(report for report in reversed(reports) if report.passed is not None)
            assert last.passed, f"{name}, {title}: {last.check.describe()}"
            counted = last.counters.as_dict()
            climbs[name].append({"title": title, "step": last.step, **{
                key: counted[key] for key in ("global", "shared", "instructions", "multiply_adds", "barriers")}})
            # The last rung is the whole pipeline.
            seconds[name] = {report.step: round(report.seconds, 3) for report in reports if report.passed is not None}
    result = {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"), "command": said_command(),
              "cores": os.cpu_count(), "python": platform.python_version(), "size": SIZE, "climbs": climbs,
              "seconds": seconds}
    (DOCS / "results" / "emulator.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
