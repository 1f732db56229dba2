"""Plans what `model_choice.py` and `decode.py` measure of a problem: which knobs, of the many that the model ranks."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from draw import Drawn
from model_report import DEFAULT, FIRST, MAX
from stepladder.measure.cublas_torch import INTEGER_ROWS

# Element types of A and B, of the accumulator and of C, and the layouts of A and B.
Types = tuple[str, str, str, str, str]
TYPES: dict[str, Types] = {
    "bf16-bf16": ("bf16", "f32", "bf16", "row", "row"),
    "f16-f32": ("f16", "f32", "f32", "row", "row"),
    "bf16-bf16-row-column": ("bf16", "f32", "bf16", "row", "column"),
    "bf16-bf16-column-row": ("bf16", "f32", "bf16", "column", "row"),
    "bf16-bf16-column-column": ("bf16", "f32", "bf16", "column", "column"),
    "fp8-bf16-row-column": ("f8E4M3FN", "f32", "bf16", "row", "column"),
    "fp8-f32-row-column": ("f8E4M3FN", "f32", "f32", "row", "column"),
    "i8-i32-row-column": ("i8", "i32", "i32", "row", "column"),
}
PIPELINE, TARGET = "wgmma", "sm_90a"
# Types of 8 bits, and what cuBLASLt requires n and k of them to be multiples of.
_NARROW, _NARROW_MULTIPLE = ("f8E4M3FN", "i8"), 16
# Knobs and columns of a table of measured kernels.
KNOBS = (
    "block_m",
    "block_n",
    "block_k",
    "consumer_warpgroups",
    "min_blocks_per_sm",
    "schedule",
    "stages",
    "persistent_blocks",
    "cluster_m",
    "cluster_n",
    "split_k",
    "split_k_workspace",
    "raster_group",
    "epilogue",
    "epilogue_stages",
    "tile_scheduler",
    "dependent_launch",
    "launch_trigger",
    "early_weights",
    "swap_operands",
    "kept_weights",
)
COLUMNS = (
    "m",
    "n",
    "k",
    "kind",
    "held_out",
    "place",
    "source",
    *KNOBS,
    "predicted_microseconds",
    "microseconds",
    "cublas_microseconds",
)
FACTOR, EARLY_FACTOR = 1.5, 2.0
SWAPPED = 100
EXCHANGED = 7
_NARROWEST = 8  # columns of the tiles of a wgmma come in multiples of so many
# Settings that load weights early differ in one of these.
_EARLY_FORM = ("block_m", "block_n", "block_k", "split_k", "min_blocks_per_sm", "persistent_blocks")
# A varied series has so many settings of each orientation and cluster, of so many that are predicted to be fastest.
OF_A_FORM, AMONG = 3, 500


@dataclass(frozen=True)
class Job:
    """A kernel to build: a problem, its place among the choices, its knobs (None: what `compile` takes), and the knobs
    that all kernels of a series are given."""

    problem: Drawn
    types: Types
    place: int
    knobs: dict[str, int | str] | None
    predicted: float
    folder: Path
    given: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Returns the folder of the bundle."""
        return self.folder / f"{self.problem.name}_{self.place + 1}"


