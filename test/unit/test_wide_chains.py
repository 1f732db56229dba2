"""Functions that a payload computes in 16 bits are computed in f32, and rounded once."""

import math

import ml_dtypes
import numpy as np
import pytest

import stepladder

_TEXT = """#all = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<64x32xELEMENT>, %b: tensor<32x64xELEMENT>) -> tensor<64x64xELEMENT> {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : ELEMENT
  %one = arith.constant 1.0 : ELEMENT
  %half = arith.constant 0.5 : ELEMENT
  %0 = tensor.empty() : tensor<64x64xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = linalg.matmul ins(%a, %b : tensor<64x32xELEMENT>, tensor<32x64xELEMENT>) outs(%1 : tensor<64x64xf32>)
    -> tensor<64x64xf32>
  %3 = tensor.empty() : tensor<64x64xELEMENT>
  %4 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%2 : tensor<64x64xf32>) outs(%3 : tensor<64x64xELEMENT>) {
  ^bb0(%p: f32, %out: ELEMENT):
    %x = arith.truncf %p : f32 to ELEMENT
BODY
    linalg.yield %y : ELEMENT
  } -> tensor<64x64xELEMENT>
  return %4 : tensor<64x64xELEMENT>
}
"""
_GELU = """    %root = math.sqrt %two : ELEMENT
    %v = arith.divf %x, %root : ELEMENT
    %e = math.erf %v : ELEMENT
    %s = arith.addf %e, %one : ELEMENT
    %h = arith.mulf %s, %half : ELEMENT
    %y = arith.mulf %x, %h : ELEMENT"""
_SILU = """    %n = arith.negf %x : ELEMENT
    %e = math.exp %n : ELEMENT
    %s = arith.addf %e, %one : ELEMENT
    %g = arith.divf %one, %s : ELEMENT
    %y = arith.mulf %x, %g : ELEMENT"""
_FUNCTIONS = {
    _GELU: lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    _SILU: lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("body", [_GELU, _SILU], ids=["GELU", "SiLU"])
@pytest.mark.usefixtures("needs_ptxas")
def test_results_are_rounded_once(element: str, body: str) -> None:
    """What the payload computes has an error of several roundings; that of the kernel is half of a last bit."""
    text = _TEXT.replace("BODY", body).replace("ELEMENT", element)
    kernel = stepladder.compile(text, device="emulator", target="sm_80")
    assert isinstance(kernel, stepladder.Kernel) and "div.rn" not in kernel.ptx
    dtype = np.dtype(ml_dtypes.bfloat16 if element == "bf16" else np.float16)
    generator = np.random.default_rng(0)
    a, b = (0.5 * generator.standard_normal(shape) for shape in ((64, 32), (32, 64)))
    a, b = a.astype(dtype), b.astype(dtype)
    x = (a.astype(np.float32) @ b.astype(np.float32)).astype(dtype).astype(np.float64)
    got, wanted = np.asarray(kernel(a, b)).astype(np.float64), _FUNCTIONS[body](x)
    # A sum that is rounded to a neighbour moves the result by a last bit more.
    assert np.abs(got - wanted).max() <= 2 * np.abs(wanted).max() * float(ml_dtypes.finfo(dtype).eps)
    assert (got == wanted.astype(dtype).astype(np.float64)).mean() > 0.99
