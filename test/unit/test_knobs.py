"""Random knob settings: the engine refuses, or the whole pipeline gives a kernel that covers the problem."""

import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chosen import chosen_steps
from conftest import examples
from stepladder.mlir.bindings import ir
from stepladder.mlir.text import text_of
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.bind import bind
from stepladder.pipeline.codegen import kernel as codegen
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.expressions import Scope
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline
from stepladder.runtime.errors import BAD_INPUT, StepladderError

TILES = [16, 32, 64, 128, 256]
# A form of a pipeline: what chooses it, and the knobs that only it has or has differently.
FORMS = {
    "wmma": ("wmma", {"stages": [1, 2, 3], "padding": [0, 8, 16, 24], "target": ["sm_75", "sm_80", "sm_90a"]}),
    "wmma_asynchronous": (
        "wmma",
        {
            "prefetch": ["cp_async"],
            "block_k": TILES[1:4],
            "stages": [1, 2, 3, 4, 5],
            "padding": [0, 8, 16, 24],
            "target": ["sm_80", "sm_86", "sm_90a"],
        },
    ),
    "mma_sync": ("mma_sync", {"block_k": TILES[1:4], "stages": [2, 3, 4, 5], "target": ["sm_80", "sm_86", "sm_90a"]}),
}
PRODUCT = {"wmma": "nvvm.wmma.mma ", "mma_sync": "nvvm.mma.sync "}
FRAGMENT_N = {"wmma": 16, "mma_sync": 8}
OPTIMIZATIONS = {
    "wmma": [
        "stage_in_shared_memory",
        "rasterize_blocks",
        "vectorize_copies",
        "pad_shared_memory",
        "multi_buffer",
        "hoist_accumulators",
        "set_min_blocks_per_sm",
        "prefetch_to_registers",
        "hoist_prefetch",
    ],
    "wmma_asynchronous": [
        "stage_in_shared_memory",
        "rasterize_blocks",
        "map_copies_cyclically",
        "vectorize_copies",
        "pad_shared_memory",
        "multi_buffer",
        "hoist_accumulators",
        "set_min_blocks_per_sm",
        "pipeline_copies",
        "rotate_loop",
        "interleave_copies",
    ],
    "mma_sync": [
        "stage_in_shared_memory",
        "rasterize_blocks",
        "map_copies_cyclically",
        "vectorize_copies",
        "multi_buffer",
        "hoist_accumulators",
        "merge_ldmatrix",
        "swizzle_shared_memory",
        "set_min_blocks_per_sm",
        "pipeline_copies",
        "bypass_l1",
        "rotate_loop",
        "interleave_copies",
    ],
}
# Types of A and B, of C; only mma_sync takes more than f16.
TYPES = {
    "wmma": [("f16", "f32"), ("f16", "f16")],
    "mma_sync": [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")],
}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "i8": 8}
LAYOUTS = ["row", "column"]
QUICK = {"deadline": None, "suppress_health_check": list(HealthCheck)}
forms = pytest.mark.parametrize("form", FORMS)


def draw_knobs(data: st.DataObject, form: str) -> dict:
    """Draws a value for every knob."""
    options = {"block_k": TILES[:4], "raster_group": [1, 2, 8], "min_blocks_per_sm": [0, 0, 2, 4], **FORMS[form][1]}
    knobs = {name: data.draw(st.sampled_from(values), name) for name, values in options.items()}
    for axis in "mn":
        knobs[f"block_{axis}"] = data.draw(st.sampled_from(TILES), f"block_{axis}")
        knobs[f"warp_{axis}"] = data.draw(st.sampled_from(TILES[:4]), f"warp_{axis}")
    return knobs


def draw_payload(data: st.DataObject, pipeline: str, m: int, n: int, k: int) -> str:
    """Draws element types, layouts, and whether C is read."""
    type_, c_type = data.draw(st.sampled_from(TYPES[pipeline]), "types")
    layouts = {f"{operand}_layout": data.draw(st.sampled_from(LAYOUTS), operand) for operand in "ab"}
    accumulate = data.draw(st.booleans(), "accumulate")
    return matmul_text(
        m, n, k, a_type=type_, b_type=type_, acc_type=c_type, c_type=c_type, accumulate=accumulate, **layouts
    )


