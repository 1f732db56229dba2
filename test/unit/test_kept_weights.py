"""The part of the larger operand that the L2 cache keeps: what the cost model chooses, and which kernels have it."""

import pytest

from cost_model_settings import H200, facts_of, pipeline_space, size
from stepladder.pipeline.cost_model import kept_weights, ranking


@pytest.mark.parametrize(
    ("m", "n", "k", "part"),
    [
        (16, 2048, 2048, 0),  # L2 holds everything
        (16, 5120, 5120, 7),
        (5120, 16, 5120, 7),
        (16, 12288, 2560, 6),
        (64, 28672, 8192, 0),  # less than a sixteenth fits
    ],
)
def test_the_cache_keeps_what_it_holds(m: int, n: int, k: int, part: int) -> None:
    """Whole sixteenths of the larger operand, whichever side it is, beside the other operand and C."""
    assert kept_weights.part_of(size(m, n, k), H200) == part
    room = H200.l2_bytes * 0.42
    larger, others = max(m, n) * k * 2, (min(m, n) * k + m * n) * 2
    assert part == 0 or larger * part / 16 + others <= room < larger * (part + 1) / 16 + others


def test_kernels_of_few_rows_that_do_not_read_ahead_keep_a_part_of_the_weights() -> None:
    """None of those that load weights early or prefetch them, of more rows, and where the knob is given."""
    space = pipeline_space("wgmma")
    for rows, fixed, found in (
        (48, {"schedule": "pingpong"}, 10),
        (48, {"schedule": "pingpong", "kept_weights": 3}, None),
        (16, {"early_weights": True}, 0),
        (48, {"early_weights": False, "prefetch_steps": 4}, 0),
        (96, {}, 0),
    ):
        exchanged = {**facts_of("wgmma", 18432, rows, 1024, c_type="f16"), "a_layout": "column", "c_layout": "column"}
        ranked = ranking.rank(space, exchanged, False, H200, {"swap_operands": True, **fixed})
        assert ranked is not None
        assert ranked.first(1)[0].knobs.get("kept_weights") == found, (rows, fixed)
