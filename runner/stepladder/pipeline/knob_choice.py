"""Chooses the knobs that a request does not set: from a tuning database, a measured problem or the cost model."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.measure.tuning.database import Database, problem_key
from stepladder.pipeline import measured_knobs
from stepladder.pipeline.definition import Knobs, KnobValue, Pipeline, Step
from stepladder.pipeline.expressions import Value
from stepladder.runtime.problem import Problem

if TYPE_CHECKING:  # the cost model imports NumPy, and what names all knobs or runs without tuning does without both
    from stepladder.pipeline.cost_model import ranking
    from stepladder.pipeline.cost_model.gpu import Found
    from stepladder.pipeline.cost_model.orientations import Orientations
    from stepladder.pipeline.cost_model.space import Space

SCRIPT, TUNED, MEASURED, MODEL, PROGRAM = "script", "tuned", "measured", "model", "program"


@dataclass(frozen=True)
class Source:
    """The source of knob values.

    Args:
        kind: SCRIPT, TUNED (a tuning database), MEASURED (a problem that the package has measured), MODEL, or PROGRAM
            (the tiles of a XeTile program).
        text: one line for people.
    """

    kind: str
    text: str


FROM_SCRIPT = Source(SCRIPT, "script defaults")


@dataclass(frozen=True)
class Choice:
    """Knobs that a problem may take, and where they come from."""

    knobs: Knobs
    source: Source


@dataclass(frozen=True)
class Query:
    """A question for the best knobs: the pipeline, the problem, and what is given.

    Args:
        pipeline: the pipeline.
        without: steps that are left out.
        fixed: knobs whose values are given, those that steps left out imply among them.
        problem: the payload's.
        facts: of problem, target and steps, by the names that expressions use.
        target: the kernel's.
        measured: the measured knobs that apply to the pipeline.
        gpu: key of the GPU to choose for; None for the one that `cost_model.gpu.find` finds.
        location: of the payload's matmul, for messages.
        changes_facts: whether a step that the given knobs run changes facts of the payload: knobs that were measured
            without that step do not apply.
        alternatives: knobs that are not given and let such a step run, each set, with the facts that follow.
    """

    pipeline: Pipeline
    without: tuple[str, ...]
    fixed: Mapping[str, KnobValue]
    problem: Problem
    facts: Mapping[str, Value]
    target: str
    measured: measured_knobs.Measured
    gpu: str | None = None
    location: str = ""
    changes_facts: bool = False
    alternatives: tuple[tuple[Mapping[str, int | str], Mapping[str, Value]], ...] = ()

    def found_gpu(self) -> Found:
        """Returns the GPU that knobs are chosen for, with a note where the model does not know it.

        Raises:
            StepladderError: an unknown key.
        """
        from stepladder.pipeline.cost_model import gpu

        return gpu.find(self.gpu, self.target)


def space_of(pipeline: Pipeline, without: tuple[str, ...]) -> Space:
    """Returns a pipeline's knobs, and what its steps require of them, as the cost model takes them.

    Args:
        pipeline: whose knobs are to be chosen.
        without: names of steps that are left out.
    """
    from stepladder.pipeline.cost_model.space import Rule, Space

    steps = [step for step in pipeline.steps if step.name not in without]
    rules = [Rule(requirement.condition, _runs_if(step)) for step in steps for requirement in step.requires]
    return Space(
        tuple(step.name for step in steps),
        {name: tuple(knob.options) for name, knob in pipeline.knobs.items()},
        {name: knob.default for name, knob in pipeline.knobs.items()},
        pipeline.derived,
        tuple(rules),
    )


def _runs_if(step: Step) -> str | None:
    if step.condition is None:
        return None
    return f"({step.condition.expression}) == {step.condition.region}"


def digest(pipeline: Pipeline) -> str:
    """Returns the SHA-256 of a pipeline's file and those of its steps.

    Args:
        pipeline: loaded, of which every file is there.
    """
    files = [pipeline.path, *dict.fromkeys(step.path for step in pipeline.steps)]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def rank(query: Query) -> ranking.Ranking | Orientations | None:
    """Returns all settings that the pipeline accepts in order of their predicted time, of all orientations of the
    product; None where the cost model does not know kernels of this pipeline.

    Args:
        query: a payload's problem and pipeline, and the knobs that are set.
    """
    from stepladder.pipeline.cost_model import ranking
    from stepladder.pipeline.cost_model.orientations import Orientation, join

    space, gpu_ = space_of(query.pipeline, query.without), query.found_gpu().gpu
    parts = []
    for knobs, facts in (({}, query.facts), *query.alternatives):
        ranked = ranking.rank(space, facts, query.problem.accumulate, gpu_, {**query.fixed, **knobs})
        if ranked is None:
            return None
        parts.append(Orientation(knobs, ranked))
    return join(parts)


def choices(query: Query, database: Path | None) -> Iterator[Choice]:
    """Yields knobs for a problem, the best first: what a tuning database has, what was measured for a problem like it
    on the same GPU, then the cost model's.

    Args:
        query: what they are for.
        database: a tuning database; None for none.
    """
    if database is not None and not query.changes_facts:
        yield from _tuned(query, database)
    gpu_model = query.found_gpu()
    ranked_once = functools.cache(lambda: rank(query))
    source = None if query.changes_facts or _is_of_another_form(query, ranked_once) else query.measured.source
    for entry in measured_knobs.near(source, query.problem) if source else []:
        if entry.is_for(gpu_model.gpu.name):
            yield Choice(entry.knobs, Source(MEASURED, f"a measurement on {entry.measured_on} at {entry.describe()}"))
    ranked = ranked_once()
    if ranked is None:
        alike = measured_knobs.candidates(source, query.problem) if source else []
        for knobs in alike:
            yield Choice(knobs, Source(MEASURED, "a measurement of the problem most like this one"))
        return
    note = f" ({gpu_model.note})" if gpu_model.note else ""
    for candidate in ranked.first(_TRIED):
        text = f"the cost model for {gpu_model.gpu.name}: {candidate.microseconds:.1f} us predicted{note}"
        yield Choice(candidate.knobs, Source(MODEL, text))


def measured_choice(query: Query) -> Choice | None:
    """Returns the measured knobs that a problem takes where no tuning database has it, in place of the cost model's;
    None where it takes the model's.

    Args:
        query: what they are for.
    """
    first = next(choices(query, None), None)
    return first if first is not None and first.source.kind == MEASURED else None


def _is_of_another_form(query: Query, ranked_once: Callable[[], ranking.Ranking | Orientations | None]) -> bool:
    """Returns whether the first setting that `ranked_once` returns for a query is of a form of kernels that no measured
    knobs are of: with an operand that is made in registers, or with weights that are loaded early. What was measured
    does not count then."""
    from stepladder.pipeline.cost_model import early_weights
    from stepladder.pipeline.cost_model.ranking import IN_REGISTERS, PRODUCERS

    forms: dict[str, object] = {}
    if query.problem.is_prepared:
        forms[PRODUCERS] = IN_REGISTERS
    if early_weights.is_short(query.problem.m, query.problem.n):
        forms[early_weights.KNOB] = True
    ranked = ranked_once() if forms.keys() - query.fixed.keys() else None
    return ranked is not None and any(
        item.knobs.get(name) == form for item in ranked.first(1) for name, form in forms.items()
    )


# Candidates of the model that are tried until the pipeline accepts one.
_TRIED = 4


def _tuned(query: Query, database: Path) -> Iterator[Choice]:
    name = query.found_gpu().gpu.name
    entries = Database(database).find(
        problem_key(query.problem), digest(query.pipeline), query.target, name if query.gpu else None
    )
    entries.sort(key=lambda entry: entry.gpu != name)
    if not entries:
        return
    from stepladder.pipeline.codegen import toolchain  # slow to import, and only a problem in the database needs it

    versions = toolchain.tool_versions()
    entry = next((entry for entry in entries if entry.tool_versions == versions), None)
    if entry is None:
        print(
            f"note: the tuning database '{database}' has this problem with other versions of the tools, "
            f"{_versions(entries[0].tool_versions)}; `stepladder tune` measures it anew",
            file=sys.stderr,
        )
    else:
        yield Choice(entry.knobs, Source(TUNED, f"tuning on {entry.gpu}, {entry.date} ({database})"))


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
