"""Candidates that the cost model ranks, and the pipelines' own requirements on them."""

import dataclasses
import itertools
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cost_model_settings import H200, facts_of, pipeline_space
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.cost_model import ranking, space
from stepladder.pipeline.cost_model.columns import Columns
from stepladder.pipeline.cost_model.constants import WARP, WARPGROUP
from stepladder.pipeline.cost_model.orientations import Orientations
from stepladder.pipeline.cost_model.ranking import Candidate, Ranking
from stepladder.pipeline.cost_model.space import Rule
from stepladder.pipeline.expressions import ExpressionError, Scope, evaluate
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.knobs import evaluation_scope
from stepladder.pipeline.request import Request
from stepladder.pipeline.requirements import check_requirements

# The search.


def test_ranking_is_of_everything_and_takes_each_rule_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All settings are ranked by work that does not grow with their number: a few evaluations of each rule."""
    knobs, facts = pipeline_space("wgmma"), facts_of("wgmma", 3000, 1000, 2000)
    calls = []
    evaluate_one = Columns.evaluate
    monkeypatch.setattr(Columns, "evaluate", lambda self, text: calls.append(text) or evaluate_one(self, text))
    ranked = ranking.rank(knobs, facts, False, dataclasses.replace(H200, measured_widths={}), {"target": "sm_90a"})
    assert len(ranked) > 3000
    assert len(calls) < 2 * (len(knobs.rules) + 40)
    order = ranked.order[ranked.columns.floats("split_k")[ranked.order] == 1]
    assert (np.diff(ranked.times["total"][order]) >= 0).all()  # settings with splits have margins
    assert (np.diff(ranked.with_margin[ranked.order]) >= 0).all()


@pytest.mark.parametrize(
    "types, sizes",
    [
        ({"a_type": "f32", "b_layout": "column"}, (608, 2312, 3760)),
        ({"a_layout": "column", "accumulate": True}, (560, 7096, 8232)),
        ({}, (5760, 5760, 5760)),
    ],
)
def test_a_ranking_makes_few_more_settings_than_it_ranks(
    types: dict[str, str], sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the drawn problems, these have the most settings. The time of a ranking is that of what it keeps in columns,
    and of calls, whose number is the same for all problems."""
    counts, calls, take = [], [], Columns.take
    monkeypatch.setattr(Columns, "take", lambda self, rows: counts.append(len(rows)) or take(self, rows))
    with mlir_context():
        text = matmul_text(*sizes, **{"b_type": types.get("a_type", "f16"), "accumulate": False, **types})
        query = read_query(library.load("wgmma"), Request("wgmma", {"target": "sm_90a"}, tuned=True), text, "p.mlir")
        knob_choice.rank(query)  # imports, and compiles expressions
        counts.clear()
        sys.setprofile(lambda frame, event, argument: calls.append(1) if event == "call" else None)
        ranked = knob_choice.rank(query)
        sys.setprofile(None)
    assert 15_000 < len(ranked) < 32_000 and max(counts) < 1.2 * len(ranked)
    assert sum(counts) < 12 * len(ranked)
    assert len(calls) < 40_000, len(calls)