def check_kernel(run: Run, m: int, n: int) -> None:
    """Checks that the launch covers C, tile by tile and warp by warp, and that nothing is left to lower."""
    run.module.operation.verify()
    knobs, pipeline = run.knobs, run.pipeline.name
    kernel = codegen.find_kernel(run.module)
    assert kernel.grid == [n // knobs["block_n"], m // knobs["block_m"], 1]
    warps = knobs["block_m"] // knobs["warp_m"] * (knobs["block_n"] // knobs["warp_n"])
    assert kernel.block == [32 * warps, 1, 1]
    assert kernel.target == knobs["target"]
    assert sorted(parameter.number for parameter in kernel.parameters) == [0, 1, 2]
    text = text_of(run.module)
    fragment_k = 16 if pipeline == "wmma" else 256 // BITS[run.matmul.problem.a_type]
    products = text.count(PRODUCT[pipeline])
    tiles = knobs["warp_m"] // 16 * (knobs["warp_n"] // FRAGMENT_N[pipeline]) * (knobs["block_k"] // fragment_k)
    assert products and products % tiles == 0
    assert not re.search(r"unrealized_conversion_cast|\bscf\.|\bvector\.|\bnvgpu\.|\bmemref\.(?!global)", text)


@forms
@settings(max_examples=examples(8), **QUICK)
@given(st.data())
def test_refused_or_covers_the_problem(form: str, data: st.DataObject) -> None:
    knobs = draw_knobs(data, form)
    pipeline, (m, n, k) = FORMS[form][0], (256, 512, 512)
    if pipeline == "mma_sync":
        knobs["allow_tf32"] = True
    with mlir_context():
        try:
            run = run_pipeline(draw_payload(data, pipeline, m, n, k), "matmul.mlir", Request(pipeline, knobs))
        except StepladderError as error:
            assert error.status == BAD_INPUT  # refused before anything ran, not a step that failed
            assert " must " in error.message
            assume(False)  # enough of those that run
        else:
            check_kernel(run, m, n)


@forms
@settings(max_examples=examples(5), **QUICK)
@given(st.data())
def test_any_optimizations_may_be_left_out(form: str, data: st.DataObject) -> None:
    without = data.draw(st.lists(st.sampled_from(OPTIMIZATIONS[form]), unique=True, max_size=6))
    pipeline, knobs = FORMS[form]
    chosen = {"prefetch": "cp_async"} if "prefetch" in knobs else {}
    if pipeline == "mma_sync":
        # Two sub-steps of i8, and tiles of f32 that fit.
        chosen |= {"block_m": 64, "block_n": 64, "block_k": 64, "warp_m": 32, "warp_n": 32, "allow_tf32": True}
    text = draw_payload(data, pipeline, 256, 256, 256)
    with mlir_context():
        try:
            run = run_pipeline(text, "matmul.mlir", Request(pipeline, chosen, without=tuple(without)))
        except StepladderError as error:
            assert error.status == BAD_INPUT
            assert "needs" in error.message or "step 'pipeline_copies': " in error.message
        else:
            assert not set(without) & {step.name for step in run.steps}
            check_kernel(run, 256, 256)


@forms
def test_the_list_of_optimizations_is_whole(form: str) -> None:
    pipeline, knobs = FORMS[form]
    settings = {"prefetch": "cp_async"} if "prefetch" in knobs else {}
    with mlir_context():
        assert OPTIMIZATIONS[form] == [step.name for step in chosen_steps(pipeline, settings) if step.optimization]


def test_literals_are_the_defaults() -> None:
    """Following the knobs with their defaults changes no attribute of the steps that a stock mlir-opt would run."""
    with mlir_context():
        pipeline = library.load("wmma_upstream")
        before = str(pipeline.module)
        defaults = {knob.name: knob.default for knob in pipeline.knobs.values()}
        steps = {step.name: True for step in pipeline.steps}
        facts = {"batched": 0, "a_layout": "row", "b_layout": "row", "a_type": "f16", "b_type": "f16", "is_fp8": 0}
        facts |= {
            "a_bits": 16,
            "b_bits": 16,
            "c_bits": 32,
            "acc_bits": 32,
            "acc_type": "f32",
            "c_type": "f32",
            "products": 1,
            "batch_strides": 1,
        }
        scope = Scope({**steps, **defaults, **facts}, pipeline.derived)
        bind(pipeline, pipeline.steps, defaults, scope, ir.Module.create())
        after = str(pipeline.module)
    assert "knobs = {" in before and "knobs = {" not in after
    before = re.sub(r",? ?knobs = \{[^}]*\}", "", before).replace(" attributes {}", "").replace(" {}", "")
    assert before == after.replace(" attributes {}", "").replace(" {}", "")
