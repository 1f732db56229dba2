"""Selects the steps of a pipeline that a request runs."""

from __future__ import annotations

from stepladder.pipeline.definition import Condition, Pipeline, Step
from stepladder.pipeline.expressions import ExpressionError, Scope, evaluate
from stepladder.pipeline.request import Request
from stepladder.pipeline.requirements import accepted_values
from stepladder.runtime.errors import StepladderError


def step_span(pipeline: Pipeline, request: Request) -> tuple[int, int]:
    """Returns the indices of the first and the last step that a request asks for.

    Args:
        pipeline: which has the steps.
        request: whose `start` and `through` name the first and the last step; None for the first and the last of all.

    Raises:
        StepladderError: an unknown step, or a first step that comes after the last.
    """
    order = [step.name for step in pipeline.steps]
    first = order.index(pipeline.step(request.start).name) if request.start else 0
    last = order.index(pipeline.step(request.through).name) if request.through else len(order) - 1
    if first > last:
        raise StepladderError(
            f"--from {request.start} comes after --through {request.through} in pipeline '{pipeline.name}'",
            notes=[f"its steps are: {', '.join(order)}"],
        )
    return first, last


def active_steps(pipeline: Pipeline, scope: Scope, request: Request) -> list[int]:
    """Returns the indices of the steps to run: those asked for, not left out, and chosen where there are alternatives.

    Args:
        pipeline: whose steps they are.
        scope: the values that conditions depend on (`knobs.evaluation_scope`).
        request: the first and last step, and those to leave out.

    Raises:
        StepladderError: a step that needs one that does not run, or that is asked for and not chosen.
    """
    first, last = step_span(pipeline, request)
    active = []
    for number, step in enumerate(pipeline.steps):
        condition = step.condition
        runs = condition is None or _selected_region(pipeline, condition, scope) == condition.region
        if condition is not None and not runs and step.name in (request.start, request.through):
            raise StepladderError(
                f"step '{step.name}' does not run with these knobs",
                notes=[
                    *accepted_values(pipeline, scope, condition.describe()),
                    f"it runs where {condition.describe()}",
                ],
            )
        if runs and first <= number <= last and step.name not in request.without:
            active.append(number)
    _check_needs(pipeline, [pipeline.steps[number] for number in active], request.without)
    return active


def _check_needs(pipeline: Pipeline, active: list[Step], without: tuple[str, ...]) -> None:
    """Refuses active steps that need one that is left out; names all steps that would have to be left out as well.

    Raises:
        StepladderError: there is such a step.
    """
    left_out, dependents = list(without), []
    while more := [step for step in active if step not in dependents and set(step.needs) & set(left_out)]:
        dependents += more
        left_out += [step.name for step in more]
    if not dependents:
        return
    missing = [name for name in dependents[0].needs if name in without]
    lowerings = [step for step in dependents if not step.optimization]
    notes = [f"leave out {'both' if len(left_out) == 2 else 'all'}: --without {','.join(left_out)}"]
    if lowerings:
        first = lowerings[0]
        needed = " and ".join(name for name in first.needs if name in left_out)
        notes = [f"with these knobs pipeline '{pipeline.name}' always runs '{first.name}', which needs {needed}"]
    raise StepladderError(
        f"step '{dependents[0].name}' needs {' and '.join(missing)}, which --without leaves out", notes=notes
    )


def _selected_region(pipeline: Pipeline, condition: Condition, scope: Scope) -> int:
    """Returns the number of the region that a `transform.tune.alternatives` runs.

    Raises:
        StepladderError: its expression cannot be evaluated, or gives no number of a region.
    """
    try:
        value = evaluate(condition.expression, scope)
    except ExpressionError as error:
        raise StepladderError(
            f"pipeline '{pipeline.name}' chooses among alternatives by {condition.expression}: {error}",
            location=condition.location,
        ) from None
    if not isinstance(value, int) or not 0 <= value < condition.regions:
        raise StepladderError(
            f"pipeline '{pipeline.name}' chooses among alternatives by {condition.expression}, which is {value}; it "
            f"must be from 0 to {condition.regions - 1}",
            location=condition.location,
        )
    return int(value)
