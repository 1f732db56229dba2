"""Payloads whose results NumPy computes, apart from the reference program of their bundles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import stepladder
from combinations import sample
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.scalar_operations import ARITHMETIC

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<16x24xf16>", "tensor<24x32xf16>", "tensor<16x32xf32>"


def _starts_from(number: str) -> str:
    return f"""func.func @starts(%a: {A}, %b: {B}) -> {C} {{
  %c = arith.constant {number} : f32
  %e = tensor.empty() : {C}
  %s = linalg.fill ins(%c : f32) outs(%e : {C}) -> {C}
  %p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%s : {C}) -> {C}
  return %p : {C}
}}
"""


_HELPERS = f"""
func.func private @multiply(%b: {B}, %a: {A}, %c: {C}) -> {C} {{
  %p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%c : {C}) -> {C}
  return %p : {C}
}}
func.func private @halve(%x: {C}) -> {C} {{
  %h = arith.constant 0.5 : f32
  %e = tensor.empty() : {C}
  %y = linalg.map ins(%x : {C}) outs(%e : {C}) (%in: f32, %out: f32) {{
    %v = arith.mulf %in, %h : f32
    linalg.yield %v : f32
  }}
  return %y : {C}
}}
func.func @main(%a: {A}, %b: {B}, %c: {C}) -> {C} {{
  %p = call @multiply(%b, %a, %c) : ({B}, {A}, {C}) -> {C}
  %h = call @halve(%p) : ({C}) -> {C}
  %q = call @multiply(%b, %a, %h) : ({B}, {A}, {C}) -> {C}
  return %q : {C}
}}
"""
_ON_BUFFERS = """
func.func private @multiply(%b: memref<24x32xf16>, %a: memref<16x24xf16>, %c: memref<16x32xf32>) {
  linalg.matmul ins(%a, %b : memref<16x24xf16>, memref<24x32xf16>) outs(%c : memref<16x32xf32>)
  return
}
func.func @main(%a: memref<16x24xf16>, %b: memref<24x32xf16>, %c: memref<16x32xf32>) {
  call @multiply(%b, %a, %c) : (memref<24x32xf16>, memref<16x24xf16>, memref<16x32xf32>) -> ()
  call @multiply(%b, %a, %c) : (memref<24x32xf16>, memref<16x24xf16>, memref<16x32xf32>) -> ()
  return
}
"""
# Both operands have the same loops.
_ROWS = f"""func.func @rows(%a: {A}, %b: {A}) -> tensor<16xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %p = linalg.contract
    indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>]
    ins(%a, %b : {A}, {A}) outs(%z : tensor<16xf32>) -> tensor<16xf32>
  return %p : tensor<16xf32>
}}
"""
Arrays = Sequence[np.ndarray]
PAYLOADS: dict[str, tuple[str, Callable[..., np.ndarray]]] = {
    "from 1": (_starts_from("1.0"), lambda a, b: a @ b + 1),
    "from infinity": (_starts_from("0xFF800000"), lambda a, b: a @ b - np.inf),
    "helpers": (_HELPERS, lambda a, b, c: (a @ b + c) / 2 + a @ b),
    "helpers on buffers": (_ON_BUFFERS, lambda a, b, c: 2 * (a @ b) + c),
    "rows": (_ROWS, lambda a, b: (a * b).sum(1)),
}


@pytest.mark.parametrize("name", sample(list(PAYLOADS), 2))
def test_numbers(name: str) -> None:
    text, expected = PAYLOADS[name]
    compiled = stepladder.compile(text, target="sm_80", device="emulator")
    assert not isinstance(compiled, stepladder.ByShape)
    inputs = compiled.inputs if isinstance(compiled, stepladder.Function) else compiled.signature.inputs
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(-4, 5, item.shape).astype({"f16": np.float16, "f32": np.float32}[item.type]) for item in inputs
    ]
    wanted = expected(*(array.astype(np.float64) for array in arrays))
    np.testing.assert_array_equal(compiled(*arrays), wanted)


def test_the_compiled_function_is_the_one_that_no_other_calls() -> None:
    compiled = stepladder.compile(_HELPERS, target="sm_80", device="emulator")
    assert isinstance(compiled, stepladder.Function)
    assert compiled.manifest.function == "main"
    assert compiled.manifest.other_functions == ("multiply", "halve")
    helper = stepladder.compile(_HELPERS, target="sm_80", device="emulator", function="multiply")
    assert isinstance(helper, stepladder.Kernel)


def test_quotients_of_integers_are_cut_off_towards_zero() -> None:
    numbers, vector = "affine_map<(i) -> (i)>", "tensor<6xi32>"
    text = f"""func.func @divide(%x: {vector}, %y: {vector}) -> ({vector}, {vector}) {{
  %e = tensor.empty() : {vector}
  %q:2 = linalg.generic {{indexing_maps = [{", ".join([numbers] * 4)}], iterator_types = ["parallel"]}}
      ins(%x, %y : {vector}, {vector}) outs(%e, %e : {vector}, {vector}) {{
  ^bb0(%a: i32, %b: i32, %out: i32, %rest: i32):
    %0 = arith.divsi %a, %b : i32
    %1 = arith.remsi %a, %b : i32
    linalg.yield %0, %1 : i32, i32
  }} -> ({vector}, {vector})
  return %q#0, %q#1 : {vector}, {vector}
}}
"""
    function = stepladder.compile(text, device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function)
    x, y = np.array([7, -7, 7, -7, 6, -2], np.int32), np.array([2, 2, -2, -2, 3, 5], np.int32)
    quotients, rests = function(x, y)
    assert quotients.tolist() == [3, -3, -3, 3, 2, 0] and rests.tolist() == [1, -1, 1, -1, 0, -2]
    for name, wanted in (("divsi", quotients), ("remsi", rests)):
        assert np.array_equal(ARITHMETIC[f"arith.{name}"](NumPyArrays(), x, y), wanted)


def test_a_power_of_one_half_is_no_square_root() -> None:
    """Of minus infinity it is infinity, as in C and libdevice, and of -0.0 it is 0.0."""
    root = ARITHMETIC["math.powf"](NumPyArrays(), np.array([-np.inf, -0.0, 4]), np.float64(0.5))
    assert root.tolist() == [np.inf, 0, 2] and not np.signbit(root).any()
