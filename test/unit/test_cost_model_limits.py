"""Terms of the cost model that bound a kernel as a whole: L2, writes, power, and the turns of a split-K reduction."""

from dataclasses import replace

import numpy as np
import pytest

from cost_model_settings import H200, TILE, columns, facts_of, pipeline_space, predicted, size, with_constants
from stepladder.pipeline.cost_model import early_weights, epilogues, launch_triggers, ranking
from stepladder.pipeline.cost_model.columns import Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.terms import Size


def test_half_lines_that_one_block_reads_alone_cost_whole_ones() -> None:
    narrow = {"block_m": 64, "block_k": 128, "consumer_warpgroups": 1, "stages": 6}
    card = with_constants(l2_alone=0.2)
    alone = predicted(size(8, 4096, 1536), card, block_n=[32, 64], **narrow)["L2"]
    shared = predicted(size(512, 4096, 1536), card, block_n=[32, 64], **narrow)["L2"]
    # 128 blocks of half lines load as many lines as 64 blocks of whole ones, each, and get half of the rate.
    assert alone[0] > 1.8 * alone[1]
    assert shared[0] / shared[1] < alone[0] / alone[1]


def test_l2_is_slower_as_a_whole_where_it_does_not_hold_the_operands() -> None:
    split = {
        "block_n": 128,
        "split_k": 3,
        "split_k_workspace": "memory",
        "persistent_blocks": 0,
        "epilogue": "registers",
    }
    slow, fast = with_constants(l2_misses=0.2), with_constants(l2_misses=1.2)
    large, small = size(704, 896, 50000), size(704, 896, 2500)
    assert predicted(large, slow, **split)["L2"][0] > predicted(large, fast, **split)["L2"][0]
    assert predicted(small, slow, **split)["L2"][0] == predicted(small, fast, **split)["L2"][0]


def test_a_ring_that_holds_all_steps_is_not_waited_for() -> None:
    short = predicted(size(128, 256, 256), stages=[3, 4, 8])["latency"]
    assert short[0] > 0 and list(short[1:]) == [0, 0]


def test_a_kernel_takes_as_long_as_its_writes() -> None:
    times = predicted(size(8192, 8192, 64), with_constants(write=1.5))
    assert times["total"][0] > times["writes"][0] == pytest.approx(8192 * 8192 * 2 / 1.5e6)


def test_lines_of_c_that_blocks_of_two_clusters_write_take_longer() -> None:
    card, free = (with_constants(shared_line=ns, store_together=12.0) for ns in (5.0, 0.0))

    def lost(problem: Size, **settings: int | list[int]) -> list[float]:
        settings = {"block_m": 64, "consumer_warpgroups": 1} | settings
        return list(predicted(problem, card, **settings)["epilogue"] - predicted(problem, free, **settings)["epilogue"])

    # Rows of 112 bytes: of two tiles, each has a part of every line; a tile of all columns, and a cluster, have both.
    apart, together, whole = lost(size(64 * 66, 56, 64), block_n=[32, 32, 64], cluster_n=[1, 2, 1])
    assert apart == pytest.approx(64 * (1 - 16 / 128) * 5e-3) and together == whole == 0
    # Tiles of whole lines share none, but where rows begin within lines.
    aligned, shifted = lost(size(64 * 66, 128, 64), block_n=[64, 32]), lost(size(64 * 66, 136, 64), block_n=[64, 64])
    assert aligned[0] == 0 and aligned[1] > 0 and shifted[0] > 0


def test_columns_of_exchanged_operands_share_lines_along_m() -> None:
    knobs = columns(TILE, block_m=[64, 128], block_n=[64, 64])
    turned = replace(size(100, 4096, 64), c_layout="column")
    assert list(epilogues.shared_lines(knobs, turned)) == [64 * (1 - 8 / 128), 0]


def test_partial_accumulators_leave_l2_where_it_does_not_hold_the_operands() -> None:
    stores = {"hbm_store": 1.0, "hbm_odd_store": 0.0, "hbm_store_rows": 0.0, "hbm_alternating_store": 0.0}
    none, twice = (with_constants(hbm_halves=0.0, hbm_partial=times, **stores) for times in (0.0, 2.0))
    settings = {"split_k": 4, "split_k_workspace": ["memory", "cluster"], "persistent_blocks": 0}
    large, small = (
        [predicted(size(512, 512, k), card, **settings, epilogue="registers")["HBM"] for card in (none, twice)]
        for k in (60000, 2000)
    )
    partial, others = 4 * 4 * 512 * 512, 2 * 512 * (60000 + 60000 + 512)
    assert large[1] / large[0] == pytest.approx([1 + 2 * partial / others, 1])
    assert list(small[0]) == list(small[1]) == [0, 0]


