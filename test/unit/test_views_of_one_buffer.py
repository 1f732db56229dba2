"""Ops that read and write views of one buffer: each element where it is written, once, or they are refused."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from small_integers import small
from stepladder.mlir.bindings import ir
from stepladder.mlir.overlaps import are_same
from stepladder.pipeline.context import mlir_context
from stepladder.runtime.errors import StepladderError

PART = "memref<4x5xf32, strided<[16, 1], offset: 18>>"
IN_PLACE = f"""func.func @f(%a: memref<16x8xf32>, %b: memref<8x16xf32>, %c: memref<16x16xf32>) {{
  linalg.matmul ins(%a, %b : memref<16x8xf32>, memref<8x16xf32>) outs(%c : memref<16x16xf32>)
  %part = memref.subview %c[1, 2] [4, 5] [1, 1] : memref<16x16xf32> to {PART}
  %again = memref.subview %part[0, 0] [4, 5] [1, 1] : {PART} to {PART}
  linalg.mul ins(%again, %part : {PART}, {PART}) outs(%part : {PART})
  return
}}
"""
SUMS = """func.func @f(%v: memref<16xf32>, %b: memref<16x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%v, %b : memref<16xf32>, memref<16x16xf32>) outs(%v : memref<16xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  return
}
"""


@pytest.mark.usefixtures("needs_ptxas")
def test_views_of_the_same_elements() -> None:
    a, b, c = (small(*shape, dtype=np.float32) for shape in ((16, 8), (8, 16), (16, 16)))
    wanted = c + a @ b
    wanted[1:5, 2:7] **= 2
    compiled = stepladder.compile(IN_PLACE, target="sm_80", device="emulator")
    assert np.array_equal(compiled(a, b, c), wanted)


def test_an_element_that_sums_read_and_write_is_refused() -> None:
    with pytest.raises(StepladderError) as caught:
        stepladder.compile(SUMS, target="sm_80", device="emulator")
    assert any("at other elements or iterations" in note for note in caught.value.notes)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("4x5xf32, strided<[16, 1], offset: 18>", "4x5xf32, strided<[16, 1], offset: 18>", True),
        ("4x5xf32, strided<[16, 1], offset: 18>", "4x5xf32, strided<[16, 1], offset: 17>", False),
        ("4x4xf32, strided<[16, 1]>", "4x4xf32, strided<[1, 16]>", False),
        ("4x4xf32, strided<[0, 1]>", "4x4xf32, strided<[1, 0]>", False),
        ("4x5xf32, strided<[16, 1], offset: ?>", "4x5xf32, strided<[16, 1], offset: ?>", False),
    ],
)
def test_views_that_are_the_same(first: str, second: str, same: bool) -> None:
    with mlir_context():
        assert are_same(ir.Type.parse(f"memref<{first}>"), ir.Type.parse(f"memref<{second}>")) == same
