"""Quantized matmuls: i8 with zero points, and narrow integers of their sums, are right at every step, or refused.

STEPLADDER_TEST_PROFILE=random runs many more payloads.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepladder
from combinations import SEED
from conftest import PROFILE, some_steps
from quantized_payloads import QuantizedPayload
from stepladder.emulator import function_steps
from stepladder.emulator.matmul import check_steps
from stepladder.payload import reference_export
from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.runtime.reference import Program
from stepladder.verify import arrays
from stepladder.verify.error_propagation import BoundedEvaluation
from stepladder.verify.reference_evaluation import Evaluation

WARPS = {"block_m": 32, "block_n": 32, "block_k": 64, "warp_m": 16, "warp_n": 32}
WARPGROUP = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "persistent_blocks": 2}
PIPELINES = {
    "wmma": ("wmma", WARPS),
    "mma_sync": ("mma_sync", WARPS),
    "wgmma": ("wgmma", {**WARPGROUP, "epilogue": "registers"}),
    "wgmma, boxes": ("wgmma", {**WARPGROUP, "epilogue": "tma"}),
}
COUNT = 60 if PROFILE == "random" else 1


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("name", PIPELINES)
def test_right_at_some_steps(name: str, number: int) -> None:
    pipeline, knobs = PIPELINES[name]
    sizes = (32, 64) if name == "wgmma, boxes" else (32, 64, 33, 40)  # rows of boxes are whole
    payload = QuantizedPayload(1000 * SEED + 7 * number + list(PIPELINES).index(name), sizes)
    reports = []
    with mlir_context():
        request, chosen = Request(pipeline, knobs), some_steps(name, number)
        check_steps(payload.text, "f.mlir", request, reports.append, is_chosen_step=chosen)
    wrong = [report for report in reports if report.passed is False or report.findings]
    assert not wrong, f"{payload.text}\n{payload.kind}\n{wrong}"
    assert sum(report.passed is not None for report in reports) > (10 if PROFILE == "random" else 5)


def reference_of(text: str) -> Program:
    with mlir_context():
        module = parse_payload(text, "f.mlir")
        return reference_export.export(module, find_matmul(module).roles)


SEPARATE = """#all = affine_map<(i, j) -> (i, j)>
func.func @f(%A: tensor<24x40xi8>, %B: tensor<16x40xi8>, %x: tensor<24xi32>, %y: tensor<ZERO>) -> tensor<24x16xi32> {
  %ea = tensor.empty() : tensor<24x40xi32>
  %a = linalg.generic {indexing_maps = [#all, affine_map<(i, j) -> (i)>, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%A, %x : tensor<24x40xi8>, tensor<24xi32>) outs(%ea : tensor<24x40xi32>) {
  ^bb0(%in: i8, %zero: i32, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    %less = arith.subi %wide, %zero : i32
    linalg.yield %less : i32
  } -> tensor<24x40xi32>
  %eb = tensor.empty() : tensor<40x16xi32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (AXES)>, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%B, %y : tensor<16x40xi8>, tensor<ZERO>) outs(%eb : tensor<40x16xi32>) {
  ^bb0(%in: i8, %zero: i8, %out: i32):
    %wide = arith.extui %in : i8 to i32
    %offset = arith.extsi %zero : i8 to i32
    %less = arith.subi %wide, %offset : i32
    linalg.yield %less : i32
  } -> tensor<40x16xi32>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<24x16xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<24x16xi32>) -> tensor<24x16xi32>
  %r = linalg.matmul ins(%a, %b : tensor<24x40xi32>, tensor<40x16xi32>) outs(%z : tensor<24x16xi32>)
    -> tensor<24x16xi32>
  return %r : tensor<24x16xi32>
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("zero", "axes"), [("16xi8", "j"), ("i8", "")])
def test_zero_points_that_ops_before_the_product_subtract(zero: str, axes: str, target: str) -> None:
    text = SEPARATE.replace("ZERO", zero).replace("AXES", axes)
    kernel = stepladder.compile(text, target=target, device="emulator")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((24, 40), (16, 40)))
    x = rng.integers(-300, 300, 24).astype(np.int32)
    y = rng.integers(-128, 128, (16,) if axes else ()).astype(np.int8)
    wide = b.view(np.uint8).T.astype(np.int32) - y
    np.testing.assert_array_equal(kernel(a, b, x, y), (a - x[:, None]) @ wide)


