"""Rotary embeddings of heads, whose angles the heads share: one kernel before or after the matmul."""

import importlib.util

import numpy as np
import pytest

import stepladder
from stepladder.mlir.bindings import PREFIX

pytestmark = [
    pytest.mark.usefixtures("needs_ptxas"),
    pytest.mark.skipif(importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir"),
]

# As JAX writes it: each of `cos` and `sin` is broadcast over the heads once, and used by both halves.
ROTATED = """module @jit_rotated {
  func.func public @main(%x: tensor<6x32xf16>, %w: tensor<32x32xf16>, %cos: tensor<6x8xf16>, %sin: tensor<6x8xf32>)
      -> tensor<6x2x16xf32> {
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<6x32xf16>, tensor<32x32xf16>) -> tensor<6x32xf32>
    %q = stablehlo.reshape %p : (tensor<6x32xf32>) -> tensor<6x2x16xf32>
    %low = stablehlo.slice %q [0:6, 0:2, 0:8] : (tensor<6x2x16xf32>) -> tensor<6x2x8xf32>
    %high = stablehlo.slice %q [0:6, 0:2, 8:16] : (tensor<6x2x16xf32>) -> tensor<6x2x8xf32>
    %wide = stablehlo.convert %cos : (tensor<6x8xf16>) -> tensor<6x8xf32>
    %c = stablehlo.broadcast_in_dim %wide, dims = [0, 2] : (tensor<6x8xf32>) -> tensor<6x2x8xf32>
    %s = stablehlo.broadcast_in_dim %sin, dims = [0, 2] : (tensor<6x8xf32>) -> tensor<6x2x8xf32>
    %0 = stablehlo.multiply %low, %c : tensor<6x2x8xf32>
    %1 = stablehlo.multiply %high, %s : tensor<6x2x8xf32>
    %2 = stablehlo.subtract %0, %1 : tensor<6x2x8xf32>
    %3 = stablehlo.multiply %low, %s : tensor<6x2x8xf32>
    %4 = stablehlo.multiply %high, %c : tensor<6x2x8xf32>
    %5 = stablehlo.add %3, %4 : tensor<6x2x8xf32>
    %6 = stablehlo.concatenate %2, %5, dim = 2
      : (tensor<6x2x8xf32>, tensor<6x2x8xf32>) -> tensor<6x2x16xf32>
    return %6 : tensor<6x2x16xf32>
  }
}
"""


@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
def test_factors_that_heads_share_are_not_repeated(target: str) -> None:
    function = stepladder.compile(ROTATED, target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["main_matmul_0", "main_elementwise_0"]
    generator = np.random.default_rng(0)
    x, w = (generator.integers(-2, 3, shape).astype(np.float16) for shape in ((6, 32), (32, 32)))
    cos, sin = (generator.integers(-3, 4, (6, 8)) for _ in range(2))
    low, high = np.split((x.astype(np.float64) @ w).reshape(6, 2, 16), 2, axis=2)
    c, s = cos[:, None], sin[:, None]
    expected = np.concatenate([low * c - high * s, low * s + high * c], axis=2)
    np.testing.assert_array_equal(function(x, w, cos.astype(np.float16), sin.astype(np.float32)), expected)
