"""The knobs of a request for one payload: those given, and the best known values of the others."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

from stepladder.mlir.bindings import ir
from stepladder.payload.constants import check_constants
from stepladder.payload.matmul import PayloadMatmul, matmul_of
from stepladder.payload.selection import Selection, select
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.definition import Condition, Knobs, KnobValue, Pipeline, Step
from stepladder.pipeline.expressions import Scope, Value, evaluate
from stepladder.pipeline.knob_choice import FROM_SCRIPT, MEASURED, Choice, Query, Source, choices
from stepladder.pipeline.knobs import (
    changes_facts,
    changing_steps,
    choose_knobs,
    evaluation_scope,
    with_products,
)
from stepladder.pipeline.measured_knobs import Measured, find_measured
from stepladder.pipeline.request import EARLY_WEIGHTS, LAUNCH_TRIGGER, Request
from stepladder.pipeline.requirements import check_requirements
from stepladder.pipeline.step_selection import active_steps
from stepladder.pipeline.trial import continued, is_refused
from stepladder.runtime import targets
from stepladder.runtime.errors import StepladderError


def locate_matmul(selection: Selection, name: str) -> PayloadMatmul:
    """Returns the matmul of a payload.

    Args:
        selection: the function of the payload that is compiled.
        name: the file it came from, the location of an error about the payload as a whole.

    Raises:
        StepladderError: as `matmul_of`.
    """
    try:
        matmul = matmul_of(selection)
        check_constants(selection.constants, matmul.roles)
        return matmul
    except StepladderError as error:
        error.location = error.location or name
        raise


def select_function(module: ir.Module, name: str, request: Request) -> Selection:
    """Returns the function of a payload that a request compiles.

    Args:
        module: the payload.
        name: the file it came from, the location of an error about the payload as a whole.
        request: may name the function.

    Raises:
        StepladderError: as `select`.
    """
    try:
        return select(module, request.function)
    except StepladderError as error:
        error.location = error.location or name
        raise


def make_query(pipeline: Pipeline, request: Request, matmul: PayloadMatmul) -> Query:
    """Returns the query for the knobs that a request does not give.

    Args:
        pipeline: loaded in the current MLIR context; no values are bound yet.
        request: the knobs whose values are given, and the steps left out.
        matmul: of the payload.

    Raises:
        StepladderError: settings that the pipeline does not accept.
    """
    knobs = choose_knobs(pipeline, request)
    set_knobs = {knob for name in request.without for knob in pipeline.step(name).left_out}
    set_knobs |= {"target", *request.settings}
    if not request.constant_weights:
        set_knobs |= {EARLY_WEIGHTS}
    if request.in_function:
        set_knobs |= {LAUNCH_TRIGGER}
    fixed = {name: value for name, value in knobs.items() if name in set_knobs}
    facts = _facts_of(pipeline, request, knobs, matmul)
    return Query(
        pipeline,
        request.without,
        fixed,
        with_products(matmul.problem, knobs),
        facts,
        str(knobs.get("target", "")),
        find_measured(pipeline),
        request.gpu,
        matmul.location,
        changes_facts(pipeline, knobs, matmul.facts(), request.without),
        _alternatives(pipeline, request, knobs, fixed, matmul),
    )


def _alternatives(
    pipeline: Pipeline, request: Request, knobs: Knobs, fixed: Mapping[str, KnobValue], matmul: PayloadMatmul
) -> tuple[tuple[dict[str, int | str], dict[str, Value]], ...]:
    """Returns the knobs that are not given and let steps run that change facts, with the facts that follow: each alone,
    then all combinations of them."""
    switches = [_switch(pipeline, step, fixed) for step in changing_steps(pipeline, request.without)]
    usable = [switch for switch in switches if switch]
    alternatives: list[tuple[dict[str, int | str], dict[str, Value]]] = []
    facts_so_far = [_facts_of(pipeline, request, knobs, matmul)]
    for count in range(1, len(usable) + 1):
        for combination in itertools.combinations(usable, count):
            values = {name: value for switch in combination for name, value in switch.items()}
            facts = _facts_of(pipeline, request, {**knobs, **values}, matmul)
            if facts not in facts_so_far:
                facts_so_far.append(facts)
                alternatives.append((values, facts))
    return tuple(alternatives)


def _facts_of(pipeline: Pipeline, request: Request, knobs: Knobs, matmul: PayloadMatmul) -> dict[str, Value]:
    """Returns the facts that expressions of steps see with the values of knobs."""
    scope = evaluation_scope(pipeline, knobs, matmul.facts(), request.without)
    return {name: scope[name] for name in scope if name not in pipeline.knobs and name not in pipeline.derived}


def _switch(pipeline: Pipeline, step: Step, fixed: Mapping[str, KnobValue]) -> dict[str, int | str]:
    """Returns the value of the one knob that decides whether a step runs, with which it runs; none if it is given."""
    condition = step.condition
    names = Scope(dict.fromkeys(pipeline.knobs, 0), pipeline.derived).roots(condition.expression) if condition else []
    if condition is None or len(names) != 1 or names[0] not in pipeline.knobs or names[0] in fixed:
        return {}
    knob = pipeline.knobs[names[0]]
    options = [option for option in knob.options if option != knob.default]
    value = next((option for option in options if _selects(condition, knob.name, option)), None)
    return {} if value is None else {knob.name: value}


def _selects(condition: Condition, name: str, value: KnobValue) -> bool:
    return evaluate(condition.expression, Scope({name: value}, {})) == condition.region


def read_query(pipeline: Pipeline, request: Request, text: str, name: str) -> Query:
    """Returns the query for the knobs of a payload that is not run.

    Args:
        pipeline: loaded in the current MLIR context.
        request: pipeline and the knobs whose values are given.
        text: the payload.
        name: the file it came from, for messages.

    Raises:
        StepladderError: as `read_payload`.
    """
    return make_query(pipeline, request, read_payload(pipeline, request, text, name)[1])


def read_payload(pipeline: Pipeline, request: Request, text: str, name: str) -> tuple[ir.Module, PayloadMatmul]:
    """Returns a payload whose knobs are asked for, and its matmul.

    Args:
        pipeline: loaded in the current MLIR context.
        request: pipeline and the knobs whose values are given.
        text: the payload.
        name: the file it came from, for messages.

    Raises:
        StepladderError: bad input of any kind.
    """
    choose_knobs(pipeline, request)
    if "target" not in pipeline.knobs:
        raise StepladderError(
            f"pipeline '{pipeline.name}' has no knob 'target', the GPU that its kernels are for",
            location=str(pipeline.path),
        )
    if _is_for_xe(pipeline):
        raise StepladderError(
            f"pipeline '{pipeline.name}' is for {' and '.join(targets.XE_TARGETS)}, and times are predicted for "
            "NVIDIA's GPUs only",
            location=str(pipeline.path),
        )
    selection = select_function(parse_payload(text, name), name, request)
    return selection.module, locate_matmul(selection, name)


def _is_for_xe(pipeline: Pipeline) -> bool:
    """Returns whether a pipeline's kernels are for Intel's GPUs, of which nothing is measured or modelled."""
    return pipeline.knobs["target"].default in targets.XE_TARGETS


def complete_request(
    pipeline: Pipeline, request: Request, module: ir.Module, matmul: PayloadMatmul | None
) -> tuple[Request, Source, Measured | None]:
    """Returns a request that also gives the best knobs known for the payload.

    Args:
        pipeline: loaded in the current MLIR context.
        request: returned as it is unless it is `tuned`.
        module: the payload.
        matmul: that of the payload; None for a dump.

    Returns:
        The request, the source of the knobs that were chosen, and which measured knobs apply to the pipeline (None
        where the request asks for none).

    Raises:
        StepladderError: settings that the pipeline does not accept.
    """
    if not request.tuned or matmul is None or "target" not in pipeline.knobs or _is_for_xe(pipeline):
        return request, FROM_SCRIPT, None
    query = make_query(pipeline, request, matmul)
    accepted = tried_choice(query, request, module, matmul)
    if accepted is None:
        return request, FROM_SCRIPT, query.measured
    attempt, choice = accepted
    return attempt, choice.source, query.measured


def accepted_choice(query: Query, request: Request, matmul: PayloadMatmul) -> tuple[Request, Choice] | None:
    """Returns the first choice of knobs that the pipeline accepts and the request does not pass over, with the request
    that also gives them; None if there is none.

    Args:
        query: as `make_query` returns it for the request.
        request: the knobs whose values are given.
        matmul: that of the payload.
    """
    pipeline, accepted = query.pipeline, 0
    for choice in choices(query, request.database):
        settings = {
            name: value for name, value in choice.knobs.items() if name in pipeline.knobs and name not in query.fixed
        }
        attempt = dataclasses.replace(request, settings={**settings, **request.settings})
        if not accepts(pipeline, attempt, matmul, is_measured=choice.source.kind == MEASURED):
            continue
        if accepted == request.passed_over:
            return attempt, choice
        accepted += 1
    return None


def tried_choice(
    query: Query, request: Request, module: ir.Module, matmul: PayloadMatmul
) -> tuple[Request, Choice] | None:
    """Returns what `accepted_choice` does, of choices that no step refuses: a step that another one needs, such as
    `outline_producer`, leaves work for that one, which refuses more than requirements say.

    Args:
        query: as `make_query` returns it for the request.
        request: the knobs whose values are given.
        module: the payload.
        matmul: that of the payload.
    """
    accepted = accepted_choice(query, request, matmul)
    if accepted is None:
        return None
    attempt, choice = accepted
    steps = changing_steps(query.pipeline, query.without)
    switches = {step.name: _switch(query.pipeline, step, query.fixed) for step in steps}
    taken_switches = {
        name: knobs for name, knobs in switches.items() if knobs and knobs.items() <= choice.knobs.items()
    }
    last = continued(query.pipeline, list(taken_switches))
    if last is None or not is_refused(attempt, last, module, matmul):
        return accepted
    needs = query.pipeline.step(last).needs
    refused_knobs = [item for name, knobs in taken_switches.items() if name in needs for item in knobs.items()]
    alternatives = tuple(item for item in query.alternatives if not set(refused_knobs).intersection(item[0].items()))
    return accepted_choice(dataclasses.replace(query, alternatives=alternatives), request, matmul)


def accepts(pipeline: Pipeline, request: Request, matmul: PayloadMatmul, *, is_measured: bool = False) -> bool:
    """Returns whether a pipeline accepts a matmul with the knobs of a request.

    Args:
        pipeline: loaded in the current MLIR context.
        request: its knobs, and the steps to leave out.
        matmul: that of the payload.
        is_measured: whether the knobs were measured for another problem.
    """
    try:
        scope = evaluation_scope(pipeline, choose_knobs(pipeline, request), matmul.facts(), request.without)
        if is_measured and "is_narrow" in scope and scope["is_narrow"]:
            return False  # what was measured copies vectors of 16 bytes
        steps = [pipeline.steps[index] for index in active_steps(pipeline, scope, request)]
        check_requirements(pipeline, steps, scope, matmul.location)
    except StepladderError:
        return False
    return True


def knob_sources(pipeline: Pipeline, original: Request, completed: Request, source: Source) -> dict[str, str]:
    """Returns where each knob's value comes from, as a message shows it.

    Args:
        pipeline: whose knobs they are.
        original: the user's request.
        completed: the request with the chosen knobs, as `complete_request` returns it.
        source: of the chosen knobs.
    """
    from_left_out = {knob: f"--without {name}" for name in original.without for knob in pipeline.step(name).left_out}
    return {
        name: "--set"
        if name in original.settings
        else from_left_out.get(name) or (source.text if name in completed.settings else FROM_SCRIPT.text)
        for name in pipeline.knobs
    }