# As in ONNX's MatMulInteger: numbers of uint8 and their zero points, in one body.
UNSIGNED = """func.func @f(%A: tensor<24x40xi8>, %B: tensor<40x16xi8>, %x: tensor<ZERO>, %y: tensor<16xi8>)
    -> tensor<24x16xi32> {
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<24x16xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<24x16xi32>) -> tensor<24x16xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (AXES)>, affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B, %x, %y : tensor<24x40xi8>, tensor<40x16xi8>, tensor<ZERO>, tensor<16xi8>)
      outs(%z : tensor<24x16xi32>) {
  ^bb0(%a: i8, %b: i8, %a_zero: i8, %b_zero: i8, %sum: i32):
    %wide_a = arith.extui %a : i8 to i32
    %half_zero = arith.CAST %a_zero : i8 to i16
    %wide_zero = arith.CAST %half_zero : i16 to i32
    %wide_b = arith.extsi %b : i8 to i32
    %other_zero = arith.extui %b_zero : i8 to i32
    %left = arith.subi %wide_a, %wide_zero : i32
    %right = arith.subi %wide_b, %other_zero : i32
    %product = arith.muli %left, %right : i32
    %next = arith.addi %sum, %product : i32
    linalg.yield %next : i32
  } -> tensor<24x16xi32>
  return %r : tensor<24x16xi32>
}
"""


@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
@pytest.mark.parametrize(("zero", "axes"), [("24xi8", "m"), ("i8", "")])
@pytest.mark.parametrize("cast", ["extui", "extsi"])
def test_unsigned_zero_points(zero: str, axes: str, cast: str, target: str) -> None:
    text = UNSIGNED.replace("ZERO", zero).replace("AXES", axes).replace("CAST", cast)
    kernel = stepladder.compile(text, target=target, device="emulator")
    assert not isinstance(kernel, stepladder.Function)  # of the matmul, whose epilogue has the zero points
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((24, 40), (40, 16)))
    x, y = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((24,) if axes else (), 16))
    seen = (x.view(np.uint8) if cast == "extui" else x).astype(np.int32)
    left = a.view(np.uint8).astype(np.int32) - (seen[:, None] if axes else seen)
    np.testing.assert_array_equal(kernel(a, b, x, y), left @ (b.astype(np.int32) - y.view(np.uint8)))


def test_what_differs_along_k_is_no_zero_point() -> None:
    """The op stays, and the digits of its numbers of i32 are multiplied."""
    text = SEPARATE.replace("ZERO", "40xi8").replace("AXES", "i")
    with mlir_context():
        assert find_matmul(parse_payload(text, "separate.mlir")).problem.a_type == "i32"
    function = stepladder.compile(text, target="sm_80", pipeline="mma_sync", device="emulator")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((24, 40), (16, 40)))
    x, y = rng.integers(-300, 300, 24).astype(np.int32), rng.integers(-128, 128, 40).astype(np.int8)
    wide = b.view(np.uint8).T.astype(np.int32) - y[:, None]
    np.testing.assert_array_equal(function(a, b, x, y), (a - x[:, None]) @ wide)


COMPUTED = """func.func @f(%A: tensor<24x40xi8>, %B: tensor<40x16xi8>, %x: tensor<1xi8>, %y: tensor<i8>)
    -> tensor<24x16xi32> {
  %c0 = arith.constant 0 : index
  %narrow_a = tensor.extract %x[%c0] : tensor<1xi8>
  %narrow_b = tensor.extract %y[] : tensor<i8>
  %a_zero = arith.extui %narrow_a : i8 to i32
  %b_zero = arith.extsi %narrow_b : i8 to i32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<24x16xi32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<24x16xi32>) -> tensor<24x16xi32>
  %r = linalg.quantized_matmul ins(%A, %B, %a_zero, %b_zero : tensor<24x40xi8>, tensor<40x16xi8>, i32, i32)
      outs(%z : tensor<24x16xi32>) -> tensor<24x16xi32>
  return %r : tensor<24x16xi32>
}
"""


def test_zero_points_that_are_elements_of_tensors() -> None:
    """The sums are of i8, and the epilogue reads the tensors."""
    with mlir_context():
        problem = find_matmul(parse_payload(COMPUTED, "computed.mlir")).problem
    assert problem.a_type == problem.b_type == "i8"
    assert {"arith.extui", "arith.extsi", "arith.subi"} <= set(problem.consumers)
    assert [operand.element_type for operand in problem.epilogue_operands] == ["i8", "i8"]


NAMED = """func.func @f(%A: tensor<4x8xi8>, %B: tensor<8x4xi8>) -> tensor<4x4xi32> {
  %za = arith.constant -128 : i32
  %zb = arith.constant 127 : i32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4x4xi32>
  %start = linalg.fill ins(%zero : i32) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
  %p = linalg.quantized_matmul ins(%A, %B, %za, %zb : tensor<4x8xi8>, tensor<8x4xi8>, i32, i32)
      outs(%start : tensor<4x4xi32>) -> tensor<4x4xi32>
  RESULT
}
"""
SUMS = NAMED.replace("RESULT", "return %p : tensor<4x4xi32>")


