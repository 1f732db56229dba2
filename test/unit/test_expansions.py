"""Scalar functions that become others before anything else sees them."""

import numpy as np
import pytest

import stepladder
from stepladder.mlir.traverse import walk
from stepladder.payload.selection import select
from stepladder.pipeline.context import mlir_context, parse_payload

TEXT = """func.func @f(%x: tensor<40xf32>, %n: tensor<40xi64>) -> (tensor<40xf32>, tensor<40xi64>) {
  %a = math.tan %x : tensor<40xf32>
  %b = math.sinh %x : tensor<40xf32>
  %c = math.cosh %x : tensor<40xf32>
  %d = arith.addf %a, %b : tensor<40xf32>
  %e = arith.addf %d, %c : tensor<40xf32>
  %m = math.absi %n : tensor<40xi64>
  return %e, %m : tensor<40xf32>, tensor<40xi64>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
def test_computed_by_other_functions() -> None:
    x, n = np.linspace(-1.5, 1.5, 40, dtype=np.float32), np.arange(-20, 20) << 33
    function = stepladder.compile(TEXT, device="emulator", target="sm_80")
    got, magnitudes = function(x, n)
    wide = x.astype(np.float64)
    assert np.abs(got - (np.tan(wide) + np.sinh(wide) + np.cosh(wide))).max() < 1e-4
    assert np.array_equal(magnitudes, np.abs(n))


def test_magnitudes_that_kernels_compute_stay() -> None:
    with mlir_context():
        module = select(parse_payload(TEXT.replace("i64", "i32"), "payload.mlir")).module
        assert [op.name for op in walk(module) if op.name.startswith("math.abs")] == ["math.absi"]
