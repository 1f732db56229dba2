"""What the steps of a run require of knobs, payload and target, and what is said where they do not have it."""

from __future__ import annotations

import contextlib

from stepladder.payload.problem import FACTS, Problem
from stepladder.pipeline import library
from stepladder.pipeline.expressions import (
    ExpressionError,
    Scope,
    Value,
    evaluate,
    names,
)
from stepladder.runtime.errors import StepladderError, suggest


def check_requirements(
    pipeline: library.Pipeline, steps: list[library.Step], scope: Scope, problem: Problem | None
) -> None:
    """Checks what the steps of a run require of knobs, payload and target.

    Without a problem, in a run that begins from a dump, what is about the payload cannot be checked and is not.

    Args:
        pipeline: the pipeline that the steps are of.
        steps: those that run, in order.
        scope: what the conditions may use.
        problem: the payload's, where there is one.

    Raises:
        StepladderError: the first requirement that fails, in its words, with the values in it and the options that
            would do; or a condition that cannot be evaluated.
    """
    for step in steps:
        for requirement in step.requires:
            _check(pipeline, step, requirement, scope, problem)


def accepted_values(pipeline: library.Pipeline, scope: Scope, condition: str) -> list[str]:
    """Returns which options of single knobs would meet a condition; which knobs have none, where no knob has."""
    hints, hopeless = [], []
    for name in scope.roots(condition):
        knob = pipeline.knobs.get(name)
        if knob is None or knob.multiple_of is not None:
            continue
        good = []
        for option in knob.options:
            with contextlib.suppress(ExpressionError):
                if evaluate(condition, scope.replace(**{name: option})):
                    good.append(str(option))
        if good:
            hints.append(f"with {name} = {' or '.join(good)} it would hold")
        else:
            hopeless.append(f"no other option of {name} ({knob.options_text()}) would make it hold")
    return hints or hopeless


def _check(
    pipeline: library.Pipeline,
    step: library.Step,
    requirement: library.Requirement,
    scope: Scope,
    problem: Problem | None,
) -> None:
    condition = requirement.condition
    roots: list[str] = []
    try:
        roots = scope.roots(condition)
        if any(name in FACTS and name not in scope for name in roots):
            return
        if evaluate(condition, scope):
            return
        location = problem.location if problem and any(name in FACTS for name in roots) else str(step.path)
        found = _values(scope, [*names(condition), *roots])
        notes = accepted_values(pipeline, scope, condition)
    except ExpressionError as error:
        location = str(step.path)
        unknown = [name for name in roots if name not in scope]
        if unknown:
            raise StepladderError(
                f"step '{step.name}' requires {condition}, and pipeline '{pipeline.name}' defines no "
                f"'{unknown[0]}'{suggest(unknown[0], list(scope))}",
                location=location,
            ) from None
        known = [name for name in roots if name in scope]
        found, notes = ": ".join(filter(None, [str(error), _values(scope, known)])), []
    raise StepladderError(
        f"step '{step.name}': {requirement.message}, but {found}",
        location=location,
        notes=[*notes, f"the step requires: {condition}"],
    )


def _values(scope: Scope, used: list[str]) -> str:
    """Returns the values of names as a message shows them.

    What a user cannot turn says nothing and is left out: a constant of the pipeline, and a truth that follows from a
    knob beside it.
    """
    shown = []
    for name in dict.fromkeys(used):
        value = scope[name]
        if scope.roots(name) != [name] and (isinstance(value, bool) or not scope.roots(name)):
            continue
        shown.append(f"{name} = {_text(value)}")
    return ", ".join(shown)


def _text(value: Value) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