def numbers() -> dict[int, np.ndarray]:
    generator = np.random.default_rng(SEED)
    return {place: generator.integers(-128, 128, shape).astype(np.int8) for place, shape in enumerate(((4, 8), (8, 4)))}


def test_the_reference_subtracts_zero_points() -> None:
    program, inputs = reference_of(SUMS), numbers()
    a, b = inputs[0].astype(np.int64) + 128, inputs[1].astype(np.int64) - 127
    np.testing.assert_array_equal(Evaluation(program, inputs, arrays.NumPyArrays()).whole(program.output("c")), a @ b)


@pytest.mark.parametrize("cast, end", [("fptosi", 128), ("fptoui", 256)])
def test_bounds_of_integers_of_rounded_numbers(cast: str, end: int) -> None:
    """A number far from a tie is exact, one at a tie may be the next; of what may be out of range nothing is known."""
    text = (
        NAMED.replace("tensor<4x4xi32> {", "tensor<4x4xi8> {")
        .replace(
            "RESULT",
            f"""%q = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%p : tensor<4x4xi32>) outs(%r : tensor<4x4xi8>) {{
  ^bb0(%x: i32, %o: i8):
    %f = arith.sitofp %x : i32 to f32
    %c = arith.constant 0.01 : f32
    %g = arith.mulf %f, %c : f32
    %n = math.roundeven %g : f32
    %i = arith.{cast} %n : f32 to i8
    linalg.yield %i : i8
  }} -> tensor<4x4xi8>
  return %q : tensor<4x4xi8>""",
        )
        .replace("  %p = ", "  %r = tensor.empty() : tensor<4x4xi8>\n  %p = ")
    )
    program, inputs = reference_of(text), numbers()
    rows = np.array([150, 1023, end * 100 - 100, end * 100])
    product = next(item.results[0] for item in program.instructions if "quantized" in getattr(item, "name", ""))

    class Given(BoundedEvaluation):
        """The program, whose product is given."""

        def _computed(self, value: int, region: tuple[slice, ...]) -> np.ndarray:
            if value == product:
                return np.broadcast_to(rows[:, None], (4, 4))[region]
            return super()._computed(value, region)

    evaluation = Given(program, inputs, arrays.NumPyArrays(), {product: lambda region: np.zeros((4, 4))[region]})
    found = evaluation.whole(program.output("c")), evaluation.error(program.output("c"), (slice(0, 4), slice(0, 4)))
    assert found[0][:3, 0].tolist() == [1, 10, end - 1 if cast == "fptosi" else -1]
    assert found[1][:, 0].tolist() == [1, 0, 0, np.inf]


def test_layers_of_a_function() -> None:
    """Zero points of each matmul become sums that are kernels of their own; right at every step of the division."""
    path = Path(__file__).parents[1] / "inputs" / "functions" / "quantized_mlp.mlir"
    reports = []
    with mlir_context():
        request = Request(pipeline_file("functions"))
        function_steps.check_function_steps(path.read_text(), path.name, request, reports.append)
    assert [report.step for report in reports if report.passed is not True] == []


BIASED = """func.func @f(%A: tensor<33x40xi8>, %B: tensor<40x24xi8>, %x: i32, %y: i32, %b: tensor<24xi32>)
    -> tensor<33x24xi32> {
  %e = tensor.empty() : tensor<33x24xi32>
  %rows = linalg.broadcast ins(%b : tensor<24xi32>) outs(%e : tensor<33x24xi32>) dimensions = [0]
  %r = linalg.quantized_matmul ins(%A, %B, %x, %y : tensor<33x40xi8>, tensor<40x24xi8>, i32, i32)
    outs(%rows : tensor<33x24xi32>) -> tensor<33x24xi32>
  return %r : tensor<33x24xi32>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
def test_zero_points_from_the_caller_and_a_bias_where_sums_begin() -> None:
    """In a function of several kernels, as no kernel begins from a view."""
    f = stepladder.compile(BIASED, target="sm_80", device="emulator")
    generator = np.random.default_rng(SEED)
    a, b = (generator.integers(-128, 128, shape).astype(np.int8) for shape in ((33, 40), (40, 24)))
    bias = np.arange(24, dtype=np.int32)
    wanted = (a.astype(np.int64) - 7) @ (b.astype(np.int64) + 11) + bias
    np.testing.assert_array_equal(f(a, b, 7, -11, bias), wanted)
