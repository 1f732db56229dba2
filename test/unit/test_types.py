"""Element types beside f16: what kernels compute of them on the emulator, and how far off they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepladder
from combinations import SEED, combinations, sample
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import ROLES, EmulatedExecutor, check_steps
from stepladder.emulator.step_report import StepReport
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import matmul_program
from stepladder.verify.check import check_matmul

WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}


def executor_of(text: str, request: Request) -> tuple[Problem, EmulatedExecutor]:
    """Returns what a pipeline computes of a payload, and the kernel of its last step that can be run."""
    with mlir_context():
        run = run_pipeline(text, "payload.mlir", request)
        emulation = Emulation(parse_payload(run.steps[-1].text, "last"), name="last")
    assert run.matmul is not None
    return run.matmul.problem, EmulatedExecutor(emulation, ROLES, count=False)


def check_numbers(text: str, request: Request) -> Problem:
    """Checks a kernel as `stepladder run` does."""
    problem, executor = executor_of(text, request)
    for report in check_matmul(problem, matmul_program(problem), executor, SEED, repeats=False):
        assert report.passed, report.describe()
    assert not executor.findings, executor.findings[0].render()
    return problem


def norm_error(got: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


WARPGROUP = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "stages": 2}


IN_REGISTERS = {**WARPGROUP, "split_f32": "registers"}


@pytest.mark.parametrize("pipeline, tile", [("mma_sync", WARPS), ("wgmma", WARPGROUP), ("wgmma", IN_REGISTERS)])
@pytest.mark.parametrize("distribution", ["standard_normal", "random"])
def test_f32_has_the_accuracy_of_f32(distribution: str, pipeline: str, tile: dict[str, int]) -> None:
    """At most twice as far off as NumPy's product in f32, and with allow_tf32 a thousand times as far."""
    k = 256
    text = matmul_text(32, 32, k, a_type="f32", b_type="f32", accumulate=False)
    draw = getattr(np.random.default_rng(SEED), distribution)
    a, b = draw((32, k), dtype=np.float32), draw((k, 32), dtype=np.float32)
    errors = {}
    for allow in (False, True):
        problem, executor = executor_of(text, Request(pipeline, {**tile, "allow_tf32": allow}))
        assert problem.compute_type == ("tf32" if allow else "f32")
        executor.load(a, b)
        errors[allow] = norm_error(executor.launch(np.full((32, 32), np.nan, np.float32)), a, b)
    # NumPy adds in several sums: one sum after the other is what a kernel without tensor cores does.
    in_f32 = np.add.accumulate([np.multiply.outer(a[:, i], b[i]) for i in range(k)], dtype=np.float32)[-1]
    limit = 2 * min(norm_error(in_f32, a, b), max(norm_error(a @ b, a, b), 2.0**-24))
    assert errors[False] <= limit < errors[True] / 100


def test_f64_arrays() -> None:
    a, b = np.random.default_rng(SEED).standard_normal((2, 32, 32))
    got = stepladder.matmul(a, b, device="emulator", **{**WARPS, "block_k": 16})
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, a @ b, rtol=0, atol=1e-12)


def test_f32_arrays() -> None:
    a, b = np.random.default_rng(SEED).standard_normal((2, 64, 64), np.float32)
    assert norm_error(stepladder.matmul(a, b, device="emulator", **WARPS), a, b) < 2.0**-20


IN_REGISTERS = {**WARPGROUP, "split_f32": "registers"}


@pytest.mark.parametrize("pipeline, tile", [("mma_sync", WARPS), ("wgmma", WARPGROUP), ("wgmma", IN_REGISTERS)])
def test_f32_of_all_magnitudes(pipeline: str, tile: dict[str, int]) -> None:
    """Numbers whose small parts are subnormal, or zero, and sums that cancel."""
    rng = np.random.default_rng(SEED)
    a = np.ldexp(rng.standard_normal((32, 64)), rng.integers(-130, 100, (32, 1))).astype(np.float32)
    b = np.ldexp(rng.standard_normal((64, 32)), rng.integers(-10, 20, (1, 32))).astype(np.float32)
    text = matmul_text(32, 32, 64, a_type="f32", b_type="f32", accumulate=False)
    _, executor = executor_of(text, Request(pipeline, tile))
    executor.load(a, b)
    got = executor.launch(np.zeros((32, 32), np.float32))
    wide = a.astype(np.float64), b.astype(np.float64)
    scale = np.sqrt(wide[0] ** 2 @ wide[1] ** 2)
    assert (np.abs(got - wide[0] @ wide[1]) <= 2.0**-19 * scale + 64 * 2.0**-126 * np.abs(wide[1]).max()).all()


@pytest.mark.parametrize("a_layout, b_layout", [("row", "row"), ("column", "column")])
def test_f32_is_within_its_tolerance(a_layout: str, b_layout: str) -> None:
    text = matmul_text(64, 32, 96, a_type="f32", b_type="f32", a_layout=a_layout, b_layout=b_layout)
    assert check_numbers(text, Request("mma_sync", WARPS)).compute_type == "f32"


