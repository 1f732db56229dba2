"""Attention as JAX writes it, with transposed scores and products in bf16, is one kernel."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest

import stepladder
from stepladder.mlir.bindings import PREFIX

pytestmark = [
    pytest.mark.usefixtures("needs_ptxas"),
    pytest.mark.skipif(importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir"),
]

# Two heads of queries share the keys and values of each of two heads.
_QUERIES, _KEYS = "tensor<1x128x2x2x64xbf16>", "tensor<1x256x2x64xbf16>"
_SCORES, _HEADS, _NARROW = "tensor<1x2x128x2x256xf32>", "tensor<2x1x2x128x256xf32>", "tensor<2x1x2x128x256xbf16>"
_ROWS, _ONE = "tensor<2x1x2x128xf32>", "tensor<2x1x2x128x1xf32>"
_MASKED = f"""
  %least = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
  %low = stablehlo.broadcast_in_dim %least, dims = [] : (tensor<f32>) -> {_HEADS}
  %all = stablehlo.broadcast_in_dim %mask, dims = [0, 2, 3, 4]
    : (tensor<1x1x128x256xi1>) -> tensor<2x1x2x128x256xi1>
  %logits = stablehlo.select %all, %heads, %low : tensor<2x1x2x128x256xi1>, {_HEADS}
  %largest = stablehlo.reduce(%logits init: %none) applies stablehlo.maximum across dimensions = [4]
    : ({_HEADS}, tensor<f32>) -> {_ROWS}"""
# Without a mask, the maxima are those of the scores before they are transposed.
_PLAIN = f"""
  %logits = stablehlo.reshape %heads : ({_HEADS}) -> {_HEADS}
  %before = stablehlo.reduce(%scaled init: %none) applies stablehlo.maximum across dimensions = [4]
    : ({_SCORES}, tensor<f32>) -> tensor<1x2x128x2xf32>
  %largest = stablehlo.transpose %before, dims = [3, 0, 1, 2] : (tensor<1x2x128x2xf32>) -> {_ROWS}"""


def _text(logits: str) -> str:
    return f"""
func.func @main(%q: {_QUERIES}, %k: {_KEYS}, %v: {_KEYS}, %mask: tensor<1x1x128x256xi1>) -> {_QUERIES} {{
  %scores = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3]
    : ({_QUERIES}, {_KEYS}) -> {_SCORES}
  %scale = stablehlo.constant dense<0.125> : tensor<f32>
  %scales = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> {_SCORES}
  %scaled = stablehlo.multiply %scores, %scales : {_SCORES}
  %heads = stablehlo.transpose %scaled, dims = [3, 0, 1, 2, 4] : ({_SCORES}) -> {_HEADS}
  %none = stablehlo.constant dense<0xFF800000> : tensor<f32>{logits}
  %limits = stablehlo.broadcast_in_dim %none, dims = [] : (tensor<f32>) -> {_ROWS}
  %maxima = stablehlo.maximum %limits, %largest : {_ROWS}
  %1 = stablehlo.broadcast_in_dim %maxima, dims = [0, 1, 2, 3] : ({_ROWS}) -> {_ONE}
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 3, 4] : ({_ONE}) -> {_HEADS}
  %3 = stablehlo.subtract %logits, %2 : {_HEADS}
  %powers = stablehlo.exponential %3 : {_HEADS}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sums = stablehlo.reduce(%powers init: %zero) applies stablehlo.add across dimensions = [4]
    : ({_HEADS}, tensor<f32>) -> {_ROWS}
  %4 = stablehlo.broadcast_in_dim %sums, dims = [0, 1, 2, 3] : ({_ROWS}) -> {_ONE}
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3, 4] : ({_ONE}) -> {_HEADS}
  %6 = stablehlo.divide %powers, %5 : {_HEADS}
  %weights = stablehlo.convert %6 : ({_HEADS}) -> {_NARROW}
  %7 = stablehlo.dot_general %v, %weights, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4]
    : ({_KEYS}, {_NARROW}) -> tensor<1x2x64x2x128xbf16>
  %8 = stablehlo.transpose %7, dims = [3, 0, 4, 1, 2] : (tensor<1x2x64x2x128xbf16>) -> tensor<2x1x128x2x64xbf16>
  %9 = stablehlo.transpose %8, dims = [1, 2, 3, 0, 4] : (tensor<2x1x128x2x64xbf16>) -> {_QUERIES}
  return %9 : {_QUERIES}
}}
"""


@pytest.mark.parametrize("is_masked", [False, True])
def test_shared_heads(is_masked: bool) -> None:
    function = stepladder.compile(
        _text(_MASKED if is_masked else _PLAIN), device="emulator", target="sm_90a", attention="true"
    )
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["main_attention_0"]
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
        for shape in ((1, 128, 2, 2, 64), (1, 256, 2, 64), (1, 256, 2, 64))
    )
    mask = rng.random((1, 1, 128, 256)) < 0.5
    mask[..., 7, :130] = False
    logits = np.einsum("btkgd,bskd->bkgts", q.astype(float), k.astype(float)) / 8
    if is_masked:
        logits = np.where(mask[:, :, None], logits, -np.inf)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    wanted = np.einsum("bkgts,bskd->btkgd", powers / powers.sum(-1, keepdims=True), v.astype(float))
    got = np.asarray(function(q, k, v, mask)).astype(float)
    assert np.abs(got - wanted).max() < np.abs(wanted).max() * 2**-7


def test_one_query_behind_the_keys() -> None:
    """Scores whose last axis is that of the heads that share keys, as an einsum of JAX has them."""
    turned, scores, rows = "tensor<2x2x150x1x3xf32>", "tensor<2x2x3x1x150xf32>", "tensor<2x2x3x1xf32>"
    text = f"""
