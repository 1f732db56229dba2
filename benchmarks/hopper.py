"""Measures the Hopper pipelines: their numbers, their knobs, what each step gains, and their speed beside cuBLAS.

Two halves, since the machine with the GPU need not have MLIR (it needs PyTorch):

    python benchmarks/hopper.py build FOLDER [--only PART ...] [--types f16-f32 ...]          bundles of all kernels
    python benchmarks/hopper.py numbers FOLDER RESULT.json                                    on the GPU
    python benchmarks/hopper.py tune FOLDER RESULT.json [--types f16-f32 ...] [--only PROBLEM ...]    on the GPU
    python benchmarks/hopper.py ablation FOLDER RESULT.json                                   on the GPU
    python benchmarks/hopper.py stages FOLDER RESULT.json                                     on the GPU
    python benchmarks/hopper.py sizes FOLDER RESULT.json --types f16-f32 [--only PROBLEM ...] on the GPU
    python benchmarks/hopper.py beside FOLDER RESULT.json                                     on the GPU
    python benchmarks/hopper.py few_rows FOLDER RESULT.json                                   on the GPU
    python benchmarks/hopper.py clusters RESULT.json                                          on the GPU

A PROBLEM is `squares`, `shapes`, a size or MxNxK. `tune` and `sizes` write after every problem and begin none after
`--limit` seconds. What `tune` finds, `defaults.py` makes the pipeline's defaults of; `build --only sizes beside` then
builds kernels as `stepladder compile` does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from measure import Job, build_jobs
from pieces import new_parser, run, said_command, write_result
from stepladder.pipeline import ablation as climb

PARTS = ("numbers", "tune", "ablation", "stages", "sizes", "beside", "few_rows")

# Element types of A and B, of the sums and of C that are measured over sizes.
TYPES = {"f16-f32": ("f16", "f32", "f32"), "bf16-bf16": ("bf16", "f32", "bf16"), "f16-f16": ("f16", "f32", "f16")}
SQUARES = (1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192, 8448, 8704, 10240, 12288, 16384)

# Candidates: the tile, the words of _WORDS (`a`lternating schedule, `o`rdered launches, `l`ast tiles shared, C from
# re`g`isters), `c` for the cluster, `p` or `q` for the parts of a reduction, in a cluster or in memory, and the letters
# of _KNOBS; what is not said is the script's.
MIDDLE = ("128x128 a s5", "128x192 a s4 e1", "128x256", "128x256 r16", "256x128 e1", "192x192 w3 s4 e1")
LARGE = ("128x256 b128 c2x1", "128x256", "256x192 s3 e1 c1x2", "256x192 s3 e1 l", "256x128 e1 c1x2")
CANDIDATES = {
    1024: ("64x128 w1 s8", "64x128 w1 s8 r4", "128x64 w1 s8"),
    1536: ("192x96 w3 s5 e1 r1", "192x96 w3 s5 e1", "192x96 w3 s5 e1 r1 o", "128x160 s4"),
    2048: ("128x128 a s5", "128x256 r4", "128x256 r16", "128x256 r16 o"),
    3072: ("128x192 a s4 e1 o", "128x192 a s4 e1", "192x192 w3 s4 e1", "192x192 w3 s4 e1 o"),
    4096: ("128x256", "128x256 b128 r16", "128x256 b128 r16 o", "128x256 b128 c1x2 r16", "256x128 e1 b128 c1x2"),
    5120: ("256x160 s3 e1 b128", "256x160 s3 e1 b128 o", "256x160 s3 e1", "256x160 s3 e1 c1x2"),
    6144: ("256x192 s3 e1 c1x2 b128 r16", "256x192 s3 e1 c1x2 b128 r16 o", "256x192 s3 e1 c1x2"),
    8192: (
        "128x256 b128 c2x1",
        "128x256 b128 c2x1 o",
        "256x192 s3 e1 l",
        "256x192 s3 e1 l r16",
        "256x192 s3 e1 c1x2 l",
        "256x128 e1 b128 c1x2",
    ),
    8448: ("256x192 s3 e1", "256x192 s3 e1 o", "256x192 s3 e1 c1x2"),
    8704: ("256x192 s3 e1 c1x2 r16", "256x192 s3 e1 c1x2 r16 o", "256x192 s3 e1 c1x2 r16 l"),
    10240: ("256x192 s3 e1 c1x2 b128 r16", "256x192 s3 e1 l", "256x192 s3 e1 c1x2 r16 l", "128x256 b128 c2x1"),
    12288: ("256x192 s3 e1 c1x2 b128 r16", "256x192 s3 e1 l", "256x192 s3 e1 c1x2 b128 r16 o"),
    16384: ("256x192 s3 e1 c1x2", "256x192 s3 e1 c1x2 r16", "256x192 s3 e1 c1x2 r16 o"),
}
# Other shapes: of large language models, tall and flat ones, and such that no tile divides.
SHAPES = {
    (4096, 4096, 14336): CANDIDATES[4096],
    (4096, 14336, 4096): LARGE,
    (4096, 11008, 4096): (*LARGE, "256x160 s3 e1"),
    (8192, 1024, 8192): ("128x256 r16", "128x256 r16 o", "128x256 b128 r16 o", "256x128 e1"),
    (1024, 8192, 1024): MIDDLE,
    (2048, 5120, 5120): ("256x160 s3 e1", "256x160 s3 e1 o", "256x160 s3 e1 b128 o"),
    (3072, 1024, 1024): ("192x128 w3 s4 e1", "128x128 a s5", "64x128 w1 s8"),
    (512, 512, 16384): (
        "128x128 s6 q7 c2x2",
        "128x128 s7 q7 c2x2",
        "128x128 s7 q7 c1x4",
        "128x128 s6 q8 c1x2",
        "128x128 w1 s4 p6 o",
    ),
    (128, 8192, 8192): ("128x64 w1 s8", "128x128 s4 p2", "128x128 s3 p2", "128x128 w1 s3 p2"),
    (64, 14336, 4096): ("64x128 w1 s8", "64x128 w1 s8 o", "64x64 w1 s8 o", "64x224 w1 s4 p2 o"),
    (16, 4096, 4096): ("64x64 w1 s8 p2", "64x64 w1 s6 p2", "64x64 w1 s4 k128 p2", "64x64 w1 s4 k128 p2 o"),
    (1, 4096, 4096): ("64x64 w1 s8 p2", "64x64 w1 s6 p2", "64x64 w1 s4 k128 p2", "64x64 w1 s4 k128 p2 o"),
    (16384, 512, 2048): MIDDLE,
    (256, 16384, 1024): MIDDLE,
    (32768, 256, 4096): MIDDLE,
    (1000, 1000, 1000): (
        "64x128 w1 s8",
        "64x128 w1 s8 c2x1",
        "64x128 w1 s8 c1x2",
        "128x128 s5 c2x1",
        "128x64 w1 s8 c1x2",
    ),
    (4000, 4008, 4016): ("256x128 e1 b128 c1x2", "128x256 b128 c2x1", "256x192 s3 e1 c1x2"),
    (5000, 2568, 1544): (
        "192x192 w3 s4 e1",
        "192x192 w3 s4 e1 c2x1",
        "192x192 w3 s4 e1 c1x2",
        "128x256 b128 c2x1",
        "256x128 e1 c1x2",
    ),
    (8191, 8192, 8192): LARGE,
    (777, 3080, 2056): (
        "192x128 w3 s4 e1 c1x2",
        "192x128 w3 s4 c1x2",
        "192x128 w3 s4 c1x2 r1",
        "192x128 w3 s4 c1x2 r2",
    ),
}

# The climb at one size: two pipelines before it, and what no step to leave out stands for behind it.
ABLATION_SIZE = 8192
ABLATION_TYPES = "f16-f32"
FIRST_RUNGS = (
    ("one stage", "wgmma_single_stage", "128x256 r1", ("rasterize_blocks",)),
    ("+ a ring of tiles", "wgmma_multistage", "128x256 r1", ("rasterize_blocks",)),
)
CLIMB_KNOBS = "128x256 c2x1"
LAST_RUNGS = (
    ("+ sums leave by TMA", CLIMB_KNOBS),
    ("+ 128 blocks", "128x256 c2x1 b128"),
    ("larger tiles", "256x192 s3 e1 c1x2"),
    ("larger tiles, the last ones shared", "256x192 s3 e1 c1x2 l"),
    ("alternating, smaller tiles", "128x128 a s5"),
)

# Seed experiment: how many stages a product with few blocks and a long reduction wants.
STAGES = tuple(range(1, 8))
STAGES_K = (1024, 2048, 4096, 8192, 16384)
STAGES_MN = (7296, 256)

# What steps gain where A has few rows: a title, the candidate, and what is left out.
FEW_ROWS = (16, 4096, 4096)
FEW_ROWS_RUNGS = (
    ("64x32", "64x32 w1 s8", ("shrink_tma_boxes",)),
    ("64x32, boxes as short as A", "64x32 w1 s8", ()),
    ("64x64 in two parts", "64x64 w1 s8 p2", ("shrink_tma_boxes",)),
    ("64x64 in two parts, boxes as short as A", "64x64 w1 s8 p2", ()),
    ("64x64 in two parts, longer steps, boxes as short as A", "64x64 w1 s4 k128 p2", ()),
)

BESIDE_SIZES = (2048, 4096, 8192)
BESIDE_TYPES = "f16-f16"

# Whether the numbers are right: every type, layout, form, pipeline, schedule and cluster at a size that no tile
# divides, with some tiles for each block that stays.
NUMBERS_TYPES = {
    "f16-f32": ("f16", "f32", "f32"),
    "f16-f16": ("f16", "f32", "f16"),
    "f16-f16-f16": ("f16",) * 3,
    "bf16-f32": ("bf16", "f32", "f32"),
    "bf16-bf16": ("bf16", "f32", "bf16"),
    "tf32-f32": ("f32",) * 3,
    "e4m3-f32": ("f8E4M3FN", "f32", "f32"),
    "e5m2-f32": ("f8E5M2", "f32", "f32"),
}
NUMBERS_SIZE = (528, 656, 336)
NUMBERS_VARIANTS = {
    "single_stage": ("wgmma_single_stage", "128x128 w2"),
    "multistage": ("wgmma_multistage", "128x128 s3"),
    "cooperative": ("wgmma", "128x128 w2 s3 b8"),
    "pingpong": ("wgmma", "128x128 a s3 b8"),
    "stream_k": ("wgmma", "128x128 w2 s3 b8 l"),
}
NUMBERS_SPLIT = {"split": "128x128 w2 s3 p2", "split_in_memory": "128x128 w2 s3 q2"}
NUMBERS_CLUSTERS = ("c2x1", "c1x2", "c2x2")
SEEDS = (0, 1, 2)
RANDOM_SHAPES = 40
RANDOM_SEED = 20261121
# A kernel that is launched again and again: 72 tiles for 16 or 24 blocks, or 36 in four parts, 144 blocks, which are
# more than the card has room for.
REPEATED = {
    "cooperative": "128x128 w2 s3 b16 c2x1",
    "pingpong": "128x128 a s3 b16 c2x1",
    "stream_k": "128x128 w2 s3 b24 c2x1 l",
    "split_in_memory": "256x128 w2 s3 c2x1 q4",
}
REPEATED_SIZE = (1016, 1032, 1288)
LAUNCHES = 1000

# Seconds and rounds on the GPU.
TUNE_BURST, TUNE_ROUNDS = (0.03, 0.02), 5
TUNE_SUSTAINED_ROUNDS, TUNE_SUSTAINED_BEST = 3, 3
SUSTAINED, SIZES_ROUNDS = 0.5, 7
BESIDE_SUSTAINED, BESIDE_ROUNDS = 0.5, (7, 3)
# Kernels are checked in groups, some at a time; a group has so many seconds, and so many for each kernel.
PROCESSES, GROUP_SIZE = 6, 12
GROUP_SECONDS, CHECK_SECONDS = 30, 5

# Blocks of so much shared memory have a multiprocessor each.
CLUSTERS_BYTES = 200 * 1024
CLUSTERS_KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry nothing() { ret; }
"""

