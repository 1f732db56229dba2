"""Products of f32 by three of tf32 on wgmma have the infinities and NaN that sums of products in f32 have."""

import numpy as np

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
    a[30, 3], b[3, 17] = INFINITY, 1  # of which tf32 has all bits
    a[31, 3], a[35, 4] = np.nan, 0
    a[21, 8], a[22, 9] = np.float32(3.4027e38), -LARGEST
    return a, b


def test_numbers_that_are_not_finite() -> None:
    a, b = operands()
    c = stepladder.matmul(a, b, pipeline="wgmma", target="sm_90a", device="emulator")
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
