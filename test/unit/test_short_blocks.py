"""Choices of short blocks, two on each multiprocessor, for products of few rows."""

import pytest

from cost_model_settings import H200, facts_of, pipeline_space
from stepladder.pipeline.cost_model import ranking


@pytest.mark.parametrize(
    ("rows", "outputs", "k", "splits"), [(1, 27648, 5120, 5), (16, 18432, 6144, 5), (1, 12288, 4096, 2)]
)
def test_few_rows_take_short_blocks_in_several_waves(rows: int, outputs: int, k: int, splits: int) -> None:
    """Waves of short blocks run into each other; where blocks of two splits fill one wave, they are faster:
    docs/results/early_weights_splits_more.json."""
    exchanged = {**facts_of("wgmma", outputs, rows, k, c_type="f16"), "a_layout": "column", "c_layout": "column"}
    ranked = ranking.rank(pipeline_space("wgmma"), exchanged, False, H200, {"swap_operands": True})
    assert ranked is not None
    knobs = ranked.first(1)[0].knobs
    assert (knobs["early_weights"], knobs["split_k"]) == (True, splits)
    assert (knobs["block_m"] == 128) == (knobs["min_blocks_per_sm"] == 2) == (splits == 5)


@pytest.mark.parametrize(
    ("rows", "outputs", "k", "block_m"),
    [
        (32, 18432, 6144, 128),
        (24, 9728, 7680, 64),
        (16, 10240, 8192, 64),
        (32, 20480, 7168, 0),
        (16, 18432, 6144, 0),
        (32, 18432, 2048, 0),
    ],
)
def test_three_splits_are_taken_where_a_wave_and_a_half_fills_the_gpu(
    rows: int, outputs: int, k: int, block_m: int
) -> None:
    """One and two splits leave a short last wave there: docs/results/early_weights_splits*.json. With 1.82 waves,
    three splits lose with 32 rows, and with 16 rows, five splits are as fast; a small k was
    not measured (0: other splits)."""
    exchanged = {**facts_of("wgmma", outputs, rows, k, c_type="f16"), "a_layout": "column", "c_layout": "column"}
    ranked = ranking.rank(pipeline_space("wgmma"), exchanged, False, H200, {"swap_operands": True})
    assert ranked is not None
    knobs = ranked.first(1)[0].knobs
    assert (knobs["split_k"] == 3) == (block_m > 0)
    if block_m:
        assert (knobs["block_m"], knobs["min_blocks_per_sm"]) == (block_m, 2)
