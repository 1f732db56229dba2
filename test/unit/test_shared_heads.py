"""Heads of queries that share keys and values (GQA), as front ends write them: no kernel repeats the keys."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import stepladder
from stepladder.mlir.bindings import PREFIX

pytestmark = pytest.mark.usefixtures("needs_ptxas")

# 2 sequences, 2 heads of keys, of which each has 3 heads of queries.
PRODUCT = """  %e = tensor.empty() : tensor<2x6x16x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6x16x32xf32>) -> tensor<2x6x16x32xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>,
      affine_map<(b, h, m, n, k) -> (b, h, n, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
      ins(%q, %s : tensor<2x6x16x24xf16>, tensor<2x6x32x24xf16>) outs(%z : tensor<2x6x16x32xf32>)
      -> tensor<2x6x16x32xf32>
  return %r : tensor<2x6x16x32xf32>
}
"""
HEAD = """func.func @f(%q: tensor<2x6x16x24xf16>, %k: tensor<2x2x32x24xf16>) -> tensor<2x6x16x32xf32> {
  %zero = arith.constant 0.0 : f32
"""
LOOPS = 'iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]'
REPEATED = "tensor<2x2x3x32x24xf16>"


def expanded(source: str, places: str, given: str) -> str:
    """Returns keys that are repeated along a new dimension, which a reshape joins to that of the heads."""
    return f"""  %x = tensor.empty() : {REPEATED}
  %g = linalg.generic {{indexing_maps = [affine_map<(b, h, g, n, k) -> ({places})>,
      affine_map<(b, h, g, n, k) -> (b, h, g, n, k)>], {LOOPS}}} ins({source} : {given}) outs(%x : {REPEATED}) {{
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }} -> {REPEATED}
  %s = tensor.collapse_shape %g [[0], [1, 2], [3], [4]] : {REPEATED} into tensor<2x6x32x24xf16>
"""


HAS_STABLEHLO = importlib.util.find_spec(f"{PREFIX}.dialects.torch") is not None
FORMS = {
    "broadcast": HEAD + expanded("%k", "b, h, n, k", "tensor<2x2x32x24xf16>") + PRODUCT,
    "expanded from one": HEAD
    + """  %u = tensor.expand_shape %k [[0], [1, 2], [3], [4]] output_shape [2, 2, 1, 32, 24]
    : tensor<2x2x32x24xf16> into tensor<2x2x1x32x24xf16>
"""
    + expanded("%u", "b, h, 0, n, k", "tensor<2x2x1x32x24xf16>")
    + PRODUCT,
    "quotient": HEAD
    + """  %x = tensor.empty() : tensor<2x6x32x24xf16>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, n, k) -> (b, h floordiv 3, n, k)>,
      affine_map<(b, h, n, k) -> (b, h, n, k)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x2x32x24xf16>) outs(%x : tensor<2x6x32x24xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x6x32x24xf16>
"""
    + PRODUCT,
    "StableHLO": """func.func @f(%q: tensor<2x6x16x24xf16>, %k: tensor<2x2x32x24xf16>) -> tensor<2x6x16x32xf32> {
  %g = stablehlo.broadcast_in_dim %k, dims = [0, 1, 3, 4] : (tensor<2x2x32x24xf16>) -> tensor<2x2x3x32x24xf16>
  %s = stablehlo.reshape %g : (tensor<2x2x3x32x24xf16>) -> tensor<2x6x32x24xf16>
  %r = stablehlo.dot_general %q, %s, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
    : (tensor<2x6x16x24xf16>, tensor<2x6x32x24xf16>) -> tensor<2x6x16x32xf32>
  return %r : tensor<2x6x16x32xf32>
}
""",
}


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "StableHLO" or HAS_STABLEHLO])
def test_keys_are_read_where_they_are(form: str, target: str) -> None:
    kernel = stepladder.compile(FORMS[form], target=target, device="emulator")
    assert isinstance(kernel, stepladder.Kernel)
    problem = kernel.manifest.problem
    assert (problem.batch, problem.m, problem.n, problem.k) == (4, 48, 32, 24)  # one matmul for each head of keys
    rng = np.random.default_rng(0)
    q, k = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((2, 6, 16, 24), (2, 2, 32, 24)))
    exact = np.einsum("bhmk,bhnk->bhmn", q.astype(np.float64), np.repeat(k, 3, axis=1).astype(np.float64))
    np.testing.assert_array_equal(np.asarray(kernel(q, k)).reshape(exact.shape), exact)
