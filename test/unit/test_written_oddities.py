"""Payloads with what few people write: right numbers, or the reason why they are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepladder
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<16x24xf16>", "tensor<24x32xf16>", "tensor<16x32xf32>"
ZEROS = f"%z = arith.constant dense<0.0> : {C}"
PRODUCT = f"%p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}"


def small(*shape: int, seed: int = 0, dtype: type = np.float16) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(-3, 4, shape).astype(dtype)


def refusal(text: str, target: str = "sm_80") -> StepladderError:
    with pytest.raises(StepladderError) as caught:
        stepladder.compile(text, target=target, device="emulator")
    return caught.value


@pytest.mark.parametrize("mode", ["toward_zero", "to_nearest_away", "upward", "downward"])
@pytest.mark.parametrize("place", ["epilogue", "producer"])
def test_roundings_other_than_to_nearest_are_refused(mode: str, place: str) -> None:
    """LLVM's back end for NVPTX rounds to f16 to nearest, whatever the op says."""
    half = "tensor<16x32xf16>" if place == "epilogue" else A
    wide, source = (C, "%p") if place == "epilogue" else ("tensor<16x24xf32>", "%x")
    cast = f"""%e = tensor.empty() : {half}
  %h = linalg.map ins({source} : {wide}) outs(%e : {half}) (%in: f32, %out: f16) {{
    %v = arith.truncf %in {mode} : f32 to f16
    linalg.yield %v : f16
  }}"""
    if place == "epilogue":
        text = (
            f"func.func @f(%a: {A}, %b: {B}) -> {half} {{\n  {ZEROS}\n  {PRODUCT}\n  {cast}\n  return %h : {half}\n}}"
        )
    else:
        product = PRODUCT.replace("%a", "%h")
        text = f"func.func @f(%x: {wide}, %b: {B}) -> {C} {{\n  {ZEROS}\n  {cast}\n  {product}\n  return %p : {C}\n}}"
    error = refusal(text, "sm_90a")
    assert error.message == "arith.truncf with another rounding than to nearest"
    assert error.location and error.location.endswith(":10")
    assert any("no reference can be computed" in note for note in error.notes)


def test_a_contraction_whose_result_has_its_heads_behind_its_rows_starts_from_a_constant() -> None:
    result = "tensor<6x2x8xf32>"
    maps = ", ".join(f"affine_map<(h, s, d, t) -> ({axes})>" for axes in ("h, s, t", "h, t, d", "s, h, d"))
    text = f"""func.func @f(%w: tensor<2x6x4xf16>, %v: tensor<2x4x8xf16>) -> {result} {{
  %zeros = arith.constant dense<0.0> : {result}
  %r = linalg.contract indexing_maps = [{maps}] ins(%w, %v : tensor<2x6x4xf16>, tensor<2x4x8xf16>)
    outs(%zeros : {result}) -> {result}
  return %r : {result}
}}"""
    w, v = small(2, 6, 4), small(2, 4, 8)
    function = stepladder.compile(text, target="sm_80", device="emulator")
    wanted = np.einsum("hst,htd->shd", w.astype(np.float32), v.astype(np.float32))
    np.testing.assert_array_equal(function(w, v), wanted)


def test_types_that_no_pipeline_multiplies() -> None:
    text = f"""func.func @f(%a: tensor<16x24xf6E2M3FN>, %b: tensor<24x32xf6E2M3FN>) -> {C} {{
  {ZEROS}
  %p = linalg.matmul ins(%a, %b : tensor<16x24xf6E2M3FN>, tensor<24x32xf6E2M3FN>) outs(%z : {C}) -> {C}
  return %p : {C}
}}"""
    assert refusal(text).message == "A of f6E2M3FN, which no pipeline multiplies"


def test_sums_from_a_constant_are_not_what_is_wrong_with_a_payload() -> None:
    square = "tensor<16x16xf32>"
    text = f"""func.func @f(%a: {A}, %b: tensor<24x16xf16>) -> tensor<16xf32> {{
  %z = arith.constant dense<0.0> : {square}
  %p = linalg.matmul ins(%a, %b : {A}, tensor<24x16xf16>) outs(%z : {square}) -> {square}
  %e = tensor.empty() : tensor<16xf32>
  %d = linalg.generic {{indexing_maps = [affine_map<(i) -> (i, i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%p : {square}) outs(%e : tensor<16xf32>) {{
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }} -> tensor<16xf32>
  return %d : tensor<16xf32>
}}"""
    error = refusal(text)
    assert error.message == "linalg.generic has the indexing map (d0) -> (d0, d0)"
    assert error.location and error.location.endswith(":5:8")


def test_a_kernel_of_constants_alone_needs_an_array_to_write(tmp_path: Path) -> None:
    text = """func.func @f() -> tensor<2x2xi32> {
  %a = arith.constant dense<[[1, 2], [-3, 4]]> : tensor<2x2xi8>
  %z = arith.constant dense<0> : tensor<2x2xi32>
  %p = linalg.matmul ins(%a, %a : tensor<2x2xi8>, tensor<2x2xi8>) outs(%z : tensor<2x2xi32>) -> tensor<2x2xi32>
  return %p : tensor<2x2xi32>
}"""
    kernel = stepladder.compile(text, target="sm_80", device="emulator")
    with pytest.raises(stepladder.ArgumentError, match="'out' is missing, and there is no argument to tell"):
        kernel()
    out = np.zeros((2, 2), np.int32)
    assert kernel(out=out) is out
    bundle = tmp_path / "square.bundle"
    kernel.save(bundle)
    assert out.tolist() == [[-5, 10], [-15, 10]]
    assert stepladder.load(bundle, device="emulator")(out=np.zeros_like(out)).tolist() == out.tolist()
