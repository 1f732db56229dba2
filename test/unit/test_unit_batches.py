"""Products that a kernel would compute as a batch in which m is 1 read a transposed copy instead."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder

SUMS = "tensor<16x1x3x1xi32>"
TEXT = f"""func.func @f(%a: tensor<1x1x4xi8>, %b: tensor<3x4x16xi8>, %c: {SUMS}) -> tensor<3x1x16x1xi32> {{
  %p = linalg.contract indexing_maps = [affine_map<(i, k, n, m, j) -> (i, k, j)>,
      affine_map<(i, k, n, m, j) -> (m, n, k)>, affine_map<(i, k, n, m, j) -> (j, n, i, m)>]
    ins(%b, %a : tensor<3x4x16xi8>, tensor<1x1x4xi8>) outs(%c : {SUMS}) -> {SUMS}
  %e = tensor.empty() : tensor<3x1x16x1xi32>
  %t = linalg.transpose ins(%p : {SUMS}) outs(%e : tensor<3x1x16x1xi32>) permutation = [2, 1, 0, 3]
  return %t : tensor<3x1x16x1xi32>
}}
"""


@pytest.mark.usefixtures("needs_ptxas")
def test_a_vector_times_a_batch_of_matrices() -> None:
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-128, 128, shape).astype(np.int8) for shape in ((1, 1, 4), (3, 4, 16)))
    c = generator.integers(-9, 9, (16, 1, 3, 1)).astype(np.int32)
    wanted = c + np.einsum("ikj,mnk->jnim", b.astype(np.int32), a.astype(np.int32))
    result = stepladder.compile(TEXT, target="sm_80", device="emulator")(a, b, c)
    assert np.array_equal(result, wanted.transpose(2, 1, 0, 3))
