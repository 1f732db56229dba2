"""Products without matrix units, and tolerances of functions with several kernels."""

import numpy as np
import pytest

from stepladder.emulator.functions import EmulatedFunction
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import FunctionBuild
from stepladder.pipeline.request import Request
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.function_check import check_function, compare_results
from stepladder.verify.function_inputs import random_inputs
from stepladder.verify.reference_evaluation import Evaluation

pytestmark = pytest.mark.usefixtures("needs_ptxas")


def test_long_sums_without_matrix_units_are_right() -> None:
    """A batch of products of one row is summed by threads, term by term."""
    text = """func.func @sums(%a: tensor<2x1x700xf32>, %b: tensor<2x700x3xf32>, %c: tensor<2x1x3xf32>)
    -> tensor<2x1x3xf32> {
  %d = linalg.batch_matmul ins(%a, %b : tensor<2x1x700xf32>, tensor<2x700x3xf32>) outs(%c : tensor<2x1x3xf32>)
    -> tensor<2x1x3xf32>
  return %d : tensor<2x1x3xf32>
}
"""
    with mlir_context():
        made = build_any(text, "sums", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    for seed in range(8):
        reports = check_function(made.bundle, EmulatedFunction(made.bundle), seed)
        assert [report.describe() for report in reports if not report.passed] == []


@pytest.mark.parametrize("batch, m, n, k", [(1, 1, 16, 8), (1, 16, 1, 8), (1, 16, 16, 1), (3, 1, 16, 8)])
def test_batches_of_vectors(batch: int, m: int, n: int, k: int) -> None:
    """Products of a batch, also of one, whose m, n or k is 1: sums, and no matmul."""
    a, b, c = f"tensor<{batch}x{m}x{k}xf16>", f"tensor<{batch}x{k}x{n}xf16>", f"tensor<{batch}x{m}x{n}xf32>"
    text = f"""func.func @f(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : {c}
  %1 = linalg.fill ins(%zero : f32) outs(%0 : {c}) -> {c}
  %2 = linalg.batch_matmul ins(%a, %b : {a}, {b}) outs(%1 : {c}) -> {c}
  return %2 : {c}
}}
"""
    with mlir_context():
        made = build_any(text, "vectors.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    reports = check_function(made.bundle, EmulatedFunction(made.bundle), 0)
    assert [report.describe() for report in reports if not report.passed] == []


def test_products_that_the_payload_rounds_before_it_adds_them() -> None:
    text = """func.func @f(%a: tensor<9x40xf16>, %b: tensor<40x7xf16>) -> tensor<9x7xf32> {
  %0 = arith.constant dense<0.0> : tensor<9x7xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(k, n, m) -> (m, k)>, affine_map<(k, n, m) -> (k, n)>,
      affine_map<(k, n, m) -> (m, n)>], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%a, %b : tensor<9x40xf16>, tensor<40x7xf16>) outs(%0 : tensor<9x7xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %product = arith.mulf %x, %y : f16
    %wide = arith.extf %product : f16 to f32
    %s = arith.addf %sum, %wide : f32
    linalg.yield %s : f32
  } -> tensor<9x7xf32>
  return %1 : tensor<9x7xf32>
}
"""
    with mlir_context():
        made = build_any(text, "rounded.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    inputs = random_inputs(made.bundle, 0)
    a, b = inputs.values()
    expected = (a[:, :, None] * b[None]).astype(np.float32).sum(1)
    for result, passes in ((expected, True), (expected + 0.01, False)):
        (report,) = compare_results(made.bundle.reference, inputs, [result], NumPyArrays(), 0.0)
        assert report.passed == passes


QUANTIZED_LAYERS = """func.func @q(%a: tensor<17x32xi8>, %w: tensor<32x24xi8>, %v: tensor<24x8xi8>)
    -> tensor<17x8xi32> {
  %0 = arith.constant dense<0> : tensor<17x24xi32>
  %p = linalg.matmul ins(%a, %w : tensor<17x32xi8>, tensor<32x24xi8>) outs(%0 : tensor<17x24xi32>) -> tensor<17x24xi32>
  %e = tensor.empty() : tensor<17x24xi8>
  %r = linalg.map ins(%p : tensor<17x24xi32>) outs(%e : tensor<17x24xi8>) (%x: i32, %o: i8) {
    %scale = arith.constant 0.05 : f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %f = arith.sitofp %x : i32 to f32
    %m = arith.mulf %f, %scale : f32
    %n = math.roundeven %m : f32
    %c = arith.maximumf %n, %low : f32
    %d = arith.minimumf %c, %high : f32
    %i = arith.fptosi %d : f32 to i8
    linalg.yield %i : i8
  }
  %1 = arith.constant dense<0> : tensor<17x8xi32>
  %q = linalg.matmul ins(%r, %v : tensor<17x24xi8>, tensor<24x8xi8>) outs(%1 : tensor<17x8xi32>) -> tensor<17x8xi32>
  return %q : tensor<17x8xi32>
}
"""


def test_quantized_numbers_halfway_between_integers() -> None:
    """In f32, 10 * 0.05 is a half, and slightly more in the numbers of the reference; a second layer spreads it."""
    with mlir_context():
        made = build_any(QUANTIZED_LAYERS, "layers.mlir", Request("auto", {"target": "sm_80"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    program, inputs = made.bundle.reference, random_inputs(made.bundle, 1)
    wanted = [np.asarray(Evaluation(program, inputs, NumPyArrays()).whole(item.value)) for item in program.results]
    results = EmulatedFunction(made.bundle).run(inputs)
    assert not np.array_equal(results[0], wanted[0])
    for off, passes in ((0, True), (1, False), (100, False)):
        (report,) = compare_results(program, inputs, [results[0] + np.int32(off)], NumPyArrays(), 0.0)
        assert report.passed == passes


def test_divisors_are_not_drawn_as_zeros() -> None:
    """A quotient by zero is not defined: the reference and a kernel may differ there."""
    text = """func.func @f(%x: tensor<9x40xi32>, %by: tensor<1x40xi8>) -> tensor<9x40xi32> {
  %flat = tensor.collapse_shape %by [[0, 1]] : tensor<1x40xi8> into tensor<40xi8>
  %0 = tensor.empty() : tensor<9x40xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %flat : tensor<9x40xi32>, tensor<40xi8>) outs(%0 : tensor<9x40xi32>) {
  ^bb0(%a: i32, %b: i8, %out: i32):
    %wide = arith.extsi %b : i8 to i32
    %y = arith.divsi %a, %wide : i32
    linalg.yield %y : i32
  } -> tensor<9x40xi32>
  return %1 : tensor<9x40xi32>
}
"""
    with mlir_context():
        made = build_any(text, "quotients.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    inputs = random_inputs(made.bundle, 0)
    assert 0 in inputs[0] and 0 not in inputs[1] and {-8, 1, 8} <= {*inputs[1].flat}
    reports = check_function(made.bundle, EmulatedFunction(made.bundle), 0)
    assert [report.describe() for report in reports if not report.passed] == []


def test_roots_are_not_of_negative_numbers() -> None:
    """torch-mlir asserts that the root of a variance, which it divides by, is a number other than 0."""
    text = """func.func @f(%x: tensor<9x40xf32>, %variance: tensor<9xf32>) -> tensor<9x40xf32> {
  %shift = arith.constant 1.0e-5 : f64
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<9xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%variance : tensor<9xf32>) outs(%0 : tensor<9xf32>) {
  ^bb0(%v: f32, %out: f32):
    %narrow = arith.truncf %shift : f64 to f32
    %y = arith.addf %v, %narrow : f32
    linalg.yield %y : f32
  } -> tensor<9xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [9, 1] : tensor<9xf32> into tensor<9x1xf32>
  %3 = tensor.empty() : tensor<9x40xf32>
  %4 = linalg.generic {indexing_maps = [#all, affine_map<(i, j) -> (i, 0)>, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %2 : tensor<9x40xf32>, tensor<9x1xf32>) outs(%3 : tensor<9x40xf32>) {
  ^bb0(%a: f32, %v: f32, %out: f32):
    %root = math.sqrt %v : f32
    %is_number = arith.cmpf one, %root, %zero : f32
    cf.assert %is_number, "a root of 0"
    %y = arith.divf %a, %root : f32
    linalg.yield %y : f32
  } -> tensor<9x40xf32>
  return %4 : tensor<9x40xf32>
}
"""
    maps = {"#row": "affine_map<(i) -> (i)>", "#all": "affine_map<(i, j) -> (i, j)>"}
    for name, map_ in maps.items():
        text = text.replace(name, map_)
    with mlir_context():
        made = build_any(text, "roots.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    inputs = random_inputs(made.bundle, 0)
    assert (inputs[0] < 0).any() and (inputs[1] > 0).all()
    function = EmulatedFunction(made.bundle)
    reports = check_function(made.bundle, function, 0)
    assert [report.describe() for report in reports if not report.passed] == [] and function.findings == []


def test_results_are_not_numbers_where_those_of_the_payload_are_not() -> None:
    text = """func.func @f(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = tensor.empty() : tensor<6xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<6xf32>) outs(%0 : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %y = math.log %a : f32
    linalg.yield %y : f32
  } -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
"""
    with mlir_context():
        made = build_any(text, "log.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    x = np.array([1, 2, -1, 0, np.inf, np.nan], np.float32)
    (right,) = EmulatedFunction(made.bundle).run({0: x})

    def mismatches(got: np.ndarray) -> tuple[int, bool]:
        (report,) = compare_results(made.bundle.reference, {0: x}, [got], NumPyArrays(), 0.0)
        return report.mismatches, report.passed

    assert mismatches(right) == (0, True)
    for place in range(len(x)):
        for wrong in (3.0, np.nan, np.inf, -np.inf):
            got = right.copy()
            got[place] = wrong
            is_same = np.array_equal(got, right, equal_nan=True)
            assert mismatches(got) == ((0, True) if is_same else (1, False)), (place, wrong)


@pytest.mark.parametrize("type_, number", [("f16", 300.0), ("f32", 2e19)])
def test_results_beyond_the_range_of_a_type_are_infinite(type_: str, number: float) -> None:
    text = f"""func.func @f(%x: tensor<3x{type_}>) -> tensor<3x{type_}> {{
  %0 = tensor.empty() : tensor<3x{type_}>
  %1 = linalg.mul ins(%x, %x : tensor<3x{type_}>, tensor<3x{type_}>) outs(%0 : tensor<3x{type_}>) -> tensor<3x{type_}>
  return %1 : tensor<3x{type_}>
}}
"""
    with mlir_context():
        made = build_any(text, "square.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    x = np.array([number, -2, 3], np.float16 if type_ == "f16" else np.float32)
    (right,) = EmulatedFunction(made.bundle).run({0: x})
    assert right.tolist() == [np.inf, 4, 9]
    for got, passed in ((right, True), (np.full_like(right, np.inf), False)):
        (report,) = compare_results(made.bundle.reference, {0: x}, [got], NumPyArrays(), 0.0)
        assert report.passed == passed


def test_results_of_zeros_have_no_relative_error() -> None:
    """Their errors are bounded, but not by a part of their norm."""
    text = """func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %d = arith.subf %a, %a : f32
    linalg.yield %d : f32
  } -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""
    with mlir_context():
        made = build_any(text, "zeros.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    program = made.bundle.reference
    inputs = random_inputs(made.bundle, 0)
    for error, passes in ((0.0, True), (1e-3, False)):
        (report,) = compare_results(program, inputs, [np.full(8, error, np.float32)], NumPyArrays(), 0.0)
        assert (report.norm_error, report.passed) == (None, passes)
        assert "norm" not in report.describe()
