"""The bundles that `hopper.py build` makes: a list of jobs for each measurement. Needs MLIR and no GPU."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import hopper_cases as cases
from hopper_cases import Knobs, Size, Types
from measure import Job, build_jobs

# Size, layouts of A and B, pipeline, knobs, and whether the product is added to C.
RandomCase = tuple[Size, tuple[str, str], str, Knobs, bool]


def job(
    path: Path,
    size: Size,
    types: Types,
    knobs: Knobs,
    pipeline: str = "wgmma",
    *,
    without: tuple[str, ...] = (),
    layouts: tuple[str, str] = ("row", "row"),
    accumulate: bool = False,
    tuned: bool = False,
) -> Job:
    """Returns a bundle to build.

    Args:
        path: folder of the bundle.
        size: m, n, k.
        types: element types of A and B, of the accumulator and of C.
        knobs: those that are set.
        pipeline: that makes it.
        without: steps that are left out.
        layouts: of A and B.
        accumulate: C = AB + C instead of C = AB.
        tuned: whether `stepladder compile` chooses the knobs that are not set; otherwise they are the script's.
    """
    element, acc_type, c_type = types
    if element == "f32":
        knobs = knobs | {"allow_tf32": True}
    return Job(path, pipeline, size, (element, c_type), knobs, without, layouts, accumulate, acc_type, tuned)


def tune_jobs(folder: Path, types: list[str], only: list[str]) -> list[Job]:
    """Returns every candidate of every problem.

    Args:
        folder: of the bundles.
        types: names in `hopper_cases.TYPES`.
        only: names of problems; empty for all.
    """
    return [
        job(folder / name / cases.problem_name(size) / cases.kernel_name(knobs), size, cases.TYPES[name], knobs)
        for name in types
        for size, candidates in cases.problems(only).items()
        for knobs in candidates
    ]


def sizes_jobs(folder: Path, types: list[str], only: list[str]) -> list[Job]:
    """Returns every problem with the knobs that `stepladder compile` chooses.

    Args:
        folder: of the bundles.
        types: names in `hopper_cases.TYPES`.
        only: names of problems; empty for all.
    """
    return [
        job(folder / name / cases.problem_name(size), size, cases.TYPES[name], {}, tuned=True)
        for name in types
        for size in cases.problems(only)
    ]


def beside_jobs(folder: Path) -> list[Job]:
    """Returns the kernels that are compared with those of other compilers.

    Args:
        folder: of the bundles.
    """
    types = cases.TYPES[cases.BESIDE_TYPES]
    return [job(folder / str(size), (size, size, size), types, {}, tuned=True) for size in cases.BESIDE_SIZES]


def ablation_jobs(folder: Path) -> list[Job]:
    """Returns every variant of the ablation.

    Args:
        folder: of the bundles.
    """
    types = cases.TYPES[cases.ABLATION_TYPES]
    return [
        job(folder / f"{number:02}", cases.ABLATION, types, variant.knobs, variant.pipeline, without=variant.without)
        for number, variant in enumerate(cases.ablation_variants())
    ]


def stages_jobs(folder: Path) -> list[Job]:
    """Returns every number of stages, of the multistage pipeline and of the warp-specialized one.

    Args:
        folder: of the bundles.
    """
    jobs = []
    types = cases.TYPES["f16-f32"]
    for k, stages in itertools.product(cases.STAGES_K, cases.STAGES):
        tile: Knobs = {"block_m": 128, "block_n": 128, "block_k": 64, "consumer_warpgroups": 2}
        size = (*cases.STAGES_MN, k)
        with_stages = tile | {"stages": stages}
        # With one stage, the multistage pipeline is the single-stage one.
        pipeline, knobs = ("wgmma_single_stage", tile) if stages == 1 else ("wgmma_multistage", with_stages)
        jobs.append(job(folder / str(k) / f"multistage-{stages}", size, types, knobs, pipeline))
        jobs.append(
            job(folder / str(k) / f"specialized-{stages}", size, types, with_stages | {"epilogue": "registers"})
        )
    return jobs


def few_rows_jobs(folder: Path) -> list[Job]:
    """Returns the kernels for an A of few rows.

    Args:
        folder: of the bundles.
    """
    return [
        job(folder / str(number), cases.FEW_ROWS, cases.TYPES["f16-f32"], variant.knobs, without=variant.without)
        for number, variant in enumerate(cases.FEW_ROWS_VARIANTS)
    ]


def numbers_jobs(folder: Path) -> list[Job]:
    """Returns every combination, the random shapes, and the kernels that are launched many times.

    Args:
        folder: of the bundles.
    """
    orders = ("row", "column")
    layouts = itertools.product(orders, orders)
    jobs = [
        found
        for (name, types), both in itertools.product(cases.NUMBERS_TYPES.items(), layouts)
        for found in _combinations(folder / "cases", name, types, both)
    ]
    types = cases.TYPES["f16-f32"]
    for number, (size, both, pipeline, knobs, form) in enumerate(random_shapes()):
        path = folder / "cases" / f"random{number:02}_{cases.problem_name(size)}"
        jobs.append(job(path, size, types, knobs, pipeline, layouts=both, accumulate=form))
    for title, knobs in cases.REPEATED.items():
        jobs.append(job(folder / "repeated" / title, cases.REPEATED_SIZE, types, knobs))
    return jobs


def _combinations(folder: Path, name: str, types: Types, layouts: tuple[str, str]) -> list[Job]:
    """Returns the jobs of some types and layouts: each variant as C = AB and C = AB + C, and in clusters."""
    variants: dict[str, tuple[str, Knobs, tuple[bool, ...]]] = {
        title: (pipeline, knobs, (False, True))
        for title, (pipeline, knobs) in (cases.NUMBERS_VARIANTS | cases.NUMBERS_SPLIT).items()
    }
    for title, (cluster, knobs) in itertools.product(
        ("cooperative", "pingpong", "stream_k", "split_in_memory"), cases.NUMBERS_CLUSTERS.items()
    ):
        pipeline, variant_knobs, _ = variants[title]
        # C is added to only where it has the type of the accumulator.
        form = title == "cooperative" and types[1] == types[2]
        variants[f"{title}-{cluster}"] = (pipeline, variant_knobs | knobs, (form,))
    jobs = []
    for title, (pipeline, knobs, forms) in variants.items():
        for form in forms:
            if form and types[1] != types[2]:
                continue
            depth: Knobs = {} if types[0] in ("f16", "bf16") else {"block_k": 32 if types[0] == "f32" else 128}
            path = folder / "_".join((name, *layouts, title, "add" if form else "product"))
            jobs.append(job(path, cases.NUMBERS_SIZE, types, knobs | depth, pipeline, layouts=layouts, accumulate=form))
    return jobs


def random_shapes() -> list[RandomCase]:
    """Returns the random shapes, the same in every call; the first ones have extents of 1, 8 and three tiles plus one.

    Rows are multiples of 16 bytes, which TMA requires: M may be any number where A is row-major.
    """
    generator = random.Random(cases.RANDOM_SEED)
    row, columns = ("row", "row"), ("row", "column")
    plain = cases.NUMBERS_VARIANTS["cooperative"]
    shapes: list[RandomCase] = [
        ((1, 512, 264), row, *plain, False),
        ((1, 8, 8), row, *plain, True),
        ((512, 8, 264), row, *plain, False),
        ((512, 4, 264), columns, *plain, True),
        ((129, 1, 64), columns, plain[0], plain[1] | {"epilogue": "registers"}, False),
        ((260, 392, 8), row, *plain, True),
        ((3 * 128 + 1, 3 * 128 + 8, 3 * 64 + 8), row, *plain, True),
        ((3 * 128 + 1, 3 * 128 + 4, 3 * 64 + 8), columns, *cases.NUMBERS_VARIANTS["pingpong"], False),
        ((3 * 128 + 1, 3 * 128 + 8, 3 * 64 + 8), row, *cases.NUMBERS_VARIANTS["multistage"], True),
    ]
    while len(shapes) < cases.RANDOM_SHAPES:
        layouts = (generator.choice(("row", "column")), generator.choice(("row", "column")))
        m, n, k = (int(2 ** generator.uniform(3, 11)) for _ in range(3))
        m = m if layouts[0] == "row" else -8 * (-m // 8)
        n, k = -8 * (-n // 8), -8 * (-k // 8)
        pipeline, knobs = cases.NUMBERS_VARIANTS[generator.choice(list(cases.NUMBERS_VARIANTS))]
        if pipeline == "wgmma":
            # A cluster needs at least one tile for each of its blocks.
            options = [
                cluster
                for cluster in cases.NUMBERS_CLUSTERS.values()
                if m > 128 * (int(cluster["cluster_m"]) - 1) and n > 128 * (int(cluster["cluster_n"]) - 1)
            ]
            none: Knobs = {}
            knobs = knobs | generator.choice([none, *options])
        shapes.append(((m, n, k), layouts, pipeline, knobs, generator.random() < 0.5))
    return shapes


def build_all(folder: Path, parts: list[str], types: list[str], only: list[str], workers: int) -> None:
    """Builds the bundles of some measurements below `folder`.

    Args:
        folder: a folder for each measurement is made in it.
        parts: names of measurements.
        types: for `tune` and `sizes`: names of element types.
        only: for `tune` and `sizes`: names of problems; all where it is empty.
        workers: processes.
    """
    jobs: dict[str, Callable[[], list[Job]]] = {
        "numbers": lambda: numbers_jobs(folder / "numbers"),
        "tune": lambda: tune_jobs(folder / "tune", types, only),
        "ablation": lambda: ablation_jobs(folder / "ablation"),
        "stages": lambda: stages_jobs(folder / "stages"),
        "sizes": lambda: sizes_jobs(folder / "sizes", types, only),
        "beside": lambda: beside_jobs(folder / "beside"),
        "few_rows": lambda: few_rows_jobs(folder / "few_rows"),
    }
    selected = [item for part in parts for item in jobs[part]()]
    # Candidates of an earlier list must not remain among those of this one. `sizes` builds into fixed folders.
    for place in {item.path.parent for item in selected if item.path.relative_to(folder).parts[0] != "sizes"}:
        shutil.rmtree(place, ignore_errors=True)
    build_jobs(selected, workers)
