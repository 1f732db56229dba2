"""Reductions with few results, which are divided into parts, on the emulator beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder

COLUMNS = """#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @f(%x: tensor<1040x{n}xf16>, %start: tensor<{n}xf16>) -> (tensor<{n}xf16>, tensor<{n}xf32>) {{
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<{n}xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<{n}xf32>) -> tensor<{n}xf32>
  %r:2 = linalg.generic {{indexing_maps = [#all, #column, #column], iterator_types = ["reduction", "parallel"]}}
      ins(%x : tensor<1040x{n}xf16>) outs(%start, %lows : tensor<{n}xf16>, tensor<{n}xf32>) {{
  ^bb0(%in: f16, %sum: f16, %most: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %w = arith.extf %in : f16 to f32
    %p = arith.mulf %w, %f : f32
    %m = arith.maximumf %most, %p : f32
    %s = arith.addf %sum, %in : f16
    linalg.yield %s, %m : f16, f32
  }} -> (tensor<{n}xf16>, tensor<{n}xf32>)
  return %r#0, %r#1 : tensor<{n}xf16>, tensor<{n}xf32>
}}
"""
ALL = """#all = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
func.func @f(%x: tensor<{m}x{n}xf32>) -> tensor<f32> {{
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<f32>
  %ones = linalg.fill ins(%one : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {{indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}}
      ins(%x : tensor<{m}x{n}xf32>) outs(%ones : tensor<f32>) {{
  ^bb0(%in: f32, %sum: f32):
    %s = arith.addf %in, %sum : f32
    linalg.yield %s : f32
  }} -> tensor<f32>
  return %r : tensor<f32>
}}
"""


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("n", [8, 21])
def test_columns_with_two_results(n: int) -> None:
    """Sums of f16 that begin from a tensor, and are rounded once, and maxima of terms with the index of their row."""
    function = stepladder.compile(COLUMNS.format(n=n), device="emulator", target="sm_90a")
    assert isinstance(function, stepladder.Function)
    rng = np.random.default_rng(0)
    x, start = rng.integers(-4, 5, (1040, n)).astype(np.float16), rng.integers(0, 9, n).astype(np.float16)
    sums, most = function(x, start)
    assert len(function.manifest.launches) > 1
    assert np.array_equal(sums, (x.astype(np.float32).sum(0) + start).astype(np.float16))
    assert np.array_equal(most, (x.astype(np.float32) * np.arange(1040, dtype=np.float32)[:, None]).max(0))


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize(("m", "n", "launches"), [(3, 44000, 2), (401, 331, 2), (1, 66003, 2), (1, 66029, 1)])
def test_a_sum_of_all(m: int, n: int, launches: int) -> None:
    """Whole rows and parts of them; 66029 is a prime number, and is not divided."""
    function = stepladder.compile(ALL.format(m=m, n=n), device="emulator", target="sm_90a")
    assert isinstance(function, stepladder.Function)
    x = np.random.default_rng(0).integers(-4, 5, (m, n)).astype(np.float32)
    assert len(function.manifest.launches) == launches
    assert function(x) == x.sum() + 1
