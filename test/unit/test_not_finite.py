"""Infinities and NaN are those of f32: in products of f32 by three of tf32, and in approximated functions."""

import numpy as np
import pytest

import stepladder

INFINITY, LARGEST = np.float32(np.inf), np.finfo(np.float32).max


def operands() -> tuple[np.ndarray, np.ndarray]:
    """Returns A and B with infinities, NaN, and numbers of A that round to an infinity in tf32."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 40)).astype(np.float32)
    # Also above 4096, where the small part of a number of B times the largest of tf32 is infinite.
    b = (rng.standard_normal((40, 64)) * 5000).astype(np.float32)
    b[8:10] *= np.float32(1e-6)
    a[3, 5], a[10, 7], a[20, 6], b[6, 11], b[4, 20] = INFINITY, -INFINITY, INFINITY, INFINITY, -INFINITY
    a[30, 2], b[2, 13] = INFINITY, 0  # their product is NaN
    b[2, 14], b[2, 15] = 1e-44, -1e-40  # which tf32 rounds to 0, or has some bits of
    a[30, 3], b[3, 17] = INFINITY, 1  # of which tf32 has all bits
    a[31, 3], a[35, 4] = np.nan, 0
    a[21, 8], a[22, 9] = np.float32(3.4027e38), -LARGEST
    return a, b


@pytest.mark.parametrize("pipeline", ["wgmma", "mma_sync"])
def test_numbers_that_are_not_finite(pipeline: str) -> None:
    a, b = operands()
    c = stepladder.matmul(a, b, pipeline=pipeline, target="sm_90a", device="emulator")
    with np.errstate(invalid="ignore", over="ignore"):
        products = a.astype(np.float64)[:, :, None] * b.astype(np.float64)[None]
        exact = products.sum(axis=1)
        expected = exact.astype(np.float32)
    assert np.isnan(expected).any() and (expected == INFINITY).any() and (expected == -INFINITY).any()
    is_finite = np.isfinite(expected)
    assert is_finite[21].any() and is_finite[22].any()
    np.testing.assert_array_equal(c[~is_finite], expected[~is_finite])
    sizes = np.abs(products).sum(axis=1)
    assert np.all(np.abs(c[is_finite] - exact[is_finite]) <= 2.0**-20 * sizes[is_finite])


SILU = """func.func @silu(%A: tensor<16x16xf16>, %B: tensor<16x16xf16>, %D: tensor<16x16xf32>) -> tensor<16x16xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %p = linalg.matmul ins(%A, %B : tensor<16x16xf16>, tensor<16x16xf16>) outs(%z : tensor<16x16xf32>)
    -> tensor<16x16xf32>
  %h = tensor.empty() : tensor<16x16xf16>
  %r = linalg.map ins(%p, %D : tensor<16x16xf32>, tensor<16x16xf32>) outs(%h : tensor<16x16xf16>)
    (%x: f32, %d: f32, %o: f16) {
      %one = arith.constant 1.0 : f32
      %s = arith.addf %x, %d : f32
      %n = arith.negf %s : f32
      %a = math.exp %n : f32
      %b = arith.addf %a, %one : f32
      %q = arith.divf %s, %b : f32
      %v = arith.truncf %q : f32 to f16
      linalg.yield %v : f16
    }
  return %r : tensor<16x16xf16>
}"""


@pytest.mark.usefixtures("needs_ptxas")
def test_silu_of_infinities() -> None:
    """Minus infinity times a sigmoid of 0 is NaN, in elements whose sigmoid has `rcp.approx` and in the others."""
    zeros, d = np.zeros((16, 16), np.float16), np.full((16, 16), -INFINITY)
    d[3], d[4], d[5] = INFINITY, np.nan, -1e4
    result = stepladder.compile(SILU, pipeline="wgmma", target="sm_90a", device="emulator")(zeros, zeros, d)
    assert (result[3] == INFINITY).all() and (result[5] == 0).all()
    assert np.isnan(result[[0, 1, 2, 4, *range(6, 16)]]).all()


@pytest.mark.usefixtures("needs_ptxas")
def test_exponentials_that_are_nearly_infinite() -> None:
    """exp(x) / (exp(x) + 1) is 1 where the reciprocal of its denominator is not a normal number."""
    text = SILU.replace("%n = arith.negf %s", "%n = arith.addf %s, %s").replace("divf %s, %b", "divf %a, %b")
    zeros = np.zeros((16, 16), np.float16)
    d = np.linspace(-44.3, 44.3, 256, dtype=np.float32).reshape(16, 16)
    result = stepladder.compile(text, pipeline="wgmma", target="sm_90a", device="emulator")(zeros, zeros, d)
    np.testing.assert_allclose(result.astype(np.float64), 1 / (1 + np.exp(-2.0 * d)), rtol=2e-3, atol=1e-7)
