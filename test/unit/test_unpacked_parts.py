"""Weights of 4 bits that front ends unpack part by part, and join: one kernel dequantizes and multiplies them."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder

pytestmark = pytest.mark.usefixtures("needs_ptxas")

BYTES = "tensor<64x64xi8>"
ROWS = """  %w = tensor.concat dim(0) %p0, %p1 : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<128x64xi8>
"""
STACK = """
  %e0 = tensor.expand_shape %p0 [[0], [1, 2]] output_shape [64, 64, 1] : tensor<64x64xi8> into tensor<64x64x1xi8>
  %e1 = tensor.expand_shape %p1 [[0], [1, 2]] output_shape [64, 64, 1] : tensor<64x64xi8> into tensor<64x64x1xi8>
  %s = tensor.concat dim(2) %e0, %e1 : (tensor<64x64x1xi8>, tensor<64x64x1xi8>) -> tensor<64x64x2xi8>
  %w = tensor.collapse_shape %s [[0], [1, 2]] : tensor<64x64x2xi8> into tensor<64x128xi8>
"""
STORES = """  %begin = tensor.empty() : tensor<64x128xi8>
  %s = tensor.insert_slice %p1 into %begin[0, 1] [64, 64] [1, 2] : tensor<64x64xi8> into tensor<64x128xi8>
  %w = tensor.insert_slice %p0 into %s[0, 0] [64, 64] [1, 2] : tensor<64x64xi8> into tensor<64x128xi8>
"""
UNSIGNED_LOW = "%v = arith.andi %y, %c15 : i8"
UNSIGNED_HIGH = "%v = arith.shrui %y, %c4 : i8"
SIGNED_LOW = """%u = arith.shli %y, %c4 : i8
    %v = arith.shrsi %u, %c4 : i8"""
SIGNED_HIGH = "%v = arith.shrsi %y, %c4 : i8"


def payload(parts: tuple[str, str], joined: str, shape: str, source: str = "%q") -> str:
    """Returns a product of f16 and of the transposed numbers in the halves of bytes.

    Args:
        parts: what yields %v, the number of each part, from a byte %y.
        joined: makes %w of the parts %p0 and %p1.
        shape: of all numbers.
        source: of the second part.
    """
    n, k = map(int, shape.split("x"))
    maps = "[affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]"
    loops = 'iterator_types = ["parallel", "parallel"]'
    texts = "".join(
        f"""  %p{number} = linalg.generic {{indexing_maps = {maps}, {loops}}}
      ins({tensor} : {BYTES}) outs(%e : {BYTES}) {{
  ^bb0(%y: i8, %o: i8):
    {body}
    linalg.yield %v : i8
  }} -> {BYTES}
"""
        for number, (tensor, body) in enumerate(zip(("%q", source), parts))
    )
    return f"""func.func @f(%x: tensor<16x{k}xf16>, %q: {BYTES}, %other: {BYTES}) -> tensor<16x{n}xf32> {{
  %c4 = arith.constant 4 : i8
  %c15 = arith.constant 15 : i8
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {BYTES}
{texts}{joined}  %h = tensor.empty() : tensor<{shape}xf16>
  %f = linalg.generic {{indexing_maps = {maps}, {loops}}}
      ins(%w : tensor<{shape}xi8>) outs(%h : tensor<{shape}xf16>) {{
  ^bb0(%b: i8, %o: f16):
    %r = arith.sitofp %b : i8 to f16
    linalg.yield %r : f16
  }} -> tensor<{shape}xf16>
  %c = tensor.empty() : tensor<16x{n}xf32>
  %z = linalg.fill ins(%zero : f32) outs(%c : tensor<16x{n}xf32>) -> tensor<16x{n}xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] ins(%x, %f : tensor<16x{k}xf16>, tensor<{shape}xf16>)
      outs(%z : tensor<16x{n}xf32>) -> tensor<16x{n}xf32>
  return %r : tensor<16x{n}xf32>
}}
"""


def _of_bytes(first: np.ndarray, second: np.ndarray, parts: tuple[str, str]) -> list[np.ndarray]:
    numbers = {
        UNSIGNED_LOW: lambda x: x & 15,
        UNSIGNED_HIGH: lambda x: x.view(np.uint8) >> 4,
        SIGNED_LOW: lambda x: ((x & 15) ^ 8) - 8,
        SIGNED_HIGH: lambda x: x >> 4,
    }
    return [numbers[part](x).astype(float) for part, x in zip(parts, (first, second))]


@pytest.mark.parametrize(
    "parts, joined, shape, source, producers",
    [
        ((UNSIGNED_LOW, UNSIGNED_HIGH), STACK, "64x128", "%q", "registers"),
        ((UNSIGNED_HIGH, UNSIGNED_LOW), STORES, "64x128", "%q", "registers"),
        ((SIGNED_LOW, SIGNED_HIGH), STACK, "64x128", "%q", "registers"),
        ((UNSIGNED_LOW, UNSIGNED_HIGH), ROWS, "128x64", "%q", "kernels"),
        # Of two tensors, and with and without a sign.
        ((UNSIGNED_LOW, UNSIGNED_HIGH), STACK, "64x128", "%other", None),
        ((UNSIGNED_LOW, SIGNED_HIGH), STACK, "64x128", "%q", None),
    ],
)
def test_halves_of_bytes(parts: tuple[str, str], joined: str, shape: str, source: str, producers: str | None) -> None:
    """Those of one tensor are unpacked by one op; a kernel joins other parts."""
    kernel = stepladder.compile(payload(parts, joined, shape, source), target="sm_90a", device="emulator")
    generator = np.random.default_rng(0)
    q, other = generator.integers(-128, 128, (2, 64, 64)).astype(np.int8)
    first, second = _of_bytes(q, q if source == "%q" else other, parts)
    weights = np.concatenate((first, second)) if joined == ROWS else np.stack((first, second), -1).reshape(64, 128)
    x = generator.integers(-2, 3, (16, weights.shape[1])).astype(np.float16)
    np.testing.assert_array_equal(kernel(x, q, other), x @ weights.T)
    if producers is None:
        assert isinstance(kernel, stepladder.Function)
    else:
        assert kernel.manifest.knobs["producers"] == producers


WORDS = """func.func @f(%x: tensor<16x128xf16>, %q: tensor<16x64xi32>) -> tensor<16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c4 = arith.constant 4 : i64
  %c15 = arith.constant 15 : i32
  %e = tensor.empty() : tensor<8xi32>
  %places = linalg.generic {indexing_maps = [affine_map<(t) -> (t)>], iterator_types = ["parallel"]}
      outs(%e : tensor<8xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    %s = arith.muli %j, %c4 : i64
    %r = arith.trunci %s : i64 to i32
    linalg.yield %r : i32
  } -> tensor<8xi32>
  %h = tensor.empty() : tensor<16x8x64xf16>
  %w = linalg.generic {indexing_maps = [affine_map<(g, t, n) -> (g, n)>, affine_map<(g, t, n) -> (t)>,
      affine_map<(g, t, n) -> (g, t, n)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%q, %places : tensor<16x64xi32>, tensor<8xi32>) outs(%h : tensor<16x8x64xf16>) {
  ^bb0(%y: i32, %s: i32, %o: f16):
    %u = arith.shrsi %y, %s : i32
    %v = arith.andi %u, %c15 : i32
    %r = arith.sitofp %v : i32 to f16
    linalg.yield %r : f16
  } -> tensor<16x8x64xf16>
  %b = tensor.collapse_shape %w [[0, 1], [2]] : tensor<16x8x64xf16> into tensor<128x64xf16>
  %c = tensor.empty() : tensor<16x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%c : tensor<16x64xf32>) -> tensor<16x64xf32>
  %r = linalg.matmul ins(%x, %b : tensor<16x128xf16>, tensor<128x64xf16>) outs(%z : tensor<16x64xf32>)
    -> tensor<16x64xf32>
  return %r : tensor<16x64xf32>
}
"""


GUARDED = """%inside = arith.cmpi ult, %s, %c32 : i32
    %guarded = arith.select %inside, %u, %sign : i32
    %v = arith.andi %guarded, %c15 : i32