def test_tiles_from_hbm_that_several_clusters_read_come_into_both_halves_of_l2() -> None:
    once, twice = (with_constants(hbm_halves=part) for part in (0.0, 1.0))
    problem = size(192, 5632, 16384)  # three rows of tiles, and weights that L2 does not hold
    settings = {"block_m": 64, "block_n": 128, "cluster_m": [1, 3, 1], "cluster_n": [1, 1, 2]}
    times = [predicted(problem, card, **settings)["HBM"] for card in (once, twice)]
    # The weights take 2 - 2^-2 times as long; blocks of a cluster share them, but not those of a row of tiles.
    assert times[1] / times[0] == pytest.approx([1.75, 1.0, 1.75], abs=0.02)


def test_reductions_follow_the_last_loads_from_hbm() -> None:
    hidden, shown = (with_constants(hbm_end=part) for part in (0.0, 1.0))
    settings = {"block_m": 64, "block_n": 256, "split_k": 2, "split_k_workspace": "memory", "persistent_blocks": 0}
    few, many = size(64, 16384, 16384), size(64, 64, 16384)  # weights from HBM, and from L2
    for problem, expected in ((few, 1.0), (many, 0.0)):
        before, after = (predicted(problem, card, **settings, epilogue="registers") for card in (hidden, shown))
        end = after["reduction"][0] + after["epilogue"][0]
        assert after["total"][0] - before["total"][0] == pytest.approx(expected * end, abs=0.1 * end)


def test_tall_tiles_and_the_ping_pong_schedule_take_longer() -> None:
    card, free = (with_constants(store_tall=value, store_together=12.0) for value in (2.0, 1.0))
    tall, low = (
        predicted(size(8192, 4096, 64), one, block_m=[128, 256], block_n=128)["epilogue"] for one in (card, free)
    )
    assert tall[0] == low[0] and tall[1] > 1.2 * low[1]
    waiting, short = (with_constants(pingpong_start=value) for value in (2.0, 1.0))
    settings = {"schedule": "pingpong", "consumer_warpgroups": 1, "block_n": 128}
    starts = [predicted(size(8192, 4096, 64), one, **settings)["prologue"][0] for one in (waiting, short)]
    assert starts[0] - starts[1] == pytest.approx(H200.constants[WARPGROUP]["warpgroup"])


def test_power_slows_down_what_keeps_the_matrix_units_busy() -> None:
    card = with_constants(throttle=0.5, throttle_from=0.5)
    cool = with_constants(throttle=0.0)
    busy, idle = size(8192, 8192, 8192), size(128, 256, 8192)
    assert predicted(busy, card)["total"][0] > 1.1 * predicted(busy, cool)["total"][0]
    assert predicted(idle, card)["total"][0] == predicted(idle, cool)["total"][0]


def reduction_times(split_k: list[int], consumer_warpgroups: list[int], **constants: float) -> np.ndarray:
    """Times of reductions in global memory that take none but for `constants`."""
    free = {"reduce_memory_pass": 0.0, "reduce_memory_rate": 1e9, "reduce_memory": 0.0, "reduce_memory_many": 0.0}
    settings = {"block_m": 128, "block_n": 128, "split_k_workspace": "memory"}
    found = columns(TILE, **settings, split_k=split_k, consumer_warpgroups=consumer_warpgroups)
    return epilogues.reduction_time(found, H200.constants[WARPGROUP] | free | constants)


def test_more_splits_and_more_threads_reduce_a_tile_in_fewer_passes() -> None:
    times = reduction_times([2, 8, 8, 32], [2, 2, 1, 2], reduce_memory_pass=1.0)
    assert times == pytest.approx([8, 2, 4, 1], abs=1e-3)


def test_blocks_wait_for_many_splits() -> None:
    times = reduction_times([2, 12, 14, 16], [2, 2, 2, 2], reduce_memory_many=0.5)
    assert times == pytest.approx([0, 0, 1, 2], abs=1e-3)


def test_a_width_that_was_not_measured_has_to_be_faster_by_more() -> None:
    space, facts = pipeline_space("wgmma"), facts_of("wgmma", 1024, 72 * 16, 1024, c_type="f16")
    measured = replace(H200, measured_widths={WARPGROUP: (64, 128)})
    given = {"split_k": 1}  # others have margins of their own
    plain = ranking.rank(space, facts, False, replace(H200, measured_widths={}), given)
    careful = ranking.rank(space, facts, False, measured, given)
    assert list(np.diff(plain.times["total"][plain.order]) >= 0).count(False) == 0
    widths = careful.columns.floats("block_n")[careful.order]
    total = careful.times["total"][careful.order] * np.where(np.isin(widths, (64, 128)), 1.0, 1.04)
    assert (np.diff(total) >= 0).all()
    assert not np.isin(widths[:50], (64, 128)).all() or list(careful.order[:50]) != list(plain.order[:50])