_KNOBS = {
    "w": "consumer_warpgroups",
    "s": "stages",
    "b": "persistent_blocks",
    "r": "raster_group",
    "k": "block_k",
    "e": "epilogue_stages",
}
_WORKSPACES = {"p": "cluster", "q": "memory"}
_WORDS: dict[str, dict[str, int | str]] = {
    "a": {"schedule": "pingpong", "consumer_warpgroups": 1},
    "o": {"dependent_launch": False},
    "l": {"tile_scheduler": "stream_k"},
    "g": {"epilogue": "registers"},
}


def knobs_of(candidate: str) -> dict[str, int | str]:
    """Returns the knobs that a candidate's text sets."""
    tile, *words = candidate.split()
    block_m, block_n = map(int, tile.split("x"))
    knobs: dict[str, int | str] = {"block_m": block_m, "block_n": block_n}
    for word in words:
        if word in _WORDS:
            knobs |= _WORDS[word]
        elif parts := re.fullmatch(r"([pq])(\d+)", word):
            knobs |= {
                "split_k": int(parts[2]),
                "split_k_workspace": _WORKSPACES[parts[1]],
                "epilogue": "registers",
                "persistent_blocks": 0,
            }
        elif cluster := re.fullmatch(r"c(\d)x(\d)", word):
            knobs |= {"cluster_m": int(cluster[1]), "cluster_n": int(cluster[2])}
        else:
            knobs[_KNOBS[word[0]]] = int(word[1:])
    return knobs


