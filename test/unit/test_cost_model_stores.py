"""Terms of the cost model for C: boxes that are narrower than a line, and stores that L2 does not hold."""

from dataclasses import replace

import pytest

from cost_model_settings import TILE, columns, predicted, size, with_constants
from stepladder.pipeline.cost_model import orders, terms
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu

FREE = {"hbm_store": 1.0, "hbm_odd_store": 0.0, "hbm_store_rows": 0.0, "hbm_alternating_store": 0.0}
# Rows of C: those of 22,000 elements of 16 bits begin at sectors, those of 22,008 within.
LARGE, ODD = size(16384, 22000, 16), size(16384, 22008, 16)


def stored(problem: terms.Size, **settings: int | str | list[int | str]) -> dict[str, list[float]]:
    """HBM's time with each constant, as a multiple of that without."""
    free = predicted(problem, with_constants(**FREE), **settings)["HBM"]
    times = {"hbm_store": 2.0, "hbm_odd_store": 1.0, "hbm_store_rows": 0.1, "hbm_alternating_store": 1.0}
    return {
        name: list(predicted(problem, with_constants(**FREE | {name: value}), **settings)["HBM"] / free)
        for name, value in times.items()
    }


def test_hbm_stores_more_slowly_than_it_reads() -> None:
    assert stored(LARGE)["hbm_store"] == pytest.approx([2], abs=0.02)
    assert stored(LARGE)["hbm_odd_store"] == [1]
    assert stored(ODD)["hbm_odd_store"] == pytest.approx([2], abs=0.02)
    # Boxes of 208 columns have rows of 32 bytes, those of 192 of 128.
    narrow = stored(ODD, block_n=[192, 208])["hbm_odd_store"]
    assert narrow == pytest.approx([2, 5], abs=0.1)


def test_stores_to_many_rows_at_once_and_by_turns_take_longer() -> None:
    rows = stored(LARGE, raster_group=[1, 2, 128], block_n=128)["hbm_store_rows"]
    # 128 rows of C, 256, and all: each doubling beyond 64 rows.
    assert rows == pytest.approx([1.1, 1.2, 1.8], abs=0.06)
    turned = replace(size(22000, 16384, 16), c_layout="column")
    assert stored(turned, raster_group=[1], block_n=128)["hbm_store_rows"] == pytest.approx([1.8], abs=0.06)
    schedules = {"schedule": ["cooperative", "pingpong"], "consumer_warpgroups": 1, "block_n": 128}
    assert stored(LARGE, **schedules)["hbm_alternating_store"] == pytest.approx([1, 2], abs=0.02)


def test_the_order_of_tiles_counts_where_stores_lie() -> None:
    def order(problem: terms.Size, gpu: Gpu) -> float:
        chosen = orders.choose(columns(TILE | {"block_n": 128}), [1, 2, 4, 8, 16], 8, problem, gpu, WARPGROUP)
        return chosen.floats("raster_group").item()

    far = with_constants(hbm_store_rows=0.3)
    large = size(16384, 22000, 64)
    assert order(large, far) < order(large, with_constants(**FREE))
    assert order(size(4096, 4096, 32), far) == order(size(4096, 4096, 32), with_constants(**FREE))


def test_operands_leave_l2_where_c_comes_between() -> None:
    """A row of tiles reads all of B, of 26 MB, and writes as much of C: the next one reads B again."""
    problem = size(6912, 137216, 96)
    one, many = predicted(problem, with_constants(**FREE), raster_group=[1, 16])["HBM"]
    assert one > 1.4 * many


def test_narrow_boxes_take_a_part_of_the_time_of_lines() -> None:
    """Boxes of 32 bytes, stored by all multiprocessors; those of whole lines take as long with any exponent."""
    lines, bytes_ = (with_constants(store_narrow=exponent, store=150.0) for exponent in (1.0, 0.0))
    settings = {"block_n": [208, 192], "stages": 3}
    ratio = predicted(size(8192, 4096, 512), lines, **settings)["epilogue"]
    ratio = ratio / predicted(size(8192, 4096, 512), bytes_, **settings)["epilogue"]
    assert ratio[0] > 1.5 and ratio[1] == 1
