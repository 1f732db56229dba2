"""Payloads in TOSA and with globals, of integers that are multiplied, folded or cast in ways that few are, and of parts
of one buffer."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stepladder
from small_integers import small
from stepladder.emulator.functions import EmulatedFunction
from stepladder.mlir.bindings import ir
from stepladder.mlir.overlaps import are_apart
from stepladder.pipeline.context import mlir_context
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function


def compiled(text: str) -> stepladder.Kernel | stepladder.Function:
    return stepladder.compile(text, target="sm_80", device="emulator")


LINEAR = """func.func @f(%x: tensor<16x24xf16>, %w: tensor<32x24xf16>, %bias: tensor<1x32xf32>) -> tensor<16x32xf32> {
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf16>}> : () -> tensor<1xf16>
  %sa = tosa.const_shape {values = dense<[1, 16, 24]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %sb = tosa.const_shape {values = dense<[1, 24, 32]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %sc = tosa.const_shape {values = dense<[16, 32]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %t = tosa.transpose %w {perms = array<i32: 1, 0>} : (tensor<32x24xf16>) -> tensor<24x32xf16>
  %a = tosa.reshape %x, %sa : (tensor<16x24xf16>, !tosa.shape<3>) -> tensor<1x16x24xf16>
  %b = tosa.reshape %t, %sb : (tensor<24x32xf16>, !tosa.shape<3>) -> tensor<1x24x32xf16>
  %p = tosa.matmul %a, %b, %zp, %zp
    : (tensor<1x16x24xf16>, tensor<1x24x32xf16>, tensor<1xf16>, tensor<1xf16>) -> tensor<1x16x32xf32>
  %r = tosa.reshape %p, %sc : (tensor<1x16x32xf32>, !tosa.shape<2>) -> tensor<16x32xf32>
  %s = tosa.add %r, %bias : (tensor<16x32xf32>, tensor<1x32xf32>) -> tensor<16x32xf32>
  %c = tosa.clamp %s {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<16x32xf32>) -> tensor<16x32xf32>
  return %c : tensor<16x32xf32>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
def test_a_linear_layer_in_tosa_is_one_kernel() -> None:
    kernel = compiled(LINEAR)
    assert isinstance(kernel, stepladder.Kernel)
    x, w, bias = small(16, 24), small(32, 24), small(1, 32, dtype=np.float32)
    wanted = np.clip(x.astype(np.float32) @ w.astype(np.float32).T + bias, 0, 6)
    np.testing.assert_array_equal(kernel(x, w, bias), wanted)


@pytest.mark.usefixtures("needs_ptxas")
def test_a_convolution_of_one_pixel_in_tosa() -> None:
    """torch-mlir writes NCHW as a transpose around NHWC; the loops of the window are loops of the weight alone."""
    text = """func.func @f(%w: tensor<24x16x1x1xf16>, %bias: tensor<24xf16>, %x: tensor<2x16x5x6xf16>)
    -> tensor<2x24x5x6xf16> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf16>}> : () -> tensor<1xf16>
  %s = tosa.const_shape {values = dense<[24, 1, 1, 16]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %n = tosa.transpose %x {perms = array<i32: 0, 2, 3, 1>} : (tensor<2x16x5x6xf16>) -> tensor<2x5x6x16xf16>
  %k = tosa.reshape %w, %s : (tensor<24x16x1x1xf16>, !tosa.shape<4>) -> tensor<24x1x1x16xf16>
  %c = tosa.conv2d %n, %k, %bias, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>,
      stride = array<i64: 1, 1>}
    : (tensor<2x5x6x16xf16>, tensor<24x1x1x16xf16>, tensor<24xf16>, tensor<1xf16>, tensor<1xf16>)
    -> tensor<2x5x6x24xf16>
  %r = tosa.transpose %c {perms = array<i32: 0, 3, 1, 2>} : (tensor<2x5x6x24xf16>) -> tensor<2x24x5x6xf16>
  return %r : tensor<2x24x5x6xf16>
}
"""
    w, bias, x = small(24, 16, 1, 1), small(24), small(2, 16, 5, 6)
    wanted = np.einsum("oc,nchw->nohw", w[:, :, 0, 0].astype(float), x.astype(float)) + bias[:, None, None]
    np.testing.assert_array_equal(compiled(text)(w, bias, x), wanted)


@pytest.mark.usefixtures("needs_ptxas")
def test_a_quantized_product_in_tosa() -> None:
    text = """func.func @f(%a: tensor<1x16x24xi8>, %b: tensor<1x24x32xi8>) -> tensor<1x16x32xi8> {
  %az = "tosa.const"() <{values = dense<3> : tensor<1xi8>}> : () -> tensor<1xi8>
  %bz = "tosa.const"() <{values = dense<-2> : tensor<1xi8>}> : () -> tensor<1xi8>
  %p = tosa.matmul %a, %b, %az, %bz
    : (tensor<1x16x24xi8>, tensor<1x24x32xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x16x32xi32>
  %m = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
  %s = "tosa.const"() <{values = dense<31> : tensor<1xi8>}> : () -> tensor<1xi8>
  %i = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %o = "tosa.const"() <{values = dense<5> : tensor<1xi8>}> : () -> tensor<1xi8>
  %r = tosa.rescale %p, %m, %s, %i, %o {rounding_mode = SINGLE_ROUND, scale32 = true, per_channel = false,
      input_unsigned = false, output_unsigned = false}
    : (tensor<1x16x32xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x16x32xi8>
  return %r : tensor<1x16x32xi8>
}
"""
    a, b = small(1, 16, 24, dtype=np.int8), small(1, 24, 32, dtype=np.int8)
    sums = (a.astype(np.int64) - 3) @ (b.astype(np.int64) + 2)
    wanted = np.clip(((sums + 1) >> 1) + 5, -128, 127).astype(np.int8)  # a half, rounded up at ties
    np.testing.assert_array_equal(compiled(text)(a, b), wanted)


@pytest.mark.usefixtures("needs_ptxas")
def test_the_places_of_extrema_in_tosa() -> None:
    """The first NaN is the largest number; one that exceeds no finite number has the place 0."""
    text = """func.func @f(%x: tensor<1x7x32xf32>, %i: tensor<1x7x32xi8>) -> (tensor<1x7xi32>, tensor<1x7xi32>) {
  %r = tosa.argmax %x {axis = 2 : i32} : (tensor<1x7x32xf32>) -> tensor<1x7xi32>
  %s = tosa.argmax %i {axis = 2 : i32} : (tensor<1x7x32xi8>) -> tensor<1x7xi32>
  return %r, %s : tensor<1x7xi32>, tensor<1x7xi32>
}
"""
    x, i = small(1, 7, 32, dtype=np.float32), small(1, 7, 32, dtype=np.int8)
    x[0, 0, [5, 9]] = np.nan
    x[0, 1] = -np.inf
    x[0, 2, 3] = np.inf
    x[0, 3, 0] = np.nan
    x[0, 4, :4], x[0, 4, 4:] = -np.inf, np.finfo(np.float32).min
    x[0, 5, :4], x[0, 5, 4:] = -0.0, 0.0
    wanted = np.argmax(x, -1).astype(np.int32)
    assert wanted[0, 4] == 4
    wanted[0, 4] = 0  # upstream begins with the least finite number at 0
    got = compiled(text)(x, i)
    np.testing.assert_array_equal(got[0], wanted)
    np.testing.assert_array_equal(got[1], np.argmax(i, -1))


def test_ops_of_tosa_that_upstream_does_not_lower_are_refused_where_they_stand() -> None:
    text = LINEAR.replace(
        "  return %c",
        '  %d = tosa.custom %c {operator_name = "x", domain_name = "y", implementation_attrs = ""}\n'
        "    : (tensor<16x32xf32>) -> tensor<16x32xf32>\n  return %d",
    )
    with pytest.raises(StepladderError, match=r"tosa\.custom") as caught:
        compiled(text)
    assert caught.value.location and caught.value.location.endswith(":14:8")
    assert "tosa-to-linalg" in caught.value.notes[0]


def test_unsigned_elements_in_tosa_are_refused() -> None:
    text = """func.func @f(%a: tensor<1x16x24xui8>) -> tensor<1x16x24xi8> {
  %r = tosa.cast %a : (tensor<1x16x24xui8>) -> tensor<1x16x24xi8>
  return %r : tensor<1x16x24xi8>
}
"""
    with pytest.raises(StepladderError, match=r"'tosa.cast' of tensor<1x16x24xui8>, whose elements are unsigned"):
        compiled(text)


@pytest.mark.parametrize(
    ("line", "message", "accepted"),
    [
        (
            """%r = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %a, %a : vector<16x16xf32>, vector<16x16xf32> into vector<16x16xf32>""",
            "'vector.contract'",
            "linalg.contract",
        ),
        ("affine.for %i = 0 to 4 {\n  }", "'scf.for'", "loops over elements from 0 to constants by 1"),
    ],
)
def test_other_ops_than_those_of_linalg_are_named(line: str, message: str, accepted: str) -> None:
    with pytest.raises(StepladderError) as caught:
        compiled(f"func.func @f(%a: vector<16x16xf32>) {{\n  {line}\n  return\n}}\n")
    assert caught.value.message == f"no linalg.matmul in the payload, but {message}"
    assert caught.value.location and re.search(r":2:\d+$", caught.value.location)
    assert accepted in caught.value.notes[0]


def product(left: str, right: str, sums: str, casts: tuple[str, str]) -> str:
    a, b, c = f"tensor<16x24x{left}>", f"tensor<24x32x{right}>", f"tensor<16x32x{sums}>"
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%c : {c}) {{
  ^bb0(%x: {left}, %y: {right}, %o: {sums}):
    %0 = arith.{casts[0]} %x : {left} to {sums}
    %1 = arith.{casts[1]} %y : {right} to {sums}
    %2 = arith.mulf %0, %1 : {sums}
    %3 = arith.addf %o, %2 : {sums}
    linalg.yield %3 : {sums}
  }} -> {c}
  return %r : {c}
}}
"""


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize(
    ("types", "casts", "multiplied"),
    [
        (("i8", "i8", "f32"), ("sitofp", "sitofp"), "f16"),
        (("i8", "i8", "f32"), ("uitofp", "sitofp"), "f16"),
        (("bf16", "i8", "f32"), ("extf", "sitofp"), "bf16"),
    ],
)
def test_integers_are_multiplied_in_floating_point(
    types: tuple[str, str, str], casts: tuple[str, str], multiplied: str
) -> None:
    """The products of i8 are exact in f16 and bf16, with sums of f32: one kernel on matrix units."""
    kernel = compiled(product(*types, casts))
    assert isinstance(kernel, stepladder.Kernel)
    assert kernel.manifest.problem.a_type == kernel.manifest.problem.b_type == multiplied
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtypes = {"i8": np.int8, "bf16": ml_dtypes.bfloat16}
    a, b = small(16, 24, dtype=dtypes[types[0]]), small(24, 32, dtype=dtypes[types[1]])
    c = small(16, 32, dtype=np.float32)
    left = a.view(np.uint8) if casts[0] == "uitofp" else a
    np.testing.assert_array_equal(kernel(a, b, c), left.astype(np.float32) @ b.astype(np.float32) + c)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("16x16xf32, strided<[16, 1]>", "16x16xf32, strided<[16, 1], offset: 256>", True),
        ("16x16xf32, strided<[16, 1]>", "16x16xf32, strided<[16, 1], offset: 255>", False),
        ("16x16xf32, strided<[48, 1]>", "16x16xf32, strided<[48, 1], offset: 32>", True),
        ("16x17xf32, strided<[48, 1]>", "16x16xf32, strided<[48, 1], offset: 16>", False),
        ("16x16xf32, strided<[32, 1]>", "16x16xf32, strided<[32, 1], offset: 16>", True),
        ("16x8xf32, strided<[32, 2]>", "16x8xf32, strided<[32, 2], offset: 1>", True),
        ("16x8xf32, strided<[32, 2]>", "16x8xf32, strided<[32, 2], offset: 2>", False),
        ("4x8x8xf32, strided<[256, 32, 1]>", "4x8x8xf32, strided<[256, 32, 1], offset: 8>", True),
        ("4x8x8xf32, strided<[256, 1, 32]>", "32x8xf32, strided<[32, 1], offset: 8>", True),
        ("16x16xf32, strided<[16, 1]>", "16x16xf32, strided<[16, 1], offset: ?>", False),
        ("16x16xf32, strided<[-16, 1], offset: 256>", "16x16xf32, strided<[16, 1], offset: 512>", False),
        ("4xf32, strided<[6]>", "4xf32, strided<[10], offset: 3>", False),
        ("1x16xf32, strided<[7, 1]>", "16x1xf32, strided<[32, 5], offset: 16>", True),
    ],
)
def test_views_that_share_no_element(one: str, other: str, apart: bool) -> None:
    with mlir_context():
        types = [ir.Type.parse(f"memref<{text}>") for text in (one, other)]
        assert are_apart(*types) == are_apart(*types[::-1]) == apart


def test_views_that_are_apart_share_no_element() -> None:
    rng = np.random.default_rng(0)
    found = 0
    with mlir_context():
        for _ in range(400):
            types, places = [], []
            for _ in range(2):
                shape, strides = rng.integers(1, 5, 3), rng.choice([1, 2, 3, 4, 8, 12, 24], 3)
                offset = int(rng.integers(0, 40))
                layout = f"strided<[{', '.join(map(str, strides))}], offset: {offset}>"
                types.append(ir.Type.parse(f"memref<{'x'.join(map(str, shape))}xf32, {layout}>"))
                places.append(set((offset + np.tensordot(strides, np.indices(shape), 1)).ravel().tolist()))
            is_apart = are_apart(*types)
            assert not is_apart or places[0].isdisjoint(places[1]), types
            found += is_apart
    assert found > 100


@pytest.mark.usefixtures("needs_ptxas")
def test_a_product_of_one_half_of_a_buffer_in_the_other() -> None:
    half = "memref<16x16xf32, strided<[48, 1], offset: 32>>"
    text = f"""func.func @f(%a: memref<16x48xf32>, %b: memref<16x16xf32>) {{
  %s = memref.subview %a[0, 0] [16, 16] [1, 1] : memref<16x48xf32> to memref<16x16xf32, strided<[48, 1]>>
  %t = memref.subview %a[0, 32] [16, 16] [1, 1] : memref<16x48xf32> to {half}
  linalg.matmul ins(%s, %b : memref<16x16xf32, strided<[48, 1]>>, memref<16x16xf32>) outs(%t : {half})
  return
}}
"""
    a, b = small(16, 48, dtype=np.float32), small(16, 16, dtype=np.float32)
    wanted = a.copy()
    wanted[:, 32:] += a[:, :16] @ b
    np.testing.assert_array_equal(compiled(text)(a, b), wanted)
    with pytest.raises(StepladderError) as caught:
        compiled(text.replace("%a[0, 32]", "%a[0, 8]").replace("offset: 32", "offset: 8"))
    assert any("reads the buffer that it writes, at other elements" in note for note in caught.value.notes)


I8 = ("tensor<16x24xi8>", "tensor<24x32xi8>", "tensor<16x32xi32>")
I8_PRODUCT = f"""  %z = arith.constant dense<0> : {I8[2]}
  %p = linalg.matmul ins(%a, %b : {I8[0]}, {I8[1]}) outs(%z : {I8[2]}) -> {I8[2]}"""


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("fold", ["andi", "ori", "xori", "maxui", "minui"])
def test_integers_folded_by_their_bits(fold: str) -> None:
    text = f"""func.func @f(%a: {I8[0]}, %b: {I8[1]}, %c: tensor<16xi32>) -> tensor<16xi32> {{
{I8_PRODUCT}
  %r = linalg.reduce {{arith.{fold}}} ins(%p : {I8[2]}) outs(%c : tensor<16xi32>) dimensions = [1]
  return %r : tensor<16xi32>
}}
"""
    a, b, c = small(16, 24, dtype=np.int8), small(24, 32, dtype=np.int8), small(16, dtype=np.int32)
    function = compiled(text)
    assert isinstance(function, stepladder.Function)
    folds = {"andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor, "maxui": np.fmax, "minui": np.fmin}
    sums = np.concatenate([c[:, None], a.astype(np.int32) @ b.astype(np.int32)], axis=1)
    wanted = folds[fold].reduce(sums.view(np.uint32), axis=1).view(np.int32)
    np.testing.assert_array_equal(function(a, b, c), wanted)
    emulated = EmulatedFunction(function.bundle)
    assert [item.describe() for item in check_function(function.bundle, emulated, 0) if not item.passed] == []


@pytest.mark.usefixtures("needs_ptxas")
def test_sums_of_integers_in_fp8() -> None:
    """Canonicalization makes one conversion of those to f32 and to fp8."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    result = "tensor<16x32xf8E4M3FN>"
    text = f"""func.func @f(%a: {I8[0]}, %b: {I8[1]}) -> {result} {{
{I8_PRODUCT}
  %e = tensor.empty() : {result}
  %r = linalg.map ins(%p : {I8[2]}) outs(%e : {result}) (%in: i32, %out: f8E4M3FN) {{
    %w = arith.sitofp %in : i32 to f32
    %q = arith.truncf %w : f32 to f8E4M3FN
    linalg.yield %q : f8E4M3FN
  }}
  return %r : {result}
}}
"""
    a, b = 9 * small(16, 24, dtype=np.int8), small(24, 32, dtype=np.int8)
    wanted = (a.astype(np.int32) @ b.astype(np.int32)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    assert np.isnan(wanted.astype(np.float32)).any()
    np.testing.assert_array_equal(compiled(text)(a, b).view(np.uint8), wanted.view(np.uint8))


GLOBAL = """ml_program.global private @w(dense<1.5> : tensor<24x32xf16>) : tensor<24x32xf16>
func.func @f(%a: tensor<16x24xf16>) -> tensor<16x32xf32> {
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  %b = ml_program.global_load @w : tensor<24x32xf16>
  %p = linalg.matmul ins(%a, %b : tensor<16x24xf16>, tensor<24x32xf16>) outs(%z : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  return %p : tensor<16x32xf32>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("load", ["global_load", "global_load_const"])
def test_weights_that_are_globals_of_a_program(load: str) -> None:
    a = small(16, 24)
    wanted = a.astype(np.float32) @ np.full((24, 32), 1.5, np.float32)
    np.testing.assert_array_equal(compiled(GLOBAL.replace("global_load", load))(a), wanted)


def test_a_global_that_changes_is_refused() -> None:
    with pytest.raises(StepladderError, match="whose values are not constant") as caught:
        compiled(GLOBAL.replace("private", "private mutable"))
    assert caught.value.location and caught.value.location.endswith(":4:8")


@pytest.mark.usefixtures("needs_ptxas")
def test_a_part_of_a_buffer_at_a_computed_place() -> None:
    part = "memref<16x24xf16, strided<[24, 1], offset: ?>>"
    text = f"""func.func @f(%a: memref<64x24xf16>, %b: memref<24x32xf16>, %c: memref<16x32xf32>) {{
  %two = arith.constant 2 : index
  %o = affine.apply affine_map<(d) -> (d * 16)>(%two)
  %s = memref.subview %a[%o, 0] [16, 24] [1, 1] : memref<64x24xf16> to {part}
  linalg.matmul ins(%s, %b : {part}, memref<24x32xf16>) outs(%c : memref<16x32xf32>)
  return
}}
"""
    kernel = compiled(text)
    assert isinstance(kernel, stepladder.Kernel)
    a, b, c = small(64, 24), small(24, 32), small(16, 32, dtype=np.float32)
    wanted = a[32:48].astype(np.float32) @ b.astype(np.float32) + c
    np.testing.assert_array_equal(kernel(a, b, out=c.copy()), wanted)


@pytest.mark.usefixtures("needs_ptxas")
def test_a_loop_that_computes_with_its_counter() -> None:
    square = "tensor<16x16xf32>"
    text = f"""func.func @f(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: {square}) -> {square} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : {square}
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %c) -> {square} {{
    %p = linalg.matmul ins(%a, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%s : {square}) -> {square}
    %j = arith.index_cast %i : index to i32
    %x = arith.sitofp %j : i32 to f32
    %q = linalg.map ins(%p : {square}) outs(%e : {square}) (%in: f32, %out: f32) {{
      %v = arith.mulf %in, %x : f32
      linalg.yield %v : f32
    }}
    scf.yield %q : {square}
  }}
  return %r : {square}
}}
"""
    a, b, c = small(16, 16), small(16, 16, seed=1), small(16, 16, dtype=np.float32)
    product, wanted = a.astype(np.float32) @ b.astype(np.float32), c
    for number in range(3):
        wanted = (wanted + product) * number
    np.testing.assert_array_equal(compiled(text)(a, b, c), wanted)
