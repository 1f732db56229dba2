"""What the cost model says of a payload: the first candidates, with the time of each term."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from stepladder.cli.tables import print_table
from stepladder.payload.problem import Problem
from stepladder.pipeline import engine, knob_choice, library
from stepladder.pipeline.cost_model.gpu import Found
from stepladder.pipeline.cost_model.ranking import LIMITS, PARTS, Candidate
from stepladder.runtime.errors import StepladderError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Explanation:
    """The cost model's answer for a payload.

    Args:
        problem: the payload's.
        pipeline: name of the pipeline.
        target: of the kernel.
        found: the GPU that is chosen for.
        settings: number of settings that the pipeline accepts and the model ranked.
        within: how many of them are predicted to take at most half as long again as the first.
        seconds: that it took.
        chosen: the knobs that `compile` takes, and where they come from.
        candidates: the first settings, the fastest first.
    """

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
            "problem": problem,
            "pipeline": self.pipeline,
            "target": self.target,
            "gpu": self.found.gpu.name,
            "gpu_source": self.found.gpu.source,
            "note": self.found.note,
            "settings": self.settings,
            "within_half_as_long_again": self.within,
            "chosen": {"knobs": self.chosen.knobs, "source": self.chosen.source.kind, "text": self.chosen.source.text},
            "candidates": [asdict(candidate) for candidate in self.candidates],
        }

    def print(self) -> None:
        """Prints a table of the candidates, and below it which knobs `compile` takes."""
        for line in (self.found.note, _data_sheet(self.found)):
            if line:
                print(f"note: {line}", file=sys.stderr)
        problem = self.problem
        title = (
            f"{problem.m} x {problem.n} x {problem.k}, {problem.a_type} -> {problem.c_type}, {self.pipeline} on "
            f"{self.found.gpu.name}: {self.settings} settings ranked in {self.seconds * 1e3:.0f} ms, times in us"
        )
        print_table([_row(number, candidate) for number, candidate in enumerate(self.candidates, 1)], title=title)
        knobs = ", ".join(f"{name} = {value}" for name, value in self.chosen.knobs.items())
        print(f"compile takes the knobs from {self.chosen.source.text}:\n{knobs}")


def _data_sheet(found: Found) -> str:
    if found.gpu.source == "measured":
        return ""
    return f"nothing was measured on {found.gpu.name}: peaks are from data sheets, fitted constants from another GPU"


def _row(number: int, candidate: Candidate) -> dict[str, object]:
    times = {name: f"{candidate.times[name]:.1f}" for name in (*PARTS, *LIMITS) if name in candidate.times}
    return {
        "": number,
        "knobs": " ".join(_short(name, value) for name, value in candidate.knobs.items() if not _neutral(name, value)),
        "total": f"{candidate.microseconds:.1f}",
        "waves": f"{candidate.waves:.2f}",
        **times,
        "bound": candidate.bound,
    }


# Values that say that a form of kernel is not used; the table leaves them out.
_NEUTRAL: dict[str, int | str] = {
    "cluster_m": 1,
    "cluster_n": 1,
    "split_k": 1,
    "schedule": "cooperative",
    "tile_scheduler": "data_parallel",
    "split_k_workspace": "cluster",
    "persistent_blocks": 0,
}


def _neutral(name: str, value: int | str) -> bool:
    return _NEUTRAL.get(name) == value


def _short(name: str, value: int | str) -> str:
    return f"{name}={value}"


def explain(text: str, name: str, request: engine.Request, count: int) -> Explanation:
    """Returns what the cost model says of a payload, in the current MLIR context.

    Args:
        text: the payload.
        name: the file it came from, for messages.
        request: pipeline, and the knobs whose values are given.
        count: candidates to return at most.

    Raises:
        StepladderError: bad input, a pipeline whose kernels the model does not know, or none that it accepts.
    """
    pipeline = library.load(request.pipeline)
    asked = engine.read_asked(pipeline, request, text, name)
    began = time.perf_counter()
    ranked = knob_choice.rank(asked)
    seconds = time.perf_counter() - began
    if ranked is None:
        raise StepladderError(
            f"the cost model does not know the kernels of pipeline '{pipeline.name}'",
            notes=["it knows kernels on wgmma with a producer warpgroup, on mma.sync and on WMMA"],
        )
    if not len(ranked):
        raise StepladderError(
            f"pipeline '{pipeline.name}' accepts no setting of its knobs for this payload",
            location=asked.problem.location,
            notes=["`stepladder compile` says which requirement fails first"],
        )
    chosen = next(knob_choice.choices(asked, request.database))
    return Explanation(
        asked.problem,
        pipeline.name,
        asked.target,
        asked.found_gpu(),
        len(ranked),
        ranked.within(1.5),
        seconds,
        chosen,
        ranked.first(count),
    )
