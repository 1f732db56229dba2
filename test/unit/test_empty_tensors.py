"""Matmuls with an extent of 0, and results without elements."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import stepladder
from stepladder.runtime.bundle import check_function, read_function
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

ON_EMULATOR = {"device": "emulator", "target": "sm_90a"}
# relu(C + AB), and the sums of its columns.
LAYER = """
#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @layer(%a: tensor<?x?xf16>, %b: tensor<?x16xf16>, %c: tensor<?x16xf32>)
    -> (tensor<?x16xf32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %p = linalg.matmul ins(%a, %b : tensor<?x?xf16>, tensor<?x16xf16>) outs(%c : tensor<?x16xf32>) -> tensor<?x16xf32>
  %e = tensor.empty(%m) : tensor<?x16xf32>
  %y = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %r = arith.maximumf %x, %zero : f32
    linalg.yield %r : f32
  } -> tensor<?x16xf32>
  %f = tensor.empty() : tensor<16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%f : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<?x16xf32>) outs(%start : tensor<16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %r = arith.addf %x, %out : f32
    linalg.yield %r : f32
  } -> tensor<16xf32>
  return %y, %s : tensor<?x16xf32>, tensor<16xf32>
}
"""
NOTHING = """func.func @nothing(%a: tensor<0x8xf16>, %b: tensor<8x16xf16>, %c: tensor<0x16xf32>) -> tensor<0x16xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<0x8xf16>, tensor<8x16xf16>) outs(%c : tensor<0x16xf32>) -> tensor<0x16xf32>
  return %p : tensor<0x16xf32>
}
"""
BUFFERS = """func.func @add(%a: memref<4x0xf16>, %b: memref<0x16xf16>, %c: memref<4x16xf32>) {
  linalg.matmul ins(%a, %b : memref<4x0xf16>, memref<0x16xf16>) outs(%c : memref<4x16xf32>)
  return
}
"""


@pytest.mark.parametrize(("m", "k"), [(4, 0), (0, 8), (0, 0)])
def test_extents_of_0(m: int, k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, 16)))
    c = rng.integers(-2, 3, (m, 16)).astype(np.float32)
    y, sums = stepladder.compile(LAYER, **ON_EMULATOR)(a, b, c)
    assert y.shape == (m, 16) and np.array_equal(y, np.maximum(c, 0))
    assert np.array_equal(sums, np.maximum(c, 0).sum(axis=0))


def test_a_function_without_kernels(tmp_path: Path) -> None:
    function = stepladder.compile(NOTHING, **ON_EMULATOR)
    a, b, c = np.ones((0, 8), np.float16), np.ones((8, 16), np.float16), np.ones((0, 16), np.float32)
    assert function(a, b, c).shape == (0, 16)
    function.save(tmp_path / "bundle")
    bundle = read_function(tmp_path / "bundle")
    assert not bundle.manifest.launches and bundle.manifest.schema_version == 12
    older = dataclasses.replace(bundle, manifest=dataclasses.replace(bundle.manifest, schema_version=11))
    with pytest.raises(StepladderError, match=r"field 'buffers\[0\].shape' has no elements, .* schema_version 12"):
        check_function(older)


def test_a_buffer_that_stays() -> None:
    c = np.arange(64, dtype=np.float32).reshape(4, 16)
    kernel = stepladder.compile(BUFFERS, **ON_EMULATOR)
    kernel(np.ones((4, 0), np.float16), np.ones((0, 16), np.float16), c)
    assert np.array_equal(c, np.arange(64).reshape(4, 16))


def test_a_part_without_elements() -> None:
    """It is inserted into a product, of which nothing changes."""
    text = """func.func @f(%a: tensor<4x8xf16>, %b: tensor<8x16xf16>, %c: tensor<4x16xf32>, %d: tensor<4x0xf32>)
    -> tensor<4x16xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x16xf16>) outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>
  %q = tensor.insert_slice %d into %p[0, 3] [4, 0] [1, 1] : tensor<4x0xf32> into tensor<4x16xf32>
  return %q : tensor<4x16xf32>
}"""
    c = np.arange(64, dtype=np.float32).reshape(4, 16)
    operands = np.ones((4, 8), np.float16), np.ones((8, 16), np.float16), c, np.ones((4, 0), np.float32)
    assert np.array_equal(stepladder.compile(text, **ON_EMULATOR)(*operands), c + 8)