def folder_name(text: str) -> str:
    """Returns a candidate's text as the name of a folder."""
    return text.replace(" ", "-")


def problem_name(size: tuple[int, int, int]) -> str:
    """Returns MxNxK."""
    return "x".join(map(str, size))


def problems(only: list[str]) -> dict[tuple[int, int, int], tuple[str, ...]]:
    """Returns (m, n, k) and their candidates, those that `only` asks for."""
    found = {(size,) * 3: candidates for size, candidates in CANDIDATES.items()} | SHAPES
    if not only:
        return found
    named = {size for size in found if size[0] == size[1] == size[2]}
    chosen = {"squares": {(size,) * 3 for size in SQUARES}, "shapes": set(SHAPES)}
    chosen |= {str(size[0]): {size} for size in named if size[0] in SQUARES}
    chosen |= {problem_name(size): {size} for size in found}
    unknown = [name for name in only if name not in chosen]
    if unknown:
        raise SystemExit(f"no problem '{unknown[0]}': there are {', '.join(chosen)}")
    return {size: candidates for size, candidates in found.items() if any(size in chosen[name] for name in only)}


def _job(
    path: Path, size: tuple[int, int, int], types: tuple[str, str, str], settings: dict, pipeline: str = "wgmma", **more
) -> Job:
    element, acc, c_type = types
    return Job(path, pipeline, size, (element, c_type), settings, acc_type=acc, **{"accumulate": False, **more})


