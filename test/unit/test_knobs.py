"""Random knob settings: the engine refuses, or the whole pipeline gives a kernel that covers the problem."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stepladder import codegen, engine, library
from stepladder.errors import BAD_INPUT, StepladderError
from stepladder.payload import matmul_text

TILES = [16, 32, 64, 128, 256]


def knobs():
    return st.fixed_dictionaries({
        "block_m": st.sampled_from(TILES), "block_n": st.sampled_from(TILES), "block_k": st.sampled_from(TILES[:4]),
        "warp_m": st.sampled_from(TILES[:4]), "warp_n": st.sampled_from(TILES[:4]),
        "padding": st.sampled_from([0, 8, 16, 24]), "buffers": st.sampled_from([1, 2]),
        "target": st.sampled_from(["sm_75", "sm_80", "sm_90a"])})


OPTIMIZATIONS = ["stage_in_shared_memory", "vectorize_copies", "pad_shared_memory", "multi_buffer",
                 "hoist_accumulators", "hide_latency", "issue_loads_early"]


def check_kernel(run, knobs, m, n):
    """Checks that the launch covers C, tile by tile and warp by warp, and that nothing is left to lower."""
    run.module.operation.verify()
    kernel = codegen.find_kernel(run.module)
    assert kernel.grid == [n // knobs["block_n"], m // knobs["block_m"], 1]
    warps = knobs["block_m"] // knobs["warp_m"] * (knobs["block_n"] // knobs["warp_n"])
    assert kernel.block == [32 * warps, 1, 1]
    assert kernel.target == knobs["target"]
    assert sorted(kernel.arguments) == [0, 1, 2]
    text = engine.text_of(run.module)
    products = text.count("nvvm.wmma.mma ")
    tiles = knobs["warp_m"] // 16 * (knobs["warp_n"] // 16) * (knobs["block_k"] // 16)
    assert products and products % tiles == 0
    assert not re.search(r"unrealized_conversion_cast|\bscf\.|\bvector\.|\bmemref\.(?!global)", text)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(knobs())
def test_refused_or_covers_the_problem(knobs):
    m, n, k = 256, 512, 256
    with engine.mlir_context():
        try:
            run = engine.run(matmul_text(m, n, k), "matmul.mlir", engine.Request("wmma", knobs))
        except StepladderError as error:
            assert error.status == BAD_INPUT  # refused before anything ran, not a step that failed
            assert "requires" in error.message
        else:
            check_kernel(run, run.knobs, m, n)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(OPTIMIZATIONS), unique=True), st.sampled_from(["f16", "f32"]))
def test_any_optimizations_may_be_left_out(without, type_):
    with engine.mlir_context():
        text = matmul_text(256, 256, 128, acc_type=type_, c_type=type_)
        try:
            run = engine.run(text, "matmul.mlir", engine.Request("wmma", without=tuple(without)))
        except StepladderError as error:
            assert "needs" in error.message and "leave out both" in error.notes[0]
        else:
            assert not set(without) & {step.name for step in run.steps}
            check_kernel(run, run.knobs, 256, 256)


def test_the_list_of_optimizations_is_whole():
    with engine.mlir_context():
        assert OPTIMIZATIONS == [step.name for step in library.load("wmma").steps if step.optimization]


@pytest.mark.parametrize("name", library.pipeline_names())
def test_literals_are_the_defaults(name):
    """Following the knobs with their defaults changes no attribute: the text is what a stock mlir-opt would run."""
    with engine.mlir_context():
        pipeline = library.load(name)
        before = str(pipeline.module)
        defaults = {knob.name: knob.default for knob in pipeline.knobs.values()}
        engine.bind(pipeline, defaults, engine.Scope(defaults, pipeline.derived))
        after = str(pipeline.module)
    before = re.sub(r",? ?knobs = \{[^}]*\}", "", before).replace(" attributes {}", "").replace(" {}", "")
    assert before == after.replace(" attributes {}", "").replace(" {}", "")
