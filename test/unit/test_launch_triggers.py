"""When kernels let the next one begin: what the cost model predicts of it and chooses, and where it has no choice."""

import numpy as np
import pytest

from cost_model_settings import H200, TILE, columns, facts_of, pipeline_space, predicted, size
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.cost_model import launch_triggers, ranking
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request

EXCHANGED = {"a_layout": "column", "b_layout": "column", "c_layout": "column"}
NARROW = {"block_n": 64, "consumer_warpgroups": 1}


@pytest.mark.parametrize(
    ("tiles", "settings", "trigger"),
    [
        (66, {}, "early"),  # the next launch has room beside this one
        (67, {}, "exit"),
        (112, {}, "exit"),
        (113, {}, "early"),
        (100, {"persistent_blocks": 0}, "exit"),
        (200, {"persistent_blocks": 100}, "early"),  # two waves
        (100, {"cluster_m": 2}, "early"),
        (40, {"split_k": 2, "persistent_blocks": 0}, "early"),
        (100, {"min_blocks_per_sm": 2, "persistent_blocks": 0}, "early"),
    ],
)
def test_which_kernels_gain(tiles: int, settings: dict[str, int], trigger: str) -> None:
    problem = size(128 * tiles, 64, 1024)
    chosen = launch_triggers.choose(columns({**TILE, **NARROW, **settings}), problem, H200, {}, whole=False)
    assert list(chosen.values["launch_trigger"]) == [trigger]
    for fixed in ({"dependent_launch": False}, {"prefetch_steps": 4}, {"early_weights": True}):
        given = launch_triggers.choose(columns({**TILE, **NARROW, **settings}), problem, H200, fixed, whole=False)
        assert list(given.values["launch_trigger"]) == ["early"]


def test_only_kernels_that_leave_multiprocessors_idle_load_faster() -> None:
    trigger = {"launch_trigger": ["early", "exit"]}
    busy, idle = (predicted(size(128 * tiles, 64, 8192), **NARROW, **trigger) for tiles in (132, 70))
    assert busy["main loop"][0] == busy["main loop"][1] and busy["launch"][0] < busy["launch"][1]
    assert idle["main loop"][0] > idle["main loop"][1] and idle["total"][0] > idle["total"][1]


@pytest.mark.parametrize(
    ("m", "n", "k", "fixed", "trigger"),
    [
        (8896, 80, 1760, {}, "exit"),
        (1152, 1152, 1152, {}, "early"),
        (8896, 80, 1760, {"dependent_launch": False}, "early"),
        (8896, 80, 1760, {"launch_trigger": "early"}, None),
        (21504, 32, 768, {}, "exit"),
        # Kernels that load weights early are faster, with weights that L2 holds and with others.
        (6096, 24, 2608, {}, "early"),
        (4096, 4096, 4096, {}, "early"),
    ],
)
def test_what_is_chosen(m: int, n: int, k: int, fixed: dict[str, str | bool], trigger: str | None) -> None:
    facts = {**facts_of("wgmma", m, n, k, c_type="bf16"), **EXCHANGED}
    ranked = ranking.rank(pipeline_space("wgmma"), facts, False, H200, {"swap_operands": True, **fixed})
    assert ranked is not None
    first = ranked.first(1)[0].knobs
    assert first.get("launch_trigger") == trigger
    assert trigger != "exit" or not (first.get("early_weights") or first.get("kept_weights"))


def test_kernels_behind_the_exit_prefetch_nothing() -> None:
    facts = {**facts_of("wgmma", 21504, 32, 768, c_type="bf16"), **EXCHANGED}
    given = {"swap_operands": True, "early_weights": False}
    ranked = ranking.rank(pipeline_space("wgmma"), facts, False, H200, given)
    assert ranked is not None
    at_exit = ranked.columns.equals("launch_trigger", "exit", "early")
    steps = np.asarray(ranked.columns.values["prefetch_steps"])
    assert at_exit.any() and not steps[at_exit].any() and steps[~at_exit].any()


@pytest.mark.parametrize("in_function", [False, True])
def test_kernels_of_a_function_have_no_choice(in_function: bool) -> None:
    text = matmul_text(80, 8896, 1760, a_type="bf16", b_type="bf16", c_type="bf16", accumulate=False)
    with mlir_context():
        request = Request("wgmma", {"target": "sm_90a"}, tuned=True, in_function=in_function)
        query = read_query(library.load("wgmma"), request, text, "matmul")
    assert query.fixed.get("launch_trigger") == ("early" if in_function else None)
