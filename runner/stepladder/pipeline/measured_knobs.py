"""Measured knobs: the fastest settings of measured problems, for problems whose knobs are not set.

`benchmarks/defaults.py` makes `transforms/defaults/PIPELINE.json` from `docs/results`: it lists measured problems with
their fastest knobs. A problem takes the knobs of the most similar measured problem whose knobs it accepts.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path

from stepladder.mlir.element_types import bits_of_name
from stepladder.payload.facts import problem_facts
from stepladder.pipeline import library
from stepladder.pipeline.definition import Knobs, Pipeline
from stepladder.pipeline.sequences import text_of_sequence, texts_of_steps
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from stepladder.runtime.resources import transforms_dir


@dataclass(frozen=True)
class Measured:
    """Whether knobs were measured for a pipeline.

    Args:
        source: the pipeline file that they were measured for, None where there are none.
        reason: one line for the user, why these or why none.
    """

    source: Path | None
    reason: str


def find_measured(pipeline: Pipeline) -> Measured:
    """Returns whether measured knobs apply to a pipeline, in the MLIR context it was loaded in.

    They apply to the pipeline they were measured for, beside which they are stored in `defaults/`, and to a copy of one
    of the package's, under whatever name: its steps, knobs and derived names are the same. A pipeline that differs in
    anything has none, since what is best for it is not known.

    Args:
        pipeline: as `library.load` returns it, before values are written into it.
    """
    name = pipeline.name
    if _defaults(pipeline.path).is_file():
        return Measured(pipeline.path, f"knobs were measured for pipeline '{name}'")
    none = f"no knobs were measured for pipeline '{name}'"
    if pipeline.path.parent.resolve() == transforms_dir():
        return Measured(None, none)
    pipelines = [library.load(path.stem) for path in sorted((transforms_dir() / "defaults").glob("*.json"))]
    for other in pipelines:
        if difference(pipeline, other) is None:
            return Measured(
                other.path, f"pipeline '{name}' is a copy of {other.name} and keeps the knobs measured for it"
            )
    steps = {step.name for step in pipeline.steps}
    alike = max(pipelines, key=lambda other: len(steps & {step.name for step in other.steps}), default=None)
    if alike is None or not steps & {step.name for step in alike.steps}:
        return Measured(None, none)
    return Measured(None, f"{none}, and those of {alike.name} are not for it: {difference(pipeline, alike)}")


def difference(pipeline: Pipeline, other: Pipeline) -> str | None:
    """Returns the first respect in which a pipeline is not a copy of another, or None; the names do not count.

    Args:
        pipeline: which may be a copy.
        other: the one that it is compared with, such as the pipeline that was measured.
    """
    steps, others = pipeline.steps, other.steps
    names, other_names = [step.name for step in steps], [step.name for step in others]
    for own_name, step in itertools.zip_longest(names, other_names):
        if own_name != step:
            if own_name is not None and own_name not in other_names:
                return f"it has a step '{own_name}'"
            if step is not None and step not in names:
                return f"it has no step '{step}'"
            return f"its steps are in another order from '{own_name or step}' on"
    for own_step, step in zip(steps, others):
        if own_step.condition != step.condition:
            return f"step '{own_step.name}' runs in other cases"
    texts, other_texts = texts_of_steps(pipeline), texts_of_steps(other)
    for name in names:
        if texts[name] != other_texts[name]:
            return f"step '{name}' is another"
    for name in {**pipeline.knobs, **other.knobs}:
        own_knob, knob = pipeline.knobs.get(name), other.knobs.get(name)
        if own_knob is None or knob is None:
            return f"it has {'no' if own_knob is None else 'a'} knob '{name}'"
        if own_knob.default != knob.default:
            return f"knob '{name}' is {own_knob.default} by default, and {knob.default} there"
        if own_knob.options_text() != knob.options_text():
            return f"knob '{name}' has other options"
    if pipeline.derived != other.derived:
        return "it derives other names from knobs"
    if text_of_sequence(pipeline) != text_of_sequence(other):
        return "its sequence includes the steps in another way"
    return None


def _defaults(pipeline: Path) -> Path:
    return pipeline.parent / "defaults" / f"{pipeline.stem}.json"


# The weight of lost work: a hundredth of it counts a tenth of a C twice as large.
_LOST = 8.0


# Distance for another width of C's elements: a problem of the same size is still more alike than others.
_OTHER_C = 0.05


def _lost(knobs: Knobs, m: int, n: int) -> float:
    """Returns the work of persistent blocks over the work of the problem: every block takes as long as the one with the
    most tiles, or half tiles under stream-K. Without persistent blocks it is 1: the number of tiles matters less."""
    blocks = int(knobs.get("persistent_blocks", 0))
    if not blocks:
        return 1.0
    block_m, block_n = int(knobs["block_m"]), int(knobs["block_n"])
    tiles = math.ceil(m / block_m) * math.ceil(n / block_n)
    parts = 2 if knobs.get("tile_scheduler") == "stream_k" else 1
    return math.ceil(parts * tiles / blocks) / parts * blocks * block_m * block_n / (m * n)


def _of_width(entry: dict, bits: int) -> dict:
    """Returns an entry for operands of another width that none was measured for: with rows of a tile along k of as many
    bytes, which is what fits."""
    knobs = entry["knobs"]
    return {**entry, "knobs": {**knobs, "block_k": knobs["block_k"] * entry["a_bits"] // bits}}


def _distance(entry: dict, problem: Problem) -> float:
    """How unlike two problems are: in the size of C, which decides how many blocks there are, then in its shape and k;
    and how much more the entry's knobs would lose here in tiles that do not come out even than they lose there."""
    matmuls = problem.matmuls / entry.get("batch", 1)
    area = abs(math.log2(entry["m"] * entry["n"] / (matmuls * problem.m * problem.n)))
    shape = abs(math.log2(entry["m"] / entry["n"]) - math.log2(problem.m / problem.n))
    loss = math.log2(_lost(entry["knobs"], problem.m, problem.n) / _lost(entry["knobs"], entry["m"], entry["n"]))
    return area + 0.25 * shape + 0.25 * abs(math.log2(entry["k"] / problem.k)) + _LOST * max(0.0, loss)


