"""Elements that bodies extract at the indices of their loops: part of the kernel of a product, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from small_integers import small

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<16x32xf16>", "tensor<32x24xf16>", "tensor<16x24xf32>"
MAPS = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>"


def text_of(type_: str, indices: str) -> str:
    return f"""func.func @f(%a: {A}, %b: {B}, %s: {type_}) -> {C} {{
  %c0 = arith.constant 0 : index
  %z = arith.constant dense<0.0> : {C}
  %e = tensor.empty() : {C}
  %p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}
  %r = linalg.generic {{indexing_maps = [{MAPS}], iterator_types = ["parallel", "parallel"]}}
      ins(%p : {C}) outs(%e : {C}) {{
  ^bb0(%x: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %s[{indices}] : {type_}
    %y = arith.mulf %x, %v : f32
    linalg.yield %y : f32
  }} -> {C}
  return %r : {C}
}}"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("type_", "indices", "shape", "launches"),
    [
        ("tensor<f32>", "", (), 1),
        ("tensor<1x1xf32>", "%c0, %c0", (1, 1), 1),
        ("tensor<16xf32>", "%i", (16, 1), 1),
        ("tensor<1x24xf32>", "%c0, %j", (1, 24), 1),
        ("tensor<16x24xf32>", "%i, %j", (16, 24), 1),
        ("tensor<24x16xf32>", "%j, %i", (16, 24), 1),
        ("tensor<32x24xf32>", "%i, %j", (16, 24), 2),  # the first rows of a larger tensor
    ],
)
def test_an_epilogue_extracts_elements(
    type_: str, indices: str, shape: tuple[int, ...], launches: int, target: str
) -> None:
    compiled = stepladder.compile(text_of(type_, indices), device="emulator", target=target)
    extents = [int(item) for item in type_[7:].split("x")[:-1]]
    a, b, s = small(16, 32), small(32, 24), small(*extents, dtype=np.float32)
    factors = s.T if indices == "%j, %i" else s[:16] if extents == [32, 24] else s.reshape(shape)
    np.testing.assert_array_equal(compiled(a, b, s), a.astype(np.float32) @ b.astype(np.float32) * factors)
    is_function = isinstance(compiled, stepladder.Function)
    assert (len(compiled.manifest.launches) if is_function else 1) == launches


def test_a_reduction_extracts_elements_itself() -> None:
    """Losses are sums of elements at the places of the classes."""
    text = """func.func @f(%x: tensor<6x8xf32>, %n: tensor<6xi32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%n : tensor<6xi32>) outs(%zero : tensor<f32>) {
  ^bb0(%place: i32, %sum: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %place : i32 to index
    %v = tensor.extract %x[%i, %j] : tensor<6x8xf32>
    %s = arith.addf %sum, %v : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}"""
    compiled = stepladder.compile(text, device="emulator", target="sm_80")
    x, places = small(6, 8, dtype=np.float32), np.array([3, 0, 7, 7, 2, 1], np.int32)
    assert compiled(x, places) == x[np.arange(6), places].sum()