func.func public @main(%q: tensor<2x1x6x64xbf16>, %k: tensor<2x150x2x64xbf16>, %v: tensor<2x150x2x64xbf16>)
    -> tensor<2x1x6x64xbf16> {{
  %scale = stablehlo.constant dense<1.250000e-01> : {scores}
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.reshape %q : (tensor<2x1x6x64xbf16>) -> tensor<2x1x2x3x64xbf16>
  %1 = stablehlo.dot_general %k, %0, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4]
    : (tensor<2x150x2x64xbf16>, tensor<2x1x2x3x64xbf16>) -> {turned}
  %2 = stablehlo.transpose %1, dims = [0, 1, 4, 3, 2] : ({turned}) -> {scores}
  %3 = stablehlo.multiply %2, %scale : {scores}
  %4 = stablehlo.reduce(%3 init: %low) applies stablehlo.maximum across dimensions = [4]
    : ({scores}, tensor<f32>) -> {rows}
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : ({rows}) -> {scores}
  %6 = stablehlo.subtract %3, %5 : {scores}
  %7 = stablehlo.exponential %6 : {scores}
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [4]
    : ({scores}, tensor<f32>) -> {rows}
  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : ({rows}) -> {scores}
  %10 = stablehlo.divide %7, %9 : {scores}
  %11 = stablehlo.convert %10 : ({scores}) -> tensor<2x2x3x1x150xbf16>
  %12 = stablehlo.dot_general %v, %11, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4]
    : (tensor<2x150x2x64xbf16>, tensor<2x2x3x1x150xbf16>) -> tensor<2x2x64x3x1xbf16>
  %13 = stablehlo.transpose %12, dims = [0, 4, 1, 3, 2] : (tensor<2x2x64x3x1xbf16>) -> tensor<2x1x2x3x64xbf16>
  %14 = stablehlo.reshape %13 : (tensor<2x1x2x3x64xbf16>) -> tensor<2x1x6x64xbf16>
  return %14 : tensor<2x1x6x64xbf16>
}}
"""
    function = stepladder.compile(text, device="emulator", target="sm_90a")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["main_attention_0"]
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
        for shape in ((2, 1, 6, 64), (2, 150, 2, 64), (2, 150, 2, 64))
    )
    logits = np.einsum("bqgrd,bkgd->bgrqk", q.astype(float).reshape(2, 1, 2, 3, 64), k.astype(float)) / 8
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    wanted = np.einsum("bgrqk,bkgd->bqgrd", powers / powers.sum(-1, keepdims=True), v.astype(float))
    got = np.asarray(function(q, k, v)).astype(float)
    assert np.abs(got - wanted.reshape(got.shape)).max() < np.abs(wanted).max() * 2**-7
