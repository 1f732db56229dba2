"""StableHLO with selects and clamps by single elements, and with loops."""

import importlib.util

import numpy as np
import pytest

import stepladder
from stepladder.mlir.bindings import PREFIX

pytestmark = [
    pytest.mark.usefixtures("needs_ptxas"),
    pytest.mark.skipif(importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir"),
]

# A variance of JAX is a select by a comparison of single elements.
CHOSEN = """
func.func public @main(%x: tensor<8x16xf16>, %w: tensor<16x8xf16>, %n: tensor<f32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x16xf16>, tensor<16x8xf16>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<2.0> : tensor<f32>
  %1 = stablehlo.compare GT, %n, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %2 = stablehlo.broadcast_in_dim %limit, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %3 = stablehlo.clamp %zero, %0, %limit : (tensor<f32>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %4 = stablehlo.select %1, %3, %2 : tensor<i1>, tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
"""


def test_selects_and_clamps_by_single_elements() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((8, 16), (16, 8)))
    made = stepladder.compile(CHOSEN, device="emulator", target="sm_80")
    for number, wanted in ((1, np.clip(x.astype(float) @ w.astype(float), 0, 2)), (-1, np.full((8, 8), 2.0))):
        assert np.abs(made(x, w, np.array(number, np.float32)) - wanted).max() < 1e-4


def test_loops_are_refused() -> None:
    loop = """  %5 = stablehlo.while(%each = %4) : tensor<8x8xf32>
    cond {
      stablehlo.return %1 : tensor<i1>
    } do {
      stablehlo.return %each : tensor<8x8xf32>
    }
  return %5"""
    with pytest.raises(stepladder.StepladderError, match=r"'stablehlo\.while' is not lowered to linalg"):
        stepladder.compile(CHOSEN.replace("  return %4", loop), device="emulator", target="sm_80")