def tune_jobs(folder: Path, types: list[str], only: list[str]) -> list[Job]:
    """Every candidate of every problem."""
    return [
        _job(folder / name / problem_name(size) / folder_name(candidate), size, TYPES[name], knobs_of(candidate))
        for name in types
        for size, candidates in problems(only).items()
        for candidate in candidates
    ]


def sizes_jobs(folder: Path, types: list[str], only: list[str]) -> list[Job]:
    """Every problem with the knobs that it has by default."""
    return [
        _job(folder / name / problem_name(size), size, TYPES[name], {}, tuned=True)
        for name in types
        for size in problems(only)
    ]


def beside_jobs(folder: Path) -> list[Job]:
    """As `sizes`, for some."""
    return [_job(folder / str(size), (size,) * 3, TYPES[BESIDE_TYPES], {}, tuned=True) for size in BESIDE_SIZES]


def variants() -> list[dict]:
    """Returns the climb: title, pipeline, settings, and the steps left out of each variant."""
    found = [
        {"title": title, "pipeline": pipeline, "settings": knobs_of(text), "without": without}
        for title, pipeline, text, without in FIRST_RUNGS
    ]
    for number, variant in enumerate(found):
        for step in variant["without"]:
            variant["settings"].pop({"rasterize_blocks": "raster_group"}.get(step), None)
    hopper = climb.ABLATIONS["wgmma"]
    for title, without in hopper.variants.items():
        settings = hopper.settings_of(without, knobs_of(CLIMB_KNOBS)) | {"epilogue": "registers"}
        found.append({"title": title, "pipeline": hopper.pipeline, "settings": settings, "without": without})
    for title, text in LAST_RUNGS:
        found.append({"title": title, "pipeline": hopper.pipeline, "settings": knobs_of(text), "without": ()})
    return found


def ablation_jobs(folder: Path) -> list[Job]:
    """Every variant of the climb."""
    return [
        _job(
            folder / f"{number:02}",
            (ABLATION_SIZE,) * 3,
            TYPES[ABLATION_TYPES],
            variant["settings"],
            variant["pipeline"],
            without=variant["without"],
        )
        for number, variant in enumerate(variants())
    ]


def stages_jobs(folder: Path) -> list[Job]:
    """Every number of stages, with loads by one of the warpgroups that multiply and by one of their own."""
    jobs = []
    for k, stages in itertools.product(STAGES_K, STAGES):
        tile = {"block_m": 128, "block_n": 128, "block_k": 64, "consumer_warpgroups": 2}
        size = (*STAGES_MN, k)
        # A ring of one place is the pipeline without a ring.
        ring = ("wgmma_single_stage", tile) if stages == 1 else ("wgmma_multistage", tile | {"stages": stages})
        jobs.append(_job(folder / str(k) / f"multistage-{stages}", size, TYPES["f16-f32"], ring[1], ring[0]))
        jobs.append(
            _job(
                folder / str(k) / f"specialized-{stages}",
                size,
                TYPES["f16-f32"],
                tile | {"stages": stages, "epilogue": "registers"},
            )
        )
    return jobs


def few_rows_jobs(folder: Path) -> list[Job]:
    """A product with few rows, with boxes of whole tiles and of the rows there are."""
    return [
        _job(folder / f"{number}", FEW_ROWS, TYPES["f16-f32"], knobs_of(candidate), without=without)
        for number, (_, candidate, without) in enumerate(FEW_ROWS_RUNGS)
    ]


def numbers_jobs(folder: Path) -> list[Job]:
    """Every combination, the random shapes, and the kernel that is launched again and again."""
    jobs = []
    for (name, types), layouts in itertools.product(
        NUMBERS_TYPES.items(), itertools.product(("row", "column"), repeat=2)
    ):
        variants = {title: (pipeline, text, (False, True)) for title, (pipeline, text) in NUMBERS_VARIANTS.items()}
        variants |= {title: ("wgmma", text, (False, True)) for title, text in NUMBERS_SPLIT.items()}
        for (title, form), cluster in itertools.product(
            (("cooperative", True), ("pingpong", False), ("stream_k", False), ("split_in_memory", False)),
            NUMBERS_CLUSTERS,
        ):
            pipeline, text, _ = variants[title]
            # C of another type than its sums is not added to.
            variants[f"{title}-{cluster}"] = (pipeline, f"{text} {cluster}", (form and types[1] == types[2],))
        for title, (pipeline, text, forms) in variants.items():
            for form in forms:
                if form and types[1] != types[2]:
                    continue
                settings = knobs_of(text)
                if types[0] not in ("f16", "bf16"):
                    settings["block_k"] = 32 if types[0] == "f32" else 128
                path = folder / "cases" / "_".join((name, *layouts, title, "add" if form else "product"))
                jobs.append(_job(path, NUMBERS_SIZE, types, settings, pipeline, layouts=layouts, accumulate=form))
    for number, (size, layouts, pipeline, text, form) in enumerate(random_shapes()):
        path = folder / "cases" / f"random{number:02}_{problem_name(size)}"
        jobs.append(_job(path, size, TYPES["f16-f32"], knobs_of(text), pipeline, layouts=layouts, accumulate=form))
    for title, text in REPEATED.items():
        jobs.append(_job(folder / "repeated" / title, REPEATED_SIZE, TYPES["f16-f32"], knobs_of(text)))
    return jobs


