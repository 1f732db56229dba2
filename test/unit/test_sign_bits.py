"""Casts of bits are computed; those that change the sign of a number alone are ops on numbers, in epilogues and in
front of a product; those of whole arguments make these of the other type."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import stepladder
from test_epilogues import PIPELINES, check

pytestmark = pytest.mark.usefixtures("needs_ptxas")

# Bodies on bits %b of a number and bits %d of another one, by what NumPy computes.
BODIES = {
    "magnitude": ("%n = arith.andi %b, %rest : TYPE", lambda x, y: np.abs(x)),
    "negative": ("%n = arith.xori %sign, %b : TYPE", lambda x, y: -x),
    "negative magnitude": ("%n = arith.ori %b, %sign : TYPE", lambda x, y: -np.abs(x)),
    "with the sign of another": (
        "%s = arith.andi %sign, %d : TYPE\n %m = arith.andi %b, %rest : TYPE\n %n = arith.ori %s, %m : TYPE",
        lambda x, y: np.copysign(x, y),
    ),
    "twice": ("%m = arith.andi %b, %rest : TYPE\n %n = arith.xori %m, %sign : TYPE", lambda x, y: -np.abs(x)),
}


def given() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(2)
    a, b = (generator.integers(-3, 4, shape).astype(np.float16) for shape in ((16, 24), (24, 32)))
    return a, b, generator.integers(-3, 4, (16, 32)).astype(np.float32) + np.float32(0.5)


@pytest.mark.parametrize("name", BODIES)
def test_epilogues(name: str) -> None:
    body, expected = BODIES[name]
    identity, wide = "affine_map<(i, j) -> (i, j)>", "tensor<16x32xf32>"
    text = f"""func.func @f(%a: tensor<16x24xf16>, %b: tensor<24x32xf16>, %e: {wide}) -> {wide} {{
  %zero = arith.constant 0.0 : f32
  %sign = arith.constant 0x80000000 : i32
  %rest = arith.constant 0x7fffffff : i32
  %o = tensor.empty() : {wide}
  %z = linalg.fill ins(%zero : f32) outs(%o : {wide}) -> {wide}
  %p = linalg.matmul ins(%a, %b : tensor<16x24xf16>, tensor<24x32xf16>) outs(%z : {wide}) -> {wide}
  %q = linalg.generic {{indexing_maps = [{", ".join([identity] * 3)}], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %e : {wide}, {wide}) outs(%o : {wide}) {{
  ^bb0(%x: f32, %y: f32, %out: f32):
    %b = arith.bitcast %x : f32 to i32
    %d = arith.bitcast %y : f32 to i32
    {body.replace("TYPE", "i32")}
    %r = arith.bitcast %n : i32 to f32
    linalg.yield %r : f32
  }} -> {wide}
  return %q : {wide}
}}
""".replace("%b: tensor", "%B: tensor").replace("ins(%a, %b :", "ins(%a, %B :")
    a, b, e = given()
    kernel = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(kernel, stepladder.Kernel)
    wanted = expected(a.astype(np.float32) @ b.astype(np.float32), e)
    assert np.array_equal(np.asarray(kernel(a, b, e)), wanted.astype(np.float32))


def test_in_front_of_a_product_in_ops_of_their_own() -> None:
    """Each cast and mask is an op on whole tensors, as a front end writes them."""
    text = """func.func public @main(%a: tensor<16x24xf16>, %b: tensor<24x32xf16>) -> tensor<16x32xf32> {
  %0 = stablehlo.bitcast_convert %a : (tensor<16x24xf16>) -> tensor<16x24xui16>
  %c = stablehlo.constant dense<32767> : tensor<16x24xui16>
  %1 = stablehlo.and %0, %c : tensor<16x24xui16>
  %2 = stablehlo.bitcast_convert %1 : (tensor<16x24xui16>) -> tensor<16x24xf16>
  %3 = stablehlo.dot_general %2, %b, contracting_dims = [1] x [0]
    : (tensor<16x24xf16>, tensor<24x32xf16>) -> tensor<16x32xf32>
  return %3 : tensor<16x32xf32>
}
"""
    a, b, _ = given()
    got = stepladder.compile(text, target="sm_80", device="emulator")(a, b)
    assert np.array_equal(got, np.abs(a).astype(np.float32) @ b.astype(np.float32))


RECIPROCAL_ROOT = """%n = math.absf %x : f32
    %p = arith.addf %n, %one : f32
    %0 = arith.bitcast %p : f32 to i32
    %1 = arith.shrsi %0, %unit : i32
    %2 = arith.subi %m, %1 : i32
    %r = arith.bitcast %2 : i32 to f32"""
OF_16_BITS = """%0 = arith.truncf %x : f32 to bf16
    %1 = arith.bitcast %0 : bf16 to i16
    %2 = arith.trunci %m : i32 to i16
    %3 = arith.andi %1, %2 : i16
    %4 = arith.bitcast %3 : i16 to bf16
    %r = arith.extf %4 : bf16 to f32"""
HIGH_HALF = """%0 = arith.bitcast %x : f32 to i32
    %s = arith.constant 16 : i32
    %1 = arith.shrui %0, %s : i32
    %2 = arith.trunci %1 : i32 to i16
    %3 = arith.bitcast %2 : i16 to bf16
    %r = arith.extf %3 : bf16 to f32"""


def masked(name: str) -> str:
    return f"""%0 = arith.bitcast %x : f32 to i32
    %1 = arith.{name} %0, %m : i32
    %r = arith.bitcast %1 : i32 to f32"""


def high_half(x: np.ndarray) -> np.ndarray:
    return (x.view(np.int32) & np.int32(-0x10000)).view(np.float32)


@pytest.mark.parametrize(
    ("body", "constant", "expected", "is_compared"),
    [
        (masked("xori"), 0x3FFF_FFFF, lambda x, m: (x.view(np.int32) ^ m).view(np.float32), False),
        (masked("andi"), -0x10000, lambda x, m: high_half(x), True),
        (masked("addi"), 0x8000, lambda x, m: (x.view(np.int32) + m).view(np.float32), True),
        (
            RECIPROCAL_ROOT,
            0x5F37_59DF,
            lambda x, m: (m - ((abs(x) + 1).view(np.int32) >> np.int32(1))).view(np.float32),
            True,
        ),
        (
            OF_16_BITS,
            -0x10,
            lambda x, m: (x.astype(ml_dtypes.bfloat16).view(np.int16) & m.astype(np.int16)).view(ml_dtypes.bfloat16),
            True,
        ),
        (HIGH_HALF, 0, lambda x, m: high_half(x), True),
    ],
    ids=["xori", "andi", "addi", "reciprocal root", "bf16", "high half"],
)
def test_other_bits_are_computed(
    body: str, constant: int, expected: Callable[[np.ndarray, np.int32], np.ndarray], is_compared: bool
) -> None:
    wide = "tensor<16x32xf32>"
    text = f"""func.func @f(%a: tensor<16x24xf16>, %b: tensor<24x32xf16>) -> {wide} {{
  %z = arith.constant dense<0.0> : {wide}
  %m = arith.constant {constant} : i32
  %one = arith.constant 1.0 : f32
  %unit = arith.constant 1 : i32
  %q0 = linalg.matmul ins(%a, %b : tensor<16x24xf16>, tensor<24x32xf16>) outs(%z : {wide}) -> {wide}
  %q1 = linalg.map ins(%q0 : {wide}) outs(%z : {wide}) (%x: f32, %out: f32) {{
    {body}
    linalg.yield %r : f32
  }}
  return %q1 : {wide}
}}
"""
    a, b, _ = given()
    kernel = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(kernel, stepladder.Kernel)
    wanted = expected(a.astype(np.float32) @ b.astype(np.float32), np.int32(constant))
    np.testing.assert_array_equal(kernel(a, b), wanted.astype(np.float32))
    if is_compared:
        check(text, *PIPELINES["wmma"], levels="last")


VIEWED = """#id = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<16x24xf16>, %w: tensor<32x24xi8>, %s: tensor<16x32xi16>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %et = tensor.empty() : tensor<24x32xi8>
  %t = linalg.transpose ins(%w : tensor<32x24xi8>) outs(%et : tensor<24x32xi8>) permutation = [1, 0]
  %v = tensor.bitcast %t : tensor<24x32xi8> to tensor<24x32xf8E4M3FN>
  %eb = tensor.empty() : tensor<24x32xf16>
  %b = linalg.copy ins(%v : tensor<24x32xf8E4M3FN>) outs(%eb : tensor<24x32xf16>) -> tensor<24x32xf16>
  %e = tensor.empty() : tensor<16x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<16x24xf16>, tensor<24x32xf16>) outs(%z : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<16x32xf32>, tensor<16x32xi16>) outs(%e : tensor<16x32xf32>) {
  ^bb0(%x: f32, %i: i16, %o: f32):
    %y = arith.bitcast %i : i16 to bf16
    %n = arith.extf %y : bf16 to f32
    %q = arith.mulf %x, %n : f32
    linalg.yield %q : f32
  } -> tensor<16x32xf32>
  return %r : tensor<16x32xf32>
}
"""


def test_arguments_whose_bits_are_numbers_of_another_type_are_of_this_type() -> None:
    a, w, s = given()
    w, s = w.T.copy().astype(ml_dtypes.float8_e4m3fn), s.astype(ml_dtypes.bfloat16)
    kernel = stepladder.compile(VIEWED, target="sm_80", device="emulator")
    wanted = (a.astype(np.float32) @ w.T.astype(np.float32)) * s.astype(np.float32)
    np.testing.assert_array_equal(kernel(a, w, s), wanted)
    with pytest.raises(stepladder.StepladderError, match="has elements of i8; accepted: f8E4M3FN"):
        kernel(a, w.view(np.int8), s)


def test_an_argument_that_is_also_read_as_it_is_stays() -> None:
    text = VIEWED.replace("-> tensor<16x32xf32> {", "-> (tensor<16x32xf32>, tensor<24x32xi8>) {")
    text = text.replace("return %r : tensor<16x32xf32>", "return %r, %t : tensor<16x32xf32>, tensor<24x32xi8>")
    with pytest.raises(stepladder.StepladderError, match=r"bitcast"):
        stepladder.compile(text, target="sm_80", device="emulator")


def test_casts_of_one_argument_in_several_ops() -> None:
    """Whole, in views and in a body; the argument is of the other type once all are gone."""
    text = """#id = affine_map<(i, j) -> (i, j)>
