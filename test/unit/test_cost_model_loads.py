"""Terms of the cost model for the loads of a k step: what blocks share, and rows that are not aligned."""

from dataclasses import replace

import pytest

from cost_model_settings import predicted, size, with_constants


def test_rows_in_two_lines_take_longer_outside_of_clusters() -> None:
    slow, fast = (with_constants(line_rows=part) for part in (0.5, 0.0))
    # Of 352 bytes, three of four tiles begin within lines; of 320, boxes of 64 bytes begin at halves of lines.
    settings = {"block_n": [176, 160, 128, 176], "cluster_m": [1, 1, 1, 2]}
    more = [predicted(size(4096, 176 * 160, 4096), card, **settings)["TMA"] for card in (slow, fast)]
    ratio = more[0] / more[1]
    assert ratio[0] > 1.1 and list(ratio[1:]) == [1, 1, 1]
    turned = replace(size(4096, 176 * 160, 4096), b_layout="column")
    assert predicted(turned, slow, block_n=176)["TMA"] == predicted(turned, fast, block_n=176)["TMA"]


def test_clusters_of_two_that_load_side_by_side_take_longer() -> None:
    """Of two blocks along n, where rows of B lie along n; not of four, nor along m."""
    slow, free = with_constants(neighbours=0.5), with_constants(neighbours=0.0)
    clusters = {"cluster_m": [1, 2, 1, 1, 2], "cluster_n": [1, 1, 2, 4, 2]}
    problem = size(512, 4096, 2048)
    times = [predicted(problem, card, **clusters)["TMA"] for card in (slow, free)]
    assert list(times[0] / times[1]) == pytest.approx([1, 1, 1.5, 1, 1])
    columns_first = replace(problem, a_layout="column", b_layout="column")
    times = [predicted(columns_first, card, **clusters)["TMA"] for card in (slow, free)]
    assert list(times[0] / times[1]) == pytest.approx([1, 1.5, 1, 1, 1])


def test_blocks_of_batches_wait_for_what_they_request_from_l2() -> None:
    """Of matrices of their own that L2 does not hold: longer in clusters for each byte, which are fewer, and for rows
    that do not begin at pairs of sectors; not where matmuls share an operand, nor for one matmul of as many tiles."""
    knobs = {"block_m": 128, "block_n": 128, "consumer_warpgroups": 1, "stages": 6, "persistent_blocks": 120}
    clusters = {"cluster_m": [1, 2, 4], "cluster_n": 1}
    batch = replace(size(1024, 1024, 1024), batch=64.0, a_matrices=64.0, b_matrices=64.0)
    alone, two, four = predicted(batch, **knobs, **clusters)["L2"]
    assert (two / alone, four / alone) == pytest.approx((1.4 * 0.75, 1.4 * 0.625))
    odd = predicted(replace(batch, k=1040), **knobs)["L2"][0]
    assert odd / alone == pytest.approx((1 + 0.6 / 2) * 17 / 16)  # rows of A, half of the bytes
    for other in (replace(batch, b_matrices=1.0), size(64 * 1024, 1024, 1024)):
        assert predicted(other, **knobs)["L2"][0] < 0.9 * alone


def test_rows_that_begin_between_sectors_take_a_part_of_what_odd_ones_do() -> None:
    """Rows of 1008 elements of 16 bits begin at multiples of 32 bytes, those of 1024 at multiples of 64."""
    at_none, at_half = with_constants(between_sectors=0.0), with_constants(between_sectors=0.5)
    times = {
        n: [predicted(size(4096, n, 4096), card, block_n=128)["TMA"][0] for card in (at_none, at_half)]
        for n in (1000, 1008, 1024)
    }
    assert times[1000][0] == times[1000][1] and times[1024][0] == times[1024][1]
    assert times[1008][0] < times[1008][1]


def test_scattered_loads_of_splits_cost_less_in_clusters() -> None:
    settings = {"split_k": 16, "split_k_workspace": "memory", "persistent_blocks": 0, "epilogue": "registers"}
    none, some = with_constants(split_loads=0.0), with_constants(split_loads=0.3, split_shared=1.0)
    times = [predicted(size(512, 1024, 30000), card, cluster_n=[1, 4], **settings)["TMA"] for card in (none, some)]
    assert times[1] / times[0] == pytest.approx([1 + 0.3 * 2, 1 + 0.3 * 2 / 4])


def test_clusters_that_load_one_tile_at_once_wait_for_its_lines() -> None:
    """Of rows that begin within sectors, one for each cluster; of a B that all tiles of a row of C have in common."""
    crowded, free = with_constants(crowd=0.1), with_constants(crowd=0.0)
    knobs = {"block_m": 128, "block_n": 96, "consumer_warpgroups": 1, "stages": 6, "cluster_m": [1, 4]}
    for k, is_odd in ((328, True), (320, False)):
        problem = replace(size(132 * 128, 96, k), b_layout="column")
        waiting, other = (predicted(problem, card, **knobs)["L2"] for card in (crowded, free))
        assert list(waiting > other) == [is_odd, False]
    steps = 328 // 64 + 1
    assert predicted(replace(size(132 * 128, 96, 328), b_layout="column"), crowded, **knobs)["L2"][0] == pytest.approx(
        steps * 1e-4 * (96 * 132 + 128)  # the row of tiles that a block has for itself counts once
    )
