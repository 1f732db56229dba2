"""Batches of matmuls: every layout, broadcast, start and type on each pipeline, on the emulator."""

import itertools
import os

import pytest

from batches import check_batch, check_text
from combinations import combinations, sample
from random_batches import random_batch
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = int(os.environ.get("STEPLADDER_RANDOM_BATCHES", "30"))

WARPS = {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}
LAYOUTS = list(itertools.product(("row", "column"), repeat=2))

# pipeline, types (A and B, sums, C), layouts of A and B, accumulate
CASES = [
    *(("mma_sync", ("f16", "f32", "f32"), layouts, accumulate) for layouts in LAYOUTS for accumulate in (True, False)),
    *(
        ("mma_sync", types, ("row", "column"), accumulate)
        for types in (("f16", "f16", "f16"), ("bf16", "f32", "f32"), ("f32", "f32", "f32"), ("i8", "i32", "i32"))
        for accumulate in (True, False)
    ),
    *(
        (pipeline, ("f16", sums, sums), ("row", "row"), accumulate)
        for pipeline in ("wmma", "wmma_upstream")
        for sums in ("f32", "f16")
        for accumulate in (True, False)
    ),
]


def _check(
    pipeline: str, settings: dict, sizes: tuple, types: tuple, layouts: tuple, **options: bool | str
) -> list[str]:
    operands, sums, stored = types
    return check_batch(
        pipeline,
        {**settings, "allow_tf32": True} if operands == "f32" else settings,
        sizes,
        a_type=operands,
        b_type=operands,
        acc_type=sums,
        c_type=stored,
        a_layout=layouts[0],
        b_layout=layouts[1],
        **options,
    )


@pytest.mark.parametrize("case, broadcast", sample(combinations(CASES, ("", "a", "b")), 2))
def test_warps(case: tuple[str, tuple[str, str, str], tuple[str, str], bool], broadcast: str) -> None:
    pipeline, types, layouts, accumulate = case
    # 8-bit fragments are 32 deep, and a tile holds two.
    depth = {"block_k": 64} if types[0] == "i8" else {}
    settings, sizes = WARPS | depth, (2, 128, 64, 128 if depth else 96)
    if pipeline == "wmma_upstream":
        settings, sizes = {}, (2, 128, 128, 64)
    _check(pipeline, settings, sizes, types, layouts, accumulate=accumulate, broadcast=broadcast)


TILES = {"block_m": 64, "block_n": 64, "block_k": 32, "consumer_warpgroups": 1}
PERSISTENT = {**TILES, "persistent_blocks": 2}

# Types (A and B, sums, C), layouts of A and B, accumulate
HOPPER_CASES = [
    *((("f16", "f32", "f32"), layouts, accumulate) for layouts in LAYOUTS for accumulate in (True, False)),
    *(
        (types, ("row", "column"), types[1] == types[2])
        for types in (
            ("f16", "f32", "f16"),
            ("f16", "f16", "f16"),
            ("bf16", "f32", "bf16"),
            ("f32", "f32", "f32"),
            ("f8E4M3FN", "f32", "f32"),
            ("f8E5M2", "f32", "f16"),
        )
    ),
]


@pytest.mark.parametrize("case, broadcast", combinations(HOPPER_CASES, ("", "a", "b")))
def test_warpgroups(case: tuple[tuple[str, str, str], tuple[str, str], bool], broadcast: str) -> None:
    types, layouts, accumulate = case
    _check("wgmma", PERSISTENT, (2, 64, 128, 96), types, layouts, accumulate=accumulate, broadcast=broadcast)


EDGES = itertools.product(("tma", "registers"), LAYOUTS)


