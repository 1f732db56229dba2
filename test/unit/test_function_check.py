"""Functions with several kernels: tolerances, and indices out of range."""

from pathlib import Path

import numpy as np
import pytest

import stepladder
from stepladder.emulator.functions import EmulatedFunction
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions import FunctionBuild, build_any
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function

INPUTS = Path(__file__).parents[1] / "inputs" / "functions"

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


def test_an_index_out_of_range_is_found() -> None:
    """Masks, and indices of 64 bits, are arguments; the assertions of a front end stay in the kernel."""
    function = stepladder.compile(INPUTS / "masked_embedding.mlir", device="emulator", target="sm_90a")
    rng = np.random.default_rng(0)
    ids, keep = rng.integers(0, 10, (2, 8)), rng.random((2, 8)) < 0.5
    table, weight = (rng.standard_normal(shape).astype(np.float16) for shape in ((10, 16), (16, 24)))
    got, some, total = function(ids, keep, table, weight)
    wanted = np.tanh(np.where(keep[..., None], table[ids], 0).astype(np.float64) @ weight.astype(np.float64))
    assert np.abs(got - wanted).max() < 2e-3
    assert np.array_equal(some, keep.any(-1)) and np.array_equal(total, ids.sum(-1)) and total.dtype == np.int64
    ids[1, 3] = 10
    with pytest.raises(StepladderError, match="the emulator found 1 faults") as caught:
        function(ids, keep, table, weight)
    assert "index must be smaller than dim size" in caught.value.notes[0]
    with pytest.raises(stepladder.ArgumentError, match="'argument 0' has elements of i32; accepted: i64"):
        function(ids.astype(np.int32), keep, table, weight)
