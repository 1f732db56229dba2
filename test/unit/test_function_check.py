"""Tolerances of functions with several kernels."""

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
