"""The value of every knob for a request, and the names that expressions over knobs may use."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from stepladder.pipeline import library
from stepladder.pipeline.definition import (
    Knob,
    KnobError,
    Knobs,
    KnobValue,
    Pipeline,
    Step,
    UnknownKnobError,
    value_text,
)
from stepladder.pipeline.expressions import Scope, UnknownName, Value, evaluate
from stepladder.pipeline.request import Request
from stepladder.runtime import targets
from stepladder.runtime.errors import StepladderError, suggest
from stepladder.runtime.problem import Problem

# Whether the steps of a pipeline compile a pair of products, operands that are parts of buffers, and batches of several
# strides as A and B.
_TAKEN = ("takes_pairs", "takes_windows", "reads_strided_batches")
# Knobs of the pipeline `functions`, which divides a function, that a request for its matmuls may set.
OF_FUNCTIONS = (
    "attention",
    "attention_weights",
    "columns",
    "dequantizing",
    "groups",
    "merge_elementwise",
    "pairs",
    "rows",
)
# The values of a boolean knob on a command line.
_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def choose_knobs(pipeline: Pipeline, request: Request) -> Knobs:
    """Returns every knob's value: what the request sets, what steps left out imply, else the default.

    Args:
        pipeline: whose knobs they are.
        request: its settings and the steps that it leaves out.

    Raises:
        StepladderError: an unknown knob or step, a value outside the options, a step that cannot be left out.
    """
    _check_without(pipeline, request.without)
    values = {knob.name: knob.default for knob in pipeline.knobs.values()}
    for name, setting in request.settings.items():
        if name not in pipeline.knobs:
            raise _unknown(pipeline, name)
        values[name] = _knob_value(pipeline.knobs[name], setting, pipeline)
    for name in request.without:
        for knob, value in pipeline.step(name).left_out.items():
            if knob in request.settings and values[knob] != value:
                raise StepladderError(f"--without {name} means {knob} = {value}, but --set gives {values[knob]}")
            values[knob] = value
    return values


def _unknown(pipeline: Pipeline, name: str) -> UnknownKnobError:
    """Returns the error that a pipeline does not have a knob, or that the knob is of functions with several kernels."""
    if name in OF_FUNCTIONS:
        text = f"knob '{name}' is of functions that are several kernels"
        knob = library.load(library.pipeline_file("functions")).knobs[name]
        return UnknownKnobError(
            f"{text}, and pipeline '{pipeline.name}' compiles one kernel",
            f"{text}, and this payload is one kernel",
            name,
            notes=[f"{name}: {knob.description}"],
        )
    return UnknownKnobError(
        f"pipeline '{pipeline.name}' has no knob '{name}'{suggest(name, list(pipeline.knobs))}",
        f"none of the pipelines has the knob '{name}'{suggest(name, [*pipeline.knobs, *OF_FUNCTIONS])}",
        name,
        notes=[f"its knobs are: {', '.join(pipeline.knobs) or 'none'}"],
    )


def evaluation_scope(
    pipeline: Pipeline,
    knobs: Knobs,
    facts: Mapping[str, Value],
    without: tuple[str, ...],
    derived: Mapping[str, str] | None = None,
) -> Scope:
    """Returns the names that expressions of a pipeline may use, with their values.

    A step that changes facts changes them for the expressions of all steps. The facts of a dump are of what is left of
    its matmul, and stay as they are.

    Args:
        pipeline: whose derived names are added.
        knobs: the value of every knob.
        facts: of the payload (`payload.facts`).
        without: names of the steps that are left out; every step's name tells whether it is included.
        derived: further names, with their expressions; None for none.

    Raises:
        StepladderError: a target that is not supported.
    """
    values: dict[str, Value] = {step.name: step.name not in without for step in pipeline.steps}
    values |= facts
    values |= {name: False for name in _TAKEN if name not in pipeline.derived}
    if "target" in knobs:
        target = targets.find_limits(str(knobs["target"]))
        values["shared_memory_limit"] = target.shared_memory
        values["max_threads_per_sm"] = target.threads_per_sm
    scope = Scope({**values, **knobs}, {**pipeline.derived, **(derived or {})})
    for step in changing_steps(pipeline, without):
        if set(step.facts) <= set(facts):
            with contextlib.suppress(UnknownName):  # of a dump, which has some of the facts
                scope = scope.replace(**_changed(step, scope)) if _runs(step, scope) else scope
    return scope


def _changed(step: Step, scope: Scope) -> dict[str, Value]:
    return {name: evaluate(text, scope) for name, text in step.facts.items()}


def with_products(problem: Problem, knobs: Mapping[str, KnobValue]) -> Problem:
    """Returns a payload's problem as a pipeline computes it: products of f32 are of tf32 where `allow_tf32` is true,
    and lose bits but where the operands fit in it.

    Args:
        problem: of the payload.
        knobs: the value of every knob.
    """
    if not knobs.get("allow_tf32"):
        return replace(problem, fits_tf32=False)
    if problem.a_type == "f32" and not problem.fits_tf32:
        return replace(problem, compute_type="tf32")
    return problem


def changing_steps(pipeline: Pipeline, without: tuple[str, ...]) -> list[Step]:
    """Returns the steps that change facts of the payload, in order.

    Args:
        pipeline: which has the steps.
        without: names of the steps that are left out.
    """
    return [step for step in pipeline.steps if step.facts and step.name not in without]


def changes_facts(pipeline: Pipeline, knobs: Knobs, facts: Mapping[str, Value], without: tuple[str, ...]) -> bool:
    """Returns whether a step that runs changes facts of the payload. One that always runs counts where it changes any.

    Args:
        pipeline, knobs, facts, without: as for `evaluation_scope`.
    """
    scope = evaluation_scope(pipeline, knobs, facts, without)
    for step in changing_steps(pipeline, without):
        if step.condition is not None and _runs(step, scope):
            return True
        if step.condition is None and any(scope[name] != facts[name] for name in step.facts):
            return True
    return False


def _runs(step: Step, scope: Scope) -> bool:
    return step.condition is None or evaluate(step.condition.expression, scope) == step.condition.region


def _knob_value(knob: Knob, setting: KnobValue, pipeline: Pipeline) -> KnobValue:
    value: KnobValue = setting
    if knob.is_boolean:
        value = _BOOLEANS.get(str(setting).lower(), setting)
    elif isinstance(knob.default, int) and isinstance(setting, str):
        try:
            value = int(setting, 0)
        except ValueError:
            message = f"knob '{knob.name}' must be an integer, got '{setting}'"
            raise KnobError(message, message, knob.name, notes=[f"its options are: {knob.options_text()}"]) from None
    if not knob.accepts(value):
        raise KnobError(
            f"knob '{knob.name}' of pipeline '{pipeline.name}' cannot be {value_text(value)}",
            f"knob '{knob.name}' cannot be {value_text(value)}",
            knob.name,
            location=knob.location,
            notes=[f"its options are: {knob.options_text()}"],
        )
    return value


def _check_without(pipeline: Pipeline, without: tuple[str, ...]) -> None:
    optional = [step.name for step in pipeline.steps if step.optimization]
    for name in without:
        if not pipeline.step(name).optimization:
            raise StepladderError(
                f"step '{name}' is a lowering that pipeline '{pipeline.name}' cannot do without",
                notes=[f"steps that can be left out: {', '.join(optional)}"],
            )
