"""Runs a pipeline over a batch of matmuls, and some of the IR that it leaves on the emulator."""

from __future__ import annotations

from stepladder.emulator import matmul
from stepladder.payload import reference_export
from stepladder.payload.matmul import find_matmul
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline

# Reports by what was checked: knobs of late steps leave the IR of early ones as it is.
_reports: dict[str, matmul.StepReport] = {}

SIZES = ("batch", "m", "n", "k")


def check_batch(pipeline: str, settings: dict, sizes: tuple[int, int, int, int], **options: bool | str) -> list[str]:
    """Checks the input, the first, the middle and the last step's IR that the emulator runs; returns their names.

    Args:
        pipeline: its name.
        settings: of its knobs.
        sizes: batch, m, n and k.
        options: of `matmul_text`.
    """
    batch, *others = sizes
    text = matmul_text(*others, batch=batch, **options)
    with mlir_context():
        return check_text(text, Request(pipeline, settings))


def check_text(text: str, request: Request) -> list[str]:
    """As `check_batch`, of a payload, in the current context."""
    module = parse_payload(text, "batch.mlir")
    found = find_matmul(module)
    reference = reference_export.export(module, found.roles)
    run = run_pipeline(text, "batch.mlir", request)
    count = len(run.steps) + 1
    checked = []
    for number in (0, count // 3, 2 * count // 3, *range(count - 1, 0, -1)):
        result = run.steps[number - 1]
        step, dumped = (result.name, result.text) if number else ("input", run.input_text)
        key = repr((dumped, found.problem, reference))
        if key not in _reports:
            _reports[key] = matmul.check_step(step, dumped, f"{step}.mlir", found.problem, reference)
        report = _reports[key]
        assert report.check is not None or checked, f"{step}: {report.unknown}"
        if report.check is None:  # below the emulator: the step before it
            continue
        assert report.check.passed, f"{step}: {report.check.describe()}"
        assert not report.findings, f"{step}: {report.findings[0].render()}"
        checked.append(step)
        if len(checked) == 4:
            return checked
    return checked
