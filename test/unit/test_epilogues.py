"""Elementwise ops on the product: every kind on every pipeline, right at the first, a middle and the last level.

STEPLADDER_TEST_SEED=S draws other random chains; STEPLADDER_RANDOM_EPILOGUES=N of them, and
STEPLADDER_TEST_PROFILE=random ten times as many.
"""

import contextlib
import os
import random
from collections.abc import Iterable

import numpy as np
import pytest

from combinations import combinations, sample
from conftest import examples
from epilogue_payloads import KINDS, Writer, payload, random_chain
from refused import refusal
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.payload import reference_export
from stepladder.payload.matmul import find_matmul
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.codegen.toolchain import find_tool
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import StepResult, run_pipeline
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.verify.check import check_matmul

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = int(os.environ.get("STEPLADDER_RANDOM_EPILOGUES", examples(30)))
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
TILES = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "persistent_blocks": 2}
DIRECT = {**TILES, "epilogue": "registers"}
SPLIT = {**DIRECT, "persistent_blocks": 0, "split_k": 2}
SIZES = {"wgmma": (72, 40, 72), "mma_sync": (64, 64, 64), "wmma": (64, 64, 64)}
PIPELINES = {
    "wgmma, TMA": ("wgmma", TILES),
    "wgmma, registers": ("wgmma", DIRECT),
    "mma_sync": ("mma_sync", WARPS),
    "wmma": ("wmma", WARPS),
}


def twice(values: Iterable) -> list:
    """Returns each value in two different cases, which `combinations` pairs with different settings."""
    return [(value, number) for value in values for number in range(2)]


def first_known(steps: Iterable[StepResult]) -> tuple[str, Emulation]:
    """Returns name and emulation of the first of some steps whose IR the emulator knows."""
    for step in steps:
        with contextlib.suppress(StepladderError):
            return step.name, Emulation(parse_payload(step.text, step.name))
    raise AssertionError("the emulator knows no IR")


