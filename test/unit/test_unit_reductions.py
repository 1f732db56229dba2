"""Reductions along axes of one element, and sums of negated terms, which JAX writes for gradients."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from stepladder.mlir.traverse import walk
from stepladder.payload.selection import select
from stepladder.pipeline.context import mlir_context, parse_payload

# A sum of sums from 0 is a view; that of an argument may be a negative 0, to which 0 is added.
UNITS = """
#in = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>
func.func @f(%x: tensor<8x1xf32>, %y: tensor<1x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#in, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x1xf32>) outs(%1 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %3 = linalg.reduce { arith.mulf } ins(%y : tensor<1x8xf32>) outs(%1 : tensor<8xf32>) dimensions = [0]
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}
"""
SUMS = """
#in = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<4x4096xf16>) -> tensor<4xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<4xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<4xf16>) -> tensor<4xf16>
  %2 = linalg.generic {indexing_maps = [#in, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4096xf16>) outs(%1 : tensor<4xf16>) {
  ^bb0(%a: f16, %o: f16):
    %n = arith.negf %a : f16
    %v = arith.addf %o, %n : f16
    linalg.yield %v : f16
  } -> tensor<4xf16>
  return %2 : tensor<4xf16>
}
"""


def _reductions(text: str) -> list[str]:
    with mlir_context():
        module = select(parse_payload(text, "payload.mlir")).module
        kinds = [(op.name, str(op.attributes["iterator_types"])) for op in walk(module, "linalg.generic")]
        kinds += [(op.name, "reduction") for op in walk(module, "linalg.reduce")]
        return [name for name, loops in kinds if "reduction" in loops]


def test_one_iteration_is_no_reduction() -> None:
    assert _reductions(UNITS) == []
    x, y = np.full((8, 1), -0.0, np.float32), np.ones((1, 8), np.float32)
    sums, products = stepladder.compile(UNITS, device="emulator", target="sm_80")(x, y)
    assert not np.signbit(sums).any() and not products.any()


def test_a_sum_of_sums_is_a_view() -> None:
    rows = """
  %4 = tensor.expand_shape %2 [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %5 = linalg.reduce { arith.addf } ins(%4 : tensor<8x1xf32>) outs(%1 : tensor<8xf32>) dimensions = [1]
  return %5, %3 :"""
    text = UNITS.replace("8x1xf32", "8x3xf32", 2).replace("ins(%x : tensor<8x1", "ins(%x : tensor<8x3")
    text = text.replace("  return %2, %3 :", rows[1:])
    assert _reductions(text) == ["linalg.generic"]
    x, y = np.arange(24, dtype=np.float32).reshape(8, 3), np.ones((1, 8), np.float32)
    function = stepladder.compile(text, device="emulator", target="sm_80")
    assert np.array_equal(function(x, y)[0], x.sum(1))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_sums_of_negated_terms_are_rounded_once(target: str) -> None:
    """Upstream's canonicalization makes the sum a difference."""
    x = np.ones((4, 4096), np.float16)
    assert np.array_equal(stepladder.compile(SUMS, device="emulator", target=target)(x), np.full(4, -4096.0))


def test_a_softmax_of_one_element() -> None:
    """Its largest element is a copy of the tensor."""
    text = """
func.func @f(%x: tensor<8x1xf32>) -> tensor<8x1xf32> {
  %0 = tensor.empty() : tensor<8x1xf32>
  %1 = linalg.softmax dimension(1) ins(%x : tensor<8x1xf32>) outs(%0 : tensor<8x1xf32>) -> tensor<8x1xf32>
  return %1 : tensor<8x1xf32>
}
"""
    softmax = stepladder.compile(text, device="emulator", target="sm_80")
    assert np.array_equal(softmax(np.arange(8, dtype=np.float32)[:, None]), np.ones((8, 1)))


@pytest.mark.parametrize(("type_", "op"), [("f32", "subf"), ("i32", "subi")])
def test_sums_that_are_subtracted(type_: str, op: str) -> None:
    """Along rows that one kernel divides, from a number other than 0."""
    text = SUMS.replace("f16", type_).replace("0.0", "7.0" if type_ == "f32" else "7")
    text = text.replace("arith.negf %a", "arith.constant 0" if type_ == "i32" else "arith.negf %a")
    text = text.replace("%v = arith.addf %o, %n", f"%v = arith.{op} %o, %a")
    x = np.random.default_rng(0).integers(-9, 9, (4, 4096)).astype("f4" if type_ == "f32" else "i4")
    assert np.array_equal(stepladder.compile(text, device="emulator", target="sm_80")(x), 7 - x.sum(1))


def test_a_difference_from_the_sums_is_refused() -> None:
    text = SUMS.replace("%v = arith.addf %o, %n", "%v = arith.subf %n, %o")
    with pytest.raises(stepladder.StepladderError, match="does not fold the values into the result"):
        stepladder.compile(text, device="emulator", target="sm_80")
