"""Knobs that were fastest where they were measured, for problems that name none.

`transforms/defaults/PIPELINE.json` lists measured problems with the knobs that won: `docs/measure/defaults.py` makes it
from `docs/results`. A problem takes the knobs of the measured problem that is most like it and whose knobs it can have.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from stepladder.payload import Problem

Knobs = dict[str, int | str]


def _distance(entry: dict, problem: Problem) -> float:
    """How unlike two problems are: in the size of C, which decides how many blocks there are, then in k."""
    area = abs(math.log2(entry["m"] * entry["n"]) - math.log2(problem.m * problem.n))
    return area + 0.25 * abs(math.log2(entry["k"]) - math.log2(problem.k))


def candidates(pipeline: Path, problem: Problem) -> list[Knobs]:
    """Returns knobs for a problem, the most promising first; none where nothing alike was measured.

    Args:
        pipeline: the pipeline's file; its defaults stand beside it, in `defaults/`.
        problem: what is to be computed. Problems of the same element widths are alike.
    """
    path = pipeline.parent / "defaults" / f"{pipeline.stem}.json"
    if not path.is_file():
        return []
    facts = problem.facts()
    alike = [entry for entry in json.loads(path.read_text())["problems"]
             if entry["a_bits"] == facts["a_bits"] and entry["c_bits"] == facts["c_bits"]]
    found: list[Knobs] = []
    for entry in sorted(alike, key=lambda entry: _distance(entry, problem)):
        if entry["knobs"] not in found:
            found.append(entry["knobs"])
    return found