"""


@pytest.mark.parametrize("is_guarded", [False, True])
def test_words_that_are_shifted_by_positions(is_guarded: bool) -> None:
    """As GPTQ unpacks them, by an `arange`; StableHLO's shifts are defined for all distances."""
    text = WORDS
    if is_guarded:
        text = text.replace("%v = arith.andi %u, %c15 : i32\n", GUARDED)
        text = text.replace("    %u = ", "    %sign = arith.shrsi %y, %c31 : i32\n    %u = ")
        constants = "  %c31 = arith.constant 31 : i32\n  %c32 = arith.constant 32 : i32\n"
        text = text.replace("  %c15 = ", f"{constants}  %c15 = ")
    kernel = stepladder.compile(text, target="sm_90a", device="emulator")
    generator = np.random.default_rng(1)
    q = generator.integers(-(2**31), 2**31, (16, 64)).astype(np.int32)
    weights = np.stack([q.astype(np.int64) >> place & 15 for place in range(0, 32, 4)], 1).reshape(128, 64)
    x = generator.integers(-2, 3, (16, 128)).astype(np.float16)
    np.testing.assert_array_equal(kernel(x, q), x.astype(float) @ weights)
    assert kernel.manifest.knobs["producers"] == "registers"


def test_a_small_slice_of_scales_stays_a_kernel() -> None:
    """Weights are dequantized by the matmul, whatever makes their scales."""
    text = WORDS.replace("%q: tensor<16x64xi32>)", "%q: tensor<16x64xi32>, %scales: tensor<64x2xf16>)")
    text = text.replace(
        "  %b = tensor.collapse_shape %w [[0, 1], [2]] : tensor<16x8x64xf16> into tensor<128x64xf16>\n",
        """  %b0 = tensor.collapse_shape %w [[0, 1], [2]] : tensor<16x8x64xf16> into tensor<128x64xf16>
  %scale = tensor.extract_slice %scales[0, 1] [64, 1] [1, 1] : tensor<64x2xf16> to tensor<64xf16>
  %d = tensor.empty() : tensor<128x64xf16>
  %b = linalg.generic {indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (n)>,
      affine_map<(k, n) -> (k, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%b0, %scale : tensor<128x64xf16>, tensor<64xf16>) outs(%d : tensor<128x64xf16>) {
  ^bb0(%y: f16, %f: f16, %o: f16):
    %r = arith.mulf %y, %f : f16
    linalg.yield %r : f16
  } -> tensor<128x64xf16>
""",
    )
    function = stepladder.compile(text, target="sm_90a", device="emulator")
    assert [launch.stage for launch in function.manifest.launches] == ["f_elementwise_0", "f_matmul_0"]
    generator = np.random.default_rng(2)
    q = generator.integers(-(2**31), 2**31, (16, 64)).astype(np.int32)
    weights = np.stack([q.astype(np.int64) >> place & 15 for place in range(0, 32, 4)], 1).reshape(128, 64)
    x, scales = generator.integers(-2, 3, (16, 128)).astype(np.float16), np.tile([8.0, 0.5], (64, 1)).astype(np.float16)
    np.testing.assert_array_equal(function(x, q, scales), x @ (weights * 0.5))
