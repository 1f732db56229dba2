"""Sums of products of fp8: in f32 by `promote_accumulators`, or in the tensor core with `fast_accum`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import ROLES, EmulatedExecutor
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle, write_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.runtime.reference import matmul_program
from stepladder.verify.check import check_matmul

COOPERATIVE = {"block_m": 128, "block_k": 64, "consumer_warpgroups": 2, "stages": 2, "persistent_blocks": 2}
PINGPONG = {"block_m": 64, "block_n": 64, "block_k": 64, "schedule": "pingpong", "stages": 2, "persistent_blocks": 2}
WARPS = {"block_m": 32, "block_n": 32, "block_k": 64, "warp_m": 16, "warp_n": 32, "target": "sm_89"}
# Pipeline, sizes, knobs, and the columns of each product; 0 where instructions are promoted.
CASES = {
    "two sets of accumulators": ("wgmma", (200, 136, 208), {**COOPERATIVE, "block_n": 136}, 136),
    "two parts": ("wgmma", (200, 264, 208), {**COOPERATIVE, "block_n": 256}, 128),
    "ping-pong": ("wgmma", (200, 136, 208), PINGPONG, 64),
    "a stream-K tail": ("wgmma", (200, 136, 464), {**COOPERATIVE, "block_n": 64, "tile_scheduler": "stream_k"}, 64),
    "split-K": (
        "wgmma",
        (72, 64, 464),
        {
            **PINGPONG,
            "schedule": "cooperative",
            "consumer_warpgroups": 1,
            "split_k": 2,
            "persistent_blocks": 0,
            "epilogue": "registers",
        },
        64,
    ),
    "swapped operands": ("wgmma", (72, 200, 208), {**COOPERATIVE, "block_n": 72, "swap_operands": True}, 72),
    "staggered consumers": ("wgmma", (200, 136, 208), {**COOPERATIVE, "block_n": 136, "stagger": 1}, 136),
    "multistage": ("wgmma_multistage", (72, 64, 208), {"block_m": 64, "block_n": 64, "consumer_warpgroups": 1}, 64),
    "single-stage": ("wgmma_single_stage", (72, 64, 208), {"block_m": 64, "block_n": 64, "consumer_warpgroups": 1}, 64),
    "instructions": ("mma_sync", (40, 40, 208), WARPS, 0),
}


def text_of(sizes: tuple[int, int, int], c_type: str = "f32") -> str:
    return matmul_text(*sizes, a_type="f8E4M3FN", b_type="f8E4M3FN", b_layout="column", c_type=c_type, accumulate=False)


@pytest.mark.parametrize("name", CASES)
def test_numbers_on_the_emulator(name: str) -> None:
    pipeline, sizes, knobs, columns = CASES[name]
    with mlir_context():
        run = run_pipeline(text_of(sizes), "payload.mlir", Request(pipeline, {**knobs, "fast_accum": False}))
        emulation = Emulation(parse_payload(run.steps[-1].text, "last"), name="last")
    [promoted] = [step.text for step in run.steps if step.name == "promote_accumulators"]
    if columns:
        products = re.findall(r"nvgpu.warpgroup.mma [^\n]*memref<\d+x(\d+)xf8E4M3FN[^\n]*->", promoted)
        assert products and {int(found) for found in products} == {columns}
    assert run.matmul is not None
    problem, executor = run.matmul.problem, EmulatedExecutor(emulation, ROLES, count=False)
    for report in check_matmul(problem, matmul_program(problem), executor, 1, repeats=False):
        assert report.passed, report.describe()
    assert not executor.findings, executor.findings[0].render()


@pytest.mark.parametrize("pipeline", ["wgmma", "wgmma_multistage", "wgmma_single_stage", "mma_sync"])
@pytest.mark.parametrize("element, fast", [("f8E4M3FN", True), ("f16", False)])
def test_products_that_stay_in_the_tensor_core(pipeline: str, element: str, fast: bool) -> None:
    """With fast_accum, which is the default of the scripts, and of other types."""
    text = matmul_text(256, 256, 256, a_type=element, b_type=element, b_layout="column", accumulate=False)
    target = {"target": "sm_89", "block_k": 64} if pipeline == "mma_sync" else {}
    with mlir_context():
        steps = run_pipeline(text, "payload.mlir", Request(pipeline, {"fast_accum": fast, **target})).steps
        default = run_pipeline(text, "payload.mlir", Request(pipeline, target)).steps
    assert "promote_accumulators" not in {step.name for step in steps}
    assert steps[-1].text == default[-1].text


@pytest.mark.parametrize(
    "knobs, message",
    [
        ({"block_m": 256, "block_n": 144}, "accumulators must leave 4/9 of consumer_registers"),
        ({"block_m": 128, "block_n": 232}, "232 columns have no equal parts of 32 to 168: take a tile of other sizes"),
    ],
)
def test_tiles_without_registers_for_sums(knobs: dict[str, int], message: str) -> None:
    request = Request("wgmma", {"block_k": 64, "stages": 2, "fast_accum": False, **knobs})
    with mlir_context(), pytest.raises(StepladderError, match=message):
        run_pipeline(text_of((512, 512, 512)), "payload.mlir", request)


@pytest.mark.parametrize(
    "element, target, fast",
    [("f8E4M3FN", "sm_90a", False), ("f8E5M2", "sm_89", False), ("i8", "sm_90a", True), ("bf16", "sm_90a", True)],
)
def test_the_choice_of_compile(element: str, target: str, fast: bool) -> None:
    """Products of fp8 have sums of f32, unless the knob is set; the kernel does not spill."""
    sums = {"acc_type": "i32", "c_type": "i32"} if element == "i8" else {}
    text = matmul_text(512, 768, 1024, a_type=element, b_type=element, b_layout="column", accumulate=False, **sums)
    pipeline = "mma_sync" if target == "sm_89" else "wgmma"
    for given in ({}, {"fast_accum": True}):
        with mlir_context():
            built = build(text, "payload.mlir", Request(pipeline, {"target": target, **given}, tuned=True))
        assert built.manifest.knobs["fast_accum"] == (fast or bool(given))
        assert (built.code.spill_stores, built.code.spill_loads) == (0, 0)


@pytest.mark.parametrize("form", [(128, 256), (128, 224), (192, 160), (256, 128)])
def test_divided_products_do_not_spill(form: tuple[int, int]) -> None:
    block_m, block_n = form
    consumers = 3 if block_m == 192 else 2
    knobs = {"block_m": block_m, "block_n": block_n, "block_k": 128, "consumer_warpgroups": consumers, "stages": 3}
    with mlir_context():
        built = build(text_of((2048, 2048, 2048), "bf16"), "p.mlir", Request("wgmma", {**knobs, "fast_accum": False}))
    assert (built.code.spill_stores, built.code.spill_loads) == (0, 0)


def error_on_a_gpu(pipeline: str, target: str, fast_accum: bool, folder: Path) -> float:
    """Returns the norm of the error of a product of positive numbers, whose sums lose most bits, over its norm."""
    m, n, k = sizes = (256, 256, 16384)
    split = {"split_k": 1} if pipeline == "wgmma" else {}
    with mlir_context():
        request = Request(pipeline, {"target": target, "fast_accum": fast_accum, **split}, tuned=True)
        built = build(text_of(sizes), "payload.mlir", request)
    write_bundle(folder / "bundle", built.manifest, built.code.cubin, built.code.ptx, {})
    bundle = read_bundle(folder / "bundle")
    rng, dtype = np.random.default_rng(1), element_type("f8E4M3FN").dtype
    a, b = (rng.random((rows, k), np.float32).astype(dtype) for rows in (m, n))
    with Device() as device, MatmulBuffers(device, bundle.manifest.problem) as buffers:
        if device.capability != (9, 0):
            pytest.skip("the kernels need compute capability 9.0")
        executor = DeviceExecutor(buffers, buffers.launcher(device.load(bundle), bundle))
        executor.load(a, b)
        c = executor.launch(np.full((m, n), np.nan, np.float32))
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    return float(np.linalg.norm(c - expected) / np.linalg.norm(expected))


@pytest.mark.gpu
def test_sums_of_f32_on_a_gpu(tmp_path: Path) -> None:
    promoted, fast = (error_on_a_gpu("wgmma", "sm_90a", fast, tmp_path / str(fast)) for fast in (False, True))
    assert promoted < fast / 10


@pytest.mark.gpu
def test_mma_sync_sums_fp8_in_f32_on_hopper(tmp_path: Path) -> None:
    """Why `promote_accumulators` is for sm_89 alone in that pipeline."""
    assert error_on_a_gpu("mma_sync", "sm_90", True, tmp_path) < 2.0**-20
