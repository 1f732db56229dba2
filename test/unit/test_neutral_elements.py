"""Reductions by several threads begin from neutral elements, which change no bit: of -0.0 and NaN alone neither."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder

pytestmark = pytest.mark.usefixtures("needs_ptxas")

ROWS, COLUMNS = 16, 72
NAN = "0x7FC00000"


def text_of(fold: str, start: str) -> str:
    """Returns a function that reduces the rows of a tensor, beside a matmul."""
    return f"""func.func @f(%x: tensor<{ROWS}x{COLUMNS}xf32>, %a: tensor<16x16xf16>)
    -> (tensor<{ROWS}xf32>, tensor<16x16xf32>) {{
  %start = arith.constant {start} : f32
  %e = tensor.empty() : tensor<{ROWS}xf32>
  %f = linalg.fill ins(%start : f32) outs(%e : tensor<{ROWS}xf32>) -> tensor<{ROWS}xf32>
  %r = linalg.reduce {{ arith.{fold} }} ins(%x : tensor<{ROWS}x{COLUMNS}xf32>) outs(%f : tensor<{ROWS}xf32>)
    dimensions = [1]
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
  %p = linalg.matmul ins(%a, %a : tensor<16x16xf16>, tensor<16x16xf16>) outs(%z : tensor<16x16xf32>)
    -> tensor<16x16xf32>
  return %r, %p : tensor<{ROWS}xf32>, tensor<16x16xf32>
}}"""


@pytest.mark.parametrize(
    ("fold", "start", "value"),
    [("addf", "-0.0", -0.0), ("maxnumf", NAN, np.nan), ("minnumf", NAN, np.nan), ("mulf", "-0.0", 1.0)],
)
def test_rows_of_a_special_value_keep_it(fold: str, start: str, value: float) -> None:
    x = np.ones((ROWS, COLUMNS), np.float32)
    x[3] = value
    function = stepladder.compile(text_of(fold, start), target="sm_90a", device="emulator")
    reduced, _ = function(x, np.ones((16, 16), np.float16))
    others = COLUMNS if fold == "addf" else -0.0 if fold == "mulf" else 1.0
    expected = np.full(ROWS, others, np.float32)
    expected[3] = value if fold != "mulf" else -0.0
    np.testing.assert_array_equal(reduced, expected)
    np.testing.assert_array_equal(np.signbit(reduced), np.signbit(expected))


@pytest.mark.parametrize(("fold", "axis"), [("maxnumf", 0), ("minnumf", 1)])
@pytest.mark.parametrize("pipeline", ["mma_sync", "wgmma"])
def test_a_row_of_nan_in_the_epilogue(pipeline: str, fold: str, axis: int) -> None:
    """The product's row and column 5 are NaN; its other rows and columns hold one number beside."""
    text = f"""func.func @f(%a: tensor<24x16xf16>, %b: tensor<16x24xf16>) -> (tensor<24x24xf32>, tensor<24xf32>) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24x24xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<24x24xf32>) -> tensor<24x24xf32>
  %p = linalg.matmul ins(%a, %b : tensor<24x16xf16>, tensor<16x24xf16>) outs(%z : tensor<24x24xf32>)
    -> tensor<24x24xf32>
  %nan = arith.constant {NAN} : f32
  %v = tensor.empty() : tensor<24xf32>
  %f = linalg.fill ins(%nan : f32) outs(%v : tensor<24xf32>) -> tensor<24xf32>
  %r = linalg.reduce {{ arith.{fold} }} ins(%p : tensor<24x24xf32>) outs(%f : tensor<24xf32>) dimensions = [{axis}]
  return %p, %r : tensor<24x24xf32>, tensor<24xf32>
}}"""
    target = "sm_90a" if pipeline == "wgmma" else "sm_80"
    a, b = np.ones((24, 16), np.float16), np.ones((16, 24), np.float16)
    a[5] = b[:, 5] = np.nan
    kernel = stepladder.compile(text, pipeline=pipeline, target=target, device="emulator")
    _, reduced = kernel(a, b)
    expected = np.full(24, 16, np.float32)
    expected[5] = np.nan
    np.testing.assert_array_equal(reduced, expected)
