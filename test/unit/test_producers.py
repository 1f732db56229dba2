"""Elementwise ops that make A and B: right at every step, rounded where the payload rounds, or refused.

STEPLADDER_TEST_PROFILE=random runs many more payloads.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from combinations import SEED
from conftest import PROFILE, some_steps
from emulator_ops import run
from producer_payloads import ProducerPayload
from stepladder.emulator.matmul import EmulatedExecutor, check_steps, lowest
from stepladder.extension.lib import narrow_floats
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import reference_export
from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.errors import BAD_INPUT, StepladderError
from stepladder.verify import arrays
from stepladder.verify.check import check_matmul
from stepladder.verify.error_propagation import BoundedEvaluation
from stepladder.verify.reference_evaluation import Evaluation

WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
WARPGROUP = {
    "block_m": 64,
    "block_n": 32,
    "block_k": 32,
    "consumer_warpgroups": 1,
    "persistent_blocks": 2,
    "epilogue": "registers",
}
PIPELINES = {"wmma": WARPS, "mma_sync": WARPS, "wgmma": WARPGROUP}
COUNT = 60 if PROFILE == "random" else 1


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_right_at_some_steps(pipeline: str, number: int) -> None:
    sums = "f16" if pipeline == "wmma" and number % 2 else "f32"
    payload = ProducerPayload(1000 * SEED + 7 * number + list(PIPELINES).index(pipeline), sums)
    reports = []
    with mlir_context():
        request, chosen = Request(pipeline, PIPELINES[pipeline]), some_steps(pipeline, number)
        check_steps(payload.text, "f.mlir", request, reports.append, is_chosen_step=chosen)
    wrong = [report for report in reports if report.passed is False or report.findings]
    assert not wrong, f"{payload.text}\n{payload.kinds}\n{wrong}"
    assert sum(report.passed is not None for report in reports) > (10 if PROFILE == "random" else 5)


def test_a_bundle_has_the_kernels_in_front(tmp_path: Path) -> None:
    """Both operands are prepared, and rows of B are no multiple of 16 bytes: three kernels in front."""
    text = """func.func @f(%a: tensor<64x40xf32>, %q: tensor<40x33xi8>, %s: tensor<33xf16> {my.name = 1})
    -> tensor<64x33xf32> {
  %zero = arith.constant 0.0 : f32
  %a_e = tensor.empty() : tensor<64x40xf16>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64x40xf32>) outs(%a_e : tensor<64x40xf16>) {
  ^bb0(%in: f32, %out: f16):
    %r = arith.truncf %in : f32 to f16
    linalg.yield %r : f16
  } -> tensor<64x40xf16>
  %b_e = tensor.empty() : tensor<40x33xf16>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<40x33xi8>, tensor<33xf16>) outs(%b_e : tensor<40x33xf16>) {
  ^bb0(%in: i8, %scale: f16, %out: f16):
    %f = arith.sitofp %in : i8 to f16
    %r = arith.mulf %f, %scale : f16
    linalg.yield %r : f16
  } -> tensor<40x33xf16>
  %e = tensor.empty() : tensor<64x33xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<64x33xf32>) -> tensor<64x33xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x40xf16>, tensor<40x33xf16>) outs(%start : tensor<64x33xf32>)
      -> tensor<64x33xf32>
  return %p : tensor<64x33xf32>
}
"""
    with mlir_context():
        try:
            build(text, "f.mlir", Request("wgmma", WARPGROUP)).write(str(tmp_path / "f"))
        except StepladderError as error:
            pytest.skip(error.message)
        bundle = read_bundle(tmp_path / "f")
        problem = bundle.manifest.problem
        assert problem.describe().endswith(
            "A prepared from 64x40xf32, B prepared from 40x33xi8 by truncf, sitofp, mulf with D0 (33xf16)"
        )
        front = [[(item.role, item.access) for item in kernel.arguments] for kernel in bundle.manifest.front]
        assert front == [
            [("a", "read"), ("w0", "write")],
            [("b", "read"), ("d0", "read"), ("w1", "write")],
            [("w1", "read"), ("w2", "write")],
        ]
        assert {argument.role for argument in bundle.manifest.arguments} == {"w0", "w2", "c"}
        _, emulation, roles = lowest(bundle)
        executor = EmulatedExecutor(emulation, roles, count=False)
        reports = check_matmul(problem, bundle.expected(), executor, 3, repeats=False)
        assert [report.describe() for report in reports if not report.passed] == [] and not executor.findings


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_the_reference_rounds_what_makes_an_operand(name: str) -> None:
    """Each op on numbers of 16 bits is rounded, so that a sum of products has the errors of the product alone."""
    text = f"""func.func @f(%A: tensor<4x8x{name}>, %s: tensor<8x{name}>, %B: tensor<8x4x{name}>) -> tensor<4x4xf32> {{
  %zero = arith.constant 0.0 : f32
  %a_e = tensor.empty() : tensor<4x8x{name}>
  %a = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%A, %s : tensor<4x8x{name}>, tensor<8x{name}>) outs(%a_e : tensor<4x8x{name}>) {{
  ^bb0(%x: {name}, %scale: {name}, %out: {name}):
    %y = arith.mulf %x, %scale : {name}
    %r = arith.addf %y, %x : {name}
    linalg.yield %r : {name}
  }} -> tensor<4x8x{name}>
  %e = tensor.empty() : tensor<4x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = linalg.matmul ins(%a, %B : tensor<4x8x{name}>, tensor<8x4x{name}>) outs(%start : tensor<4x4xf32>)
      -> tensor<4x4xf32>
  return %p : tensor<4x4xf32>
}}
"""
    with mlir_context():
        module = parse_payload(text, "f.mlir")
        program = reference_export.export(module, find_matmul(module).roles)
    type_ = np.dtype(np.float16 if name == "f16" else ml_dtypes.bfloat16)
    generator = np.random.default_rng(SEED)
    a, s, b = (generator.standard_normal(shape).astype(type_) for shape in ((4, 8), (8,), (8, 4)))
    evaluation = BoundedEvaluation(program, {0: a, 1: s, 2: b}, arrays.NumPyArrays(), lambda region: None)
    expected = (a * s + a).astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(evaluation.whole(program.output("c")), expected, rtol=1e-13)


HEAD = """#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @f(%A: memref<32x64xf16>, %S: memref<32xf16>, %B: memref<64x32xf16>, %C: memref<32x32xf32>) {
  %e = tensor.empty() : tensor<32x64xf16>
  %x = bufferization.to_tensor %A restrict : memref<32x64xf16> to tensor<32x64xf16>