def test_a_choice_ranks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For few rows too, where the first setting tells whether measured problems count."""
    ranked, rank = [], knob_choice.rank
    monkeypatch.setattr(knob_choice, "rank", lambda query: ranked.append(query) or rank(query))
    with mlir_context():
        request = Request("wgmma", {"target": "sm_90a"}, tuned=True)
        query = read_query(library.load("wgmma"), request, matmul_text(16, 5000, 4000, accumulate=False), "matmul.mlir")
        assert len(list(knob_choice.choices(query, None))) > 1
    assert len(ranked) == 1


def test_groups_of_rows_are_even_where_the_order_makes_no_other_difference() -> None:
    """15 rows of tiles are one group, or groups of one: blocks divide by constants to find their tiles."""
    knobs, facts = pipeline_space("wgmma"), facts_of("wgmma", 928, 704, 2208)
    ranked = ranking.rank(knobs, facts, False, H200, {"target": "sm_90a", "block_m": 64})
    rows = np.ceil(15 / ranked.columns.floats("cluster_m"))
    width, cluster = ranked.columns.floats("block_n"), ranked.columns.floats("cluster_n")
    is_one_column = np.ceil(np.ceil(704 / width) / cluster) == 1
    assert ((rows % np.minimum(ranked.columns.floats("raster_group"), rows) == 0) | is_one_column).all()


@pytest.mark.parametrize("rows, factor", [(256, 1.04), (192, 1.0)])
def test_splits_in_a_cluster_have_to_be_faster_by_more(rows: int, factor: float) -> None:
    knobs, facts = pipeline_space("wgmma"), facts_of("wgmma", rows, 512, 8192)
    fixed = {"target": "sm_90a", "split_k_workspace": "cluster", "min_blocks_per_sm": 1}
    ranked = ranking.rank(knobs, facts, False, dataclasses.replace(H200, measured_widths={}), fixed)
    splits = ranked.columns.floats("split_k") > 1
    assert np.allclose(ranked.with_margin, ranked.times["total"] * np.where(splits, factor, 1.0))


def test_a_setting_of_which_every_other_knob_is_given_is_ranked() -> None:
    """Knobs that are given are one number for all settings; those that are set behind the search are a column."""
    knobs, facts = pipeline_space("wgmma"), facts_of("wgmma", 512, 384, 256)
    fixed = {name: value for name, value in knobs.defaults.items() if name not in ("stagger", "raster_group")}
    fixed |= {"target": "sm_90a", "block_m": 64, "consumer_warpgroups": 1}
    ranked = ranking.rank(knobs, facts, False, H200, fixed)
    assert [candidate.knobs["stagger"] for candidate in ranked.first(1)] == [0]


@pytest.mark.parametrize("name", ["wgmma", "mma_sync", "wmma"])
def test_what_is_ranked_is_what_the_engine_accepts(name: str) -> None:
    """Every setting of a small space, one by one: those that no rule of use drops are those that satisfy all rules."""
    knobs, facts = pipeline_space(name), facts_of(name, 512, 384, 256)
    fixed = {
        option: value
        for option, value in knobs.defaults.items()
        if option not in ("block_m", "block_n", "consumer_warpgroups", "warp_m", "stages")
    }
    search = space.Search(("block_m", "block_n", "consumer_warpgroups", "warp_m"), "stages", {}, {}, ())
    found = space.feasible(knobs, facts, fixed, search)
    accepted = {
        tuple(
            int(np.broadcast_to(found.column(option), (found.count,))[index])
            for option in sorted({"block_m", "block_n", "consumer_warpgroups", "warp_m", "stages"} & set(knobs.options))
        )
        for index in range(found.count)
    }
    free = sorted({"block_m", "block_n", "consumer_warpgroups", "warp_m", "stages"} & set(knobs.options))
    expected: dict[tuple, int] = {}
    rules = list(knobs.rules)
    for values in itertools.product(*(sorted(knobs.options[option], reverse=True) for option in free)):
        setting = dict(zip(free, values))
        rest = tuple(value for option, value in setting.items() if option != "stages")
        if rest in expected:  # with more stages
            continue
        scope = Scope({**facts, **fixed, **setting}, knobs.derived)
        broken = next((place for place, rule in enumerate(rules) if not _meets(rule, scope)), None)
        if broken is None:
            expected[rest] = setting.get("stages", 0)
        else:  # which the next setting breaks most likely too
            rules.insert(0, rules.pop(broken))
    without_stages = {tuple(value for option, value in zip(free, one) if option != "stages") for one in accepted}
    assert without_stages == set(expected) and len(expected) > 3
    if "stages" in free:
        assert {one[free.index("stages")] for one in accepted} == set(expected.values())


def _meets(rule: Rule, scope: Scope) -> bool:
    try:
        return bool(rule.runs_if and not evaluate(rule.runs_if, scope)) or bool(evaluate(rule.requires, scope))
    except ExpressionError:
        return False


def test_knobs_that_are_given_stay() -> None:
    ranked = ranking.rank(
        pipeline_space("wgmma"),
        facts_of("wgmma", 1000, 1000, 1000),
        False,
        H200,
        {"target": "sm_90a", "block_m": 192, "epilogue_stages": 4},
    )
    assert len(ranked) and "block_m" not in ranked.first(1)[0].knobs
    assert set(np.unique(ranked.columns.column("block_m"))) == {192}


def test_first_candidates_differ_in_more_than_details() -> None:
    facts = facts_of("wgmma", 4096, 4096, 4096)
    ranked = ranking.rank(pipeline_space("wgmma"), facts, False, H200, {"target": "sm_90a"})
    first = ranked.first(4)
    tiles = [(one.knobs["block_m"], one.knobs["block_n"], one.knobs["split_k"]) for one in first]
    assert len(first) == 4 and max(map(tiles.count, tiles)) <= 2
    assert [one.microseconds for one in first] == sorted(one.microseconds for one in first)


def test_a_pipeline_that_the_model_does_not_know_is_not_ranked() -> None:
    knobs = pipeline_space("wgmma_multistage")
    assert ranking.family_of(knobs) is None
    families = [ranking.family_of(pipeline_space(name)) for name in ("wgmma", "mma_sync", "wmma")]
    assert families == [WARPGROUP, WARP, WARP]


def extents(multiple: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(1, most // multiple).map(lambda value: value * multiple)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 4000),
    extents(8, 12000),
    extents(8, 20000),
    st.sampled_from([("f16", "f32"), ("bf16", "bf16"), ("f16", "f16")]),
)
def test_every_first_choice_is_accepted_by_wgmma(m: int, n: int, k: int, types: tuple[str, str]) -> None:
    check_first_choices("wgmma", (m, n, k), *types)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["mma_sync", "wmma"]),
    extents(16, 4096),
    extents(16, 4096),
    extents(16, 4096),
    st.sampled_from(["sm_80", "sm_86", "sm_90a"]),
)
def test_every_first_choice_is_accepted_by_warp_pipelines(
    name: str, m: int, n: int, k: int, target: str | None
) -> None:
    check_first_choices(name, (m, n, k), "f16", "f32", target)


def check_first_choices(
    name: str, sizes: tuple[int, int, int], element: str, c_type: str, target: str | None = None
) -> None:
    """Checks that a pipeline's own requirements accept what the model puts first, all of it."""
    text = matmul_text(*sizes, a_type=element, b_type=element, c_type=c_type, accumulate=False)
    with mlir_context():
        pipeline = library.load(name)
        request = Request(name, {"target": target} if target else {})
        asked = read_query(pipeline, request, text, "payload.mlir")
        ranked = knob_choice.rank(asked)
        assert ranked is not None
        for candidate in ranked.first(4):
            knobs = {**{knob.name: knob.default for knob in pipeline.knobs.values()}, **asked.fixed, **candidate.knobs}
            for option, value in candidate.knobs.items():
                assert pipeline.knobs[option].accepts(value), (option, value)
            scope = evaluation_scope(pipeline, knobs, asked.facts, ())
            steps = [
                step
                for step in pipeline.steps
                if step.condition is None or int(evaluate(step.condition.expression, scope)) == step.condition.region
            ]
            check_requirements(pipeline, steps, scope, asked.location)


