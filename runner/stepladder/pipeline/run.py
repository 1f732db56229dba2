"""Runs a pipeline over a payload, step by step, and keeps the IR after each.

Scripts in the repository do not change: for a run, the values of the knobs are written into the parsed module (`bind`),
and every `transform.include` is interpreted on its own (`interpret`).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stepladder.extension.lib import faults
from stepladder.mlir import ssa_names
from stepladder.mlir.bindings import ir
from stepladder.mlir.text import text_of
from stepladder.mlir.traverse import attributes_of, count_operations, walk
from stepladder.payload.facts import type_facts
from stepladder.payload.matmul import PayloadMatmul
from stepladder.payload.selection import Selection
from stepladder.pipeline import library, tile_programs
from stepladder.pipeline.bind import bind
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.definition import Knobs, Pipeline, Step
from stepladder.pipeline.dumps import dump_name
from stepladder.pipeline.expressions import Scope
from stepladder.pipeline.interpret import interpret_step
from stepladder.pipeline.knob_choice import FROM_SCRIPT, Source
from stepladder.pipeline.knob_query import complete_request, knob_sources, locate_matmul, select_function
from stepladder.pipeline.knobs import choose_knobs, evaluation_scope, with_products
from stepladder.pipeline.measured_knobs import Measured
from stepladder.pipeline.reproducers import write_reproducer
from stepladder.pipeline.request import Request
from stepladder.pipeline.requirements import check_requirements
from stepladder.pipeline.sequences import sequences_of
from stepladder.pipeline.step_selection import active_steps, step_span
from stepladder.runtime import activity
from stepladder.runtime.errors import FAILED, StepladderError


@dataclass(frozen=True)
class StepResult:
    """One step as it ran. The IR after it is printed, and its ops counted, when they are first asked for.

    Attributes:
        name: of the step.
        seconds: wall time that the interpreter took.
        snapshot: a copy of the module afterwards.
    """

    name: str
    seconds: float
    snapshot: ir.Operation = field(repr=False, compare=False)

    @functools.cached_property
    def text(self) -> str:
        """The IR afterwards."""
        return text_of(self.snapshot)

    @functools.cached_property
    def operations(self) -> int:
        """Number of ops in the module afterwards."""
        return count_operations(self.snapshot)


@dataclass
class Run:
    """A finished run of a pipeline.

    Attributes:
        module: the payload after the last step, which belongs to the MLIR context of the run.
        pipeline: with the knobs' values bound.
        matmul: that of the payload, with the products that the knobs choose; None where the run began from a dump, or
            the pipeline takes whole functions, or a XeTile program computes none.
        knobs: the value of every knob.
        scope: the values that expressions over knobs may use.
        steps: those that ran, in order.
        input_text: the payload as MLIR prints it.
        sources: where each knob's value comes from, as a message shows it.
        knob_source: the source of the knobs that were chosen.
        measured: which measured knobs apply to the pipeline; None where the request asks for none.
        selection: the function of the payload that is compiled; None where the run began from a dump.
    """

    module: ir.Module
    pipeline: Pipeline
    matmul: PayloadMatmul | None
    knobs: Knobs
    scope: Scope
    steps: list[StepResult]
    input_text: str
    sources: dict[str, str]
    knob_source: Source = FROM_SCRIPT
    measured: Measured | None = None
    selection: Selection | None = None

    def dumps(self) -> dict[str, str]:
        """Returns file name -> IR: `00-input.mlir`, then `NN-step.mlir` for every step that ran."""
        texts = [("input", self.input_text), *((step.name, step.text) for step in self.steps)]
        return {dump_name(number, name): text for number, (name, text) in enumerate(texts)}


def run_pipeline(
    text: str,
    name: str,
    request: Request,
    *,
    reproducer_dir: Path | None = None,
    begun: Callable[[str], None] | None = None,
    progress: Callable[[StepResult], None] | None = None,
) -> Run:
    """Runs a pipeline over a payload, in the current MLIR context (`context.mlir_context`).

    Args:
        text: the payload.
        name: the file it came from, for messages.
        request: what to run.
        reproducer_dir: the folder for a failing step's reproducer; None for a fresh temporary one.
        begun: called with the payload as MLIR prints it, after all checks that precede the first step.
        progress: called after each step that ran.

    Returns:
        The module after the last step, and what led to it.

    Raises:
        StepladderError: bad input of any kind, or a step that fails (status FAILED, with a reproducer).
    """
    pipeline = library.load(request.pipeline)
    first, _ = step_span(pipeline, request)
    choose_knobs(pipeline, request)  # an error in the options comes before one in the payload
    module = parse_payload(text, name)
    input_text = text_of(module)
    original, program = request, tile_programs.read(pipeline, module, request)
    if program is not None:
        selection, matmul = program.selection, program.matmul
        module, measured, source = selection.module, None, tile_programs.FROM_TILES
        request = tile_programs.requested(pipeline, original, program)
    else:
        selection = select_function(module, name, request) if first == 0 else Selection(module)
        module = selection.module
        matmul = locate_matmul(selection, name) if first == 0 and not pipeline.whole_function else None
        request, source, measured = complete_request(pipeline, original, module, matmul)
    knobs = choose_knobs(pipeline, request)
    if matmul is not None:
        matmul = replace(matmul, problem=with_products(matmul.problem, knobs))
    facts = matmul.facts() if matmul is not None else type_facts(module)
    scope = evaluation_scope(pipeline, knobs, facts, request.without)
    active = active_steps(pipeline, scope, request)
    steps = [pipeline.steps[index] for index in active]
    check_requirements(pipeline, steps, scope, matmul.location if matmul is not None else None, original.settings)
    bind(pipeline, steps, knobs, scope, module)

    if begun:
        begun(input_text)
    results = _run_steps(pipeline, active, module, request, reproducer_dir, progress)
    sources = knob_sources(pipeline, original, request, source)
    return Run(module, pipeline, matmul, knobs, scope, results, input_text, sources, source, measured, selection)


def run_again(run: Run, request: Request) -> Run:
    """Runs a pipeline of whole functions again with other knobs, but for the first steps, which do not depend on them.

    Args:
        run: of the pipeline, from its first step on; it stays as it is.
        request: of the same payload and pipeline.

    Returns:
        What `run_pipeline` returns for the request, with the results of the shared steps.

    Raises:
        StepladderError: as `run_pipeline`.
    """
    pipeline = library.load(request.pipeline)
    knobs = choose_knobs(pipeline, request)
    scope = run.scope.replace(**knobs)
    active = active_steps(pipeline, scope, request)
    steps = [pipeline.steps[index] for index in active]
    check_requirements(pipeline, steps, scope, None, request.settings)
    changed_knobs = {name for name, value in knobs.items() if run.knobs[name] != value}
    shared = 0
    for result, step in zip(run.steps, steps):
        if result.name != step.name or not changed_knobs.isdisjoint(_names_in(pipeline, step, scope)):
            break
        shared += 1
    assert shared, "what a whole function begins with depends on no knob"
    snapshot = run.steps[shared - 1].snapshot
    module = ir.Module.create(snapshot.location)
    for name, attribute in attributes_of(snapshot).items():
        module.operation.attributes[name] = attribute
    for op in snapshot.regions[0].blocks[0].operations:
        module.body.append(op.operation.clone())
    bind(pipeline, steps, knobs, scope, module)
    results = [*run.steps[:shared], *_run_steps(pipeline, active[shared:], module, request, None, None)]
    sources = knob_sources(pipeline, request, request, FROM_SCRIPT)
    return replace(run, module=module, pipeline=pipeline, knobs=knobs, scope=scope, steps=results, sources=sources)


def _names_in(pipeline: Pipeline, step: Step, scope: Scope) -> set[str]:
    """Returns the names that the attributes of a step's ops depend on."""
    names: set[str] = set()
    for sequence in sequences_of(pipeline, [step]):
        for op in walk(sequence):
            for entry in ir.DictAttr(op.attributes["knobs"]) if "knobs" in op.attributes else ():
                names.update(scope.roots(ir.StringAttr(entry.attr).value))
    return names


