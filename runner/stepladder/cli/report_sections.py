"""The sections of the page of `stepladder report`, one for each kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stepladder.cli.report_checks import (
    Emulated,
    counter_row,
    counter_tables,
    emulate_steps,
    measure,
    predicted,
    step_of,
    word,
)
from stepladder.cli.report_inputs import Reported, summary_of
from stepladder.cli.report_page import Section, Step, Table
from stepladder.runtime.bundle import FunctionBundle, Manifest, PlainKernel

if TYPE_CHECKING:
    from stepladder.emulator.step_report import StepReport
    from stepladder.runtime.bundle.spirv import SpirvManifest


def section_of(reported: Reported, *, emulate: str, launches: bool) -> Section:
    """Runs the checks of a kernel or of a function, and returns its section.

    Args:
        reported: the kernel.
        emulate: `never`, `small` or `always`.
        launches: whether to use a GPU.
    """
    emulated = emulate_steps(reported, emulate)
    times, note = predicted(reported)
    measured = measure(reported, launches=launches)
    tables = [_knobs(reported), times, _by_step(emulated), measured.table]
    return Section(
        reported.name,
        word(emulated.passed, measured.passed),
        _facts(reported),
        [line for line in (*measured.lines, emulated.note, note) if line],
        [table for table in tables if table is not None],
        _steps(reported, emulated),
        reported.is_part,
    )


def _facts(reported: Reported) -> dict[str, str]:
    compiled = reported.compiled
    if isinstance(compiled, FunctionBundle):
        manifest = compiled.manifest
        facts = {"problem": manifest.describe(), "target": manifest.target, "tools": _tools(manifest.tool_versions)}
        launches = [f"{launch.stage} ({launch.folder})" for launch in manifest.launches]
        return {**facts, "launches": ", ".join(launches)}
    if isinstance(compiled, PlainKernel):
        problems = "; ".join(problem.describe() for problem in compiled.problems)
        return {"problem": problems or "no matmul", "kernel": compiled.kernel_name, **_resources(compiled)}
    manifest = compiled.manifest
    facts = {
        "problem": "a XeTile program" if manifest.problem is None else manifest.problem.describe(),
        "function": f"@{manifest.function}" if manifest.function else "",
        "pipeline": manifest.pipeline,
        "without": ", ".join(manifest.without),
        "target": manifest.target,
        "kernel": manifest.kernel_name,
        **(_resources(manifest) if isinstance(manifest, Manifest) else _xe_resources(manifest)),
    }
    if isinstance(manifest, Manifest):
        for kernel in manifest.front:
            resources = ", ".join(f"{name} {value}" for name, value in _resources(kernel).items())
            facts[f"before it: {kernel.kernel_name}"] = resources
    facts["tools"] = _tools(manifest.tool_versions)
    return {name: value for name, value in facts.items() if value}


def _resources(kernel: Any) -> dict[str, str]:  # noqa: ANN401 (a manifest, or one of three kernels with these fields)
    shared = f"{kernel.static_shared_memory} bytes static"
    dynamic = getattr(kernel, "dynamic_shared_memory", 0)
    return {
        "grid": _extents(kernel.grid),
        "block": _extents(kernel.block),
        "cluster": _extents(getattr(kernel, "cluster", (1, 1, 1))),
        "registers": f"{kernel.registers} per thread",
        "spills": f"{kernel.spills['stores']} bytes of stores, {kernel.spills['loads']} of loads per thread",
        "shared memory": f"{shared}, {dynamic} dynamic, per block",
    }


def _xe_resources(manifest: SpirvManifest) -> dict[str, str]:
    return {
        "grid": _extents(manifest.grid),
        "work-group": f"{_extents(manifest.work_group)}, sub-groups of {manifest.subgroup_size}",
        "shared local memory": f"{manifest.shared_local_memory} bytes per work-group",
        "SPIR-V": "valid" if manifest.validated else "not validated",
    }


def _extents(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


def _tools(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _knobs(reported: Reported) -> Table | None:
    """Returns the knobs of a matmul's kernel, with where their values come from, as far as that is known."""
    from stepladder.pipeline.definition import value_text

    manifest = reported.manifest
    if manifest is None or not manifest.knobs:
        return None
    rows: list[dict[str, object]] = []
    for name, value in manifest.knobs.items():
        row: dict[str, object] = {"knob": name, "value": value_text(value)}
        if reported.sources:
            row["from"] = reported.sources.get(name, "")
        rows.append(row)
    return Table("Knobs" if reported.sources else "Knobs (where they come from is not recorded)", rows)


def _by_step(emulated: Emulated) -> Table | None:
    """Returns a row of counters for each step that was counted and changed the IR."""
    rows: list[dict[str, object]] = []
    for name, report in emulated.reports.items():
        if report.counters is not None and report.counters.traffic and not report.is_unchanged:
            results = word(report.passed)
            seconds = f"{report.seconds:.1f}"
            rows.append(
                {
                    "step": name.removesuffix(".mlir"),
                    "results": results,
                    **counter_row(report.counters),
                    "seconds": seconds,
                }
            )
    return Table("Counters of the emulator, of the whole launch, after each step that changes the IR of a kernel", rows)


def _steps(reported: Reported, emulated: Emulated) -> list[Step]:
    steps = []
    for name, text in reported.dumps.items():
        step, report = step_of(name), emulated.reports.get(name)
        summary = "The payload." if step == "input" and not steps else summary_of(step, reported)
        has_counters = report is not None and not report.is_unchanged and report.counters is not None
        tables = counter_tables(report.counters) if has_counters and report is not None and report.counters else []
        verdict = word(report.passed) if report is not None else ""
        steps.append(Step(name.removesuffix(".mlir"), summary, text, verdict, _said(report), tables))
    return steps


def _said(report: StepReport | None) -> list[str]:
    """Returns what the check of a step says of its results, and what the sanitizer found."""
    if report is None:
        return []
    if report.passed is None:
        return [f"Not executed: {report.unknown}."]
    results = [] if report.check is None else [report.check.describe()]
    return [*results, *report.notes()]
