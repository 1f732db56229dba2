"""Constants of many numbers are arguments that the bundle carries the data of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stepladder.emulator.matmul import EmulatedExecutor, lowest
from stepladder.payload.selection import select
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import BAD_INPUT, StepladderError
from stepladder.verify.check import check_matmul

KNOBS = {"block_m": 64, "block_n": 64, "block_k": 32, "consumer_warpgroups": 1}
WEIGHT = np.random.default_rng(5).standard_normal((128, 96)).astype(np.float16)


def resource(data: bytes) -> str:
    return f'{{-# dialect_resources: {{ builtin: {{ weight: "0x04000000{data.hex()}" }} }} #-}}\n'


def dense(array: np.ndarray) -> str:
    return f"dense<{json.dumps(array.tolist())}>"


def linear(constant: str, tail: str = "") -> str:
    """The function that torch-mlir writes for an f16 `nn.Linear` on three dimensions, without its bias."""
    return f"""
func.func @main(%input: tensor<4x16x96xf16>) -> tensor<4x16x128xf16> {{
  %zero = arith.constant 0.0 : f32
  %weight = arith.constant {constant} : tensor<128x96xf16>
  %x = tensor.collapse_shape %input [[0, 1], [2]] : tensor<4x16x96xf16> into tensor<64x96xf16>
  %t = tensor.empty() : tensor<96x128xf16>
  %w = linalg.transpose ins(%weight : tensor<128x96xf16>) outs(%t : tensor<96x128xf16>) permutation = [1, 0]
  %xe = tensor.empty() : tensor<64x96xf32>
  %a = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x : tensor<64x96xf16>) outs(%xe : tensor<64x96xf32>) {{
  ^bb0(%in: f16, %out: f32):
    %e = arith.extf %in : f16 to f32
    linalg.yield %e : f32
  }} -> tensor<64x96xf32>
  %we = tensor.empty() : tensor<96x128xf32>
  %b = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%w : tensor<96x128xf16>) outs(%we : tensor<96x128xf32>) {{
  ^bb0(%in: f16, %out: f32):
    %e = arith.extf %in : f16 to f32
    linalg.yield %e : f32
  }} -> tensor<96x128xf32>
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>)
      outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %h = tensor.empty() : tensor<64x128xf16>
  %rounded = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%p : tensor<64x128xf32>) outs(%h : tensor<64x128xf16>) {{
  ^bb0(%in: f32, %out: f16):
    %r = arith.truncf %in : f32 to f16
    linalg.yield %r : f16
  }} -> tensor<64x128xf16>
  %r = tensor.expand_shape %rounded [[0, 1], [2]] output_shape [4, 16, 128]
      : tensor<64x128xf16> into tensor<4x16x128xf16>
  return %r : tensor<4x16x128xf16>
}}
{tail}"""


@pytest.mark.parametrize("text", [linear("dense_resource<weight>", resource(WEIGHT.tobytes())), linear(dense(WEIGHT))])
def test_bundle_carries_the_weight(text: str, tmp_path: Path) -> None:
    with mlir_context():
        build(text, "payload.mlir", Request("wgmma", KNOBS)).write(tmp_path / "bundle")
    bundle = read_bundle(tmp_path / "bundle")
    (role,) = bundle.constants()
    assert role == "b" and bundle.manifest.problem.b_layout == "column"
    np.testing.assert_array_equal(bundle.constants()["b"], WEIGHT)
    with mlir_context():
        _, emulation, roles = lowest(bundle)
        executor = EmulatedExecutor(emulation, roles, count=False)
        for report in check_matmul(
            bundle.manifest.problem, bundle.expected(), executor, 3, constants=bundle.constants(), repeats=False
        ):
            assert report.passed, report.describe()
        # The function of the payload, on the weight that the bundle carries.
        x = np.random.default_rng(1).standard_normal((64, 96)).astype(np.float16)
        executor.load(x, bundle.constants()["b"])
        got = executor.launch(np.zeros((64, 128), np.float16))
    np.testing.assert_allclose(got, x.astype(np.float64) @ WEIGHT.T.astype(np.float64), rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "i32"])
@pytest.mark.parametrize("size", [6, 200])  # numbers in decimal, and in hexadecimal
def test_data(type_: str, size: int) -> None:
    dtype = element_type(type_).dtype
    numbers = np.random.default_rng(size).standard_normal(size) * 10
    if not type_.startswith("i"):
        numbers[:3] = [np.nan, -0.0, 0.1]
    array = numbers.astype(np.int64).astype(dtype) if type_.startswith("i") else numbers.astype(dtype)
    text = f"""
func.func @f() -> tensor<{size}x{type_}> {{
  %c = arith.constant dense<"0x{array.tobytes().hex()}"> : tensor<{size}x{type_}>
  return %c : tensor<{size}x{type_}>
}}
"""
    with mlir_context():
        (found,) = select(parse_payload(text, "payload.mlir")).constants.values()
    assert (found.type, found.shape) == (type_, (size,))
    assert found.data == array.tobytes()


@pytest.mark.parametrize(
    "text, message",
    [
        (
            linear("dense_resource<weight>", resource(b"\0" * 8)),
            "payload.mlir:4:13: error: the data of the constant is not in the payload: 8 bytes of 24576",
        ),
        (
            linear("dense_resource<weight>", resource(b"\0" * 24578)),
            "payload.mlir:4:13: error: the constant has 24578 bytes of data",
        ),
        (
            linear("dense_resource<weight>"),
            "payload.mlir:4:13: error: the data of the constant is not in the payload",
        ),
        (
            linear("dense<1.0>"),
            "payload.mlir:4:13: error: B is the result of another op ('arith.constant'); it must be an argument",
        ),
        (
            "func.func @f(%A: tensor<2x2xf16>, %B: tensor<2x2xf16>) -> tensor<2x2xf32> {\n"
            "  %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>\n"
            "  %p = linalg.matmul ins(%A, %B : tensor<2x2xf16>, tensor<2x2xf16>) outs(%c : tensor<2x2xf32>)"
            " -> tensor<2x2xf32>\n  return %p : tensor<2x2xf32>\n}\n",
            "payload.mlir:2:8: error: the initial value is a constant, which the kernel would overwrite",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        run_pipeline(text, "payload.mlir", Request("wgmma", KNOBS))
    assert caught.value.render().startswith(message), caught.value.render()
    assert caught.value.status == BAD_INPUT


@pytest.mark.parametrize(
    "data, message",
    [
        ("constants/none.bin", "field 'files' does not list 'constants/none.bin'"),
        ("kernel.ptx", "argument B has 24576"),
    ],
)
def test_data_of_another_size_is_refused(data: str, message: str, tmp_path: Path) -> None:
    with mlir_context():
        build(linear(dense(WEIGHT)), "payload.mlir", Request("wgmma", KNOBS)).write(tmp_path / "bundle")
    file = tmp_path / "bundle" / "manifest.json"
    manifest = json.loads(file.read_text())
    next(item for item in manifest["arguments"] if item["role"] == "b")["data"] = data
    file.write_text(json.dumps(manifest))
    with pytest.raises(StepladderError, match=message):
        read_bundle(tmp_path / "bundle")
