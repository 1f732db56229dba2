"""Products without matrix units, and tolerances of functions with several kernels."""

import pytest

from stepladder.emulator.functions import EmulatedFunction
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions import FunctionBuild, build_any
from stepladder.pipeline.request import Request
from stepladder.verify.function_check import check_function

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