def test_an_odd_multiple_of_eight_takes_longer_where_rows_of_b_lie_along_n() -> None:
    def per_column(layout: str, block_n: int) -> float:
        problem = size(4096, 16 * block_n, 4096, layouts=("row", layout))
        return predicted(problem, block_n=[block_n], stages=[2])["matrix unit"][0] / block_n

    assert per_column("column", 136) == pytest.approx(per_column("column", 144))
    assert per_column("row", 136) > 1.1 * per_column("row", 144)


def test_hbm_is_slower_where_multiprocessors_are_idle_and_faster_for_clusters() -> None:
    few, all_ = (predicted(size(64, 128 * tiles, 8192), block_m=[64], block_n=[128]) for tiles in (66, 132))
    assert few["HBM"][0] > 0.55 * all_["HBM"][0]
    alone, clusters = predicted(size(64, 128 * 120, 8192), block_m=64, block_n=128, cluster_n=[1, 4])["HBM"]
    assert clusters < alone or H200.constants[WARPGROUP]["hbm_cluster"] == 0


def test_launches_by_themselves_are_chosen_where_the_cache_holds_operands_in_part() -> None:
    constants = {"cached": 0.5, "cached_in_place": 0.8, "evicted": 0.1, "launch_by_itself": 0.7}
    card = replace(H200, constants={WARPGROUP: H200.constants[WARPGROUP] | constants})

    given = {"early_weights": False, "launch_trigger": "early"}

    def launches(m: int, n: int, k: int) -> set[bool]:
        facts = facts_of("wgmma", m, n, k, c_type="f16")
        ranked = ranking.rank(pipeline_space("wgmma"), facts, False, card, given)
        assert ranked is not None
        return {bool(candidate.knobs.get("dependent_launch", True)) for candidate in ranked.first(3)}

    assert launches(24, 18432, 1024) == {False}
    assert launches(24, 4096, 1024) == launches(64, 18432, 8192) == {True}
    fixed = ranking.rank(
        pipeline_space("wgmma"), facts_of("wgmma", 24, 18432, 1024), False, card, {**given, "dependent_launch": True}
    )
    assert fixed is not None and "dependent_launch" not in fixed.first(1)[0].knobs


def test_a_launch_by_itself_needs_a_cache_that_holds_half_of_the_operands() -> None:
    """Settings keep their order: that of 16 x 5120 x 5120 was measured with both launches."""
    facts = facts_of("wgmma", 5120, 16, 5120, c_type="bf16")
    ranked = ranking.rank(pipeline_space("wgmma"), facts, False, H200, {})
    assert ranked is not None
    assert {bool(candidate.knobs.get("dependent_launch", True)) for candidate in ranked.first(3)} == {True}
    assert [launch_triggers.is_kept_in_place(size(16, n, 5120), H200) for n in (2048, 5120)] == [True, False]


def test_two_blocks_of_a_multiprocessor_share_it_and_hide_what_each_waits_for() -> None:
    small = {"block_m": 64, "block_n": 64, "consumer_warpgroups": 1, "persistent_blocks": 0}
    times = predicted(size(64 * 264, 64, 1024), min_blocks_per_sm=[1, 2], **small)
    assert list(times["waves"]) == [2, 1]
    assert times["matrix unit"][0] == times["matrix unit"][1]
    assert times["prologue"][0] == 2 * times["prologue"][1]
    assert times["total"][1] < times["total"][0]
    few = predicted(size(64 * 100, 64, 1024), min_blocks_per_sm=[1, 2], **small)["total"]
    assert few[0] == few[1]


def test_elementwise_ops_take_longer_for_elements_that_threads_load_one_by_one() -> None:
    plain = size(4096, 4096, 256)
    ops = replace(plain, has_elementwise=True)
    knobs = columns(TILE, epilogue=["tma", "registers"])
    assert epilogues.elementwise_time(knobs, ops).min() > 0 and not epilogues.elementwise_time(knobs, plain).any()
    matrix = replace(ops, read_matrices=1.0)
    by_tma, from_registers = epilogues.elementwise_time(knobs, matrix)
    turned = epilogues.elementwise_time(knobs, replace(matrix, c_layout="column"))
    assert epilogues.elementwise_time(knobs, ops)[0] < turned[0] < by_tma < from_registers == turned[1]


