"""Unsigned arrays of NumPy for integer arguments: accepted where no op of the payload reads their sign."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import stepladder
from small_integers import small
from stepladder.mlir.bindings import PREFIX

pytestmark = pytest.mark.usefixtures("needs_ptxas")

MAPS = "indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], "
PARALLEL = MAPS + 'iterator_types = ["parallel", "parallel"]'


def weights(body: str, rows: str = "32") -> str:
    """Returns a product with weights of i8 that become f16 by a body of `%in`."""
    x, c = f"tensor<{rows}x32xf16>", f"tensor<{rows}x24xf32>"
    sizes = "%c0 = arith.constant 0 : index\n  %m = tensor.dim %x, %c0 : " + x if rows == "?" else ""
    return f"""func.func @f(%q: tensor<32x24xi8>, %x: {x}) -> {c} {{
  {sizes}
  %zero = arith.constant 0.0 : f32
  %ec = tensor.empty({"%m" if rows == "?" else ""}) : {c}
  %z = linalg.fill ins(%zero : f32) outs(%ec : {c}) -> {c}
  %e = tensor.empty() : tensor<32x24xf16>
  %w = linalg.generic {{{PARALLEL}}} ins(%q : tensor<32x24xi8>) outs(%e : tensor<32x24xf16>) {{
  ^bb0(%in: i8, %o: f16):
    %k = arith.constant 15 : i8
    {body}
    linalg.yield %v : f16
  }} -> tensor<32x24xf16>
  %p = linalg.matmul ins(%x, %w : {x}, tensor<32x24xf16>) outs(%z : {c}) -> {c}
  return %p : {c}
}}"""


BYTES = np.random.default_rng(0).integers(0, 256, (32, 24)).astype(np.uint8)
UNSIGNED = "%v = arith.uitofp %in : i8 to f16"
MASKED = """%n = arith.andi %in, %k : i8
    %wide = arith.extui %n : i8 to i32
    %v = arith.sitofp %wide : i32 to f16"""


@pytest.mark.parametrize(("body", "numbers"), [(UNSIGNED, BYTES), (MASKED, BYTES & 15)], ids=["unsigned", "masked"])
@pytest.mark.parametrize("rows", ["32", "?"])
def test_bytes_whose_sign_no_op_reads(body: str, numbers: np.ndarray, rows: str) -> None:
    compiled = stepladder.compile(weights(body, rows), device="emulator", target="sm_80")
    x = small(32, 32)
    np.testing.assert_array_equal(compiled(BYTES, x), x.astype(np.float32) @ numbers.astype(np.float32))


@pytest.mark.parametrize(
    "body",
    ["%v = arith.sitofp %in : i8 to f16", "%n = arith.addi %in, %k : i8\n    %v = arith.sitofp %n : i8 to f16"],
    ids=["read", "read after a sum"],
)
def test_bytes_whose_sign_an_op_reads_are_refused(body: str) -> None:
    compiled = stepladder.compile(weights(body), device="emulator", target="sm_80")
    with pytest.raises(
        stepladder.StepladderError, match="argument 'argument 0' has elements of uint8; accepted:"
    ) as error:
        compiled(BYTES, small(32, 32))
    assert "of which ops read the sign" in error.value.notes[0]


def test_a_function_of_several_kernels_takes_bytes_in_a_view_and_an_insertion() -> None:
    """The first rows of the argument, in another order, beside those of another one; and a comparison as signed."""
    text = f"""func.func @f(%q: tensor<48x24xi8>, %r: tensor<32x24xi8>, %s: tensor<32x24xi8>)
    -> (tensor<32x24xf32>, tensor<32x24xi8>) {{
  %zero = arith.constant 0 : i8
  %part = tensor.extract_slice %q[0, 0] [16, 24] [1, 1] : tensor<48x24xi8> to tensor<16x24xi8>
  %both = tensor.insert_slice %part into %r[16, 0] [16, 24] [1, 1] : tensor<16x24xi8> into tensor<32x24xi8>
  %e = tensor.empty() : tensor<32x24xf32>
  %y = linalg.generic {{{PARALLEL}}} ins(%both : tensor<32x24xi8>) outs(%e : tensor<32x24xf32>) {{
  ^bb0(%in: i8, %o: f32):
    %v = arith.uitofp %in : i8 to f32
    linalg.yield %v : f32
  }} -> tensor<32x24xf32>
  %ei = tensor.empty() : tensor<32x24xi8>
  %t = linalg.generic {{{PARALLEL}}} ins(%s : tensor<32x24xi8>) outs(%ei : tensor<32x24xi8>) {{
  ^bb0(%in: i8, %o: i8):
    %c = arith.cmpi sgt, %in, %zero : i8
    %v = arith.select %c, %in, %zero : i8
    linalg.yield %v : i8
  }} -> tensor<32x24xi8>
  return %y, %t : tensor<32x24xf32>, tensor<32x24xi8>
}}"""
    compiled = stepladder.compile(text, device="emulator", target="sm_80")
    assert isinstance(compiled, stepladder.Function)
    q = np.random.default_rng(1).integers(0, 256, (48, 24)).astype(np.uint8)
    y, t = compiled(q, BYTES, BYTES.view(np.int8))
    np.testing.assert_array_equal(y, np.concatenate((BYTES[:16], q[:16])).astype(np.float32))
    np.testing.assert_array_equal(t, np.maximum(BYTES.view(np.int8), 0))
    with pytest.raises(stepladder.StepladderError, match="argument 'argument 2' has elements of uint8"):
        compiled(q, BYTES, BYTES)


@pytest.mark.skipif(importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir")
def test_bytes_that_stablehlo_converts() -> None:
    """The lowering extends unsigned numbers as signed ones, and masks them."""
    text = """func.func @main(%q: tensor<16x32xui8>, %w: tensor<32x24xi8>) -> tensor<16x24xi32> {
  %0 = stablehlo.convert %q : (tensor<16x32xui8>) -> tensor<16x32xi32>
  %1 = stablehlo.convert %w : (tensor<32x24xi8>) -> tensor<32x24xi32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]
    : (tensor<16x32xi32>, tensor<32x24xi32>) -> tensor<16x24xi32>
  return %2 : tensor<16x24xi32>
}"""
    compiled = stepladder.compile(text, device="emulator", target="sm_90a")
    q, w = np.ascontiguousarray(BYTES[:32, :16].T), BYTES.view(np.int8)
    np.testing.assert_array_equal(compiled(q, w), q.astype(np.int32) @ w.astype(np.int32))
    with pytest.raises(stepladder.StepladderError, match="argument 'argument 1' has elements of uint8"):
        compiled(q, BYTES)
