"""Slices of one element along an axis, whose stride there does not matter."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder

TEXT = """func.func @f(%x: tensor<4x1xf32>, %y: tensor<3x4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>) {
  %part = tensor.extract_slice %x[0, 0] [4, 1] [1, 2] : tensor<4x1xf32> to tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.softmax dimension(0) ins(%part : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %all = tensor.insert_slice %s into %y[1, 0] [1, 4] [3, 1] : tensor<4xf32> into tensor<3x4xf32>
  return %s, %all : tensor<4xf32>, tensor<3x4xf32>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
def test_slices_of_one_element_of_an_axis() -> None:
    x, y = np.arange(4, dtype=np.float32).reshape(4, 1), np.zeros((3, 4), np.float32)
    weights = np.exp(x[:, 0]) / np.exp(x).sum()
    softmax, rows = stepladder.compile(TEXT, target="sm_80", device="emulator")(x, y)
    np.testing.assert_allclose(softmax, weights, rtol=1e-5)
    np.testing.assert_allclose(rows, np.stack([y[0], weights, y[0]]), rtol=1e-5)
