"""Masks and other functions of row and column numbers after a product: part of its kernel, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from small_integers import small

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<24x32xf16>", "tensor<32x40xf16>", "tensor<24x40xf32>"
IDENTITY = "affine_map<(i, j) -> (i, j)>"
MAPS = f'indexing_maps = [{IDENTITY}, {IDENTITY}], iterator_types = ["parallel", "parallel"]'
LOW = "%low = arith.constant -1.0e4 : f32"


def text_of(body: str, arguments: str = "", then: str = "") -> str:
    """Returns a product, an elementwise op on it of which `body` selects an element or `%low` by `%keep`, and more."""
    return f"""func.func public @f(%a: {A}, %b: {B}{arguments}) -> {C} {{
  %z = arith.constant dense<0.0> : {C}
  %e = tensor.empty() : {C}
  {LOW}
  %p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}
  %m = linalg.generic {{{MAPS}}} ins(%p : {C}) outs(%e : {C}) {{
  ^bb0(%x: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    {body}
    %s = arith.select %keep, %x, %low : f32
    linalg.yield %s : f32
  }} -> {C}
  {then or f"return %m : {C}"}
}}"""


def check(text: str, keep: np.ndarray, *arguments: object, target: str = "sm_80", launches: int = 1) -> None:
    compiled = stepladder.compile(text, device="emulator", target=target)
    a, b = small(24, 32), small(32, 40)
    wanted = np.where(keep, a.astype(np.float32) @ b.astype(np.float32), -1e4)
    np.testing.assert_array_equal(compiled(a, b, *arguments), wanted)
    is_function = isinstance(compiled, stepladder.Function)
    assert (len(compiled.manifest.launches) if is_function else 1) == launches


ROWS, COLUMNS = np.indices((24, 40))
BODIES = {
    "%keep = arith.cmpi sge, %i, %j : index": ROWS >= COLUMNS,
    """%d = arith.subi %i, %j : index
    %di = arith.index_cast %d : index to i64
    %c = arith.constant 3 : i64
    %keep = arith.cmpi slt, %di, %c : i64""": ROWS - COLUMNS < 3,
    """%d = arith.subi %j, %i : index
    %n = arith.constant 4 : index
    %keep = arith.cmpi ult, %d, %n : index""": (COLUMNS >= ROWS) & (COLUMNS - ROWS < 4),
    """%n = arith.constant 5 : index
    %q = arith.floordivsi %i, %n : index
    %r = arith.remui %j, %n : index
    %keep = arith.cmpi eq, %q, %r : index""": ROWS // 5 == COLUMNS % 5,
    """%k = affine.apply affine_map<(d0, d1) -> (d0 + 2 * d1 - 7)>(%i, %j)
    %l = arith.maxsi %k, %j : index
    %s8 = arith.index_cast %l : index to i8
    %c = arith.constant 20 : i8
    %keep = arith.cmpi sle, %s8, %c : i8""": np.maximum(ROWS + 2 * COLUMNS - 7, COLUMNS) <= 20,
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("body", list(BODIES))
def test_a_mask_of_positions_is_part_of_the_epilogue(body: str, target: str) -> None:
    check(text_of(body), BODIES[body], target=target)


def test_a_mask_of_positions_and_a_length_from_the_caller() -> None:
    body = """%ji = arith.index_cast %j : index to i32
    %keep = arith.cmpi slt, %ji, %n : i32"""
    check(text_of(body, ", %n: i32"), COLUMNS < 11, np.int32(11))


def test_indices_that_may_not_fit_in_32_bits_stay_in_a_kernel_of_their_own() -> None:
    body = """%n = arith.constant 4000000000 : index
    %k = arith.muli %i, %n : index
    %l = arith.constant 9000000000 : index
    %keep = arith.cmpi slt, %k, %l : index"""
    check(text_of(body), ROWS * 4_000_000_000 < 9_000_000_000, launches=2)


def test_a_triangle_as_torch_writes_it() -> None:
    """The mask is made by five ops, of which one reads the numbers of rows and of columns from one `arange`."""
    numbers, square, truth = "tensor<24xi64>", "tensor<24x24xi64>", "tensor<24x24xi1>"
    result, b = "tensor<24x24xf32>", "tensor<32x24xf16>"
    text = f"""func.func @f(%a: {A}, %b: {b}) -> {result} {{
  %one = arith.constant 1 : i64
  %low = arith.constant dense<-1.0e4> : tensor<f32>
  %ones = arith.constant dense<true> : {truth}
  %z = arith.constant dense<0.0> : {result}
  %p = linalg.matmul ins(%a, %b : {A}, {b}) outs(%z : {result}) -> {result}
  %e0 = tensor.empty() : {numbers}
  %n = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      outs(%e0 : {numbers}) {{
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %v = arith.index_cast %i : index to i64
    linalg.yield %v : i64
  }} -> {numbers}
  %row = tensor.expand_shape %n [[0, 1]] output_shape [1, 24] : {numbers} into tensor<1x24xi64>
  %column = tensor.expand_shape %n [[0, 1]] output_shape [24, 1] : {numbers} into tensor<24x1xi64>
  %e1 = tensor.empty() : {square}
  %d = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i, 0)>, {IDENTITY}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%row, %column : tensor<1x24xi64>, tensor<24x1xi64>) outs(%e1 : {square}) {{
  ^bb0(%x: i64, %y: i64, %o: i64):
    %v = arith.subi %x, %y : i64
    linalg.yield %v : i64
  }} -> {square}
  %e2 = tensor.empty() : {truth}
  %later = linalg.generic {{{MAPS}}} ins(%d : {square}) outs(%e2 : {truth}) {{
  ^bb0(%x: i64, %o: i1):
    %v = arith.cmpi sge, %x, %one : i64
    linalg.yield %v : i1
  }} -> {truth}
  %mask = linalg.generic {{indexing_maps = [{IDENTITY}, {IDENTITY}, {IDENTITY}],
      iterator_types = ["parallel", "parallel"]}} ins(%later, %ones : {truth}, {truth}) outs(%e2 : {truth}) {{
  ^bb0(%x: i1, %y: i1, %o: i1):
    %v = arith.andi %x, %y : i1
    linalg.yield %v : i1
  }} -> {truth}
  %e3 = tensor.empty() : {result}
  %m = linalg.generic {{indexing_maps = [{IDENTITY}, affine_map<(i, j) -> ()>, {IDENTITY}, {IDENTITY}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%mask, %low, %p : {truth}, tensor<f32>, {result}) outs(%e3 : {result}) {{
  ^bb0(%x: i1, %y: f32, %w: f32, %o: f32):
    %v = arith.select %x, %y, %w : f32
    linalg.yield %v : f32
  }} -> {result}
  return %m : {result}
}}"""
    compiled = stepladder.compile(text, device="emulator", target="sm_90a")
    x, y = small(24, 32), small(32, 24)
    wanted = np.where(np.tri(24, dtype=bool), x.astype(np.float32) @ y.astype(np.float32), -1e4)
    np.testing.assert_array_equal(compiled(x, y), wanted)
    assert isinstance(compiled, stepladder.Kernel)


def test_lengths_of_the_sequences_of_a_batch() -> None:
    """A comparison of positions with a length for each sequence is an op of its own, as JAX writes it."""
    a, b, c, truth = "tensor<3x8x16xf16>", "tensor<3x16x24xf16>", "tensor<3x8x24xf32>", "tensor<3x24xi1>"
    cube = "affine_map<(b, i, j) -> (b, i, j)>"
    text = f"""func.func @f(%a: {a}, %b: {b}, %n: tensor<3xi32>) -> {c} {{
  {LOW}
  %z = arith.constant dense<0.0> : {c}
  %p = linalg.batch_matmul ins(%a, %b : {a}, {b}) outs(%z : {c}) -> {c}
  %et = tensor.empty() : {truth}
  %keep = linalg.generic {{indexing_maps = [affine_map<(b, j) -> (b)>, affine_map<(b, j) -> (b, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%n : tensor<3xi32>) outs(%et : {truth}) {{
  ^bb0(%x: i32, %o: i1):
    %j = linalg.index 1 : index
    %ji = arith.index_cast %j : index to i32
    %v = arith.cmpi slt, %ji, %x : i32
    linalg.yield %v : i1
  }} -> {truth}
  %e = tensor.empty() : {c}
  %m = linalg.generic {{indexing_maps = [affine_map<(b, i, j) -> (b, j)>, {cube}, {cube}],
      iterator_types = ["parallel", "parallel", "parallel"]}} ins(%keep, %p : {truth}, {c}) outs(%e : {c}) {{
  ^bb0(%k: i1, %x: f32, %o: f32):
    %v = arith.select %k, %x, %low : f32
    linalg.yield %v : f32
  }} -> {c}
  return %m : {c}
}}"""
    compiled = stepladder.compile(text, device="emulator", target="sm_90a")
    x, y, n = small(3, 8, 16), small(3, 16, 24), np.array([5, 24, 1], np.int32)
    keep = np.arange(24) < n[:, None, None]
    np.testing.assert_array_equal(compiled(x, y, n), np.where(keep, x.astype(np.float32) @ y.astype(np.float32), -1e4))
    assert isinstance(compiled, stepladder.Kernel)


def test_a_mask_before_a_softmax_is_computed_by_its_kernel() -> None:
    """The indices stay: an attention is recognized by them, and the kernel of rows computes them without a load."""
    then = f"""%w = linalg.softmax dimension(1) ins(%m : {C}) outs(%e : {C}) -> {C}
  return %w : {C}"""
    text = text_of("%keep = arith.cmpi sge, %i, %j : index", then=then)
    compiled = stepladder.compile(text, device="emulator", target="sm_80")
    assert isinstance(compiled, stepladder.Function)
    assert not compiled.manifest.of_kind("constant")
    assert len(compiled.manifest.launches) == 2


def test_a_mask_on_a_buffer_that_the_product_is_added_to() -> None:
    a, b, c = (item.replace("tensor", "memref") for item in (A, B, C))
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {{
  {LOW}
  linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c})
  linalg.generic {{indexing_maps = [{IDENTITY}], iterator_types = ["parallel", "parallel"]}} outs(%c : {c}) {{
  ^bb0(%x: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %keep = arith.cmpi sge, %i, %j : index
    %s = arith.select %keep, %x, %low : f32
    linalg.yield %s : f32
  }}
  return
}}"""
    compiled = stepladder.compile(text, device="emulator", target="sm_80")
    x, y, z = small(24, 32), small(32, 40), small(24, 40, dtype=np.float32)
    wanted = np.where(ROWS >= COLUMNS, x.astype(np.float32) @ y.astype(np.float32) + z, -1e4)
    np.testing.assert_array_equal(compiled(x, y, z), wanted)
    assert not isinstance(compiled, stepladder.Function) or len(compiled.manifest.launches) == 1
