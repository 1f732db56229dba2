"""Batches of matmuls: every layout, broadcast, start and type on each pipeline, on the emulator."""

import itertools

import pytest

from batches import check_batch

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


def _check(pipeline: str, settings: dict, sizes: tuple, types: tuple, layouts: tuple, **options) -> list[str]:
    operands, sums, stored = types
    return check_batch(
        pipeline,
        settings,
        sizes,
        a_type=operands,
        b_type=operands,
        acc_type=sums,
        c_type=stored,
        a_layout=layouts[0],
        b_layout=layouts[1],
        **options,
    )


@pytest.mark.parametrize("broadcast", ["", "a", "b"])
@pytest.mark.parametrize("pipeline, types, layouts, accumulate", CASES)
def test_warps(pipeline, types, layouts, accumulate, broadcast) -> None:
    # 8-bit fragments are 32 deep, and a tile holds two.
    depth = {"block_k": 64} if types[0] == "i8" else {}
    settings, sizes = WARPS | depth, (3, 128, 64, 128 if depth else 96)
    if pipeline == "wmma_upstream":
        settings, sizes = {}, (2, 128, 128, 64)
    _check(pipeline, settings, sizes, types, layouts, accumulate=accumulate, broadcast=broadcast)
