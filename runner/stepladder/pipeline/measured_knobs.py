"""Knobs that were fastest where they were measured, for problems that name none.

`transforms/defaults/PIPELINE.json` lists measured problems with the knobs that won: `benchmarks/defaults.py` makes it
from `docs/results`. A problem takes the knobs of the measured problem that is most like it and whose knobs it can have.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from stepladder.payload.problem import Problem

Knobs = dict[str, int | str]


# What a hundredth of lost work weighs beside a size of C that is twice as large: a tenth of it.
_LOST = 8.0


# What another width of C's elements adds to a distance: a problem of the same size is still more alike than others.
_OTHER_C = 0.05


def _lost(knobs: Knobs, m: int, n: int) -> float:
    """How many times the work there is blocks do that stay and take tile after tile: each as many tiles, or half tiles
    where they are shared, as the last one to end. 1 for other pipelines: where blocks come and go, the number of tiles
    matters less."""
    blocks = int(knobs.get("persistent_blocks", 0))
    if not blocks:
        return 1.0
    block_m, block_n = int(knobs["block_m"]), int(knobs["block_n"])
    tiles = math.ceil(m / block_m) * math.ceil(n / block_n)
    parts = 2 if knobs.get("tile_scheduler") == "shared" else 1
    return math.ceil(parts * tiles / blocks) / parts * blocks * block_m * block_n / (m * n)


def _of_width(entry: dict, bits: int) -> dict:
    """Returns an entry for operands of another width that none was measured for: with rows of a tile along k of as many
    bytes, which is what fits."""
    knobs = entry["knobs"]
    return {**entry, "knobs": {**knobs, "block_k": knobs["block_k"] * entry["a_bits"] // bits}}


def _distance(entry: dict, problem: Problem) -> float:
    """How unlike two problems are: in the size of C, which decides how many blocks there are, then in its shape and k;
    and how much more the entry's knobs would lose here in tiles that do not come out even than they lose there."""
    area = abs(math.log2(entry["m"] * entry["n"] / (problem.m * problem.n)))
    shape = abs(math.log2(entry["m"] / entry["n"]) - math.log2(problem.m / problem.n))
    lost = math.log2(_lost(entry["knobs"], problem.m, problem.n) / _lost(entry["knobs"], entry["m"], entry["n"]))
    return area + 0.25 * shape + 0.25 * abs(math.log2(entry["k"] / problem.k)) + _LOST * max(0.0, lost)


@dataclass(frozen=True)
class Entry:
    """A measured problem: its sizes, the GPU, and the knobs that won."""

    m: int
    n: int
    k: int
    measured_on: str
    knobs: Knobs

    def describe(self) -> str:
        """Returns the sizes as a message shows them."""
        return f"{self.m} x {self.n} x {self.k}"


# How far k of a problem may be from that of a measured one whose knobs it takes: a part of it.
_NEAR = 0.02


def near(pipeline: Path, problem: Problem) -> list[Entry]:
    """Returns the measured problems that are as good as this one: of the same types' widths, with as many tiles along
    both sides of C, and almost the same k; the most alike first.

    Args:
        pipeline: the pipeline's file, as for `candidates`.
        problem: what is to be computed.
    """
    path = pipeline.parent / "defaults" / f"{pipeline.stem}.json"
    if not path.is_file():
        return []
    facts = problem.facts()
    data = json.loads(path.read_text())
    found = []
    for entry in data["problems"]:
        knobs = entry["knobs"]
        tiles = [
            (math.ceil(entry[side] / knobs[knob]), math.ceil(extent / knobs[knob]))
            for side, knob, extent in (("m", "block_m", problem.m), ("n", "block_n", problem.n))
        ]
        if (
            (entry["a_bits"], entry["c_bits"]) == (facts["a_bits"], facts["c_bits"])
            and all(own == other for own, other in tiles)
            and abs(entry["k"] / problem.k - 1) <= _NEAR
        ):
            found.append(entry)
    found.sort(key=lambda entry: _distance(entry, problem))
    return [Entry(entry["m"], entry["n"], entry["k"], data.get("measured_on", ""), entry["knobs"]) for entry in found]


def candidates(pipeline: Path, problem: Problem) -> list[Knobs]:
    """Returns knobs for a problem, the most promising first; none where nothing alike was measured.

    Args:
        pipeline: the pipeline's file; its defaults stand beside it, in `defaults/`.
        problem: what is to be computed. Problems of the same width of A's and B's elements are alike, those of the same
            width of C's more so; where none of the width was measured, all are.
    """
    path = pipeline.parent / "defaults" / f"{pipeline.stem}.json"
    if not path.is_file():
        return []
    facts = problem.facts()
    measured = json.loads(path.read_text())["problems"]
    alike = [entry for entry in measured if entry["a_bits"] == facts["a_bits"]] or [
        _of_width(entry, facts["a_bits"]) for entry in measured
    ]
    found: list[Knobs] = []
    for entry in sorted(
        alike, key=lambda entry: _distance(entry, problem) + _OTHER_C * (entry["c_bits"] != facts["c_bits"])
    ):
        if entry["knobs"] not in found:
            found.append(entry["knobs"])
    return found
