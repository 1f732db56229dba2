"""Functions on buffers of which arguments have a pitch, or a dynamic offset: kernels read their rows in place, and what
is between the rows stays as it is."""

import numpy as np
import pytest

import stepladder
from stepladder.api.function import Function
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

SAME = "affine_map<(i, j) -> (i, j)>"


def layers(a: str, c: str) -> str:
    """Returns a function of two matmuls on buffers, of which A and C have layouts."""
    a, c = f"memref<32x32xf16, {a}>", f"memref<32x32xf32, {c}>"
    return f"""func.func @layers(%A: {a}, %B: memref<32x32xf16>, %W: memref<32x32xf16>, %C: {c}) {{
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<32x32xf32>
  %h = memref.alloc() : memref<32x32xf16>
  linalg.fill ins(%zero : f32) outs(%sums : memref<32x32xf32>)
  linalg.matmul ins(%A, %B : {a}, memref<32x32xf16>) outs(%sums : memref<32x32xf32>)
  linalg.generic {{indexing_maps = [{SAME}, {SAME}], iterator_types = ["parallel", "parallel"]}}
      ins(%sums : memref<32x32xf32>) outs(%h : memref<32x32xf16>) {{
  ^bb0(%x: f32, %o: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  }}
  linalg.fill ins(%zero : f32) outs(%C : {c})
  linalg.matmul ins(%h, %W : memref<32x32xf16>, memref<32x32xf16>) outs(%C : {c})
  return
}}
"""


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
@pytest.mark.parametrize(
    "a, c, rows, column",
    [
        ("strided<[48, 1]>", "strided<[64, 1]>", 32, 0),
        ("strided<[48, 1], offset: ?>", "strided<[64, 1], offset: ?>", 32, 0),
        ("strided<[48, 1], offset: 56>", "strided<[64, 1]>", 33, 8),
    ],
    ids=["pitch", "dynamic offset", "offset"],
)
def test_rows_with_a_pitch(a: str, c: str, rows: int, column: int, target: str) -> None:
    """Whole rows are passed; the first matmul reads the part of them, and no kernel copies it."""
    function = stepladder.compile(layers(a, c), device="emulator", target=target)
    assert isinstance(function, Function)
    assert [item.shape for item in function.inputs] == [(rows, 48), (32, 32), (32, 32), (32, 64)]
    first, *_ = function.manifest.launches
    assert first.kernel is None and function.manifest.buffers[first.operands["a"]].kind == "argument"
    rng = np.random.default_rng(0)
    whole, b, w = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((rows, 48), (32, 32), (32, 32)))
    out = rng.standard_normal((32, 64)).astype(np.float32)
    before = out.copy()
    function(whole, b, w, out)
    part = whole[rows - 32 :, column : column + 32].astype(float)
    np.testing.assert_array_equal(out[:, :32], part @ b.astype(float) @ w.astype(float))
    np.testing.assert_array_equal(out[:, 32:], before[:, 32:])


def test_a_dynamic_offset_of_one_matmul() -> None:
    """The pointer that is passed is that of the first element."""
    a = "memref<32x32xf16, strided<[48, 1], offset: ?>>"
    text = f"""func.func @product(%A: {a}, %B: memref<32x32xf16>, %C: memref<32x32xf32>) {{
      %zero = arith.constant 0.0 : f32
      %part = memref.subview %A[0, 0] [32, 32] [1, 1] : {a} to {a}
      linalg.fill ins(%zero : f32) outs(%C : memref<32x32xf32>)
      linalg.matmul ins(%part, %B : {a}, memref<32x32xf16>) outs(%C : memref<32x32xf32>)
      return
    }}"""
    kernel = stepladder.compile(text, device="emulator", target="sm_80")
    rng = np.random.default_rng(0)
    whole, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((32, 48), (32, 32)))
    np.testing.assert_array_equal(kernel(whole[:, :32], b), whole[:, :32].astype(float) @ b.astype(float))


@pytest.mark.parametrize(
    "layout", ["strided<[1010, 40, 1]>", "strided<[640, 40, 1], offset: 16>"], ids=["strides", "row across the pitch"]
)
def test_other_gaps_are_refused(layout: str) -> None:
    text = f"""func.func @f(%A: memref<2x16x32xf16, {layout}>, %B: memref<2x32x16xf16>, %C: memref<16x16xf32>) {{
      %zero = arith.constant 0.0 : f32
      linalg.fill ins(%zero : f32) outs(%C : memref<16x16xf32>)
      linalg.batch_reduce_matmul ins(%A, %B : memref<2x16x32xf16, {layout}>, memref<2x32x16xf16>)
        outs(%C : memref<16x16xf32>)
      return
    }}"""
    with mlir_context(), pytest.raises(StepladderError) as refused:
        build_any(text, "payload.mlir", Request("auto", {"target": "sm_80"}))
    notes = "\n".join(refused.value.notes)
    assert f"argument 0 is memref<2x16x32xf16, {layout}>, a buffer with gaps that is no part of whole rows" in notes