# Splits of k, clusters, the stream-K tail, ping-pong, odd pitches, batches.
SPLIT_F32 = [
    ((128, 64, 96), {"cluster_m": 2}, {"b_layout": "column"}),
    ((128, 64, 96), {"cluster_n": 2, "epilogue": "registers"}, {"a_layout": "column", "accumulate": False}),
    ((67, 33, 29), {"epilogue": "registers"}, {"b_layout": "column"}),
    ((136, 32, 130), {"persistent_blocks": 2, "tile_scheduler": "stream_k"}, {"accumulate": False}),
    ((192, 64, 96), {"persistent_blocks": 2, "schedule": "pingpong"}, {}),
    ((64, 32, 96), {"split_k": 2, "persistent_blocks": 0, "epilogue": "registers"}, {"accumulate": False}),
    ((66, 36, 50), {"epilogue": "registers"}, {"batch": 2, "broadcast": "b"}),
    ((16, 64, 40), {"swap_operands": True}, {"accumulate": False}),
]
# One step of the k loop: tiles at constant places, of several boxes.
ONE_STEP = ((40, 40, 24), {"block_k": 64, "persistent_blocks": 0, "epilogue": "registers"}, {"b_layout": "column"})


@pytest.mark.parametrize("shape, knobs, form", [*sample(SPLIT_F32, 3), ONE_STEP])
def test_f32_in_every_form_of_wgmma(
    shape: tuple[int, int, int], knobs: dict[str, int | str], form: dict[str, bool | int | str]
) -> None:
    """Each step is right, and the last within the tolerance of f32."""
    text = matmul_text(*shape, a_type="f32", b_type="f32", **form)
    request = Request("wgmma", {**WARPGROUP, **knobs})
    reports: list[StepReport] = []
    with mlir_context():
        check_steps(text, "payload.mlir", request, reports.append)
    assert all(report.passed is not False for report in reports), [report.step for report in reports]
    assert next(report for report in reports if report.step == "split_into_tf32").passed
    assert check_numbers(text, request).compute_type == "f32"


def test_one_buffer_is_split_once() -> None:
    text = matmul_text(64, 64, 32, a_type="f32", b_type="f32", b_layout="column", accumulate=False)
    text = text.replace(", %B: memref<64x32xf32>", "").replace("%B", "%A")
    reports: list[StepReport] = []
    with mlir_context():
        run = run_pipeline(text, "payload.mlir", Request("wgmma", WARPGROUP))
        check_steps(text, "payload.mlir", Request("wgmma", WARPGROUP), reports.append)
    split = next(step.text for step in run.steps if step.name == "split_into_tf32")
    assert split.count("{workspace}") == 3 and split.count("nvgpu.tma.create.descriptor") == 4
    assert all(report.passed is not False for report in reports), [report.step for report in reports]


LAYOUTS = [(a, b) for a in ("row", "column") for b in ("row", "column")]
TILES = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "persistent_blocks": 2}
ALONE = {"persistent_blocks": 0, "epilogue": "registers"}
SHAPES = [(33, 72, 50), (72, 40, 96), (130, 64, 77)]
FORMS = [
    {},
    {"epilogue": "registers"},
    {**ALONE, "split_k": 2, "split_k_workspace": "memory"},
    {"block_m": 128, "consumer_warpgroups": 2},
]
# Types of A and B, of the accumulators, of C.
ON_WGMMA = [
    ("i8", "i8", "i32", "i32"),
    ("f8E4M3FN", "f8E4M3FN", "f32", "f16"),
    ("f8E5M2", "f8E4M3FN", "f32", "f32"),
    ("f32", "f32", "f32", "f32"),
]


def typed(m: int, n: int, k: int, types: tuple[str, ...], layouts: tuple[str, str]) -> str:
    """Returns a matmul; A and B may be of two types, where their buffers have different extents."""
    a_type, b_type, acc_type, c_type = types
    text = matmul_text(
        m,
        n,
        k,
        a_type=a_type,
        b_type=a_type,
        acc_type=acc_type,
        c_type=c_type,
        a_layout=layouts[0],
        b_layout=layouts[1],
        accumulate=c_type == acc_type,
    )
    extents = f"{k}x{n}" if layouts[1] == "row" else f"{n}x{k}"
    return text.replace(f"<{extents}x{a_type}>", f"<{extents}x{b_type}>")


FP8_WARPS = {**WARPS, "block_k": 64, "target": "sm_89"}
ON_MMA_SYNC = [
    (("f64", "f64", "f64", "f64"), {**WARPS, "block_k": 16}),
    (("f8E4M3FN", "f8E4M3FN", "f32", "f32"), FP8_WARPS),
    (("f8E5M2", "f8E5M2", "f32", "bf16"), FP8_WARPS),
]


@pytest.mark.parametrize("types, layouts", combinations(ON_MMA_SYNC, LAYOUTS))
def test_types_in_all_layouts_on_mma_sync(
    types: tuple[tuple[str, str, str, str], dict[str, int | str]], layouts: tuple[str, str]
) -> None:
    check_numbers(typed(64, 32, 128, types[0], layouts), Request("mma_sync", types[1]))