def test_elements_of_a_matrix_that_boxes_of_c_or_registers_hold_take_less_time() -> None:
    ops = replace(size(4096, 4096, 256), has_elementwise=True)
    matrix = replace(ops, read_matrices=1.0)

    def times(**knobs: int | list[int]) -> list[float]:
        return list(epilogues.elementwise_time(columns(TILE, epilogue=["tma"] * 3, c_boxes=4, **knobs), matrix))

    (computed,) = epilogues.elementwise_time(columns(TILE, epilogue=["tma"]), ops)
    some, most, all_held = times(epilogue_stages=[1, 2, 4], copies_boxes=1)
    assert some > most > all_held == computed
    none, few, many = times(copies_boxes=0, operand_registers=[0, 16, 64])
    assert none > few > many > computed


def test_clusters_of_tiles_with_two_k_steps_start_in_half_the_time() -> None:
    def start(k: int) -> float:
        alone, together = predicted(size(4096, 4096, k), cluster_m=[1, 2])["prologue"]
        return together - alone

    assert 0 < start(128) == pytest.approx(start(192) / 2)


def test_edges_of_both_sides_are_those_of_different_tiles() -> None:
    """Half of the tiles have rows of zeros of A, and half of B: as much as both, not as if all tiles had either."""
    clusters = {"block_m": 128, "block_n": 128, "cluster_m": 2, "cluster_n": 2}

    def zeros(m: int, n: int) -> float:
        slow, none = (with_constants(zero_row=time) for time in (1000.0, 0.0))
        times = [predicted(size(m, n, 4096), card, **clusters)["TMA"][0] for card in (slow, none)]
        return times[0] - times[1]

    assert zeros(200, 200) < 1.5 * (zeros(200, 256) + zeros(256, 200))


def test_weights_along_k_are_read_by_one_even_wave_of_tiles() -> None:
    """5120 rows are 128 tiles of 40, or 64 of 80 that split k in two, and 80 of 64; those are the fastest in
    docs/results/early_weights_column.json."""
    space = pipeline_space("wgmma")

    def chosen(a_layout: str, **given: bool) -> dict[str, int | str]:
        facts = facts_of("wgmma", 5120, 16, 5120, c_type="f16")
        exchanged = {**facts, "a_layout": a_layout, "b_layout": "column", "c_layout": "column"}
        ranked = ranking.rank(space, exchanged, False, H200, {"swap_operands": True, **given})
        assert ranked is not None
        return ranked.first(1)[0].knobs

    # Kernels that wait take such tiles in one wave too.
    for first in (chosen("row"), chosen("row", early_weights=False)):
        assert [int(first["block_m"]) / int(first["split_k"]), first["persistent_blocks"]] == [40, 0]
    # TMA loads whole boxes along m.
    assert int(chosen("column")["block_m"]) % 64 == 0


def test_pairs_of_few_rows_take_even_waves_of_tiles() -> None:
    """14336 columns are 128 tiles of 112 and 224 of 64, which take 3% longer in a function; kernels that load weights
    early, and others."""
    space = pipeline_space("wgmma")
    for sizes, wide in (((1, 14336, 4096), 112), ((1, 18944, 3584), 48), ((8, 24576, 6144), 48)):
        facts = {**facts_of("wgmma", *sizes, c_type="f16"), "b_layout": "column", "products": 2}
        for given in ({}, {"early_weights": False}):
            ranked = ranking.rank(space, facts, False, H200, {"swap_operands": False, **given})
            assert ranked is not None
            first = ranked.first(1)[0].knobs
            assert [first[name] for name in ("block_n", "block_k", "schedule")] == [wide, 128, "cooperative"]


def test_kernels_that_wait_prefetch_weights() -> None:
    """As many k steps as 72 KiB, of tiles of 48 columns of two matrices, and of 72 rows, by persistent blocks; also if
    all knobs but the prefetches are given, and none of kernels that load early."""
    space = pipeline_space("wgmma")
    pair = {**facts_of("wgmma", 1, 18944, 3584, c_type="f16"), "b_layout": "column", "products": 2}
    single = {**facts_of("wgmma", 18944, 1, 3584, c_type="f16"), "b_layout": "column", "c_layout": "column"}
    for facts, swaps, steps in ((pair, False, 3), (single, True, 4)):
        ranked = ranking.rank(space, facts, False, H200, {"swap_operands": swaps, "early_weights": False})
        assert ranked is not None
        found = ranked.first(1)[0].knobs
        assert (found["prefetch_steps"], found["persistent_blocks"]) == (steps, 132)
        given = {name: value for name, value in found.items() if name != "prefetch_steps"}
        same = ranking.rank(space, facts, False, H200, {"swap_operands": swaps, "early_weights": False, **given})
        assert same is not None
        assert same.first(1)[0].knobs["prefetch_steps"] == steps
        early = ranking.rank(space, facts, False, H200, {"swap_operands": swaps})
        assert early is not None
        assert early.first(1)[0].knobs.get("prefetch_steps", 0) == 0


