"""Explains the cost model's choice for a payload: the best candidates, with the predicted time of each term."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.automatic import AUTO, WITHOUT_GPU, first_of, for_vendor, pipelines_for
from stepladder.pipeline.cost_model.gpu import Found
from stepladder.pipeline.cost_model.ranking import Candidate
from stepladder.pipeline.functions.division import is_divisible
from stepladder.pipeline.functions.matmul_parts import Part, matmul_parts
from stepladder.pipeline.knob_query import make_query, read_payload, tried_choice
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Explanation:
    """The cost model's answer for a matmul.

    Args:
        name: the file of the payload, with the name of the matmul's function where the payload has several matmuls.
        problem: the matmul's.
        pipeline: name of the pipeline.
        target: of the kernel.
        found: the GPU that is chosen for.
        settings: number of settings that the pipeline accepts and the model ranked.
        within: how many of them are predicted to take at most half as long again as the first.
        seconds: that it took.
        chosen: the knobs that `compile` takes, and where they come from.
        candidates: the first settings, the fastest first.
    """

    name: str
    problem: Problem
    pipeline: str
    target: str
    found: Found
    settings: int
    within: int
    seconds: float
    chosen: knob_choice.Choice
    candidates: list[Candidate]

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON data; times are in us."""
        problem = {
            name: getattr(self.problem, name)
            for name in ("m", "n", "k", "a_type", "b_type", "acc_type", "c_type", "accumulate", "a_layout", "b_layout")
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "problem": problem,
            "pipeline": self.pipeline,
            "target": self.target,
            "gpu": self.found.gpu.name,
            "gpu_source": self.found.gpu.source,
            "note": self.found.note,
            "settings": self.settings,
            "within_half_as_long_again": self.within,
            "chosen": {"knobs": self.chosen.knobs, "source": self.chosen.source.kind, "text": self.chosen.source.text},
            "candidates": [_candidate_fields(candidate) for candidate in self.candidates],
        }


def _candidate_fields(candidate: Candidate) -> dict[str, Any]:
    """Returns a candidate as JSON data, with the names of schema version 1."""
    fields = asdict(candidate)
    fields["cautious"] = fields.pop("with_margin")
    return fields


def of_several(matmuls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns what is said of several matmuls as JSON data.

    Args:
        matmuls: what is said of each (`Explanation.as_json`).
    """
    return {"schema_version": SCHEMA_VERSION, "matmuls": list(matmuls)}


def explain(text: str, name: str, request: Request, count: int) -> list[Explanation]:
    """Returns the cost model's ranking of knob settings for each matmul of a payload, in the current MLIR context.

    Args:
        text: the payload.
        name: the file it came from, for messages.
        request: pipeline, or `auto` as for `compile`, and the knobs whose values are given.
        count: candidates of each matmul to return at most.

    Raises:
        StepladderError: bad input, a pipeline whose kernels the model does not know, or none that it accepts.
    """
    request = for_vendor(request)
    pipelines = pipelines_for(
        request.pipeline,
        str(request.settings.get("target", WITHOUT_GPU)),
        is_divisible=lambda: is_divisible(text, name, request),
    )

    def by(pipeline: str) -> list[Explanation]:
        parts = matmul_parts(text, name, replace(request, pipeline=pipeline))
        if len(parts) > 1 and pipeline != pipelines[0]:
            raise StepladderError("`compile` chooses a pipeline for each of several matmuls; give --pipeline")
        return [_explain(part, count) for part in parts]

    return first_of(pipelines, by)


def common_pipeline(payloads: Sequence[tuple[str, str]], request: Request) -> str:
    """Returns the pipeline that `auto` takes for all of some payloads, in the current MLIR context.

    Args:
        payloads: text and name of each.
        request: of each; its pipeline is returned unless it is `auto`.

    Raises:
        StepladderError: as `explain`, or payloads that take different pipelines.
    """
    if request.pipeline != AUTO:
        return request.pipeline
    pipelines = {name: explain(text, name, request, 1)[0].pipeline for text, name in payloads}
    if len(set(pipelines.values())) > 1:
        raise StepladderError(
            "the payloads take different pipelines: "
            + ", ".join(f"{name} takes {pipeline}" for name, pipeline in pipelines.items()),
            notes=["accepted: payloads that take one pipeline, or --pipeline"],
        )
    return next(iter(pipelines.values()))


def _explain(part: Part, count: int) -> Explanation:
    """Returns the ranking for one matmul; arguments and errors as of `explain`."""
    request = part.request
    pipeline = library.load(request.pipeline)
    module, matmul = read_payload(pipeline, request, part.text, part.name)
    query = make_query(pipeline, request, matmul)
    began = time.perf_counter()
    ranked = knob_choice.rank(query)
    seconds = time.perf_counter() - began
    if ranked is None:
        raise StepladderError(
            f"the cost model does not know the kernels of pipeline '{pipeline.name}'",
            notes=["it knows kernels on wgmma with a producer warpgroup, on mma.sync and on WMMA"],
        )
    if not len(ranked):
        raise StepladderError(
            f"pipeline '{pipeline.name}' accepts no setting of its knobs for this payload",
            location=query.location,
            notes=["`stepladder compile` reports the first requirement that fails"],
        )
    attempt = tried_choice(query, request, module, matmul)
    choice = attempt[1] if attempt is not None else knob_choice.Choice({}, knob_choice.FROM_SCRIPT)
    return Explanation(
        part.name,
        query.problem,
        pipeline.name,
        query.target,
        query.found_gpu(),
        len(ranked),
        ranked.within(1.5),
        seconds,
        choice,
        ranked.first(count),
    )
