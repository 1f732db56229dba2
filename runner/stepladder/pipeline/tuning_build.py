"""The first half of `stepladder tune`: the best settings by the cost model, built on all cores."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

from stepladder.measure.tuning.database import problem_key
from stepladder.measure.tuning.plan import REFUSED, Plan, Problem, Setting, write_plan
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.codegen.toolchain import tool_versions
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.definition import Knobs
from stepladder.pipeline.functions.matmul_parts import Part
from stepladder.pipeline.knob_query import read_query
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.processes import end_with_pool


@dataclass(frozen=True)
class _Job:
    part: Part
    path: Path


def make_plan(parts: Sequence[Part], top: int, progress: Callable[[str], None] = lambda line: None) -> Plan:
    """Returns what to build for matmuls: `top` settings of each problem, first what `compile` takes without a database,
    then the best by the cost model.

    Args:
        parts: of one pipeline; of those of one problem, such as equal layers of a model, the first is built.
        top: settings of a matmul at most.
        progress: called with a line for every matmul that is left out.

    Raises:
        StepladderError: bad input, or a pipeline that the model has no setting of.
    """
    problems: list[Problem] = []
    names: dict[str, str] = {}
    digest = target = ""
    for part in parts:
        with mlir_context():
            pipeline = library.load(part.request.pipeline)
            query = read_query(pipeline, part.request, part.text, part.name)
            ranked = knob_choice.rank(query)
            if ranked is None or not len(ranked):
                raise StepladderError(
                    f"the cost model has no setting of pipeline '{pipeline.name}' for this payload",
                    location=part.name,
                    notes=["`stepladder explain` reports the reason"],
                )
            key, digest, target = problem_key(query.problem), knob_choice.digest(pipeline), query.target
            fixed = {name: value for name, value in query.fixed.items() if name != "target"}
            candidates = [(candidate.knobs, candidate.microseconds) for candidate in ranked.first(top)]
            measured = knob_choice.measured_choice(query)
            if measured is not None:
                candidates = _with_default(candidates, measured.knobs, query)[:top]
        if key in names:
            progress(f"{part.name} is the same problem as {names[key]}, which is measured for both")
            continue
        names[key] = part.name
        number = len(problems)
        settings = [
            Setting({**fixed, **knobs}, round(microseconds, 3), f"{number:03d}/{place:02d}")
            for place, (knobs, microseconds) in enumerate(candidates)
        ]
        problems.append(Problem(part.name, key, tuple(settings)))
    return Plan(parts[0].request.pipeline, digest, target, tool_versions(), tuple(problems))


def _with_default(
    candidates: Sequence[tuple[Knobs, float]], knobs: Knobs, query: knob_choice.Query
) -> list[tuple[Knobs, float]]:
    """Returns candidates, knobs and predicted us, with the default knobs in front, and once."""
    default = next((candidate for candidate in candidates if knobs.items() <= candidate[0].items()), None)
    if default is None:
        ranked = knob_choice.rank(replace(query, fixed={**query.fixed, **knobs}))
        default = knobs, ranked.first(1)[0].microseconds if ranked is not None and len(ranked) else 0.0
    return [default, *(candidate for candidate in candidates if candidate is not default)]


def plan_digest(plan: Plan) -> str:
    """Returns a short text that tells a plan from others.

    Args:
        plan: of kernels to measure.
    """
    return hashlib.sha256(repr(plan).encode()).hexdigest()[:16]


def build_plan(
    folder: Path,
    plan: Plan,
    parts: Sequence[Part],
    jobs: int,
    progress: Callable[[str], None],
) -> None:
    """Builds all bundles of a plan that its folder does not have yet, each in a process of its own.

    Bundles that are built before an interruption are kept, and not built again. A setting that cannot be built has a
    file that says why, beside the path of its bundle.

    Args:
        folder: of the plan, which is written into it first.
        plan: as `make_plan` returns it.
        parts: those that the plan was made for.
        jobs: processes.
        progress: called with a line after every bundle.

    Raises:
        StepladderError: another plan in the folder, or a process that ended by itself (status FAILED).
    """
    write_plan(folder, plan)
    missing_jobs = list(_missing(folder, plan, parts))
    done = plan.count - len(missing_jobs)
    if done:
        progress(f"{done} of {plan.count} kernels are there already")
    executor = ProcessPoolExecutor(max_workers=max(1, min(jobs, len(missing_jobs) or 1)), initializer=_begin)
    try:
        names: dict[Future[str], _Job] = {executor.submit(_build, job): job for job in missing_jobs}
        for future in as_completed(names):
            done += 1
            refusal = future.result()
            path = names[future].path.relative_to(folder)
            progress(
                f"{done} of {plan.count}: {names[future].part.name}, {path}"
                + (f": cannot be built: {refusal}" if refusal else "")
            )
    except BrokenProcessPool:
        raise StepladderError(
            "a process that builds kernels terminated unexpectedly",
            status=FAILED,
            notes=["the same command continues from there; --jobs 1 shows the kernel at fault"],
        ) from None
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _missing(folder: Path, plan: Plan, parts: Sequence[Part]) -> Iterator[_Job]:
    part_of = {part.name: part for part in parts}
    for problem in plan.problems:
        part = part_of[problem.name]
        for setting in problem.settings:
            path = folder / setting.bundle
            if not path.exists() and not path.with_name(path.name + REFUSED).exists():
                settings = {**setting.knobs, **part.request.settings}
                yield _Job(replace(part, request=replace(part.request, settings=settings, tuned=False)), path)


def _begin() -> None:
    """Leaves Ctrl-C to the process that waits; a kernel that is being built is finished, unless that process ends by
    another signal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_pool()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _build(job: _Job) -> str:
    """Builds one bundle; returns why it cannot be built, or an empty text."""
    from stepladder.pipeline import build

    job.path.parent.mkdir(parents=True, exist_ok=True)
    with mlir_context():
        try:
            built = build.build(job.part.text, job.part.name, job.part.request)
        except StepladderError as error:
            job.path.with_name(job.path.name + REFUSED).write_text(error.message + "\n")
            return error.message
        # Folders may travel to the machine with the GPU.
        built.write(job.path, with_ir=False)
    return ""
