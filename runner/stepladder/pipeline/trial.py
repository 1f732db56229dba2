"""Tries knobs that were chosen: whether steps refuse a payload for other reasons than their requirements."""

from __future__ import annotations

import dataclasses

from stepladder.mlir.bindings import ir
from stepladder.mlir.text import text_of
from stepladder.payload.matmul import PayloadMatmul
from stepladder.pipeline import library
from stepladder.pipeline.bind import bind
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.definition import Pipeline
from stepladder.pipeline.interpret import interpret_step
from stepladder.pipeline.knobs import choose_knobs, evaluation_scope
from stepladder.pipeline.request import Request
from stepladder.pipeline.step_selection import active_steps


def continued(pipeline: Pipeline, steps: list[str]) -> str | None:
    """Returns the last of the steps that depend on some steps, and may refuse IR that these do not rewrite; None if no
    step depends on them.

    Args:
        pipeline: with the steps.
        steps: names of steps.
    """
    dependents = [step.name for step in pipeline.steps if set(step.needs).intersection(steps)]
    return dependents[-1] if dependents else None


def is_refused(request: Request, through: str, module: ir.Module, matmul: PayloadMatmul) -> bool:
    """Returns whether a step refuses a payload, with knobs whose requirements it satisfies.

    Args:
        request: the knobs.
        through: the last step that is tried.
        module: the payload, which does not change.
        matmul: that of the payload.
    """
    pipeline = library.load(request.pipeline)
    request = dataclasses.replace(request, through=through)
    knobs = choose_knobs(pipeline, request)
    scope = evaluation_scope(pipeline, knobs, matmul.facts(), request.without)
    numbers = active_steps(pipeline, scope, request)
    copy = parse_payload(text_of(module), matmul.location)
    bind(pipeline, [pipeline.steps[number] for number in numbers], knobs, scope, copy)
    return any(interpret_step(pipeline, number, copy) is not None for number in numbers)
