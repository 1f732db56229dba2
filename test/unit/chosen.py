"""Which steps of a pipeline run with some knobs."""

from collections.abc import Mapping

from stepladder.pipeline import library
from stepladder.pipeline.definition import Step
from stepladder.pipeline.expressions import Scope, evaluate
from stepladder.pipeline.knobs import choose_knobs
from stepladder.pipeline.request import Request


def chosen_steps(name: str, settings: Mapping[str, int | str]) -> list[Step]:
    """Returns the steps of a pipeline that run with these knobs where none is left out and tiles divide the problem,
    in the current MLIR context."""
    pipeline = library.load(name)
    knobs = choose_knobs(pipeline, Request(name, settings))
    names = ("approximates", "has_consumer", "has_elementwise", "is_f32", "is_fp8", "is_sized", "read_batch_strides")
    facts = {**dict.fromkeys(names, 0), "products": 1, "batch_strides": 1}
    scope = Scope({**{step.name: True for step in pipeline.steps}, **facts, **knobs}, pipeline.derived)
    return [
        step
        for step in pipeline.steps
        if step.condition is None or int(evaluate(step.condition.expression, scope)) == step.condition.region
    ]