@dataclass(frozen=True)
class Entry:
    """A measured problem: its sizes, the GPU, the knobs that won, and names of further GPUs that they are for."""

    m: int
    n: int
    k: int
    measured_on: str
    knobs: Knobs
    batch: int | None = None
    also_for: tuple[str, ...] = ()

    def is_for(self, gpu: str) -> bool:
        """Returns whether the knobs are for a GPU.

        Args:
            gpu: its name, by the driver.
        """
        return gpu == self.measured_on or gpu in self.also_for

    def describe(self) -> str:
        """Returns the sizes as a message shows them."""
        sizes = f"{self.m} x {self.n} x {self.k}"
        return sizes if self.batch is None else f"{self.batch} of {sizes}"


def _of_form(entries: list[dict], problem: Problem) -> list[dict]:
    """Returns the entries that count for a problem: those of epilogues with one operand, which `operands` marks, for
    problems with such an epilogue and one result, and those of batches, which `batch` marks, for as many matmuls of
    which each has both operands."""
    has_operand = len(problem.epilogue_operands) == 1 and not problem.results
    batch = None if problem.a_broadcast or problem.b_broadcast else problem.batch
    return [
        entry
        for entry in entries
        if (has_operand or not entry.get("operands", 0)) and entry.get("batch") in (None, batch)
    ]


# How far k of a problem may be from that of a measured one whose knobs it takes: a part of it.
_NEAR = 0.02
# The part of a measured problem's rows and columns that a problem must exceed: a tile of 128 rows is not for 32 rows,
# though both are one tile. That of 128 x 8192 x 8192 took longer for 1 to 64 rows than what the cost model chooses
# there (docs/results/decode_row.json).
_FILLED = 0.5