def random_shapes() -> list[tuple]:
    """Returns (size, layouts, pipeline, candidate, C = AB + C): first extents of 1, 8, three tiles plus one.

    Rows are multiples of 16 bytes, as TMA has them: M may be any number where A is row-major.
    """
    generator = random.Random(RANDOM_SEED)
    row, columns = ("row", "row"), ("row", "column")
    plain = NUMBERS_VARIANTS["cooperative"]
    found = [
        ((1, 512, 264), row, *plain, False),
        ((1, 8, 8), row, *plain, True),
        ((512, 8, 264), row, *plain, False),
        ((512, 4, 264), columns, *plain, True),
        ((129, 1, 64), columns, plain[0], f"{plain[1]} g", False),
        ((260, 392, 8), row, *plain, True),
        ((3 * 128 + 1, 3 * 128 + 8, 3 * 64 + 8), row, *plain, True),
        ((3 * 128 + 1, 3 * 128 + 4, 3 * 64 + 8), columns, *NUMBERS_VARIANTS["pingpong"], False),
        ((3 * 128 + 1, 3 * 128 + 8, 3 * 64 + 8), row, *NUMBERS_VARIANTS["multistage"], True),
    ]
    while len(found) < RANDOM_SHAPES:
        layouts = (generator.choice(("row", "column")), generator.choice(("row", "column")))
        m, n, k = (int(2 ** generator.uniform(3, 11)) for _ in range(3))
        m = m if layouts[0] == "row" else -8 * (-m // 8)
        n, k = -8 * (-n // 8), -8 * (-k // 8)
        title = generator.choice(list(NUMBERS_VARIANTS))
        pipeline, text = NUMBERS_VARIANTS[title]
        if pipeline == "wgmma":
            # A cluster needs as many blocks.
            text += generator.choice(
                [""]
                + [
                    f" c{rows}x{columns}"
                    for rows, columns in ((2, 1), (1, 2), (2, 2))
                    if m > 128 * (rows - 1) and n > 128 * (columns - 1)
                ]
            )
        found.append(((m, n, k), layouts, pipeline, text, generator.random() < 0.5))
    return found


def build_all(folder: Path, parts: list[str], types: list[str], only: list[str], workers: int) -> None:
    """Builds the bundles of some parts below `folder`."""
    jobs = {
        "numbers": lambda: numbers_jobs(folder / "numbers"),
        "tune": lambda: tune_jobs(folder / "tune", types, only),
        "ablation": lambda: ablation_jobs(folder / "ablation"),
        "stages": lambda: stages_jobs(folder / "stages"),
        "sizes": lambda: sizes_jobs(folder / "sizes", types, only),
        "beside": lambda: beside_jobs(folder / "beside"),
        "few_rows": lambda: few_rows_jobs(folder / "few_rows"),
    }
    chosen = [job for part in parts for job in jobs[part]()]
    # Candidates of an earlier list must not stay beside those of this one. What `sizes` builds has fixed places.
    for place in {job.path.parent for job in chosen if job.path.relative_to(folder).parts[0] != "sizes"}:
        shutil.rmtree(place, ignore_errors=True)
    build_jobs(chosen, workers)


def _refusals(folder: Path) -> dict[str, str]:
    return {path.name.removesuffix(".refused"): path.read_text().strip() for path in sorted(folder.glob("*.refused"))}


def _over_problems(folder: Path, out: Path, types: list[str], only: list[str], limit: float, read, modes: dict) -> None:
    """Measures problem after problem; `read` gives the bundles in a problem's folder."""
    import duel
    from stepladder.runtime.device import Device

    start = time.monotonic()
    with Device() as device:
        result = duel.header(device) | {"problems": []}
        for name, size in itertools.product(types, problems(only)):
            place = folder / name / problem_name(size)
            if not place.is_dir():
                print(f"{place}: not built", flush=True)
                continue
            if time.monotonic() - start > limit:
                print(f"no time left for {name} {problem_name(size)} and what follows", flush=True)
                break
            measured = duel.measure(device, read(place), modes)
            measured |= {"types": name, "refused": _refusals(place)}
            result["problems"].append(measured)
            print(f"{time.monotonic() - start:.0f} s: {name} {problem_name(size)}: {duel.line(measured)}", flush=True)
            write_result(out, result)


def measure_tuning(folder: Path, out: Path, types: list[str], only: list[str], limit: float, seconds: float) -> None:
    """Every candidate in bursts, the best of them sustained as well."""
    from stepladder.measure.timing import Mode
    from stepladder.runtime.bundle import read_bundle

    def read(place: Path) -> dict:
        return {path.name: read_bundle(path) for path in sorted(place.iterdir()) if path.is_dir()}

    _over_problems(
        folder / "tune",
        out,
        types,
        only,
        limit,
        read,
        {
            "burst": (Mode(*TUNE_BURST), TUNE_ROUNDS, 0),
            "sustained": (Mode(seconds, 0.0), TUNE_SUSTAINED_ROUNDS, TUNE_SUSTAINED_BEST),
        },
    )


def measure_sizes(
    folder: Path, out: Path, types: list[str], only: list[str], limit: float, rounds: int, seconds: float
) -> None:
    """The kernels with default knobs, in bursts and sustained."""
    from stepladder.measure.timing import MODES, Mode
    from stepladder.runtime.bundle import read_bundle

    _over_problems(
        folder / "sizes",
        out,
        types,
        only,
        limit,
        lambda place: {"wgmma": read_bundle(place)},
        {"burst": (MODES["burst"], rounds, 0), "sustained": (Mode(seconds, 0.0), rounds, 0)},
    )


def measure_ablation(folder: Path, out: Path) -> None:
    """Every variant in turn, in bursts and sustained, after an exact check of each."""
    from stepladder.measure.bench import bench_bundles
    from stepladder.runtime.bundle import read_bundle

    places = sorted(path for path in (folder / "ablation").iterdir() if path.is_dir())
    bars = [
        {
            "name": f"{number:02}",
            "title": variant["title"],
            "pipeline": variant["pipeline"],
            "without": list(variant["without"]),
        }
        for number, variant in enumerate(variants())
    ]
    measured = bench_bundles(
        [read_bundle(place) for place in places],
        baseline="cublas",
        modes=("burst", "sustained"),
        command=said_command(),
    )
    built = {place.name for place in places}
    write_result(
        out,
        {
            "size": ABLATION_SIZE,
            "bars": [bar for bar in bars if bar["name"] in built],
            "measured": measured,
            "refused": _refusals(folder / "ablation"),
        },
    )


def measure_stages(folder: Path, out: Path) -> None:
    """Every number of stages at every k, in bursts."""
    import duel
    from stepladder.measure.timing import Mode
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.device import Device

    with Device() as device:
        result = duel.header(device) | {"stages": list(STAGES), "problems": []}
        for k in STAGES_K:
            place = folder / "stages" / str(k)
            bundles = {path.name: read_bundle(path) for path in sorted(place.iterdir()) if path.is_dir()}
            measured = duel.measure(device, bundles, {"burst": (Mode(*TUNE_BURST), TUNE_ROUNDS, 0)})
            result["problems"].append(measured | {"refused": _refusals(place)})
            print(f"k = {k}: {duel.line(measured)}", flush=True)
            write_result(out, result)


def measure_beside(folder: Path, out: Path) -> None:
    """Ours, cuBLAS, Triton, and Pallas where it is."""
    import beside
    import duel
    from stepladder.measure.timing import MODES, Mode
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.device import Device

    with Device() as device:
        result = duel.header(device) | {"problems": []}
        for size in BESIDE_SIZES:
            notes: dict[str, str] = {}
            versions: dict[str, str] = {}
            measured = duel.measure(
                device,
                {"wgmma": read_bundle(folder / "beside" / str(size))},
                {
                    "burst": (MODES["burst"], BESIDE_ROUNDS[0], 0),
                    "sustained": (Mode(BESIDE_SUSTAINED, 0.0), BESIDE_ROUNDS[1], 2),
                },
                lambda operands: beside.triton_contestants(operands, notes, versions),
            )
            measured |= {
                "notes": notes,
                "versions": versions,
                "mosaic": beside.measure_mosaic(device, size, notes, versions),
            }
            result["problems"].append(measured)
            print(f"{size}: {duel.line(measured)}; {notes}", flush=True)
            write_result(out, result)


def measure_few_rows(folder: Path, out: Path) -> None:
    """Every variant of FEW_ROWS_RUNGS, in bursts."""
    import duel
    from stepladder.measure.timing import Mode
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.device import Device

    bundles = {str(number): read_bundle(folder / "few_rows" / str(number)) for number in range(len(FEW_ROWS_RUNGS))}
    with Device() as device:
        measured = duel.measure(device, bundles, {"burst": (Mode(*TUNE_BURST), TUNE_ROUNDS, 0)})
        write_result(out, duel.header(device) | {"titles": [title for title, _, _ in FEW_ROWS_RUNGS]} | measured)
    print(duel.line(measured), flush=True)


def measure_clusters(out: Path) -> None:
    """How many clusters of each size a card has room for, of blocks that need a multiprocessor each."""
    from cuda.bindings import driver

    import duel
    from stepladder.runtime.device import Device

    with Device() as device:
        error, module = driver.cuModuleLoadData(CLUSTERS_KERNEL.encode() + b"\0")
        error, kernel = driver.cuModuleGetFunction(module, b"nothing")
        driver.cuFuncSetAttribute(
            kernel, driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CLUSTERS_BYTES
        )
        result = duel.header(device) | {"shared_memory": CLUSTERS_BYTES, "clusters": {}}
        for size in range(1, 9):
            config = driver.CUlaunchConfig()
            config.gridDimX, config.blockDimX = size * device.multiprocessors, 256
            config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1
            config.sharedMemBytes = CLUSTERS_BYTES
            attribute, value = driver.CUlaunchAttribute(), driver.CUlaunchAttributeValue()
            attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = size, 1, 1
            attribute.value = value
            config.attrs, config.numAttrs = [attribute], 1
            error, count = driver.cuOccupancyMaxActiveClusters(kernel, config)
            if error != driver.CUresult.CUDA_SUCCESS:
                raise SystemExit(f"clusters of {size}: {error}")
            result["clusters"][str(size)] = count
        write_result(out, result)
    print(result["clusters"], flush=True)


def measure_numbers(folder: Path, out: Path) -> None:
    """Checks every case with every seed, in processes of their own: a barrier that is wrong waits for ever."""
    import duel
    from stepladder.runtime.device import Device

    place = folder / "numbers"
    cases = sorted(path for path in (place / "cases").iterdir() if path.is_dir())
    with Device() as device:
        result = duel.header(device)
    groups = [cases[start : start + GROUP_SIZE] for start in range(0, len(cases), GROUP_SIZE)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = dict(pair for pairs in pool.map(_check_group, groups) for pair in pairs)
    result["cases"] = {name: found[name] for name in sorted(found)}
    result["refused"] = _refusals(place / "cases")
    result["seeds"] = list(SEEDS)
    write_result(out, result)
    wrong = {name: case for name, case in found.items() if not case["passed"]}
    print(f"{len(found) - len(wrong)} of {len(found)} right, {len(result['refused'])} refused when built", flush=True)
    for name, case in list(wrong.items())[:40]:
        print(f"WRONG: {name}: {str(case.get('error') or case['reports'])[:200]}", flush=True)
    result["repeated"] = {}
    for path in sorted(path for path in (place / "repeated").iterdir() if path.is_dir()):
        found, error = _in_process(["repeat", str(path)], 60)
        result["repeated"][path.name] = found.get(path.name, {"passed": False, "error": error})
    for name, repeated in result["repeated"].items():
        print(f"{name}: {repeated}"[:300], flush=True)
    write_result(out, result)


def _in_process(arguments: list[str], seconds: float) -> tuple[dict[str, dict], str]:
    """Runs this script again; returns what its lines `{"name": ..., ...}` say, and how it failed if it did."""
    try:
        done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, timeout=seconds)
        output, error = done.stdout, done.stderr.strip()[-400:] if done.returncode else ""
    except subprocess.TimeoutExpired as expired:
        output, error = (expired.stdout or b"").decode(), "no end in time"
    cases = [json.loads(text) for text in output.splitlines() if text.startswith("{")]
    return {case.pop("name"): case for case in cases}, error


def _check_group(paths: list[Path]) -> list[tuple[str, dict]]:
    """Checks bundles in one process, and goes on in another after one that fails or hangs."""
    found: dict[str, dict] = {}
    while paths:
        cases, error = _in_process(["check", *map(str, paths)], GROUP_SECONDS + CHECK_SECONDS * len(paths))
        found |= cases
        left = [path for path in paths if path.name not in found]
        if left and not error:
            error = "no result"
        if left:
            found[left[0].name] = {"passed": False, "error": error}
        paths = left[1:]
    return list(found.items())


def check(paths: list[Path]) -> None:
    """Checks bundles with every seed; prints a line of JSON for each."""
    from dataclasses import asdict

    import duel
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.device import Device
    from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
    from stepladder.verify.check import check_matmul

    with Device() as device:
        for path in paths:
            bundle = read_bundle(path)
            problem = bundle.manifest.problem
            with MatmulBuffers(device, problem) as buffers:
                executor = DeviceExecutor(buffers, buffers.launcher(device.load(bundle), bundle))
                reports = [
                    report
                    for seed in SEEDS
                    for report in check_matmul(problem, bundle.expected(), executor, seed, device.ordinal)
                ]
            worst = max((report.max_error_over_tolerance or 0.0 for report in reports), default=0.0)
            case = {
                "name": path.name,
                "passed": all(report.passed for report in reports),
                "problem": asdict(problem),
                "max_error_over_tolerance": worst,
                "checks": len(reports),
                "reports": [report.describe() for report in reports if not report.passed],
            } | duel.describe(bundle)
            print(json.dumps(case), flush=True)


def repeat(path: Path) -> None:
    """Launches a kernel LAUNCHES times and compares the bits of C with an exact product's; prints a line of JSON."""
    import duel
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.device import Device

    bundle = read_bundle(path)
    with Device() as device, duel.Operands(device, bundle.manifest.problem) as operands:
        torch = operands.torch
        enqueue = operands.buffers.launcher(device.load(bundle), bundle)
        expected = operands.exact_product()
        wrong = [number for number in range(LAUNCHES) if operands.count_wrong(enqueue, expected)]
        # Random numbers: bits that depend on the order of the sums must be those of the first launch.
        operands.fill_random()
        enqueue()
        device.synchronize()
        first = operands.c.view(torch.int32).clone()
        different = []
        for number in range(LAUNCHES):
            operands.c.fill_(float("nan"))
            device.synchronize()
            enqueue()
            device.synchronize()
            if not torch.equal(operands.c.view(torch.int32), first):
                different.append(number)
        grid, problem = bundle.manifest.grid, bundle.manifest.problem
    print(
        json.dumps(
            {
                "name": path.name,
                "passed": not wrong and not different,
                "launches": 2 * LAUNCHES,
                "wrong": wrong[:10],
                "different": different[:10],
                "problem": problem.describe(),
            }
            | duel.describe(bundle)
            | {"blocks": grid[0] * grid[1]}
        ),
        flush=True,
    )


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    subparsers = parser.add_subparsers(dest="part", required=True, metavar="PART")
    parts = {"build": subparsers.add_parser("build", help="build the bundles of all kernels, or of some parts")}
    measured = {
        "numbers": "check the numbers of all kernels",
        "tune": "time the candidates for every problem",
        "ablation": "time the variants of the climb",
        "stages": "time kernels by their number of stages",
        "sizes": "time the default kernels over sizes and shapes",
        "beside": "time other compilers' kernels too",
        "few_rows": "time kernels for an A of few rows",
    }
    for part in PARTS:
        parts[part] = subparsers.add_parser(part, help=f"{measured[part]}, on the GPU")
    for part, parser_of_part in parts.items():
        parser_of_part.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the bundles")
        if part != "build":
            parser_of_part.add_argument("result", type=Path, metavar="RESULT.json", help="file to write")
    parts["build"].add_argument(
        "--only",
        nargs="+",
        default=list(PARTS),
        choices=PARTS,
        metavar="PART",
        help=f"kernels of these parts only: {', '.join(PARTS)}",
    )
    parts["build"].add_argument(
        "--problems", nargs="+", default=[], metavar="PROBLEM", help="tune, sizes: these problems only"
    )
    parts["build"].add_argument("--workers", type=int, default=2, help="processes that build (default: 2)")
    for part in ("tune", "sizes"):
        parts[part].add_argument("--only", nargs="+", default=[], metavar="PROBLEM", help="these problems only")
        parts[part].add_argument(
            "--limit", type=float, default=540.0, metavar="SECONDS", help="begin no problem after these (default: 540)"
        )
        parts[part].add_argument(
            "--seconds", type=float, default=SUSTAINED, help=f"length of a sustained run (default: {SUSTAINED})"
        )
    parts["sizes"].add_argument("--rounds", type=int, default=SIZES_ROUNDS, help=f"rounds (default: {SIZES_ROUNDS})")
    for part in ("build", "tune", "sizes"):
        parts[part].add_argument(
            "--types", nargs="+", default=list(TYPES), choices=list(TYPES), help="element types (default: all)"
        )
    clusters = subparsers.add_parser("clusters", help="ask the GPU for how many clusters it has room")
    clusters.add_argument("result", type=Path, metavar="RESULT.json", help="file to write")
    check_ = subparsers.add_parser("check", help="check kernels, a line of JSON each: a process of `numbers`")
    check_.add_argument("bundles", type=Path, nargs="+", metavar="BUNDLE")
    repeat_ = subparsers.add_parser("repeat", help="launch a kernel many times: a process of `numbers`")
    repeat_.add_argument("bundle", type=Path, metavar="BUNDLE")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one part of one half."""
    args = make_parser().parse_args(argv)
    if args.part == "build":
        build_all(args.folder, args.only, args.types, args.problems, args.workers)
    elif args.part == "tune":
        measure_tuning(args.folder, args.result, args.types, args.only, args.limit, args.seconds)
    elif args.part == "sizes":
        measure_sizes(args.folder, args.result, args.types, args.only, args.limit, args.rounds, args.seconds)
    elif args.part == "clusters":
        measure_clusters(args.result)
    elif args.part == "check":
        check(args.bundles)
    elif args.part == "repeat":
        repeat(args.bundle)
    else:
        parts = {
            "numbers": measure_numbers,
            "ablation": measure_ablation,
            "stages": measure_stages,
            "beside": measure_beside,
            "few_rows": measure_few_rows,
        }
        parts[args.part](args.folder, args.result)


if __name__ == "__main__":
    run(main)