func.func @f(%w: tensor<8x8xi16>) -> (tensor<8x8xf32>, tensor<8x8xf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %h = tensor.empty() : tensor<8x8xf16>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = tensor.bitcast %w : tensor<8x8xi16> to tensor<8x8xf16>
  %v = tensor.expand_shape %w [[0], [1, 2]] output_shape [8, 2, 4] : tensor<8x8xi16> into tensor<8x2x4xi16>
  %c = arith.bitcast %v : tensor<8x2x4xi16> to tensor<8x2x4xf16>
  %b = tensor.collapse_shape %c [[0], [1, 2]] : tensor<8x2x4xf16> into tensor<8x8xf16>
  %p = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %w : tensor<8x8xi16>, tensor<8x8xi16>) outs(%h : tensor<8x8xf16>) {
  ^bb0(%i: i16, %j: i16, %o: f16):
    %x = arith.bitcast %i : i16 to f16
    %y = arith.bitcast %j : i16 to f16
    %s = arith.addf %x, %y : f16
    linalg.yield %s : f16
  } -> tensor<8x8xf16>
  return %p, %n : tensor<8x8xf32>, tensor<8x8xf16>
}
"""
    w = np.random.default_rng(0).integers(-2, 3, (8, 8)).astype(np.float16)
    product, twice = stepladder.compile(text, target="sm_80", device="emulator")(w)
    np.testing.assert_array_equal(product, w.astype(np.float32) @ w.astype(np.float32))
    np.testing.assert_array_equal(twice, w + w)