def for_library(problems: Sequence[Drawn], types: Types) -> list[Drawn]:
    """Returns problems that cuBLASLt multiplies too: of elements of 8 bits, n and k are rounded up to its multiples,
    and those of i8 with few rows are left out.

    Args:
        problems: any.
        types: of elements, accumulator and C, and the layouts of A and B.
    """
    if types[0] not in _NARROW:
        return list(problems)
    rows = INTEGER_ROWS if types[0] == "i8" else 0
    aligned = []
    for problem in problems:
        n, k = (-(-extent // _NARROW_MULTIPLE) * _NARROW_MULTIPLE for extent in (problem.n, problem.k))
        aligned += [replace(problem, n=n, k=k)] if problem.m > rows else []
    return list(dict.fromkeys(aligned))


def payload(problem: Drawn, types: Types) -> str:
    """Returns the matmul of a problem, in linalg.

    Args:
        problem: its size.
        types: of elements, accumulator and C, and the layouts of A and B.
    """
    from stepladder.payload.writing import matmul_text

    element, accumulator, c_type, a_layout, b_layout = types
    return matmul_text(
        *problem.size,
        a_type=element,
        b_type=element,
        acc_type=accumulator,
        c_type=c_type,
        a_layout=a_layout,
        b_layout=b_layout,
        accumulate=False,
    )


def plan(
    problem: Drawn,
    types: Types,
    everything: bool,
    folder: Path,
    swapped: bool = False,
    forms: bool = False,
    variety: int = 0,
    launches: bool = False,
    with_default: bool = False,
    early: int = 0,
    given: Mapping[str, int | str] | None = None,
) -> list[Job]:
    """Returns the kernels to build for a problem.

    Args:
        problem: its size.
        types: of elements, accumulator and C, and the layouts of A and B.
        everything: all candidates, not only the model's first ones.
        folder: of the bundles.
        swapped: also the model's first settings of exchanged operands, at places from SWAPPED on.
        forms: the first settings of either orientation, without the default of `compile`.
        variety: the best so many of the first settings of each orientation and cluster; 0 for another choice.
        launches: with `variety`, each setting also without `dependent_launch`.
        with_default: with `variety`, what `compile` takes too.
        early: what `compile` takes, and the first so many settings that load weights early and differ in more than
            their stages; 0 for another choice.
        given: knobs of all kernels; only what `compile` takes, and with `variety` the others, have them.
    """
    given = dict(given or {})
    default = Job(problem, types, DEFAULT, None, 0.0, folder, given)
    if early:
        return [default, *_early(problem, types, folder, early)]
    if variety:
        jobs = _varied(problem, types, folder, variety, given)
        alone = {"dependent_launch": False}
        pairs = [(job, replace(job, knobs={**(job.knobs or {}), **alone}) if launches else None) for job in jobs]
        numbered = [replace(job, place=place) for place, job in enumerate(job for pair in pairs for job in pair if job)]
        return [default, *numbered] if with_default else numbered
    if forms:
        return _forms(problem, types, folder)
    jobs = candidates(problem, types, everything, folder)
    swapped_jobs = candidates(problem, types, everything, folder, {"swap_operands": True}, SWAPPED) if swapped else []
    return [default, *jobs, *swapped_jobs]


def _forms(problem: Drawn, types: Types, folder: Path) -> list[Job]:
    straight = candidates(problem, types, False, folder, {"swap_operands": False})
    return [*straight, *candidates(problem, types, True, folder, {"swap_operands": True}, SWAPPED)[:EXCHANGED]]


def _early(problem: Drawn, types: Types, folder: Path, count: int) -> list[Job]:
    by_form: dict[tuple[int | str | None, ...], Job] = {}
    for job in candidates(problem, types, True, folder, among=AMONG, factor=EARLY_FACTOR):
        knobs = job.knobs or {}
        if knobs.get("early_weights") and int(knobs["block_n"]) < problem.m + _NARROWEST:
            form = tuple(knobs.get(name) for name in _EARLY_FORM)
            by_form.setdefault(form, replace(job, place=len(by_form)))
    return list(by_form.values())[:count]


def _varied(problem: Drawn, types: Types, folder: Path, count: int, given: Mapping[str, int | str]) -> list[Job]:
    counts: Counter[tuple[int | str | None, ...]] = Counter()
    jobs: list[Job] = []
    for job in candidates(problem, types, True, folder, given, among=AMONG):
        form = tuple((job.knobs or {}).get(name) for name in ("swap_operands", "cluster_m", "cluster_n"))
        counts[form] += 1
        if counts[form] <= OF_A_FORM:
            jobs.append(replace(job, place=len(jobs)))
    return jobs[:count]


def candidates(
    problem: Drawn,
    types: Types,
    everything: bool,
    folder: Path,
    given: Mapping[str, int | str] | None = None,
    first: int = 0,
    among: int = MAX,
    factor: float = FACTOR,
) -> list[Job]:
    """Returns the model's first settings for a problem, where some knobs are given.

    Args:
        problem: its size.
        types: of elements, accumulator and C, and the layouts of A and B.
        everything: up to `among` settings within `factor` of the first one's predicted time, not only the first few.
        folder: of the bundles.
        given: knobs whose value is given.
        first: place of the first setting.
        among, factor: see `everything`.
    """
    from stepladder.pipeline import knob_choice, library
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.knob_query import read_query
    from stepladder.pipeline.request import Request

    with mlir_context():
        pipeline = library.load(PIPELINE)
        request = Request(PIPELINE, {"target": TARGET, **(given or {})}, tuned=True, constant_weights=True)
        ranked = knob_choice.rank(read_query(pipeline, request, payload(problem, types), problem.name))
    candidates = ranked.first(among if everything else FIRST) if ranked is not None else []
    near = [candidate for candidate in candidates if candidate.microseconds <= factor * candidates[0].microseconds]
    return [
        Job(problem, types, place, {**candidate.knobs, **(given or {})}, candidate.microseconds, folder)
        for place, candidate in enumerate(near if everything else candidates, first)
    ]
