"""Scalar functions that become others before anything else sees them."""

import numpy as np
import pytest

import stepladder
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.selection import select
from stepladder.pipeline.context import mlir_context, parse_payload

TEXT = """func.func @f(%x: tensor<40xf32>, %n: tensor<40xi64>) -> (tensor<40xf32>, tensor<40xi64>) {
  %a = math.tan %x : tensor<40xf32>
  %b = math.sinh %x : tensor<40xf32>
  %c = math.cosh %x : tensor<40xf32>
  %d = arith.addf %a, %b : tensor<40xf32>
  %e = arith.addf %d, %c : tensor<40xf32>
  %m = math.absi %n : tensor<40xi64>
  return %e, %m : tensor<40xf32>, tensor<40xi64>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
def test_computed_by_other_functions() -> None:
    x, n = np.linspace(-1.5, 1.5, 40, dtype=np.float32), np.arange(-20, 20) << 33
    function = stepladder.compile(TEXT, device="emulator", target="sm_80")
    got, magnitudes = function(x, n)
    wide = x.astype(np.float64)
    assert np.abs(got - (np.tan(wide) + np.sinh(wide) + np.cosh(wide))).max() < 1e-4
    assert np.array_equal(magnitudes, np.abs(n))


@pytest.mark.usefixtures("needs_ptxas")
def test_magnitudes_of_bytes() -> None:
    text = """func.func @f(%n: tensor<40xi8>) -> tensor<40xi8> {
      %m = math.absi %n : tensor<40xi8>
      return %m : tensor<40xi8>
    }
    """
    n = np.arange(-20, 20).astype(np.int8)
    assert np.array_equal(stepladder.compile(text, device="emulator", target="sm_80")(n), np.abs(n))


LOOKED_UP = """func.func @f(%n: tensor<40xi8>, %w: tensor<40xi32>, %table: tensor<256xf32>)
    -> (tensor<40xf32>, tensor<40xi8>) {
  %e = tensor.empty() : tensor<40xf32>
  %c = tensor.empty() : tensor<40xi8>
  %r:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}
      ins(%n, %w : tensor<40xi8>, tensor<40xi32>) outs(%e, %c : tensor<40xf32>, tensor<40xi8>) {
  ^bb0(%i: i8, %k: i32, %out: f32, %low: i8):
    %place = arith.index_castui %i : i8 to index
    %x = tensor.extract %table[%place] : tensor<256xf32>
    %wide = arith.index_castui %k : i32 to index
    %three = arith.constant 3 : index
    %third = arith.divui %wide, %three : index
    %bits = arith.index_castui %third : index to i8
    linalg.yield %x, %bits : f32, i8
  } -> (tensor<40xf32>, tensor<40xi8>)
  return %r#0, %r#1 : tensor<40xf32>, tensor<40xi8>
}
""".replace("#map", "affine_map<(i) -> (i)>")


@pytest.mark.usefixtures("needs_ptxas")
def test_indices_without_a_sign() -> None:
    """Bytes of quantized weights look up their values; an index keeps its low bits."""
    rng = np.random.default_rng(0)
    n, wide = rng.integers(-128, 128, 40).astype(np.int8), rng.integers(-(1 << 31), 1 << 31, 40).astype(np.int32)
    table = rng.standard_normal(256).astype(np.float32)
    values, low = stepladder.compile(LOOKED_UP, device="emulator", target="sm_80")(n, wide, table)
    np.testing.assert_array_equal(values, table[n.view(np.uint8)])
    np.testing.assert_array_equal(low.view(np.uint8), wide.view(np.uint32) // 3 % 256)


def test_magnitudes_that_kernels_compute_stay() -> None:
    with mlir_context():
        module = select(parse_payload(TEXT.replace("i64", "i32"), "payload.mlir")).module
        assert [op.name for op in walk(module) if op.name.startswith("math.abs")] == ["math.absi"]


@pytest.mark.usefixtures("needs_ptxas")
def test_roundings_to_whole_numbers() -> None:
    """Of two nearest numbers, `round` takes that which is farther from 0; `trunc` rounds towards 0."""
    text = """func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %a = math.round %x : tensor<8xf32>
      %b = math.trunc %x : tensor<8xf32>
      return %a, %b : tensor<8xf32>, tensor<8xf32>
    }
    """
    x = np.array([0.5, -0.5, 2.5, -1.75, 1.25, -0.25, np.inf, 2.0**24], np.float32)
    nearest, towards = stepladder.compile(text, device="emulator", target="sm_80")(x)
    assert nearest.tolist() == [1, -1, 3, -2, 1, 0, np.inf, 2.0**24]
    assert towards.tolist() == [0, 0, 2, -1, 1, 0, np.inf, 2.0**24] and np.signbit(towards[1])


FORMS = """func.func @f(%A: tensor<8x4xf32>, %B: tensor<4x8xf32>, %C: tensor<8x8xf32>, %s: f32) -> tensor<8x8xf32> {
  %two = arith.constant 2 : index
  %scales = tensor.splat %s : tensor<8x8xf32>
  %sums = affine.for %i = 0 to 2 iter_args(%x = %C) -> (tensor<8x8xf32>) {
    %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<8x4xf32>, tensor<4x8xf32>) outs(%x : tensor<8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %t = math.fma %a, %b, %c : f32
      linalg.yield %t : f32
    } -> tensor<8x8xf32>
    affine.yield %p : tensor<8x8xf32>
  }
  %chosen = scf.index_switch %two -> tensor<8x8xf32>
  case 2 { scf.yield %sums : tensor<8x8xf32> }
  default { scf.yield %C : tensor<8x8xf32> }
  %r = scf.execute_region -> tensor<8x8xf32> {
    %y = linalg.map ins(%chosen, %scales, %C : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%C : tensor<8x8xf32>) (%u: f32, %v: f32, %w: f32, %o: f32) {
        %z = math.fma %u, %v, %w : f32
        linalg.yield %z : f32
      }
    scf.yield %y : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
"""


def test_forms_of_loops_regions_and_tensors() -> None:
    """A sum of products by `math.fma` is one of products and sums; an elementwise one is rounded once, and stays."""
    with mlir_context():
        names = [op.name for op in walk(select(parse_payload(FORMS, "payload.mlir")).module)]
    gone = {"affine.for", "scf.index_switch", "scf.execute_region", "tensor.splat"}
    assert gone.isdisjoint(names) and names.count("math.fma") == 1 and "linalg.fill" in names and "scf.for" in names


GROUPED = """func.func @f(%x: tensor<16x64xf16>, %q: tensor<64x24xi8>, %s: tensor<4x24xf16>, %t: tensor<{rows}xf16>)
    -> tensor<16x24xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x24xf16>
  %w = linalg.generic {{indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (k floordiv 16, n)>,
      affine_map<(k, n) -> ({index})>, affine_map<(k, n) -> (k, n)>], iterator_types = ["parallel", "parallel"]}}
      ins(%q, %s, %t : tensor<64x24xi8>, tensor<4x24xf16>, tensor<{rows}xf16>) outs(%e : tensor<64x24xf16>) {{
  ^bb0(%a: i8, %b: f16, %c: f16, %o: f16):
    %i = arith.sitofp %a : i8 to f16
    %f = arith.mulf %i, %b : f16
    %g = arith.addf %f, %c : f16
    linalg.yield %g : f16
  }} -> tensor<64x24xf16>
  %d = tensor.empty() : tensor<16x24xf32>
  %z = linalg.fill ins(%zero : f32) outs(%d : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.matmul ins(%x, %w : tensor<16x64xf16>, tensor<64x24xf16>) outs(%z : tensor<16x24xf32>)
    -> tensor<16x24xf32>
  return %p : tensor<16x24xf32>
}}
"""


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize(
    ("index", "rows", "is_kernel"),
    [("k mod 16", 16, True), ("k", 64, True), ("n floordiv 8", 3, True), ("k mod 48", 48, False)],
)
def test_operands_of_groups(index: str, rows: int, is_kernel: bool) -> None:
    """A loop of which quotients and remainders by one number are read is two; of two numbers, elements are copied."""
    kernel = stepladder.compile(GROUPED.format(index=index, rows=rows), device="emulator", target="sm_80")
    assert isinstance(kernel, stepladder.Kernel) == is_kernel
    rng = np.random.default_rng(0)
    x, s, t = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((16, 64), (4, 24), (rows,)))
    q = rng.integers(-4, 5, (64, 24)).astype(np.int8)
    k, n = np.indices((64, 24))
    read = {"k mod 16": k % 16, "k": k, "n floordiv 8": n // 8, "k mod 48": k % 48}[index]
    weights = q.astype(np.float64) * s[k // 16, n] + t[read]
    np.testing.assert_array_equal(kernel(x, q, s, t), x.astype(np.float64) @ weights)


@pytest.mark.usefixtures("needs_ptxas")
def test_contractions_of_groups_are_matmuls() -> None:
    """A kernel repeats the rows of B, and matrix units multiply them."""
    text = """#a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k floordiv 16, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @f(%x: tensor<16x64xf16>, %w: tensor<4x24xf16>, %c: tensor<16x24xf32>) -> tensor<16x24xf32> {
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<16x64xf16>, tensor<4x24xf16>) outs(%c : tensor<16x24xf32>) {
      ^bb0(%a: f16, %b: f16, %s: f32):
        %d = arith.extf %a : f16 to f32
        %e = arith.extf %b : f16 to f32
        %f = arith.mulf %d, %e : f32
        %g = arith.addf %s, %f : f32
        linalg.yield %g : f32
      } -> tensor<16x24xf32>
      return %p : tensor<16x24xf32>
    }
    """
    function = stepladder.compile(text, device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["f_elementwise_0", "f_matmul_0"]
    x, w = np.ones((16, 64), np.float16), np.arange(96).reshape(4, 24).astype(np.float16)
    got = function(x, w, np.ones((16, 24), np.float32))
    np.testing.assert_array_equal(got, 1 + x.astype(float) @ np.repeat(w, 16, 0).astype(float))


CONVERTED = """func.func @f(%a: tensor<16x32xLEFT>, %b: tensor<32x24xRIGHT>, %c: tensor<16x24xi32>)
    -> tensor<16x24xi32> {
  %p = linalg.matmul {cast = #linalg.type_fn<CAST>} ins(%a, %b : tensor<16x32xLEFT>, tensor<32x24xRIGHT>)
      outs(%c : tensor<16x24xi32>) -> tensor<16x24xi32>
  return %p : tensor<16x24xi32>
}
"""


@pytest.mark.parametrize(
    ("left", "right", "cast", "product"),
    [
        ("f16", "f64", "cast_signed", "i32, i32"),
        ("i8", "f32", "cast_signed", "i8, i32"),
        ("f32", "f32", "cast_unsigned", "i32, i32"),
    ],
)
def test_numbers_that_a_contraction_converts_to_integers(left: str, right: str, cast: str, product: str) -> None:
    """Elementwise ops convert them, and the contraction multiplies integers."""
    text = CONVERTED.replace("LEFT", left).replace("RIGHT", right).replace("CAST", cast)
    with mlir_context():
        module = select(parse_payload(text, "converted.mlir")).module
        *conversions, contraction = walk(module, "linalg.generic")
        kinds = [str(ir.RankedTensorType(value.type).element_type) for value in contraction.operands]
        assert ", ".join(kinds) == f"{product}, i32"
        assert len(conversions) == sum(kind[0] == "f" for kind in (left, right))
        name = "arith.fptosi" if cast == "cast_signed" else "arith.fptoui"
        assert len(walk(module, name)) == len(conversions)


COMPUTED = """#x = affine_map<(m, n, k) -> (m, k)>
#q = affine_map<(m, n, k) -> (n, k)>
#s = affine_map<(m, n, k) -> (n, k floordiv 16)>
#t = affine_map<(m, n, k) -> (m)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<16x64xf16>, %q: tensor<24x64xi8>, %s: tensor<24x4xf16>, %t: tensor<16xf16>,
    %c: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %p = linalg.generic {indexing_maps = [#x, #q, #s, #t, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %q, %s, %t : tensor<16x64xf16>, tensor<24x64xi8>, tensor<24x4xf16>, tensor<16xf16>)
      outs(%c : tensor<16x24xf32>) {
  ^bb0(%a: f16, %b: i8, %d: f16, %e: f16, %o: f32):
    %i = arith.sitofp %b : i8 to f16
    %w = arith.mulf %i, %d : f16
    %f = arith.extf %w : f16 to f32
    %g = arith.mulf %a, %e : f16
    %h = arith.extf %g : f16 to f32
    %j = arith.mulf %f, %h : f32
    %k = arith.addf %j, %o : f32
    linalg.yield %k : f32
  } -> tensor<16x24xf32>
  return %p : tensor<16x24xf32>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
def test_factors_that_a_contraction_computes_are_producers() -> None:
    """Of a mask of the product, no factor is computed: there are no matrix units."""
    kernel = stepladder.compile(COMPUTED, device="emulator", target="sm_80")
    assert isinstance(kernel, stepladder.Kernel)
    rng = np.random.default_rng(0)
    x, s, t = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((16, 64), (24, 4), (16,)))
    q, c = rng.integers(-4, 5, (24, 64)).astype(np.int8), rng.integers(-4, 5, (16, 24)).astype(np.float32)
    wanted = c + (x * t[:, None]).astype(float) @ (q * np.repeat(s, 16, 1)).astype(float).T
    np.testing.assert_array_equal(kernel(x, q, s, t, c), wanted)
    masked = COMPUTED.replace("#t = affine_map<(m, n, k) -> (m)>", "#t = affine_map<(m, n, k) -> (m, n)>")
    masked = masked.replace("tensor<16xf16>", "tensor<16x24xf16>")
    function = stepladder.compile(masked, device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function)
    mask = rng.integers(-2, 3, (16, 24)).astype(np.float16)
    wanted = c + (x.astype(float) @ (q * np.repeat(s, 16, 1)).astype(float).T) * mask
    np.testing.assert_array_equal(function(x, q, s, mask, c), wanted)


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("batch", [4, 1])
def test_a_batch_of_vectors_with_a_computed_factor_is_one_kernel(batch: int) -> None:
    """As the last product of an attention of one query, with the division of its softmax; also with a single head."""
    text = """#e = affine_map<(b, m, n, k) -> (b, m, k)>
    #s = affine_map<(b, m, n, k) -> (b, m)>
    #v = affine_map<(b, m, n, k) -> (b, k, n)>
    #o = affine_map<(b, m, n, k) -> (b, m, n)>
    func.func @f(%x: tensor<4x1x16xf32>, %s: tensor<4x1xf32>, %v: tensor<4x16x8xf16>) -> tensor<4x1x8xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x1x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
      %p = linalg.generic {indexing_maps = [#e, #s, #v, #o],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%x, %s, %v : tensor<4x1x16xf32>, tensor<4x1xf32>, tensor<4x16x8xf16>) outs(%z : tensor<4x1x8xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f16, %d: f32):
        %q = arith.divf %a, %b : f32
        %w = arith.extf %c : f16 to f32
        %m = arith.mulf %q, %w : f32
        %n = arith.addf %d, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x1x8xf32>
      return %p : tensor<4x1x8xf32>
    }
    """
    text = text.replace("<4x1x", f"<{batch}x1x").replace("<4x16x", f"<{batch}x16x")
    function = stepladder.compile(text, device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function) and len(function.manifest.launches) == 1
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (batch, 1, 16)).astype(np.float32)
    v = rng.integers(-4, 5, (batch, 16, 8)).astype(np.float16)
    s = np.full((batch, 1), 4, np.float32)
    np.testing.assert_array_equal(function(x, s, v), x / s[:, :, None] @ v.astype(np.float32))