def test_weights_are_loaded_faster_by_one_block_of_a_pair_of_multiprocessors() -> None:
    """Blocks of the same work: 64 of them and 80, which take turns on 14 pairs."""
    tile = {"block_m": [64.0], "block_n": [16.0], "block_k": [128.0], "stages": [11.0]}
    knobs = Columns({name: np.array(value) for name, value in tile.items()}, {}, 1)
    alone, paired = (early_weights.predict(knobs, size(64 * blocks, 16, 14336), H200)[0] for blocks in (64, 80))
    assert paired > 1.2 * alone


def _of_early_tiles(*settings: tuple[int, int, int, int, int]) -> Columns:
    names = ("block_m", "block_n", "block_k", "stages", "split_k")
    return Columns({name: np.array(values, float) for name, values in zip(names, zip(*settings))}, {}, len(settings))


def test_early_weights_whose_rows_begin_within_sectors_take_longer() -> None:
    """Rows of 4808 elements are 16 bytes longer than whole sectors; tall tiles lose less by that."""
    knobs = _of_early_tiles((40, 48, 128, 7, 1), (128, 48, 64, 8, 3))
    odd, even = (
        early_weights.predict(knobs, size(rows, 48, 4992, layouts=("column", "column")), H200) for rows in (4808, 4816)
    )
    assert odd[0] / even[0] > 1.2 and 1.0 < odd[1] / even[1] < 0.9 * odd[0] / even[0]


def test_activations_across_k_take_a_row_of_a_box_for_each_of_their_elements() -> None:
    """B has 8 columns: blocks of 40 rows load it twice as often as those of 80, and three splits of 256 rows least."""
    knobs = _of_early_tiles((40, 8, 128, 11, 1), (80, 8, 128, 6, 1), (256, 8, 64, 6, 3))
    across, along = (
        early_weights.predict(knobs, size(9816, 8, 2368, layouts=("row", layout)), H200) for layout in ("row", "column")
    )
    assert across[0] > 1.1 * across[1] > 1.1 * 1.05 * across[2]
    assert along[1] < along[2]


def test_clusters_share_pairs_of_multiprocessors_before_half_of_them_are_busy() -> None:
    """64 blocks in clusters of four take longer for the same weights than 96 in clusters of six."""
    knobs = _of_early_tiles((64, 32, 128, 9, 4), (64, 32, 128, 8, 6))
    four, six = early_weights.predict(knobs, size(1024, 32, 22016, layouts=("column", "column")), H200)
    assert four > 1.1 * six


@pytest.mark.parametrize(("rows", "outputs", "k", "blocks"), [(24, 18432, 1024, 2), (64, 8192, 4096, 1)])
def test_few_rows_load_weights_early_by_one_or_two_blocks(rows: int, outputs: int, k: int, blocks: int) -> None:
    """Two short blocks on a multiprocessor begin and end in turn; where one wave of blocks is enough, it has one."""
    exchanged = {**facts_of("wgmma", outputs, rows, k, c_type="f16"), "a_layout": "column", "c_layout": "column"}
    ranked = ranking.rank(pipeline_space("wgmma"), exchanged, False, H200, {"swap_operands": True})
    assert ranked is not None
    knobs = ranked.first(1)[0].knobs
    assert (knobs["early_weights"], knobs["min_blocks_per_sm"]) == (True, blocks)


def test_the_cache_holds_less_for_dependent_launches_of_few_blocks_and_for_tiles_of_several_readers() -> None:
    """Each reduces what L2 holds from launch to launch: more bytes come from HBM."""
    few = {"block_m": 64, "block_n": 128, "consumer_warpgroups": 1, "dependent_launch": [True, False]}
    problem = size(64, 8192, 2304)  # 64 blocks
    idle, never = (predicted(problem, with_constants(cached_idle=part), **few)["HBM"] for part in (0.5, 0.0))
    assert idle[0] > never[0] and idle[1] == never[1]
    twice = size(128, 8192, 2048)
    both, one = (predicted(twice, with_constants(cached_halves=part), **few)["HBM"][1] for part in (0.9, 0.0))
    assert both > one
