"""What `hopper.py` measures: problems with their candidate knobs, and the kernels of each measurement.

A candidate is a dictionary of knobs; knobs that it does not set have the default of the script. The candidates of
`tune` are in `hopper_candidates.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from stepladder.pipeline import ablation

Knobs = dict[str, int | str]
Size = tuple[int, int, int]
Types = tuple[str, str, str]

# Element types of A and B, of the accumulator and of C that are measured over sizes.
TYPES: dict[str, Types] = {
    "f16-f32": ("f16", "f32", "f32"),
    "bf16-bf16": ("bf16", "f32", "bf16"),
    "f16-f16": ("f16", "f32", "f16"),
}


def _read(kind: str) -> dict[Size, tuple[Knobs, ...]]:
    entries = json.loads(Path(__file__).with_name("hopper_candidates.json").read_text())[kind]
    return {tuple(entry["size"]): tuple(entry["candidates"]) for entry in entries}


SQUARES = _read("squares")
# Shapes of large language models, tall and flat ones, and shapes that no tile divides.
SHAPES = _read("shapes")
CANDIDATES = SQUARES | SHAPES


def problem_name(size: Size) -> str:
    """Returns the name of a problem: MxNxK.

    Args:
        size: M, N and K.
    """
    return "x".join(map(str, size))


def kernel_name(knobs: Knobs) -> str:
    """Returns the name of a kernel in a result: its tile and the other knobs, such as `128x256,stages=3`.

    Args:
        knobs: by name, with `block_m` and `block_n`.
    """
    settings = [f"{name}={value}" for name, value in knobs.items() if name not in ("block_m", "block_n")]
    return ",".join([f"{knobs['block_m']}x{knobs['block_n']}", *settings])


def problems(only: list[str]) -> dict[Size, tuple[Knobs, ...]]:
    """Returns the problems that `only` names, with their candidates.

    Args:
        only: `squares`, `shapes`, a size of the squares or MxNxK; all problems where it is empty.

    Raises:
        SystemExit: a name is of no problem.
    """
    if not only:
        return CANDIDATES
    by_name = {"squares": set(SQUARES), "shapes": set(SHAPES)}
    by_name |= {str(size[0]): {size} for size in SQUARES}
    by_name |= {problem_name(size): {size} for size in CANDIDATES}
    unknown = [name for name in only if name not in by_name]
    if unknown:
        raise SystemExit(f"no problem '{unknown[0]}': there are {', '.join(by_name)}")
    return {size: candidates for size, candidates in CANDIDATES.items() if any(size in by_name[name] for name in only)}


@dataclass(frozen=True)
class Variant:
    """A kernel of an ablation.

    Attributes:
        title: what it is called in tables.
        knobs: those that are set.
        pipeline: that makes it.
        without: steps that are left out.
    """

    title: str
    knobs: Knobs
    pipeline: str = "wgmma"
    without: tuple[str, ...] = field(default=())


# The ablation: the two pipelines before `wgmma`, the steps of `wgmma`, and then knobs.
ABLATION_SIZE = 8192
ABLATION: Size = (ABLATION_SIZE, ABLATION_SIZE, ABLATION_SIZE)
ABLATION_TYPES = "f16-f32"
ABLATION_KNOBS: Knobs = {"block_m": 128, "block_n": 256, "cluster_m": 2, "cluster_n": 1}
_TILE: Knobs = {"block_m": 128, "block_n": 256}
_LARGE_TILE: Knobs = {
    "block_m": 256,
    "block_n": 192,
    "stages": 3,
    "epilogue_stages": 1,
    "cluster_m": 1,
    "cluster_n": 2,
}
_FIRST = (
    Variant("single stage", _TILE, "wgmma_single_stage", ("rasterize_blocks",)),
    Variant("+ multistage", _TILE, "wgmma_multistage", ("rasterize_blocks",)),
)
_LAST = (
    Variant("+ TMA store epilogue", ABLATION_KNOBS),
    Variant("+ 128 persistent blocks", ABLATION_KNOBS | {"persistent_blocks": 128}),
    Variant("larger tiles", _LARGE_TILE),
    Variant("larger tiles, stream-K", _LARGE_TILE | {"tile_scheduler": "stream_k"}),
    Variant(
        "smaller tiles, ping-pong",
        {"block_m": 128, "block_n": 128, "schedule": "pingpong", "consumer_warpgroups": 1, "stages": 5},
    ),
)


def ablation_variants() -> list[Variant]:
    """Returns the variants of the ablation, the slowest first."""
    steps = ablation.WGMMA
    variants = [
        Variant(title, steps.settings_of(without, ABLATION_KNOBS) | {"epilogue": "registers"}, steps.pipeline, without)
        for title, without in steps.variants.items()
    ]
    return [*_FIRST, *variants, *_LAST]


# How many stages a problem with few blocks and a long k wants.
STAGES = tuple(range(1, 8))
STAGES_K = (1024, 2048, 4096, 8192, 16384)
STAGES_MN = (7296, 256)

# What steps and knobs gain where A has few rows.
FEW_ROWS: Size = (16, 4096, 4096)
_SPLIT_IN_CLUSTER: Knobs = {
    "split_k": 2,
    "split_k_workspace": "cluster",
    "epilogue": "registers",
    "persistent_blocks": 0,
}
_FEW_ROWS_32: Knobs = {"block_m": 64, "block_n": 32, "consumer_warpgroups": 1, "stages": 8}
_FEW_ROWS_64: Knobs = {"block_m": 64, "block_n": 64, "consumer_warpgroups": 1, "stages": 8, **_SPLIT_IN_CLUSTER}
FEW_ROWS_VARIANTS = (
    Variant("64x32", _FEW_ROWS_32, without=("shrink_tma_boxes",)),
    Variant("64x32, shrunk TMA boxes", _FEW_ROWS_32),
    Variant("64x64, split-K 2", _FEW_ROWS_64, without=("shrink_tma_boxes",)),
    Variant("64x64, split-K 2, shrunk TMA boxes", _FEW_ROWS_64),
    Variant("64x64x128, split-K 2, shrunk TMA boxes", _FEW_ROWS_64 | {"stages": 4, "block_k": 128}),
)

BESIDE_SIZES = (2048, 4096, 8192)
BESIDE_TYPES = "f16-f16"

# Whether the numbers are right: every type, layout, form, pipeline, schedule and cluster at a size that no tile
# divides, with some tiles for each persistent block.
NUMBERS_TYPES: dict[str, Types] = {
    "f16-f32": ("f16", "f32", "f32"),
    "f16-f16": ("f16", "f32", "f16"),
    "f16-f16-f16": ("f16", "f16", "f16"),
    "bf16-f32": ("bf16", "f32", "f32"),
    "bf16-bf16": ("bf16", "f32", "bf16"),
    "tf32-f32": ("f32", "f32", "f32"),
    "e4m3-f32": ("f8E4M3FN", "f32", "f32"),
    "e5m2-f32": ("f8E5M2", "f32", "f32"),
}
NUMBERS_SIZE: Size = (528, 656, 336)
SMALL_TILE: Knobs = {"block_m": 128, "block_n": 128, "consumer_warpgroups": 2, "stages": 3}
SMALL_PINGPONG: Knobs = SMALL_TILE | {"schedule": "pingpong", "consumer_warpgroups": 1}
SPLIT_IN_MEMORY: Knobs = {"split_k_workspace": "memory", "epilogue": "registers", "persistent_blocks": 0}
# Title -> pipeline and knobs.
NUMBERS_VARIANTS: dict[str, tuple[str, Knobs]] = {
    "single_stage": ("wgmma_single_stage", {"block_m": 128, "block_n": 128, "consumer_warpgroups": 2}),
    "multistage": ("wgmma_multistage", {"block_m": 128, "block_n": 128, "stages": 3}),
    "cooperative": ("wgmma", SMALL_TILE | {"persistent_blocks": 8}),
    "pingpong": ("wgmma", SMALL_PINGPONG | {"persistent_blocks": 8}),
    "stream_k": ("wgmma", SMALL_TILE | {"persistent_blocks": 8, "tile_scheduler": "stream_k"}),
}
NUMBERS_SPLIT: dict[str, tuple[str, Knobs]] = {
    "split": ("wgmma", SMALL_TILE | _SPLIT_IN_CLUSTER),
    "split_in_memory": ("wgmma", SMALL_TILE | SPLIT_IN_MEMORY | {"split_k": 2}),
}
NUMBERS_CLUSTERS: dict[str, Knobs] = {
    f"c{rows}x{columns}": {"cluster_m": rows, "cluster_n": columns} for rows, columns in ((2, 1), (1, 2), (2, 2))
}
SEEDS = (0, 1, 2)
RANDOM_SHAPES = 40
RANDOM_SEED = 20261121
# Kernels that are launched many times: 72 tiles for 16 or 24 blocks, or 36 tiles split in four, that is 144 blocks,
# which are more than the card holds at once.
_TWO_ROWS = NUMBERS_CLUSTERS["c2x1"]
REPEATED: dict[str, Knobs] = {
    "cooperative": SMALL_TILE | {"persistent_blocks": 16} | _TWO_ROWS,
    "pingpong": SMALL_PINGPONG | {"persistent_blocks": 16} | _TWO_ROWS,
    "stream_k": SMALL_TILE | {"persistent_blocks": 24, "tile_scheduler": "stream_k"} | _TWO_ROWS,
    "split_in_memory": SMALL_TILE | {"block_m": 256} | SPLIT_IN_MEMORY | {"split_k": 4} | _TWO_ROWS,
}
REPEATED_SIZE: Size = (1016, 1032, 1288)