def _orientations(m: int, n: int, k: int, **fixed: int | str) -> tuple[Ranking | Orientations, list[Candidate]]:
    """The ranking of a problem on wgmma, with its first candidates."""
    with mlir_context():
        pipeline = library.load("wgmma")
        types = {"a_type": "bf16", "b_type": "bf16", "c_type": "bf16"}
        text = matmul_text(m, n, k, **types, accumulate=fixed.pop("accumulate", False), batch=fixed.pop("batch", None))
        query = read_query(pipeline, Request("wgmma", {"target": "sm_90a", **fixed}, tuned=True), text, "matmul.mlir")
        ranked = knob_choice.rank(query)
    assert ranked is not None
    return ranked, ranked.first(4)


def test_few_rows_go_to_the_side_that_counts_in_eights() -> None:
    """528 rows are three tiles of 176, and as rows of tiles nine of 64 with 48 empty rows."""
    ranked, first = _orientations(528, 5944, 9112)
    assert first[0].knobs["swap_operands"] is True
    _, as_it_is = _orientations(528, 5944, 9112, swap_operands=False)
    _, exchanged = _orientations(528, 5944, 9112, swap_operands=True)
    assert first[0].microseconds == exchanged[0].microseconds < as_it_is[0].microseconds
    assert "swap_operands" not in as_it_is[0].knobs
    assert len(ranked) > len(_orientations(528, 5944, 9112, swap_operands=False)[0])