ON_WMMA = [("i8", "i8", "i32", "i32"), ("bf16", "bf16", "f32", "f32"), ("bf16", "bf16", "f32", "bf16")]


@pytest.mark.parametrize(
    "types, layouts, knobs", combinations(ON_WMMA, LAYOUTS, [{"prefetch": "cp_async", "stages": 3}, {}])
)
def test_types_in_all_layouts_on_wmma(
    types: tuple[str, str, str, str], layouts: tuple[str, str], knobs: dict[str, int | str]
) -> None:
    check_numbers(typed(64, 32, 128, types, layouts), Request("wmma", {**WARPS, "block_k": 64, **knobs}))


@pytest.mark.gpu
@pytest.mark.parametrize("types, layouts, size", combinations(ON_WMMA, LAYOUTS, [(256, 256, 128), (100, 76, 89)]))
def test_wmma_on_a_gpu(
    types: tuple[str, str, str, str], layouts: tuple[str, str], size: tuple[int, int, int], tmp_path: Path
) -> None:
    with mlir_context():
        build(typed(*size, types, layouts), "payload.mlir", Request("wmma", tuned=True)).write(str(tmp_path / "bundle"))
    bundle = read_bundle(tmp_path / "bundle")
    problem = bundle.manifest.problem
    with Device() as device, MatmulBuffers(device, problem) as buffers:
        executor = DeviceExecutor(buffers, buffers.launcher(device.load(bundle), bundle))
        for report in check_matmul(problem, bundle.expected(), executor, SEED):
            assert report.passed, report.describe()


def test_bf16_of_a_dump_of_wmma() -> None:
    """A pipeline that begins between the mark and the instructions makes the same of it, and sm_75 has none."""
    text = typed(64, 32, 64, ("bf16", "bf16", "f32", "f32"), ("row", "row"))
    with mlir_context():
        whole = run_pipeline(text, "payload.mlir", Request("wmma", WARPS))
        steps = {step.name: step.text for step in whole.steps}
        for first in ("load_bf16_as_f16", "convert_to_wmma", "multiply_as_bf16"):
            before = list(steps)[list(steps).index(first) - 1]
            rest = run_pipeline(steps[before], "dump.mlir", Request("wmma", WARPS, start=first))
            assert rest.steps[-1].text == whole.steps[-1].text
        with pytest.raises(StepladderError, match="operands of bf16 require target sm_80 or later"):
            run_pipeline(text, "payload.mlir", Request("wmma", {**WARPS, "target": "sm_75"}))
    assert "wmma.m16n16k16.mma.row.row.bf16" in whole.steps[-1].text


@pytest.mark.parametrize(
    "pipeline, types, knobs, message",
    [
        ("mma_sync", ("f8E4M3FN", "f8E4M3FN", "f32", "f32"), {}, "operands of fp8 require target sm_89 or later"),
        ("mma_sync", ("f8E5M2", "f8E4M3FN", "f32", "f32"), {"target": "sm_90"}, "wgmma also multiplies f8E4M3FN by"),
        ("mma_sync", ("f64", "f64", "f64", "f64"), {"allow_tf32": True}, None),
        ("wmma", ("f32", "f32", "f32", "f32"), {}, "A and B must have the same element type: f16, bf16 or i8"),
        (
            "wgmma",
            ("f64", "f64", "f64", "f64"),
            {},
            "the element type of A must be f16, bf16, f32, f8E4M3FN, f8E5M2 or i8",
        ),
        ("wgmma", ("i8", "i8", "i32", "i32"), {"block_n": 40}, "a multiple of 8 up to 32, or of 16 above"),
    ],
)
def test_other_types_are_refused_by_name(
    pipeline: str, types: tuple[str, str, str, str], knobs: dict[str, bool | int | str], message: str | None
) -> None:
    text = typed(128, 64, 128, types, ("row", "column"))
    tiles = {**WARPS, "block_k": 64} if pipeline != "wgmma" else TILES
    with mlir_context():
        if message is None:
            run_pipeline(text, "payload.mlir", Request(pipeline, {**tiles, **knobs}))
            return
        with pytest.raises(StepladderError, match=message) as caught:
            run_pipeline(text, "payload.mlir", Request(pipeline, {**tiles, **knobs}))
    assert caught.value.location.startswith("payload.mlir:")


@pytest.mark.parametrize("types, layouts, shape, form", combinations(ON_WGMMA, LAYOUTS, SHAPES, FORMS))
def test_types_in_all_layouts_on_wgmma(
    types: tuple[str, str, str, str], layouts: tuple[str, str], shape: tuple[int, int, int], form: dict[str, int | str]
) -> None:
    """Operands that wgmma reads along k only are transposed in front."""
    if types[0] == "f32":
        form = {**form, "allow_tf32": True}
    check_numbers(typed(*shape, types, layouts), Request("wgmma", {**TILES, **form}))
