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
from stepladder.measure.tuning.plan import Plan, Problem, Setting, write_plan
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.codegen.toolchain import tool_versions
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.definition import Knobs
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request
from stepladder.runtime import bundle
from stepladder.runtime.errors import FAILED, StepladderError

# Suffix of a file beside the path of a bundle, with the reason why there is no bundle.
REFUSED = ".refused"


@dataclass(frozen=True)
class Payload:
    """A payload to tune: its text, and the file it came from."""

    text: str
    name: str


@dataclass(frozen=True)
class _Job:
    payload: Payload
    request: Request
    path: Path


def make_plan(
    payloads: Sequence[Payload], request: Request, top: int, progress: Callable[[str], None] = lambda line: None
) -> Plan:
    """Returns what to build for payloads: `top` settings of each problem, first what `compile` takes without a
    database, then the best by the cost model.

    Args:
        payloads: of one matmul each; of those of one problem, such as equal layers of a model, the first is built.
        request: pipeline, and knobs whose values are given.
        top: settings of a payload at most.
        progress: called with a line for every payload that is left out.

    Raises:
        StepladderError: bad input, or a pipeline that the model has no setting of.
    """
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    digest = target = ""
    for payload in payloads:
        with mlir_context():
            pipeline = library.load(request.pipeline)
            query = read_query(pipeline, request, payload.text, payload.name)
            ranked = knob_choice.rank(query)
            if ranked is None or not len(ranked):
                raise StepladderError(
                    f"the cost model has no setting of pipeline '{pipeline.name}' for this payload",
                    location=payload.name,
                    notes=["`stepladder explain` says why"],
                )
            key, digest, target = problem_key(query.problem), knob_choice.digest(pipeline), query.target
            fixed = {name: value for name, value in query.fixed.items() if name != "target"}
            candidates = [(candidate.knobs, candidate.microseconds) for candidate in ranked.first(top)]
            measured = knob_choice.measured_choice(query)
            if measured is not None:
                candidates = _with_default(candidates, measured.knobs, query)[:top]
        if key in seen:
            progress(f"{payload.name} is the same problem as {seen[key]}, which is measured for both")
            continue
        seen[key] = payload.name
        number = len(problems)
        settings = [
            Setting({**fixed, **knobs}, round(microseconds, 3), f"{number:03d}/{place:02d}")
            for place, (knobs, microseconds) in enumerate(candidates)
        ]
        problems.append(Problem(payload.name, key, tuple(settings)))
    return Plan(request.pipeline, digest, target, tool_versions(), tuple(problems))


def _with_default(
    candidates: Sequence[tuple[Knobs, float]], knobs: Knobs, query: knob_choice.Query
) -> list[tuple[Knobs, float]]:
    """Returns candidates, knobs and predicted us, with the default knobs in front, and once."""
    own = next((one for one in candidates if knobs.items() <= one[0].items()), None)
    if own is None:
        ranked = knob_choice.rank(replace(query, fixed={**query.fixed, **knobs}))
        own = knobs, ranked.first(1)[0].microseconds if ranked is not None and len(ranked) else 0.0
    return [own, *(one for one in candidates if one is not own)]


def plan_digest(plan: Plan) -> str:
    """Returns a short text that tells a plan from others.

    Args:
        plan: of kernels to measure.
    """
    return hashlib.sha256(repr(plan).encode()).hexdigest()[:16]


def build_plan(
    folder: Path,
    plan: Plan,
    payloads: Sequence[Payload],
    request: Request,
    jobs: int,
    progress: Callable[[str], None],
) -> None:
    """Builds all bundles of a plan that its folder does not have yet, each in a process of its own.

    Bundles that are built before an interruption are kept, and not built again. A setting that cannot be built has a
    file that says why, beside the place of its bundle.

    Args:
        folder: of the plan, which is written into it first.
        plan: as `make_plan` returns it.
        payloads: those that the plan was made for.
        request: that of the plan.
        jobs: processes.
        progress: called with a line after every bundle.

    Raises:
        StepladderError: another plan in the folder, or a process that ended by itself (status FAILED).
    """
    write_plan(folder, plan)
    wanted = list(_missing(folder, plan, payloads, request))
    done = plan.count - len(wanted)
    if done:
        progress(f"{done} of {plan.count} kernels are there already")
    executor = ProcessPoolExecutor(max_workers=max(1, min(jobs, len(wanted) or 1)), initializer=_leave_interrupts)
    try:
        names: dict[Future[str], _Job] = {executor.submit(_build, job): job for job in wanted}
        for future in as_completed(names):
            done += 1
            refused = future.result()
            shown = names[future].path.relative_to(folder)
            progress(
                f"{done} of {plan.count}: {names[future].payload.name}, {shown}"
                + (f": cannot be built: {refused}" if refused else "")
            )
    except BrokenProcessPool:
        raise StepladderError(
            "a process that builds kernels ended by itself",
            status=FAILED,
            notes=["the same command goes on where it stopped; --jobs 1 shows which kernel it is"],
        ) from None
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _missing(folder: Path, plan: Plan, payloads: Sequence[Payload], request: Request) -> Iterator[_Job]:
    texts = {payload.name: payload for payload in payloads}
    for problem in plan.problems:
        payload = texts[problem.name]
        for setting in problem.settings:
            path = folder / setting.bundle
            if not path.exists() and not path.with_name(path.name + REFUSED).exists():
                yield _Job(payload, replace(request, settings={**setting.knobs, **request.settings}, tuned=False), path)


def _leave_interrupts() -> None:
    """Leaves Ctrl-C to the process that waits; a kernel that is being built is finished."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _build(job: _Job) -> str:
    """Builds one bundle; returns why it cannot be built, or an empty text."""
    from stepladder.pipeline import build

    job.path.parent.mkdir(parents=True, exist_ok=True)
    with mlir_context():
        try:
            built = build.build(job.payload.text, job.payload.name, job.request)
        except StepladderError as error:
            job.path.with_name(job.path.name + REFUSED).write_text(error.message + "\n")
            return error.message
        # Without the dumps: folders may travel to the machine with the GPU.
        bundle.write_bundle(job.path, built.manifest, built.code.cubin, built.code.ptx, {}, reference=built.reference)
    return ""