def _run_steps(
    pipeline: Pipeline,
    active: Sequence[int],
    module: ir.Module,
    request: Request,
    reproducer_dir: Path | None,
    progress: Callable[[StepResult], None] | None,
) -> list[StepResult]:
    """Runs the steps with given indices over a module."""
    results: list[StepResult] = []
    snapshot = module.operation.clone()
    for index in active:
        results.append(_run_step(pipeline, index, module, snapshot, request, reproducer_dir))
        snapshot = results[-1].snapshot
        if progress:
            progress(results[-1])
    return results


def _run_step(
    pipeline: Pipeline,
    index: int,
    module: ir.Module,
    before: ir.Operation,
    request: Request,
    reproducer_dir: Path | None,
) -> StepResult:
    """Runs the step with an index; `before` is the IR that it runs over, for a reproducer."""
    step = pipeline.steps[index]
    began = time.perf_counter()
    with activity.during(f"step '{step.name}' of the pipeline '{pipeline.name}'"):
        failure = interpret_step(pipeline, index, module)
    seconds = time.perf_counter() - began
    if failure is not None:
        raise StepladderError(
            f"step '{step.name}': {failure.message}",
            location=failure.location or str(step.path),
            status=FAILED,
            traceback=faults.take(),
            notes=[
                f"the step is defined in {step.path}",
                *failure.notes,
                *_notes_on_dumps(pipeline, request),
                *write_reproducer(step.name, text_of(before), request, reproducer_dir),
            ],
        )
    ssa_names.hand_on_to_kernels(module)
    return StepResult(step.name, seconds, module.operation.clone())


def _notes_on_dumps(pipeline: Pipeline, request: Request) -> list[str]:
    """Returns what the input of a run that begins after the first step has to be; nothing for other runs."""
    first, _ = step_span(pipeline, request)
    if first == 0:
        return []
    name = pipeline.steps[first].name
    return [f"step '{name}' expects the IR that the steps before it leave, such as a file of --dump-dir"]
