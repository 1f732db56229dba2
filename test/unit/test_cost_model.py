"""The cost model: its terms, its search, and what it chooses."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepladder.payload.problem import matmul_text
from stepladder.pipeline import engine, knob_choice, library
from stepladder.pipeline.cost_model import gpu, ranking, space, terms, warp, warpgroup
from stepladder.pipeline.cost_model.columns import Columns
from stepladder.pipeline.cost_model.constants import CONSTANTS, WARP, WARPGROUP
from stepladder.pipeline.cost_model.terms import Size
from stepladder.pipeline.expressions import ExpressionError, Scope, evaluate
from stepladder.runtime.errors import StepladderError

H200 = gpu.load("h200")
TILE = {
    "block_m": 128,
    "block_n": 256,
    "block_k": 64,
    "consumer_warpgroups": 2,
    "schedule": "cooperative",
    "stages": 4,
    "persistent_blocks": 132,
    "cluster_m": 1,
    "cluster_n": 1,
    "split_k": 1,
    "split_k_workspace": "cluster",
    "raster_group": 8,
    "epilogue": "tma",
    "epilogue_stages": 2,
    "tile_scheduler": "data_parallel",
}
WARP_TILE = {
    "block_m": 128,
    "block_n": 128,
    "block_k": 64,
    "warp_m": 64,
    "warp_n": 64,
    "stages": 3,
    "raster_group": 8,
    "prefetch": "cp_async",
    "shared_bytes": 98304,
}


def size(m, n, k, in_bytes=2.0, out_bytes=2.0, layouts=("row", "row")):
    return Size(m, n, k, in_bytes, out_bytes, "f32", False, *layouts)


def columns(base, **changes):
    """Settings of a base and changes; a list gives one setting for each of its values."""
    count = max((len(value) for value in changes.values() if isinstance(value, list)), default=1)
    values = {
        name: np.array(value if isinstance(value, list) else [value] * count)
        for name, value in {**base, **changes}.items()
    }
    return Columns(values, {}, count)


def predicted(problem, card=H200, **changes):
    return warpgroup.predict(columns(TILE, **changes), problem, card)


def pipeline_space(name, without=()):
    with engine.mlir_context():
        return knob_choice.space_of(library.load(name), without)


def facts_of(name, *sizes, c_type="f32"):
    """Facts of a problem of f16 operands, as the engine gives them."""
    with engine.mlir_context():
        pipeline = library.load(name)
        text = matmul_text(*sizes, c_type=c_type, accumulate=False)
        return engine.read_asked(pipeline, engine.Request(name), text, "payload.mlir").facts


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
def test_columns_agree_with_expressions_one_by_one(rows, text):
    derived = {"derived": "a / b if word == 'y' else b"}
    values = {name: np.array(column) for name, column in zip(NAMES, zip(*rows))}
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


def test_a_name_derived_from_itself_holds_for_no_setting():
    assert not Columns({"a": np.array([1, 2])}, {"b": "c", "c": "b"}, 2).evaluate("b == 0").holds(2).any()


# Terms.


def test_limits_that_are_joined_take_the_longest_and_a_little_more():
    assert terms.join(np.array([8.0]), np.array([0.0]))[0] == 8.0
    assert terms.join(np.array([8.0]), np.array([2.0]))[0] == pytest.approx(8.0, rel=1e-4)
    assert 8.0 < terms.join(np.array([8.0]), np.array([8.0]))[0] < 1.1 * 8.0
    assert terms.join(np.array([0.0]), np.array([0.0]))[0] == 0.0


def test_tiles_fill_up_clusters_and_know_what_is_in_the_last():
    tiles = terms.cut(size(300, 512, 64), columns(TILE, block_n=128, cluster_m=2))
    assert (tiles.rows[0], tiles.columns[0], tiles.last_rows[0], tiles.last_columns[0]) == (4, 4, 0, 128)
    assert terms.cut(size(300, 512, 64), columns(TILE)).last_rows[0] == 300 - 256


@pytest.mark.parametrize(
    "tiles, blocks, waves", [(132, 132, 1), (133, 132, 2), (264, 132, 2), (128, 0, 1), (400, 0, 4), (128, 64, 2)]
)
def test_waves_are_counted(tiles, blocks, waves):
    found, at_once, _ = warpgroup.waves_of(
        terms.cut(size(128 * tiles, 256, 64), columns(TILE)), columns(TILE, persistent_blocks=blocks), H200
    )
    assert (found[0], at_once[0]) == (waves, min(tiles, blocks or 132))


def test_fewer_clusters_fit_than_multiprocessors_allow():
    problem = terms.cut(size(128 * 132, 256, 64), columns(TILE, cluster_m=4))
    assert [
        warpgroup.waves_of(problem, columns(TILE, cluster_m=4, persistent_blocks=blocks), H200)[0][0]
        for blocks in (120, 132)
    ] == [2, 2]  # 33 clusters, of which 30 run at once
    assert H200.blocks_at_once(4) == 120
    assert H200.blocks_at_once(16) <= 132


def test_the_last_wave_counts_by_what_it_has_to_do_where_its_tiles_are_shared():
    problem = terms.cut(size(128 * 142, 256, 64), columns(TILE))
    rounds = [
        warpgroup.waves_of(problem, columns(TILE, tile_scheduler=how), H200)[2][0]
        for how in ("data_parallel", "stream_k")
    ]
    assert rounds == [2.0, 1.5]  # half a tile is the least that a block takes


def test_the_matrix_unit_takes_its_peak_at_least():
    problem = size(8192, 8192, 8192)
    least = 2 * 8192**3 / (132 * 2048 * 2 * H200.clock_mhz)
    assert predicted(problem)["matrix unit"][0] >= least
    assert predicted(problem)["total"][0] > predicted(problem)["main loop"][0] >= predicted(problem)["matrix unit"][0]


@pytest.mark.parametrize("more", [(8192, 4096, 4096), (4096, 8192, 4096), (4096, 4096, 8192)])
def test_a_larger_problem_takes_longer(more):
    assert predicted(size(*more))["total"][0] > predicted(size(4096, 4096, 4096))["total"][0]


def test_more_stages_are_never_slower():
    total = predicted(size(4096, 4096, 4096), stages=[1, 2, 3, 4])["total"]
    assert (np.diff(total) <= 0).all() and total[0] > 1.5 * total[-1]


def test_multicast_saves_bytes_from_l2():
    total = predicted(size(8192, 8192, 8192), cluster_m=[1, 2], block_n=128)
    assert total["L2"][1] < total["L2"][0]


def test_small_tiles_are_bound_by_what_they_load():
    times = predicted(size(8192, 8192, 8192), block_m=64, block_n=32, consumer_warpgroups=1, stages=8)
    assert max(times["TMA"][0], times["L2"][0], times["shared memory"][0]) > 2 * times["matrix unit"][0]


def test_rows_of_zeros_cost_time_unless_boxes_are_fitted():
    """With 136 rows, the second tile of 128 is 120 rows of zeros; a box of 16 rows is as short as the matrix."""

    def zero_rows(m, cluster_n):
        tile = np.array([128.0])
        last = np.array([m - (math.ceil(m / 128) - 1) * 128.0])
        return warpgroup.loads(True, m, tile, last, last, np.array([cluster_n]), np.array([64]), 2.0).zero_rows[0]

    assert [zero_rows(136, 1), zero_rows(16, 1), zero_rows(16, 2), zero_rows(256, 1)] == [120, 0, 112, 0]
    free = replace(H200, constants={WARPGROUP: {**H200.constants[WARPGROUP], "zero_row": 0.0}})
    total = [predicted(size(m, 5952, 3784), card, block_n=96)["total"][0] for m in (136, 256) for card in (H200, free)]
    assert total[0] > 1.2 * total[1] and total[2] == total[3]


def test_operands_along_m_or_n_have_boxes_that_divide_the_tile():
    one = np.array([1.0])
    tile, last, block_k = np.array([96.0]), np.array([8.0]), np.array([64.0])
    found = warpgroup.loads(False, 1000, tile, tile, last, one, block_k, 2.0)
    assert (found.row_bytes[0], found.rows[0], found.zero_rows[0]) == (64, 3 * 64, 2 * 64)


def test_an_epilogue_hides_behind_the_other_warpgroup():
    changes = {"block_n": 128, "consumer_warpgroups": 1, "stages": 5}
    problem = size(8192, 8192, 1024)
    times = {how: predicted(problem, schedule=how, **changes)["epilogue"][0] for how in ("cooperative", "pingpong")}
    assert times["pingpong"] < 0.3 * times["cooperative"]


def test_an_epilogue_grows_with_its_bytes():
    narrow, wide = (
        warpgroup.epilogue_time(
            columns(TILE),
            size(4096, 4096, 4096, out_bytes=bytes_),
            np.array([132.0]),
            H200,
            H200.constants[WARPGROUP],
        )[0]
        for bytes_ in (2.0, 4.0)
    )
    assert narrow < wide <= 2 * narrow


def test_dividing_a_reduction_pays_where_there_are_few_tiles_and_only_there():
    split = {
        "split_k": [1, 8],
        "split_k_workspace": "memory",
        "persistent_blocks": [132, 0],
        "epilogue": ["tma", "registers"],
    }
    few = predicted(size(512, 512, 16384), block_n=128, **split)["total"]
    many = predicted(size(8192, 8192, 512), block_n=128, **split)["total"]
    assert few[1] < 0.5 * few[0] and many[1] > many[0]


def test_a_reduction_that_is_not_divided_costs_nothing():
    constants = H200.constants[WARPGROUP]
    knobs = columns(TILE, split_k=[1, 2, 2], split_k_workspace=["memory", "cluster", "memory"])
    times = warpgroup.reduction_time(knobs, constants)
    assert times[0] == 0 and times[1] >= constants["parts_cluster"] and times[2] >= constants["parts_memory"]


def test_operands_that_l2_does_not_hold_are_read_at_the_rate_of_memory():
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


def test_square_waves_move_the_fewest_bytes():
    problem = size(16384, 16384, 8192)
    knobs = columns(TILE, raster_group=[1, 8, 16, 128])
    bytes_ = terms.memory_bytes(problem, terms.cut(problem, knobs), knobs, H200, np.array([132.0] * 4), 0.5)
    assert bytes_[0] > bytes_[1] >= bytes_[2] and bytes_[3] > bytes_[2]


def test_an_empty_kernel_takes_its_launch_and_prologue():
    constants = H200.constants[WARPGROUP]
    assert predicted(size(64, 64, 64))["total"][0] > constants["launch"] + constants["prologue"]


def test_blocks_share_a_multiprocessor_as_far_as_its_resources_allow():
    problem = size(4096, 4096, 4096)
    found = warp.blocks_a_multiprocessor(
        columns(WARP_TILE, shared_bytes=[98304, 40000, 220000], warp_m=[64, 32, 64], warp_n=[64, 32, 64]), problem, H200
    )
    assert found.tolist() == [2, 1, 1]  # shared memory; registers of 16 warps; shared memory


@pytest.mark.parametrize("instruction", ["mma_sync", "wmma"])
def test_warp_kernels_take_longer_through_registers_and_for_larger_problems(instruction):
    knobs = columns(WARP_TILE, prefetch=["cp_async", "registers"])
    small, large = (
        warp.predict(knobs, size(extent, extent, extent), H200, instruction)["total"] for extent in (2048, 4096)
    )
    assert (large > 4 * small).all() and small[1] > small[0]


def test_a_faster_card_is_predicted_to_be_faster():
    faster = replace(H200, multiprocessors=264, hbm_bytes_per_us=2 * H200.hbm_bytes_per_us)
    problem = size(8192, 8192, 8192)
    assert predicted(problem, faster, persistent_blocks=264)["total"][0] < 0.6 * predicted(problem)["total"][0]


# GPUs.


def test_files_of_gpus_have_every_constant_within_its_range():
    for key in gpu.keys():
        card = gpu.load(key)
        assert card.source in (gpu.MEASURED, gpu.DATA_SHEET)
        for family in [family for family in CONSTANTS if family in card.macs_per_clock]:
            assert set(card.constants[family]) == set(CONSTANTS[family])
            for name, value in card.constants[family].items():
                assert CONSTANTS[family][name].least <= value <= CONSTANTS[family][name].most, (key, name)


def test_an_unknown_gpu_takes_the_nearest_and_says_which():
    assert gpu.for_target("sm_90a").gpu.key == "h200" and not gpu.for_target("sm_90a").note
    assert gpu.for_target("sm_75").gpu.key == "a100" and "NVIDIA A100" in gpu.for_target("sm_75").note
    assert gpu.for_device("NVIDIA H200", "sm_90a").note == ""
    assert "'NVIDIA H20'" in gpu.for_device("NVIDIA H20", "sm_90a").note
    with pytest.raises(StepladderError, match="no GPU 'h20'.*h200"):
        gpu.load("h20")


# The search.


def test_ranking_is_of_everything_and_takes_each_rule_once(monkeypatch):
    """All settings are ranked by work that does not grow with their number: a few evaluations of each rule."""
    knobs, facts = pipeline_space("wgmma"), facts_of("wgmma", 3000, 1000, 2000)
    calls = []
    evaluate_one = Columns.evaluate
    monkeypatch.setattr(Columns, "evaluate", lambda self, text: calls.append(text) or evaluate_one(self, text))
    began = time.perf_counter()
    ranked = ranking.rank(knobs, facts, False, replace(H200, measured_widths={}), {"target": "sm_90a"})
    seconds = time.perf_counter() - began
    assert len(ranked) > 3000
    assert len(calls) < 8 * (len(knobs.rules) + len(knobs.derived) + 20)
    assert seconds < 2.0  # a tenth of a second by itself; other processes may have the cores
    total = ranked.times["total"][ranked.order]
    assert (np.diff(total) >= 0).all()


@pytest.mark.parametrize("name", ["wgmma", "mma_sync", "wmma"])
def test_what_is_ranked_is_what_the_engine_accepts(name):
    """Every setting of a small space, one by one: those that no rule of use drops are those that meet all rules."""
    knobs, facts = pipeline_space(name), facts_of(name, 512, 384, 256)
    fixed = {
        option: value
        for option, value in knobs.defaults.items()
        if option not in ("block_m", "block_n", "consumer_warpgroups", "warp_m", "stages")
    }
    search = space.Search(("block_m", "block_n", "consumer_warpgroups", "warp_m"), "stages", {}, ())
    found = space.feasible(knobs, facts, fixed, search)
    accepted = {
        tuple(
            int(np.broadcast_to(found.values[option], (found.count,))[index])
            for option in sorted({"block_m", "block_n", "consumer_warpgroups", "warp_m", "stages"} & set(knobs.options))
        )
        for index in range(found.count)
    }
    free = sorted({"block_m", "block_n", "consumer_warpgroups", "warp_m", "stages"} & set(knobs.options))
    expected: dict[tuple, int] = {}
    for values in np.array(np.meshgrid(*(knobs.options[option] for option in free))).T.reshape(-1, len(free)).tolist():
        scope = Scope({**facts, **fixed, **dict(zip(free, values))}, knobs.derived)
        if all(_meets(rule, scope) for rule in knobs.rules):
            rest = tuple(value for option, value in zip(free, values) if option != "stages")
            stages = dict(zip(free, values)).get("stages", 0)
            expected[rest] = max(expected.get(rest, 0), stages)
    without_stages = {tuple(value for option, value in zip(free, one) if option != "stages") for one in accepted}
    assert without_stages == set(expected) and len(expected) > 3
    if "stages" in free:
        assert {one[free.index("stages")] for one in accepted} == set(expected.values())


def _meets(rule, scope):
    try:
        return bool(rule.runs_if and not evaluate(rule.runs_if, scope)) or bool(evaluate(rule.requires, scope))
    except ExpressionError:
        return False


def test_knobs_that_are_given_stay():
    ranked = ranking.rank(
        pipeline_space("wgmma"),
        facts_of("wgmma", 1000, 1000, 1000),
        False,
        H200,
        {"target": "sm_90a", "block_m": 192, "epilogue_stages": 4},
    )
    assert len(ranked) and "block_m" not in ranked.first(1)[0].knobs
    assert set(np.unique(ranked.columns.values["block_m"])) == {192}


def test_first_candidates_differ_in_more_than_details():
    facts = facts_of("wgmma", 4096, 4096, 4096)
    ranked = ranking.rank(pipeline_space("wgmma"), facts, False, H200, {"target": "sm_90a"})
    first = ranked.first(4)
    tiles = [(one.knobs["block_m"], one.knobs["block_n"], one.knobs["split_k"]) for one in first]
    assert len(first) == 4 and max(map(tiles.count, tiles)) <= 2
    assert [one.microseconds for one in first] == sorted(one.microseconds for one in first)


def test_a_pipeline_that_the_model_does_not_know_is_not_ranked():
    knobs = pipeline_space("wgmma_multistage")
    assert ranking.family_of(knobs) is None
    families = [ranking.family_of(pipeline_space(name)) for name in ("wgmma", "mma_sync", "wmma")]
    assert families == [WARPGROUP, WARP, WARP]


def extents(multiple, most):
    return st.integers(1, most // multiple).map(lambda value: value * multiple)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 4000),
    extents(8, 12000),
    extents(8, 20000),
    st.sampled_from([("f16", "f32"), ("bf16", "bf16"), ("f16", "f16")]),
)
def test_every_first_choice_is_accepted_by_wgmma(m, n, k, types):
    check_first_choices("wgmma", (m, n, k), *types)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["mma_sync", "wmma"]),
    extents(16, 4096),
    extents(16, 4096),
    extents(16, 4096),
    st.sampled_from(["sm_80", "sm_86", "sm_90a"]),
)
def test_every_first_choice_is_accepted_by_warp_pipelines(name, m, n, k, target):
    check_first_choices(name, (m, n, k), "f16", "f32", target)


def check_first_choices(name, sizes, element, c_type, target=None):
    """Checks that a pipeline's own requirements accept what the model puts first, all of it."""
    text = matmul_text(*sizes, a_type=element, b_type=element, c_type=c_type, accumulate=False)
    with engine.mlir_context():
        pipeline = library.load(name)
        request = engine.Request(name, {"target": target} if target else {})
        asked = engine.read_asked(pipeline, request, text, "payload.mlir")
        ranked = knob_choice.rank(asked)
        assert ranked is not None
        for candidate in ranked.first(4):
            knobs = {**{knob.name: knob.default for knob in pipeline.knobs.values()}, **asked.fixed, **candidate.knobs}
            for option, value in candidate.knobs.items():
                assert pipeline.knobs[option].accepts(value), (option, value)
            scope = Scope({**asked.facts, **knobs}, pipeline.derived)
            steps = [
                step
                for step in pipeline.steps
                if step.condition is None or int(evaluate(step.condition.expression, scope)) == step.condition.region
            ]
            engine.check_requirements(pipeline, steps, scope, asked.problem)
