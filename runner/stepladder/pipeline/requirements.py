"""Checks the requirements of a run's steps on knobs, payload and target."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence

from stepladder.payload.facts import FACTS
from stepladder.pipeline.definition import Pipeline, Requirement, RequirementError, Step
from stepladder.pipeline.expressions import (
    ExpressionError,
    Scope,
    UnknownName,
    Value,
    evaluate,
    names,
)
from stepladder.runtime.errors import StepladderError, suggest

_SATISFIED = "satisfied by "
_TARGET = "target"  # a knob that is given, not chosen


def check_requirements(
    pipeline: Pipeline, steps: Sequence[Step], scope: Scope, location: str | None, given: Collection[str] = ()
) -> None:
    """Checks what the steps of a run require of knobs, payload and target.

    Requirements whose value depends on facts of the payload that `scope` lacks, as in a run that begins from a dump,
    are not checked.

    Args:
        pipeline: the pipeline of the steps.
        steps: those that run, in order.
        scope: what the conditions may use.
        location: of the payload's matmul, for messages; None for a dump.
        given: names of the knobs that a user has set.

    Raises:
        RequirementError: the first requirement that fails, in its words, with the values in it and the options that
            would satisfy it. Requirements of the payload, the target and the given knobs come before those of other
            knobs: no choice of these satisfies them.
        StepladderError: a condition that cannot be evaluated.
    """
    requirements = [(step, requirement) for step in steps for requirement in step.requires]
    open_knobs = pipeline.knobs.keys() - {_TARGET, *given}
    for step, requirement in sorted(requirements, key=lambda pair: _depends_on(open_knobs, pair[1], scope)):
        _check(pipeline, step, requirement, scope, location)


def _depends_on(knobs: Collection[str], requirement: Requirement, scope: Scope) -> bool:
    """Returns whether a condition has one of some knobs."""
    try:
        return not {*knobs}.isdisjoint(scope.roots(requirement.condition))
    except ExpressionError:
        return True


def accepted_values(pipeline: Pipeline, scope: Scope, condition: str) -> list[str]:
    """Returns notes on the options of single knobs that would satisfy a condition; if none do, on the knobs tried.

    Args:
        pipeline: which has the knobs.
        scope: values of all names of the condition, for which it does not hold.
        condition: an expression of knobs and facts.
    """
    hints, hopeless = [], []
    for name in scope.roots(condition):
        knob = pipeline.knobs.get(name)
        if knob is None or knob.multiple_of is not None:
            continue
        options = []
        for option in knob.options:
            with contextlib.suppress(ExpressionError):
                if evaluate(condition, scope.replace(**{name: option})):
                    options.append(str(option))
        if options:
            hints.append(f"{_SATISFIED}{name} = {' or '.join(options)}")
        else:
            hopeless.append(f"no other option of {name} ({knob.options_text()}) satisfies the requirement")
    return hints or hopeless


def _check(
    pipeline: Pipeline,
    step: Step,
    requirement: Requirement,
    scope: Scope,
    payload_location: str | None,
) -> None:
    condition = requirement.condition
    roots: list[str] = []
    try:
        roots = scope.roots(condition)
        try:
            if evaluate(condition, scope):
                return
        except UnknownName as unknown:
            if unknown.name in FACTS:
                return
            raise
        is_about_payload = any(name in FACTS for name in roots)
        location = payload_location if payload_location is not None and is_about_payload else str(step.path)
        values = _values(scope, [*names(condition), *roots])
        notes = accepted_values(pipeline, scope, condition) or _values_without(pipeline, step, scope)
    except ExpressionError as error:
        location = str(step.path)
        unknown = [name for name in roots if name not in scope]
        if unknown:
            raise StepladderError(
                f"step '{step.name}' requires {condition}, and pipeline '{pipeline.name}' defines no "
                f"'{unknown[0]}'{suggest(unknown[0], list(scope))}",
                location=location,
                notes=[
                    f"derived name '{name}' uses it: {text}"
                    for name, text in pipeline.derived.items()
                    if unknown[0] in names(text)
                ],
            ) from None
        readable = [name for name in roots if name in scope]
        values, notes = ": ".join(filter(None, [str(error), _values(scope, readable)])), []
    raise RequirementError(
        f"step '{step.name}': {requirement.message}, but {values}",
        location=location,
        notes=[*notes, f"requirement: {condition}"],
    )


def _values_without(pipeline: Pipeline, step: Step, scope: Scope) -> list[str]:
    """Returns notes on the options of single knobs with which a step of an alternative does not run."""
    if step.condition is None:
        return []
    notes = accepted_values(pipeline, scope, f"not ({step.condition.describe()})")
    return [f"the step does not run with {note.removeprefix(_SATISFIED)}" for note in notes if _SATISFIED in note]


def _values(scope: Scope, used: list[str]) -> str:
    """Returns the values of names as a message shows them.

    Values that no knob changes are left out: constants of the pipeline, and booleans derived from a knob that is shown.
    """
    texts = []
    for name in dict.fromkeys(used):
        value = scope[name]
        if scope.roots(name) != [name] and (isinstance(value, bool) or not scope.roots(name)):
            continue
        texts.append(f"{name} = {_text(value)}")
    return ", ".join(texts)


def _text(value: Value) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