# Rows that begin within a sector of the L2 cache take longer to load; rows of no multiple of 16 bytes are repacked.
_SECTOR_BITS, _PITCH_BITS = 256, 128


def _begin_within_sectors(rows: tuple[int, int], bits: int) -> tuple[bool, ...]:
    """Returns, for A and for B, whether its rows, whose elements are counted in `rows`, begin within sectors."""
    return tuple(row * bits % _SECTOR_BITS > 0 and row * bits % _PITCH_BITS == 0 for row in rows)


def near(pipeline: Path, problem: Problem) -> list[Entry]:
    """Returns the measured problems that are as good as this one: of the same types' widths, with as many tiles along
    both sides of C, which it fills more than half as much, almost the same k, and rows of A and B that begin within
    sectors as those here do; the most alike first, and before all those whose epilogue has an operand where that of the
    problem has one. Those of a batch are of as many matmuls.

    Args:
        pipeline: the pipeline's file, as for `candidates`.
        problem: what is to be computed.
    """
    path = pipeline.parent / "defaults" / f"{pipeline.stem}.json"
    if not path.is_file():
        return []
    facts = problem_facts(problem)
    rows = (
        problem.k if problem.a_layout == "row" else problem.m,
        problem.n if problem.b_layout == "row" else problem.k,
    )
    data = json.loads(path.read_text())
    entries = []
    for entry in _of_form(data["problems"], problem):
        knobs = entry["knobs"]
        tiles = [
            (math.ceil(entry[side] / knobs[knob]), math.ceil(extent / knobs[knob]))
            for side, knob, extent in (("m", "block_m", problem.m), ("n", "block_n", problem.n))
        ]
        if (
            (entry["a_bits"], entry["c_bits"]) == (facts["a_bits"], facts["c_bits"])
            and entry.get("batch") == problem.batch
            and all(tile == other_tile for tile, other_tile in tiles)
            and problem.m > _FILLED * entry["m"]
            and problem.n > _FILLED * entry["n"]
            and abs(entry["k"] / problem.k - 1) <= _NEAR
            and _begin_within_sectors((entry["k"], entry["n"]), entry["a_bits"])
            == _begin_within_sectors(rows, entry["a_bits"])
        ):
            entries.append(entry)
    entries.sort(key=lambda entry: (not entry.get("operands", 0), _distance(entry, problem)))
    card, other_gpus = data.get("measured_on", ""), tuple(data.get("also_for", ()))
    return [
        Entry(entry["m"], entry["n"], entry["k"], card, entry["knobs"], entry.get("batch"), other_gpus)
        for entry in entries
    ]


def candidates(pipeline: Path, problem: Problem) -> list[Knobs]:
    """Returns knobs for a problem, the most promising first; none where nothing alike was measured.

    Args:
        pipeline: the pipeline's file; its measured knobs are beside it, in `defaults/`.
        problem: what is to be computed. Problems of the same width of A's and B's elements are alike, those of the same
            width of C's more so; where none of the width was measured, all are.

    Raises:
        StepladderError: a file that holds no measured knobs.
    """
    path = _defaults(pipeline)
    if not path.is_file():
        return []
    try:
        return _sorted(path, problem)
    except OSError as error:
        raise StepladderError(f"cannot read '{path}': {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StepladderError(
            f"'{path}' does not hold measured knobs: {type(error).__name__}: {error}",
            notes=["it is written like the files in defaults/ of the package"],
        ) from None


def _sorted(path: Path, problem: Problem) -> list[Knobs]:
    facts = problem_facts(problem)
    entries = _of_form(json.loads(path.read_text())["problems"], problem)
    alike = [entry for entry in entries if entry["a_bits"] == facts["a_bits"]] or [
        _of_width(entry, bits_of_name(problem.a_type)) for entry in entries
    ]
    knobs: list[Knobs] = []
    for entry in sorted(
        alike, key=lambda entry: _distance(entry, problem) + _OTHER_C * (entry["c_bits"] != facts["c_bits"])
    ):
        if entry["knobs"] not in knobs:
            knobs.append(entry["knobs"])
    return knobs