@pytest.mark.parametrize("rows", [16, 32])
def test_few_rows_of_a_long_k_take_no_tiles_of_192_columns(rows: int) -> None:
    """192 columns, reduced in memory, are predicted to be fastest, and were 5% to 9% slower than what is chosen."""
    _, first = _orientations(rows, 8192, 28672)
    assert first[0].knobs["block_m"] != 192


def test_splits_in_global_memory_take_one_wave() -> None:
    """14 splits of 28 tiles are three waves, and took 1.5 times as long as predicted."""
    _, first = _orientations(896, 896, 45504)
    for candidate in first[:2]:
        assert candidate.knobs["split_k"] > 1 and candidate.waves <= 1


@pytest.mark.parametrize("side", [1024, 2048, 4096])
def test_a_square_stays_as_it_is(side: int) -> None:
    _, first = _orientations(side, side, side)
    assert "swap_operands" not in first[0].knobs


def test_an_orientation_that_is_refused_is_not_ranked() -> None:
    """Rows of a transposed C are not stored whole. C that is added before it is rounded is, and so is each C of a
    batch."""
    _, first = _orientations(528, 5944, 9112, epilogue="rows")
    assert first and all("swap_operands" not in candidate.knobs for candidate in first)
    for form in ({"accumulate": True}, {"batch": 2}):
        _, first = _orientations(528, 5944, 9112, **form)
        assert any("swap_operands" in candidate.knobs for candidate in first)


def test_two_blocks_share_a_multiprocessor_in_a_batch_only() -> None:
    """200 matmuls of 64 x 64 are two waves of blocks by themselves, and fewer than two blocks a multiprocessor. With a
    longer k, two blocks take longer for it than what each hides of the other's, and both wait where HBM bounds them."""
    _, first = _orientations(64, 64, 128, batch=200)
    assert first[0].knobs["min_blocks_per_sm"] == 2 and first[0].knobs["persistent_blocks"] == 0
    _, alone = _orientations(64, 64, 128, batch=200, min_blocks_per_sm=1)
    assert first[0].with_margin < alone[0].microseconds
    _, longer = _orientations(64, 64, 512, batch=200)
    assert longer[0].knobs["min_blocks_per_sm"] == 1
    _, single = _orientations(576, 576, 1048)
    _, from_memory = _orientations(16, 2048, 4096, batch=16)
    assert all(candidate.knobs["min_blocks_per_sm"] == 1 for candidate in (*single, *from_memory))


def test_wide_tiles_with_two_k_steps_have_to_be_faster_by_a_tenth() -> None:
    margins = {k: _margin(k) for k in (128, 192)}
    assert margins[128] == pytest.approx(margins[192] + 0.1)


def _margin(k: int) -> float:
    """What the predicted time of tiles of 128 x 192 of 11328 x 152 is multiplied by for their order."""
    fixed = {"block_m": 128, "block_n": 192, "consumer_warpgroups": 2, "schedule": "cooperative", "split_k": 1}
    ranked, _ = _orientations(11328, 152, k, swap_operands=False, **fixed)
    first = ranked.first(1)[0]
    return first.with_margin / first.microseconds


def test_dependent_launches_begin_sooner_where_half_of_the_multiprocessors_are_idle() -> None:
    """60 tiles of 64 x 64 and 100 of 64 x 32."""
    launches = []
    for block_n in (64, 32):
        fixed = {"block_m": 64, "block_n": block_n, "split_k": 1, "cluster_m": 1, "cluster_n": 1}
        fixed["launch_trigger"] = "early"
        _, first = _orientations(1280, 136, 328, swap_operands=False, **fixed)
        launches.append(first[0].times["launch"])
    assert launches[1] - launches[0] == pytest.approx(0.2)


def test_settings_are_within_a_factor_of_the_first_in_either_orientation() -> None:
    ranked, first = _orientations(333, 768, 11008)
    assert isinstance(ranked, Orientations)
    assert ranked.within(1.0) >= 1 and ranked.within(1e9) == len(ranked)
    times = [candidate.microseconds for candidate in first]
    assert times[0] == min(times)