@pytest.mark.parametrize("case, accumulate, broadcast", combinations(EDGES, (True, False), ("", "a", "b")))
def test_edges(case: tuple[str, tuple[str, str]], accumulate: bool, broadcast: str) -> None:
    """Tiles that reach beyond the matrices of a batch take nothing of the next one, and write nothing to it."""
    epilogue, layouts = case
    settings = {**PERSISTENT, "epilogue": epilogue}
    types = ("f16", "f32", "f32") if accumulate else ("bf16", "f32", "bf16")
    _check("wgmma", settings, (2, 72, 88, 104), types, layouts, accumulate=accumulate, broadcast=broadcast)


@pytest.mark.parametrize("pipeline", ["wgmma_single_stage", "wgmma_multistage"])
@pytest.mark.parametrize("sizes", [(2, 64, 64, 64), (3, 72, 88, 104)])
@pytest.mark.parametrize("accumulate", [True, False])
def test_without_specialized_warps(pipeline: str, sizes: tuple[int, int, int, int], accumulate: bool) -> None:
    _check(pipeline, TILES, sizes, ("f16", "f32", "f32"), ("row", "row"), accumulate=accumulate)


SCHEDULES = {
    "a block for each tile": {"persistent_blocks": 0},
    "pingpong": {"schedule": "pingpong"},
    "pingpong, from registers": {"schedule": "pingpong", "epilogue": "registers"},
    "two warpgroups": {"block_m": 128, "consumer_warpgroups": 2},
    "clusters along m": {"cluster_m": 2},
    "clusters along n": {"cluster_n": 2},
    "square clusters": {"cluster_m": 2, "cluster_n": 2, "persistent_blocks": 4},
    "clusters of tiles": {"cluster_m": 2, "persistent_blocks": 0},
    "split-K in clusters": {"split_k": 2, "epilogue": "registers", "persistent_blocks": 0},
    "split-K in memory": {
        "split_k": 2,
        "split_k_workspace": "memory",
        "epilogue": "registers",
        "persistent_blocks": 0,
    },
    "split-K of clusters": {
        "split_k": 2,
        "split_k_workspace": "memory",
        "cluster_m": 2,
        "epilogue": "registers",
        "persistent_blocks": 0,
    },
    "stream-K": {"tile_scheduler": "stream_k", "persistent_blocks": 5},
    "stream-K of clusters": {"tile_scheduler": "stream_k", "persistent_blocks": 10, "cluster_m": 2},
    "groups of rows": {"raster_group": 2},
}


@pytest.mark.parametrize(
    "schedule, accumulate, broadcast", sample(combinations(SCHEDULES, (True, False), ("", "b")), 2)
)
def test_schedules(schedule: str, accumulate: bool, broadcast: str) -> None:
    settings = {**PERSISTENT, **SCHEDULES[schedule]}
    # Three tiles where two make a cluster or a group.
    rows = 136 if settings.keys() & {"cluster_m", "raster_group"} else 72
    sizes = (2, rows, 136 if "cluster_n" in settings else 72, 104)
    _check(
        "wgmma", settings, sizes, ("f16", "f32", "f32"), ("row", "column"), accumulate=accumulate, broadcast=broadcast
    )


@pytest.mark.parametrize("sizes", [(2, 8, 64, 64), (1, 64, 64, 64), (1, 136, 72, 64), (5, 40, 8, 32)])
@pytest.mark.parametrize("broadcast", ["", "a", "b", "ab"])
def test_small_matrices(sizes: tuple[int, int, int, int], broadcast: str) -> None:
    """Matrices with fewer rows than a tile, and a batch of one."""
    layouts = ("row", "column" if broadcast == "ab" else "row")
    _check("wgmma", PERSISTENT, sizes, ("f16", "f32", "f32"), layouts, accumulate=True, broadcast=broadcast)


@pytest.mark.parametrize("number", sample(range(COUNT), 2))
def test_random_batches(number: int) -> None:
    seed = 1000 * SEED + number
    batch = random_batch(seed)
    print(f"seed {seed}: {batch.pipeline} {batch.knobs}\n{batch.text}")
    with mlir_context():
        check_text(batch.text, Request(batch.pipeline, batch.knobs))