"""
TAIL = """
  %b = bufferization.to_tensor %B restrict : memref<64x32xf16> to tensor<64x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<32x32xf32> to tensor<32x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x32xf16>) outs(%c : tensor<32x32xf32>)
      -> tensor<32x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %C : (tensor<32x32xf32>, memref<32x32xf32>) -> ()
  return
}
"""
GENERIC = """  %a = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<32x64xf16>) outs(%e : tensor<32x64xf16>) {
  ^bb0(%v: f16, %o: f16):
    %r = BODY
    linalg.yield %r : f16
  } -> tensor<32x64xf16>"""
PAD = """  %a = tensor.pad %x low[0, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    %z = arith.constant 0.0 : f16
    tensor.yield %z : f16
  } : tensor<32x64xf16> to tensor<32x64xf16>
  %d = linalg.abs ins(%a : tensor<32x64xf16>) outs(%e : tensor<32x64xf16>) -> tensor<32x64xf16>"""
WRITTEN = """  bufferization.materialize_in_destination %x in restrict writable %A
      : (tensor<32x64xf16>, memref<32x64xf16>) -> ()
  %y = bufferization.to_tensor %A restrict : memref<32x64xf16> to tensor<32x64xf16>
  %a = linalg.abs ins(%y : tensor<32x64xf16>) outs(%e : tensor<32x64xf16>) -> tensor<32x64xf16>"""
FP8 = """  %q = tensor.empty() : tensor<32x64xf8E4M3FN>
  %a = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<32x64xf8E4M3FN>) outs(%e : tensor<32x64xf16>) {
  ^bb0(%v: f8E4M3FN, %o: f16):
    %w = arith.addf %v, %v : f8E4M3FN
    %r = arith.extf %w : f8E4M3FN to f16
    linalg.yield %r : f16
  } -> tensor<32x64xf16>"""
REFUSED = {
    "fp8": (FP8, "'arith.addf' on fp8"),
    "another op": (PAD.replace("%a", "%p0").replace("%d", "%a"), "'tensor.pad' computes the source of an operand"),
    "another scalar op": (
        GENERIC.replace("BODY", "arith.flush_denormals %v : f16"),
        "'arith.flush_denormals' in linalg.generic, a producer of A or B",
    ),
    "its output": (
        GENERIC.replace("BODY", "arith.addf %v, %o : f16"),
        "linalg.generic is a producer of A or B that reads the initial value of its output",
    ),
    "memory written before": (WRITTEN, "a producer of A or B reads a buffer that"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    lines, message = REFUSED[name]
    with mlir_context(), pytest.raises(StepladderError) as caught:
        find_matmul(parse_payload(HEAD + lines + TAIL, "payload.mlir"))
    assert message in caught.value.message, caught.value.render()
    assert caught.value.status == BAD_INPUT and caught.value.notes
    assert (caught.value.location or "").startswith("payload.mlir:")


@pytest.mark.parametrize("pipeline", ["wmma_upstream", "xetile", "xetile_mma_sync"])
def test_pipelines_without_the_step_refuse(pipeline: str) -> None:
    text = ProducerPayload(0).text
    with mlir_context(), pytest.raises(StepladderError, match="producers are not supported"):
        check_steps(text, "f.mlir", Request(pipeline, {}), lambda _: None)


def test_numbers_of_i4_are_two_in_a_byte() -> None:
    """The manifest has bytes, of which the low bits are the first number."""
    text = NIBBLES.replace("SHAPE", "8x4")
    with mlir_context():
        module = parse_payload(text, "f.mlir")
        found = find_matmul(module)
        program = reference_export.export(module, found.roles)
    assert found.problem.a_source is not None and found.problem.a_source.shape == (8, 2)
    generator = np.random.default_rng(SEED)
    bytes_, b = generator.integers(-128, 128, (8, 2)).astype(np.int8), generator.integers(-8, 8, (4, 8)).astype(np.int8)
    numbers = np.stack([bytes_ << 4 >> 4, bytes_ >> 4], axis=-1).reshape(8, 4).astype(np.int64)
    computed = Evaluation(program, {0: bytes_, 1: b}, arrays.NumPyArrays()).whole(program.output("c"))
    np.testing.assert_array_equal(computed, numbers @ b.astype(np.int64))


NIBBLES = """func.func @f(%Q: tensor<SHAPExi4>, %B: tensor<4x8xi8>) -> tensor<8x8xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<SHAPExi8>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%Q : tensor<SHAPExi4>) outs(%e : tensor<SHAPExi8>) {
  ^bb0(%x: i4, %o: i8):
    %y = arith.extsi %x : i4 to i8
    linalg.yield %y : i8
  } -> tensor<SHAPExi8>
  %c = tensor.empty() : tensor<8x8xi32>
  %start = linalg.fill ins(%zero : i32) outs(%c : tensor<8x8xi32>) -> tensor<8x8xi32>
  %p = linalg.matmul ins(%a, %B : tensor<SHAPExi8>, tensor<4x8xi8>) outs(%start : tensor<8x8xi32>) -> tensor<8x8xi32>
  return %p : tensor<8x8xi32>
}
"""


@pytest.mark.parametrize(
    "text, message",
    [
        (NIBBLES.replace("SHAPE", "8x5").replace("4x8xi8", "5x8xi8"), "argument 0 is tensor<8x5xi4>"),
        (
            NIBBLES.replace("SHAPE", "8x4").replace("i8", "i4").replace("extsi %x : i4 to i4", "addi %x, %x : i4"),
            "A or B of i4, which no pipeline supports",
        ),
    ],
)
def test_numbers_of_i4_that_are_refused(text: str, message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        find_matmul(parse_payload(text, "payload.mlir"))
    assert message in caught.value.message, caught.value.render()
    assert caught.value.status == BAD_INPUT and caught.value.notes
    assert (caught.value.location or "").startswith("payload.mlir:")


WORDS = """func.func @f(%Q: tensor<1x8xi32>, %B: tensor<8x8xi8>) -> tensor<8x8xi32> {
  %shifts = arith.constant dense<[0, 16, 4, 20, 8, 24, 12, 28]> : tensor<8xi32>
  %fifteen = arith.constant 15 : i32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x8x8xi8>
  %words = linalg.generic {indexing_maps = [affine_map<(g, t, k) -> (g, k)>, affine_map<(g, t, k) -> (t)>,
      affine_map<(g, t, k) -> (g, t, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%Q, %shifts : tensor<1x8xi32>, tensor<8xi32>) outs(%e : tensor<1x8x8xi8>) {
  ^bb0(%x: i32, %s: i32, %o: i8):
    %y = arith.shrui %x, %s : i32
    %u = arith.andi %y, %fifteen : i32
    %r = arith.trunci %u : i32 to i8
    linalg.yield %r : i8
  } -> tensor<1x8x8xi8>
  %a = tensor.collapse_shape %words [[0, 1], [2]] : tensor<1x8x8xi8> into tensor<8x8xi8>
  %c = tensor.empty() : tensor<8x8xi32>
  %start = linalg.fill ins(%zero : i32) outs(%c : tensor<8x8xi32>) -> tensor<8x8xi32>
  %p = linalg.matmul ins(%a, %B : tensor<8x8xi8>, tensor<8x8xi8>) outs(%start : tensor<8x8xi32>) -> tensor<8x8xi32>
  return %p : tensor<8x8xi32>
}
"""


@pytest.mark.parametrize("places", [[0, 16, 4, 20, 8, 24, 12, 28], [28, 24, 20, 16, 12, 8, 4, 0]])
def test_shifts_by_a_constant(places: list[int]) -> None:
    """In order, which an index gives, or in another one."""
    with mlir_context():
        module = parse_payload(WORDS.replace("[0, 16, 4, 20, 8, 24, 12, 28]", str(places)), "f.mlir")
        found = find_matmul(module)
        program = reference_export.export(module, found.roles)
    assert found.problem.epilogue_operands == ()
    generator = np.random.default_rng(SEED)
    words = generator.integers(-(2**31), 2**31, (1, 8)).astype(np.int32)
    b = generator.integers(-8, 8, (8, 8)).astype(np.int64)
    numbers = np.stack([words[0].astype(np.int64) >> place & 15 for place in places])
    computed = Evaluation(program, {0: words, 1: b.astype(np.int8)}, arrays.NumPyArrays()).whole(program.output("c"))
    np.testing.assert_array_equal(computed, numbers @ b)


def test_shifts_by_an_argument_are_refused() -> None:
    text = WORDS.replace("%Q: tensor<1x8xi32>", "%Q: tensor<1x8xi32>, %shifts: tensor<8xi32>", 1)
    text = "".join(line for line in text.splitlines(keepends=True) if "%shifts = " not in line)
    with mlir_context(), pytest.raises(StepladderError, match="by an element of an operand"):
        find_matmul(parse_payload(text, "payload.mlir"))


@pytest.mark.parametrize("name, stored", [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2)])
@pytest.mark.parametrize("wide", ["f16", "bf16", "f32"])
def test_all_numbers_of_fp8_in_wider_types(name: str, stored: type, wide: str) -> None:
    """As ml_dtypes has them, subnormal ones, infinities and what is no number among them."""
    with mlir_context(), ir.Location.unknown():
        given, type_ = (ir.VectorType.get([256], ir.Type.parse(each)) for each in (name, wide))
        module = ir.Module.parse(
            f"func.func @f(%x: {given}) -> {type_} {{ %y = ub.poison : {type_} return %y : {type_} }}"
        )
        end = walk(module, "func.return")[0]
        with ir.InsertionPoint(end):
            end.operands[0] = narrow_floats.extended(
                walk(module, "func.func")[0].regions[0].blocks[0].arguments[0], type_
            )
        text = str(module)
    numbers = np.arange(256, dtype=np.uint8).view(stored)
    (found,) = run(text, numbers)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        np.testing.assert_array_equal(np.asarray(found).astype(np.float64), numbers.astype(np.float64))
