"""Times that the cost model predicts: its columns, its terms, its GPUs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model_settings import H200, TILE, WARP_TILE, columns, predicted, size
from stepladder.pipeline.cost_model import epilogues, gpu, loading, orders, terms, warp, warpgroup_launch
from stepladder.pipeline.cost_model.columns import Columns
from stepladder.pipeline.cost_model.constants import (
    CONSTANTS,
    EARLY,
    EARLY_FEW,
    EARLY_FEW_SPLITS,
    EARLY_FEW_THIRDS,
    EARLY_FEW_TWO,
    EARLY_MORE,
    EARLY_MORE_TWO,
    EARLY_PAIRS,
    SPLITS_CONSTANTS,
    WAITING,
    WAITING_CONSTANTS,
    WARPGROUP,
)
from stepladder.pipeline.cost_model.encoded_columns import Coded
from stepladder.pipeline.expressions import ExpressionError, Scope, evaluate

# Columns.

NAMES = {"a": st.integers(-4, 9), "b": st.integers(0, 4), "word": st.sampled_from(["x", "y"])}
EXPRESSIONS = (
    "a * b - a // 2",
    "a / b",
    "a % b == 1 or b == 0",
    "b == 0 or a / b > 1",
    "b != 0 and a // b < 3",
    "1 if word == 'x' else a / b",
    "word in ['x', 'z'] and not a > b",
    "derived + 1",
    "-a <= b < 3",
    "a // (b - 2)",
    "[word, word] == ['x', 'x'] if b < 0 else a",
)


@given(st.lists(st.tuples(*NAMES.values()), min_size=1, max_size=6), st.sampled_from(EXPRESSIONS))
def test_columns_agree_with_expressions_one_by_one(rows: list[tuple[int, int, str]], text: str) -> None:
    derived = {"derived": "a / b if word == 'y' else b"}
    values = {name: Coded.of(np.array(column)) for name, column in zip(NAMES, zip(*rows))}
    try:
        found = Columns(values, derived, len(rows)).evaluate(text)
    except ExpressionError:
        assert "[" in text  # lists are of single values only
        return
    for index, row in enumerate(rows):
        try:
            expected = evaluate(text, Scope(dict(zip(NAMES, row)), derived))
        except ExpressionError:
            assert not np.broadcast_to(found.valid, (len(rows),))[index]
            continue
        assert np.broadcast_to(found.valid, (len(rows),))[index]
        assert np.broadcast_to(found.value, (len(rows),))[index] == expected


def test_settings_are_grouped_by_some_knobs() -> None:
    numbers, words = np.array([7, -2, 7, 7, 1 << 20]), np.array(["x", "y", "x", "y", "x"])
    values = {"a": Coded.of(numbers), "b": np.arange(5), "word": Coded.of(words), "same": 3}
    knobs = Columns(values, {}, 5)
    for names in (["a"], ["word"], ["a", "word", "same", "unbound"], ["same"]):
        some, group = knobs.grouped(names)
        pairs = list(zip(*(np.broadcast_to(knobs.column(name), 5).tolist() for name in names if name in values)))
        assert some.count == len(set(pairs))
        assert [tuple(some.value(name, int(one)) for name in names if name in values) for one in group] == pairs
    assert knobs.equals("word", "y", "x").tolist() == [False, True, False, True, False]
    assert knobs.floats("a").tolist() == numbers.tolist() and knobs.value("word", 1) == "y"
    nothing, group = knobs.take(np.zeros(5, bool)).grouped(["a", "word"])
    assert nothing.count == len(group) == 0


def test_a_name_derived_from_itself_holds_for_no_setting() -> None:
    assert not Columns({"a": np.array([1, 2])}, {"b": "c", "c": "b"}, 2).evaluate("b == 0").holds()


# Terms.


def test_limits_that_are_joined_take_the_longest_and_a_little_more() -> None:
    assert terms.join(np.array([8.0]), np.array([0.0]))[0] == 8.0
    assert terms.join(np.array([8.0]), np.array([2.0]))[0] == pytest.approx(8.0, rel=1e-4)
    assert 8.0 < terms.join(np.array([8.0]), np.array([8.0]))[0] < 1.1 * 8.0
    assert terms.join(np.array([0.0]), np.array([0.0]))[0] == 0.0


def test_tiles_fill_up_clusters_and_know_what_is_in_the_last() -> None:
    tiles = terms.cut(size(300, 512, 64), columns(TILE, block_n=128, cluster_m=2))
    assert (tiles.rows[0], tiles.columns[0], tiles.last_rows[0], tiles.last_columns[0]) == (4, 4, 0, 128)
    assert tiles.empty[0] == 1 / 4
    assert terms.cut(size(300, 512, 64), columns(TILE)).last_rows[0] == 300 - 256


@pytest.mark.parametrize("fit", [0, 1])  # ptxas chooses, or one block on a multiprocessor
@pytest.mark.parametrize(
    "tiles, blocks, waves", [(132, 132, 1), (133, 132, 2), (264, 132, 2), (128, 0, 1), (400, 0, 4), (128, 64, 2)]
)
def test_waves_are_counted(tiles: int, blocks: int, waves: int, fit: int) -> None:
    knobs = columns(TILE, persistent_blocks=blocks, min_blocks_per_sm=fit)
    found, at_once, _ = warpgroup_launch.waves_of(terms.cut(size(128 * tiles, 256, 64), columns(TILE)), knobs, H200)
    assert (found[0], at_once[0]) == (waves, min(tiles, blocks or 132))


def test_fewer_clusters_fit_than_multiprocessors_allow() -> None:
    problem = terms.cut(size(128 * 132, 256, 64), columns(TILE, cluster_m=4))
    assert [
        warpgroup_launch.waves_of(problem, columns(TILE, cluster_m=4, persistent_blocks=blocks), H200)[0][0]
        for blocks in (120, 132)
    ] == [2, 2]  # 33 clusters, of which 30 run at once
    assert H200.blocks_at_once(4) == 120
    assert H200.blocks_at_once(16) <= 132


def test_the_last_wave_counts_by_what_it_has_to_do_where_its_tiles_are_shared() -> None:
    problem = terms.cut(size(128 * 142, 256, 64), columns(TILE))
    rounds = [
        warpgroup_launch.waves_of(problem, columns(TILE, tile_scheduler=how), H200)[2][0]
        for how in ("data_parallel", "stream_k")
    ]
    assert rounds == [2.0, 1.5]  # half a tile is the least that a block takes


def test_the_matrix_unit_takes_its_peak_at_least() -> None:
    problem = size(8192, 8192, 8192)
    least = 2 * 8192**3 / (132 * 2048 * 2 * H200.clock_mhz)
    assert predicted(problem)["matrix unit"][0] >= least
    assert predicted(problem)["total"][0] > predicted(problem)["main loop"][0] >= predicted(problem)["matrix unit"][0]


@pytest.mark.parametrize("more", [(8192, 4096, 4096), (4096, 8192, 4096), (4096, 4096, 8192)])
def test_a_larger_problem_takes_longer(more: tuple[int, int, int]) -> None:
    assert predicted(size(*more))["total"][0] > predicted(size(4096, 4096, 4096))["total"][0]


def test_more_stages_are_never_slower() -> None:
    total = predicted(size(4096, 4096, 4096), stages=[1, 2, 3, 4])["total"]
    assert (np.diff(total) <= 0).all() and total[0] > 1.5 * total[-1]


def test_multicast_saves_bytes_from_l2() -> None:
    total = predicted(size(8192, 8192, 8192), cluster_m=[1, 2], block_n=128)
    assert total["L2"][1] < total["L2"][0]


def test_small_tiles_are_bound_by_what_they_load() -> None:
    times = predicted(size(8192, 8192, 8192), block_m=64, block_n=32, consumer_warpgroups=1, stages=8)
    assert max(times["TMA"][0], times["L2"][0], times["shared memory"][0]) > 2 * times["matrix unit"][0]


def test_rows_of_zeros_cost_time_unless_boxes_are_fitted() -> None:
    """With 136 rows, the second tile of 128 is 120 rows of zeros; a box of 16 rows is as short as the matrix. Of a tile
    that two blocks share, one of them loads 64 rows of zeros."""

    def zero_rows(m: int, cluster_n: int) -> np.ndarray:
        tile, problem = np.array([128.0]), size(m, 512, 512)
        last = np.array([m - (math.ceil(m / 128) - 1) * 128.0])
        return loading.loads(True, m, tile, last, last, np.array([cluster_n]), np.array([64]), problem).zero_rows[0]

    assert [zero_rows(136, 1), zero_rows(16, 1), zero_rows(16, 2), zero_rows(256, 1)] == [120, 0, 64, 0]
    free = replace(H200, constants={WARPGROUP: {**H200.constants[WARPGROUP], "zero_row": 0.0}})
    total = [predicted(size(m, 5952, 3784), card, block_n=96)["total"][0] for m in (136, 256) for card in (H200, free)]
    assert total[0] > 1.2 * total[1] and total[2] == total[3]


def test_operands_along_m_or_n_have_boxes_that_divide_the_tile() -> None:
    one = np.array([1.0])
    tile, last, block_k = np.array([96.0]), np.array([8.0]), np.array([64.0])
    found = loading.loads(False, 1000, tile, tile, last, one, block_k, size(512, 1000, 512))
    assert (found.row_bytes[0], found.rows[0], found.zero_rows[0]) == (64, 3 * 64, 3 * 64)
    shared = loading.loads(False, 1000, tile, tile, last, 2 * one, block_k, size(512, 1000, 512))
    whole = loading.loads(False, 960, tile, tile, tile, one, block_k, size(512, 960, 512))
    assert (shared.zero_rows[0], whole.zero_rows[0]) == (3 * 32, 0)


def test_rows_that_begin_within_sectors_take_longer() -> None:
    """Rows of 1000 elements of 16 bits are no multiple of 32 bytes, those of 1008 are; odd ones of 999 are copied."""
    knobs = {"block_m": 64, "block_n": 64, "consumer_warpgroups": 1, "stages": 8}
    times = [predicted(size(4096, n, 4096), **knobs) for n in (1000, 1008)]
    assert times[0]["TMA"][0] > 1.1 * times[1]["TMA"][0] and times[0]["L2"][0] > 1.1 * times[1]["L2"][0]
    tile = np.array([64.0])
    odd = [
        loading.loads(False, n, tile, tile, tile, np.array([1.0]), tile, size(64, n, 64)).is_odd
        for n in (999, 1000, 1008)
    ]
    assert odd == [False, True, False]


def test_a_transposed_c_is_written_by_elements_or_as_a_whole() -> None:
    exchanged = replace(size(5952, 136, 512), c_layout="column")
    forms = {"epilogue": ["tma", "registers"], "block_n": 136, "block_m": 64, "consumer_warpgroups": 1}
    by_tma, direct = predicted(exchanged, **forms)["epilogue"]
    assert direct > 1.5 * by_tma
    shared, in_memory = predicted(
        exchanged, **{**forms, "epilogue": "registers"}, split_k=2, split_k_workspace=["cluster", "memory"]
    )["epilogue"]
    assert in_memory > 1.2 * shared


def test_an_epilogue_hides_behind_the_other_warpgroup() -> None:
    changes = {"block_n": 128, "consumer_warpgroups": 1, "stages": 5}
    problem = size(8192, 8192, 1024)
    times = {how: predicted(problem, schedule=how, **changes)["epilogue"][0] for how in ("cooperative", "pingpong")}
    assert times["pingpong"] < 0.3 * times["cooperative"]


def test_an_epilogue_grows_with_its_bytes() -> None:
    narrow, wide = (
        epilogues.epilogue_time(
            columns(TILE),
            size(4096, 4096, 4096, out_bytes=bytes_),
            np.zeros(1),
            np.array([132.0]),
            H200,
            H200.constants[WARPGROUP],
        )[0]
        for bytes_ in (2.0, 4.0)
    )
    assert narrow < wide <= 2 * narrow


def test_dividing_a_reduction_pays_where_there_are_few_tiles_and_only_there() -> None:
    split = {
        "split_k": [1, 8],
        "split_k_workspace": "memory",
        "persistent_blocks": [132, 0],
        "epilogue": ["tma", "registers"],
    }
    few = predicted(size(512, 512, 16384), block_n=128, **split)["total"]
    many = predicted(size(8192, 8192, 512), block_n=128, **split)["total"]
    assert few[1] < 0.5 * few[0] and many[1] > many[0]


def test_a_reduction_that_is_not_divided_costs_nothing() -> None:
    constants = H200.constants[WARPGROUP]
    knobs = columns(TILE, split_k=[1, 2, 2], split_k_workspace=["memory", "cluster", "memory"])
    times = epilogues.reduction_time(knobs, constants)
    assert times[0] == 0 and times[1] >= constants["reduce_cluster"] and times[2] >= constants["reduce_memory"]


def test_operands_that_l2_does_not_hold_are_read_at_the_rate_of_memory() -> None:
    weights = size(16, 16384, 16384)
    assert terms.uncached(size(512, 512, 512), H200, 0.5) == 0.0 and terms.uncached(weights, H200, 0.5) == 1.0
    times = predicted(
        weights,
        block_m=64,
        block_n=128,
        consumer_warpgroups=1,
        split_k=2,
        persistent_blocks=0,
        epilogue="registers",
        stages=7,
    )
    assert times["total"][0] >= weights.operand_bytes / H200.hbm_bytes_per_us


def test_square_waves_move_the_fewest_bytes() -> None:
    problem = size(16384, 16384, 8192)
    knobs = columns(TILE, raster_group=[1, 8, 16, 128])
    bytes_ = terms.memory_bytes(problem, terms.cut(problem, knobs), knobs, H200, np.array([132.0] * 4), 0.5)
    assert bytes_[0] > bytes_[1] >= bytes_[2] and bytes_[3] > bytes_[2]


def test_neighbours_load_the_fewest_tiles_in_a_square() -> None:
    problem = size(1536, 256, 3072)  # 24 x 4 tiles
    tile = TILE | {"block_m": 64, "block_n": 64, "cluster_m": 1, "cluster_n": 1}

    def loads(**knobs: list[int]) -> list[float]:
        settings = columns(tile, **knobs)
        return orders.different_loads(terms.cut(problem, settings), settings, problem).tolist()

    by_rows = [4 + 4, 4 + 4, 4 + 4, 8 + 2, 16 + 1]
    assert loads(raster_group=[1, 2, 4, 8, 32]) == [tiles / 32 for tiles in by_rows]
    assert loads(split_k=[1, 4, 16], raster_group=[1] * 3) == [8 / 32, (1 + 4) / 8, 1.0]  # splits share no tile


@pytest.mark.parametrize(
    "m, n, k, tile, order",
    [
        (1536, 700, 5632, {"block_m": 128, "block_n": 64, "cluster_m": 2, "cluster_n": 1}, 2),
        (2168, 280, 3192, {"block_m": 64, "block_n": 96, "cluster_m": 4, "cluster_n": 1}, 1),
        (1536, 256, 3072, {"block_m": 64, "block_n": 64, "cluster_m": 1, "cluster_n": 1}, 4),
        (256, 1536, 3072, {"block_m": 64, "block_n": 64, "cluster_m": 1, "cluster_n": 1}, 8),
        (928, 704, 2208, {"block_m": 64, "block_n": 120, "cluster_m": 4, "cluster_n": 2}, 8),
        (896, 320, 10304, {"block_m": 128, "block_n": 80, "cluster_m": 1, "cluster_n": 1, "split_k": 4}, 1),
        (896, 320, 13824, {"block_m": 128, "block_n": 80, "cluster_m": 1, "cluster_n": 1, "split_k": 4}, 1),  # one wave
        (8192, 8192, 8192, {"block_m": 128, "block_n": 256, "cluster_m": 1, "cluster_n": 1}, 16),  # bytes from memory
    ],
)
def test_the_order_of_tiles(m: int, n: int, k: int, tile: dict[str, int], order: int) -> None:
    """Of orders that move as few bytes, the one next to the script's in which neighbours load fewer different tiles;
    the first five are measured, in docs/results/orders_of_tiles.json."""
    chosen = orders.choose(columns(TILE | tile), [1, 2, 4, 8, 16, 32], 8, size(m, n, k), H200, WARPGROUP)
    assert chosen.floats("raster_group").tolist() == [order]


def test_an_empty_kernel_takes_its_launch_and_prologue() -> None:
    constants = H200.constants[WARPGROUP]
    assert predicted(size(64, 64, 64))["total"][0] > constants["launch"] + constants["prologue"]


def test_blocks_share_a_multiprocessor_as_far_as_its_resources_allow() -> None:
    problem = size(4096, 4096, 4096)
    found = warp.blocks_a_multiprocessor(
        columns(WARP_TILE, shared_bytes=[98304, 40000, 220000], warp_m=[64, 32, 64], warp_n=[64, 32, 64]), problem, H200
    )
    assert found.tolist() == [2, 1, 1]  # shared memory; registers of 16 warps; shared memory


@pytest.mark.parametrize("instruction", ["mma_sync", "wmma"])
def test_warp_kernels_take_longer_through_registers_and_for_larger_problems(instruction: str) -> None:
    knobs = columns(WARP_TILE, prefetch=["cp_async", "registers"])
    small, large = (
        warp.predict(knobs, size(extent, extent, extent), H200, instruction)["total"] for extent in (2048, 4096)
    )
    assert (large > 4 * small).all() and small[1] > small[0]


def test_few_warps_leave_matrix_units_idle() -> None:
    """Measured in one wave: four warps of 64 x 32 are faster than two of 64 x 64 for f16, and than eight of 32 x 32 for
    f32, by three products of tf32."""
    knobs = columns(WARP_TILE, block_m=[128, 128], block_n=[64, 64], warp_m=[64, 64], warp_n=[32, 64])
    halves = warp.predict(knobs, size(1000, 1000, 1000), H200, "mma_sync")["total"]
    assert halves[1] > 1.1 * halves[0]
    knobs = columns(
        WARP_TILE, block_m=[128, 128], block_n=[64, 64], warp_m=[64, 32], warp_n=[32, 32], allow_tf32=[0, 0]
    )
    words = warp.predict(knobs, replace(size(1000, 1000, 1000), in_bytes=4), H200, "mma_sync")["total"]
    assert words[1] > words[0]


def test_a_faster_card_is_predicted_to_be_faster() -> None:
    faster = replace(H200, multiprocessors=264, hbm_bytes_per_us=2 * H200.hbm_bytes_per_us)
    problem = size(8192, 8192, 8192)
    assert predicted(problem, faster, persistent_blocks=264)["total"][0] < 0.6 * predicted(problem)["total"][0]


# GPUs.


def test_files_of_gpus_have_every_constant_within_its_range() -> None:
    for key in gpu.keys():  # noqa: SIM118  a function of the module
        card = gpu.load(key)
        assert card.source in (gpu.MEASURED, gpu.DATA_SHEET)
        for family in [family for family in CONSTANTS if family in card.macs_per_clock]:
            assert set(card.constants[family]) == set(CONSTANTS[family])
            for name, value in card.constants[family].items():
                assert CONSTANTS[family][name].least <= value <= CONSTANTS[family][name].most, (key, name)
        special = dict.fromkeys((EARLY_FEW_SPLITS, EARLY_FEW_THIRDS), SPLITS_CONSTANTS)
        special[WAITING] = WAITING_CONSTANTS
        for group in (EARLY_FEW, EARLY_FEW_TWO, EARLY_MORE, EARLY_MORE_TWO, EARLY_PAIRS, *special):
            known = special.get(group, EARLY)
            assert set(card.early_weights[group]) == set(known)
            for name, value in card.early_weights[group].items():
                assert known[name].least <= value <= known[name].most, (key, group, name)