def check(text: str, pipeline: str, knobs: dict, seed: int = 0, *, levels: str = "three") -> None:
    """Compiles a payload, runs the first IR, one in the middle and the last, and checks all numbers."""
    with mlir_context():
        run = run_pipeline(text, "payload.mlir", Request(pipeline, knobs))
        expected = reference_export.export(parse_payload(text, "payload.mlir"), run.matmul.roles)
        steps = list(run.steps)
        chosen = [first_known(reversed(steps))]
        assert chosen[0][0].startswith(("lower_to", "flush_denormals")), chosen[0][0]
        if levels == "three":
            chosen += [first_known(steps), first_known(steps[len(steps) // 2 :])]
        for name, emulation in chosen:
            executor = EmulatedExecutor(emulation, expected.roles, count=False)
            for report in check_matmul(run.matmul.problem, expected, executor, seed, repeats=False):
                assert report.passed, f"{name}: {report.describe()}\n{text}"
            assert not executor.findings, (name, [finding.render() for finding in executor.findings])


@pytest.mark.parametrize("case, where, stored", sample(combinations(twice(KINDS), PIPELINES, ("f32", "f16")), 3))
def test_right_on_every_pipeline(case: tuple[str, int], where: str, stored: str) -> None:
    kind, _ = case
    pipeline, knobs = PIPELINES[where]
    levels = "three" if stored == "f32" else "last"
    check(payload(kind, *SIZES[pipeline], stored=stored), pipeline, knobs, levels=levels)


# Pipeline, knobs, m, n and k, types and layouts
OTHERS = [
    ("wgmma", DIRECT, (65, 37, 32), {"columns": "b"}),
    ("wgmma", TILES, (1, 8, 8), {}),
    ("wgmma", {**SPLIT}, (72, 40, 80), {"inputs": "bf16"}),
    ("wgmma", {**SPLIT, "split_k_workspace": "memory"}, (64, 64, 64), {}),
    ("wgmma", {**TILES, "schedule": "pingpong"}, (128, 96, 64), {"stored": "bf16"}),
    ("wgmma", {**TILES, "cluster_m": 2}, (256, 64, 64), {}),
    ("wgmma_multistage", {key: TILES[key] for key in list(TILES)[:4]}, (72, 40, 72), {}),
    ("wgmma_single_stage", {key: TILES[key] for key in list(TILES)[:4]}, (72, 40, 72), {"stored": "f16"}),
    ("mma_sync", WARPS, (64, 32, 32), {"inputs": "bf16", "stored": "bf16", "columns": "ab"}),
    ("mma_sync", {**WARPS, "block_k": 16, "allow_tf32": True}, (32, 32, 64), {"inputs": "f32"}),
    ("mma_sync", WARPS, (33, 31, 40), {"columns": "b"}),
    ("mma_sync", WARPS, (40, 38, 33), {"stored": "f16"}),
    ("wmma", WARPS, (33, 37, 40), {}),
    ("wmma", {**WARPS, "prefetch": "cp_async", "stages": 3}, (40, 36, 68), {"columns": "a", "stored": "f16"}),
    ("wmma", {**WARPS, "prefetch": "cp_async", "stages": 3}, (64, 64, 96), {"stored": "f16"}),
    ("wmma", {**WARPS, "stages": 1}, (64, 64, 96), {}),
]
LONG_KINDS = ("bias_gelu", "many_operands", "add_transposed_matrix", "column_bias", "silu")


@pytest.mark.parametrize("case, kind", sample(combinations(twice(OTHERS), LONG_KINDS), 2))
def test_right_at_edges_and_with_other_knobs(
    case: tuple[tuple[str, dict[str, bool | int | str], tuple[int, int, int], dict[str, str]], int], kind: str
) -> None:
    pipeline, knobs, size, types = case[0]
    check(payload(kind, *size, **types), pipeline, knobs, levels="last")


@pytest.mark.parametrize("epilogue", ["tma", "registers"])
def test_blocks_of_a_cluster_beyond_c_read_no_operand(epilogue: str) -> None:
    """Two clusters of four tiles in a row, of which C has five."""
    knobs = {"block_m": 64, "block_n": 16, "consumer_warpgroups": 1, "cluster_n": 4, "stages": 2}
    check(payload("add_matrix", 13, 72, 32), "wgmma", {**knobs, "epilogue": epilogue}, levels="last")


def test_a_warpgroup_beyond_c_reads_no_c() -> None:
    """C is read where it is stored: only the warpgroup that stores its last row reads there, for its rows beyond C."""
    text = matmul_text(40, 104, 32, a_type="bf16", b_type="bf16", c_type="bf16", accumulate=True)
    knobs = {"block_m": 128, "block_n": 128, "consumer_warpgroups": 2, "stages": 2, "epilogue": "tma"}
    check(text, "wgmma", knobs, levels="last")


BATCH = """func.func @matmul(%A: tensor<2x64x128xf16>, %B: tensor<2x128x64xf16>, %D: tensor<64x64xf16>)
    -> tensor<2x64x64xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %p = linalg.batch_matmul ins(%A, %B : tensor<2x64x128xf16>, tensor<2x128x64xf16>) outs(%z : tensor<2x64x64xf32>)
      -> tensor<2x64x64xf32>
  %o = tensor.empty() : tensor<2x64x64xf16>
  %q = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (i, j)>,
      affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %D : tensor<2x64x64xf32>, tensor<64x64xf16>) outs(%o : tensor<2x64x64xf16>) {
  ^bb0(%x: f32, %d: f16, %out: f16):
    %w = arith.extf %d : f16 to f32
    %y = arith.addf %x, %w : f32
    %r = arith.truncf %y : f32 to f16
    linalg.yield %r : f16
  } -> tensor<2x64x64xf16>
  return %q : tensor<2x64x64xf16>
}
"""


@pytest.mark.parametrize("text, hint", [(payload("add_matrix", 64, 64, 128), True), (BATCH, False)])
def test_copies_of_a_matrix_that_is_read_once_are_evicted_first(text: str, hint: bool) -> None:
    """All matmuls of a batch may read one matrix."""
    with mlir_context():
        last = list(run_pipeline(text, "payload.mlir", Request("wgmma", {**TILES, "persistent_blocks": 0})).steps)[-1]
    copies = [line for line in last.text.splitlines() if "cp.async" in line and ", 16" in line]
    assert copies and all(("L2::cache_hint" in line) == hint for line in copies)


IN_PLACE = """func.func @matmul(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.matmul ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%C : memref<64x64xf32>) outs(%C : memref<64x64xf32>) {
  ^bb0(%x: f32, %y: f32):
    %v = arith.maximumf %x, %zero : f32
    linalg.yield %v : f32
  }
  return
}
"""
STARTS_FROM_A_MATRIX = """func.func @matmul(%A: tensor<64x64xf16>, %B: tensor<64x64xf16>, %D: tensor<64x64xf32>)
    -> tensor<64x64xf16> {
  %p = linalg.matmul ins(%A, %B : tensor<64x64xf16>, tensor<64x64xf16>) outs(%D : tensor<64x64xf32>)
      -> tensor<64x64xf32>
  %e = tensor.empty() : tensor<64x64xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x64xf32>) outs(%e : tensor<64x64xf16>) {
  ^bb0(%x: f32, %y: f16):
    %v = arith.truncf %x : f32 to f16
    linalg.yield %v : f16
  } -> tensor<64x64xf16>
  return %r : tensor<64x64xf16>
}
"""
READS_C = """func.func @matmul(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x64xf16> to tensor<64x64xf16>
  %b = bufferization.to_tensor %B restrict : memref<64x64xf16> to tensor<64x64xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x64xf32> to tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>) outs(%z : tensor<64x64xf32>)
      -> tensor<64x64xf32>
  %m = linalg.mul ins(%p, %c : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.tanh ins(%m : tensor<64x64xf32>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %C : (tensor<64x64xf32>, memref<64x64xf32>) -> ()
  return
}
"""


@pytest.mark.parametrize("where", PIPELINES)
@pytest.mark.parametrize("text", [IN_PLACE, STARTS_FROM_A_MATRIX, READS_C])
def test_c_and_other_matrices_that_the_sums_start_from(text: str, where: str) -> None:
    check(text, *PIPELINES[where])


SUMS_IN_BF16 = """func.func @matmul(%A: tensor<72x40xbf16>, %B: tensor<40x88xbf16>, %C: tensor<72x88xbf16>)
    -> tensor<72x88xbf16> {
  %p = linalg.matmul ins(%A, %B : tensor<72x40xbf16>, tensor<40x88xbf16>) outs(%C : tensor<72x88xbf16>)
      -> tensor<72x88xbf16>
  return %p : tensor<72x88xbf16>
}
"""
EXTENDED_START = """#id = affine_map<(i, j) -> (i, j)>
func.func @matmul(%A: tensor<72x40xf16>, %B: tensor<40x88xf16>, %C: tensor<72x88xf16>) -> tensor<72x88xf16> {
  %e = tensor.empty() : tensor<72x88xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%C : tensor<72x88xf16>) outs(%e : tensor<72x88xf32>) {
  ^bb0(%x: f16, %y: f32):
    %v = arith.extf %x : f16 to f32
    linalg.yield %v : f32
  } -> tensor<72x88xf32>
  %p = linalg.matmul ins(%A, %B : tensor<72x40xf16>, tensor<40x88xf16>) outs(%w : tensor<72x88xf32>)
      -> tensor<72x88xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<72x88xf32>) outs(%C : tensor<72x88xf16>) {
  ^bb0(%x: f32, %y: f16):
    %v = arith.truncf %x : f32 to f16
    linalg.yield %v : f16
  } -> tensor<72x88xf16>
  return %r : tensor<72x88xf16>
}
"""
# The result is another tensor than that which the sums start from: an operand of the epilogue.
EXTENDED_OPERAND = EXTENDED_START.replace("outs(%C : tensor<72x88xf16>) {", "outs(%o : tensor<72x88xf16>) {").replace(
    "  %w =", "  %o = tensor.empty() : tensor<72x88xf16>\n  %w =", 1
)


BF16_WITH_C = matmul_text(65, 40, 40, a_type="bf16", b_type="bf16", c_type="bf16")


@pytest.mark.parametrize(
    "text, knobs",
    [
        pytest.param(BF16_WITH_C, TILES, id="bf16, TMA"),
        pytest.param(BF16_WITH_C, DIRECT, id="bf16, registers"),
        pytest.param(BF16_WITH_C, SPLIT, id="bf16, split-K"),
        pytest.param(matmul_text(72, 40, 40, c_type="f16", a_layout="column"), TILES, id="f16"),
        pytest.param(EXTENDED_START, TILES, id="extended start"),
        pytest.param(EXTENDED_OPERAND, DIRECT, id="extended operand"),
    ],
)
def test_c_of_16_bits_is_added_and_rounded_once(text: str, knobs: dict[str, int | str]) -> None:
    check(text, "wgmma", knobs, levels="last")


@pytest.mark.parametrize("text", [SUMS_IN_BF16, EXTENDED_START, matmul_text(72, 88, 40, c_type="f16")])
def test_c_of_16_bits_is_one_problem_however_it_is_written(text: str) -> None:
    with mlir_context():
        problem = find_matmul(parse_payload(text, "payload.mlir")).problem
    assert problem.accumulate and problem.acc_type == "f32" and not problem.consumers
    assert problem.c_type in ("f16", "bf16") and not problem.epilogue_operands


def test_rounding_once_is_nearer_than_rounding_sums_and_then_c() -> None:
    """1 + 2^-8 + 2^-8 in bf16: sums that are rounded before C is added give 1, and rounding once gives 1 + 2^-7."""
    text = matmul_text(64, 32, 32, a_type="bf16", b_type="bf16", c_type="bf16")
    with mlir_context():
        run = run_pipeline(text, "payload.mlir", Request("wgmma", DIRECT))
        executor = EmulatedExecutor(Emulation(parse_payload(run.steps[-1].text, "last")), run.matmul.roles, count=False)
        bf16 = element_type("bf16").dtype
        a, b = np.zeros((64, 32), bf16), np.zeros((32, 32), bf16)
        a[:, :2], b[0], b[1] = 1, 1, 2.0**-8
        executor.load(a, b)
        got = executor.launch(np.full((64, 32), 2.0**-8, bf16))
    assert (got.astype(np.float32) == 1 + 2.0**-7).all()


@pytest.mark.parametrize("part", range(5))
def test_random_chains(part: int) -> None:
    """Chains of up to six ops, of drawn types, layouts and sizes."""
    for number in range(part, COUNT, 5):
        drawn = random.Random(SEED * 1_000_003 + number)
        pipeline, knobs = list(PIPELINES.values())[number % len(PIPELINES)]
        size = [drawn.choice([32, 64, 96]) for _ in "mnk"]
        if pipeline == "wgmma":
            size = [drawn.choice([8, 24, 64, 72, 136]) for _ in "mnk"]
        inputs = drawn.choice(["f16", "bf16", "f16"])
        columns = drawn.choice(["", "a", "b", "ab"])
        writer = Writer(*size, inputs=inputs, stored=drawn.choice(["f32", "f16", "bf16"]), columns=columns)
        text = writer.text(random_chain(writer, drawn))
        check(text, pipeline, knobs, number, levels="last")


def changed(before: str, after: str, kind: str = "row_bias") -> str:
    text = payload(kind, 64, 64, 64)
    assert before in text
    return text.replace(before, after)


def _returned_mask() -> str:
    writer = Writer(64, 64, 64)
    zero = writer.number(0)
    mask = writer.unary(writer.product(), f"%r = arith.cmpf ogt, %x0, {zero} : f32", type_="i1")
    writer.sums = writer.stored = "i1"
    return writer.text(mask)


REFUSED = {
    "dynamic": (payload("row_bias", 64, 64, 64).replace("tensor<64xf32>", "tensor<?xf32>"), "shapes must be static"),
    "mask": (_returned_mask(), "accepted element types"),
    "index": (
        changed(
            "%r = arith.addf %x0, %x1 : f32",
            "%i = linalg.index 0 : index\n %k = arith.shli %i, %i : index\n %j = arith.index_cast %k : index to i32\n"
            " %f = arith.sitofp %j : i32 to f32\n %r = arith.addf %x0, %f : f32",
        ),
        "'linalg.index' in linalg.generic",
    ),
    "wide": (
        changed(
            "%r = arith.addf %x0, %x1 : f32",
            "%i = arith.fptosi %x0 : f32 to i32\n %l, %h = arith.mulsi_extended %i, %i : i32\n"
            " %r = arith.sitofp %h : i32 to f32",
        ),
        "'arith.mulsi_extended' in linalg.generic",
    ),
    "f64": (
        payload("add_matrix", 64, 64, 64)
        .replace("%d0: tensor<64x64xf32>", "%d0: tensor<64x64xf64>")
        .replace("tensor<64x64xf32>, tensor<64x64xf32>) outs", "tensor<64x64xf32>, tensor<64x64xf64>) outs")
        .replace("%x1: f32", "%x1: f64")
        .replace("%r = arith.addf %x0, %x1", "%y = arith.truncf %x1 : f64 to f32\n %r = arith.addf %x0, %y"),
        "accepted element types",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_one_message(name: str) -> None:
    notes = refusal(*REFUSED[name]).notes
    assert notes[0].startswith("accepted: static shapes, or sizes by --bind" if name == "dynamic" else "accepted")


def test_stream_k_is_refused() -> None:
    knobs = {**TILES, "tile_scheduler": "stream_k"}
    with mlir_context(), pytest.raises(StepladderError, match="does not support elementwise ops"):
        run_pipeline(payload("relu", 64, 64, 64), "payload.mlir", Request("wgmma", knobs))


def test_the_problem_names_ops_and_operands() -> None:
    with mlir_context():
        problem = find_matmul(parse_payload(payload("bias_relu", 64, 32, 16, stored="f16"), "payload.mlir")).problem
    assert problem.describe() == (
        "C = f(AB), 64 x 32 x 16, f16 x f16 -> f16 (f32 accumulation), f: addf, maximumf, truncf with D0 (32xf32)"
    )


OVERFLOWS = """func.func @f(%A: tensor<32x32xf16>, %B: tensor<32x32xf16>) -> tensor<32x32xf16> {
  %zero = arith.constant 0.0 : f16
  %large = arith.constant 60000.0 : f16
  %e = tensor.empty() : tensor<32x32xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<32x32xf16>) -> tensor<32x32xf16>
  %p = linalg.matmul ins(%A, %B : tensor<32x32xf16>, tensor<32x32xf16>) outs(%z : tensor<32x32xf16>)
      -> tensor<32x32xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x32xf16>) outs(%e : tensor<32x32xf16>) {
  ^bb0(%x: f16, %y: f16):
    %s = arith.mulf %x, %large : f16
    %n = arith.mulf %s, %s : f16
    %w = math.exp %n : f16
    linalg.yield %w : f16
  } -> tensor<32x32xf16>
  return %r : tensor<32x32xf16>
}"""


def test_a_check_that_compares_nothing_says_so() -> None:
    with mlir_context():
        module = parse_payload(OVERFLOWS, "payload.mlir")
        found = find_matmul(module)
        expected = reference_export.export(module, found.roles)
        executor = EmulatedExecutor(Emulation(module), expected.roles, count=False)
        _, random_check = check_matmul(found.problem, expected, executor, 0, repeats=False)
    assert not random_check.passed and "nothing of C could be compared" in random_check.describe()


@pytest.mark.parametrize("pipeline", ["wgmma", "mma_sync", "wmma"])
def test_bias_and_gelu_do_not_spill(pipeline: str) -> None:
    find_tool("ptxas")
    with mlir_context():
        built = build(payload("bias_gelu", 4096, 4096, 4096, stored="f16"), "payload.mlir", Request(pipeline))
    assert (built.code.spill_stores, built.code.spill_loads) == (0, 0)
    assert [item.role for item in built.manifest.arguments].count("d0") == 1
