"""Payloads on buffers as people and bufferization write them: loops around parts, constants of the module, differences;
and products of truth values."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from small_integers import small
from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "memref<16x24xf16>", "memref<24x32xf16>", "memref<16x32xf32>"
ROWS, PART = "memref<8x24xf16, strided<[24, 1], offset: ?>>", "memref<8x32xf32, strided<[32, 1], offset: ?>>"
TILE = f"""%s = memref.subview %a[%i, 0] [8, 24] [1, 1] : {A} to {ROWS}
    %t = memref.subview %c[%i, 0] [8, 32] [1, 1] : {C} to {PART}
    linalg.matmul ins(%s, %b : {ROWS}, {B}) outs(%t : {PART})"""
PRODUCT = f"linalg.matmul ins(%a, %b : {A}, {B}) outs(%c : {C})"
LOOPS = {
    "for": f"scf.for %i = %c0 to %c16 step %c8 {{\n    {TILE}\n  }}",
    "affine": f"affine.for %i = 0 to 16 step 8 {{\n    {TILE}\n  }}",
    "forall": f"scf.forall (%i) = (0) to (16) step (8) {{\n    {TILE}\n  }}",
    "forall of blocks": f"scf.forall (%i) = (0) to (16) step (8) {{\n    {TILE}\n  }} {{mapping = [#gpu.block<x>]}}",
    "affine parallel": f"affine.parallel (%i) = (0) to (16) step (8) {{\n    {TILE}\n  }}",
    "parallel": f"scf.parallel (%i) = (%c0) to (%c16) step (%c8) {{\n    {TILE}\n  }}",
    "twice": f"scf.for %i = %c0 to %c16 step %c8 {{\n    {PRODUCT}\n  }}",
}


def compiled(text: str) -> stepladder.Kernel | stepladder.Function:
    return stepladder.compile(text, target="sm_80", device="emulator")


X, Y, Z = small(16, 24), small(24, 32), small(16, 32, dtype=np.float32)
XY = X.astype(np.float32) @ Y.astype(np.float32)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_around_parts_of_buffers(name: str) -> None:
    """Matmuls that are tiled by hand, or by upstream after bufferization."""
    text = f"""func.func @f(%a: {A}, %b: {B}, %c: {C}) {{
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  {LOOPS[name]}
  return
}}"""
    np.testing.assert_array_equal(compiled(text)(X, Y, Z.copy()), (2 if name == "twice" else 1) * XY + Z)


SCALED = f"""func.func @f(%a: {A}, %b: {B}, %v: memref<32xf32>, %c: {C}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  {PRODUCT}
  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      outs(%c : {C}) {{
  ^bb0(%x: f32):
    %j = linalg.index 1 : index
    %bias = memref.load %v[%j] : memref<32xf32>
    %y = arith.addf %x, %bias : f32
    linalg.yield %y : f32
  }}
  scf.for %i = %c0 to %c2 step %c1 {{
    %x = memref.load %c[%i, %c1] : {C}
    %y = memref.load %v[%i] : memref<32xf32>
    %z = arith.mulf %x, %y : f32
    memref.store %z, %c[%c0, %i] : {C}
  }}
  return
}}"""


def test_elements_of_buffers() -> None:
    """In the bodies of linalg ops, and between them."""
    v = small(32, dtype=np.float32)
    wanted = XY + Z + v
    for number in range(2):
        wanted[0, number] = wanted[number, 1] * v[number]
    np.testing.assert_array_equal(compiled(SCALED)(X, Y, v, Z.copy()), wanted)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%bias = memref.load %v[%j] : memref<32xf32>", "%bias = memref.load %c[%j, %j] : " + C, "that it writes"),
        ("%y = arith.addf", "memref.store %x, %v[%j] : memref<32xf32>\n    %y = arith.addf", "'memref.store' of a"),
    ],
)
def test_elements_that_linalg_ops_change_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(StepladderError) as caught:
        compiled(SCALED.replace(old, new))
    assert any(message in note for note in caught.value.notes)


def test_nests_of_many_iterations_are_not_written_out() -> None:
    """Each of 64^3 would be an op."""
    nest = "%k = arith.addi %i, %c1 : index"
    for name in "ihg":
        nest = f"scf.for %{name} = %c0 to %c64 step %c1 {{\n    {nest}\n  }}"
    text = f"""func.func @f(%a: {A}, %b: {B}, %c: {C}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  {nest}
  {PRODUCT}
  return
}}"""
    with pytest.raises(StepladderError, match=r"'scf\.for' beside linalg\.matmul"):
        compiled(text)


def test_constants_of_the_module() -> None:
    """Bufferization makes globals of constants: of several numbers, and of one."""
    weight = np.array2string(Y.astype(float), separator=", ", threshold=Y.size)
    text = f"""module {{
  memref.global "private" constant @w : {B} = dense<{weight}> {{alignment = 64 : i64}}
  memref.global "private" constant @v : memref<32xf32> = dense<2.0>
  func.func @f(%a: {A}, %c: {C}) {{
    %b = memref.get_global @w : {B}
    %v = memref.get_global @v : memref<32xf32>
    {PRODUCT}
    linalg.add ins(%c, %d : {C}, {C}) outs(%c : {C})
    return
  }}
}}"""
    added = f"%d = memref.alloc() : {C}\n    linalg.broadcast ins(%v : memref<32xf32>) outs(%d : {C}) dimensions = [0]"
    text = text.replace(PRODUCT, f"{added}\n    {PRODUCT}")
    np.testing.assert_array_equal(compiled(text)(X, Z.copy()), XY + Z + 2)
    with pytest.raises(StepladderError, match=r"'memref\.get_global' of @v, whose values are not constant") as caught:
        compiled(text.replace("constant @v", "@v"))
    assert caught.value.location and caught.value.location.endswith(":10")


@pytest.mark.parametrize("pipeline", ["wgmma", "mma_sync", "wmma"])
def test_an_elementwise_op_in_place_before_another(pipeline: str) -> None:
    """Fusion leaves one op with the results of both, of which the kernel stores the second."""
    maps = 'indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]'
    text = f"""func.func @f(%a: {A}, %b: {B}, %c: {C}) {{
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : {C}
  linalg.fill ins(%zero : f32) outs(%t : {C})
  linalg.matmul ins(%a, %b : {A}, {B}) outs(%t : {C})
  linalg.generic {{{maps}}} outs(%t : {C}) {{
  ^bb0(%x: f32):
    %y = arith.maximumf %x, %zero : f32
    linalg.yield %y : f32
  }}
  linalg.add ins(%t, %t : {C}, {C}) outs(%c : {C})
  return
}}"""
    target = "sm_90a" if pipeline == "wgmma" else "sm_80"
    kernel = stepladder.compile(text, pipeline=pipeline, target=target, device="emulator")
    np.testing.assert_array_equal(kernel(X, Y, Z.copy()), 2 * np.maximum(XY, 0))


@pytest.mark.parametrize("types", ["f16, f32", "i8, i32"])
@pytest.mark.parametrize("form", ["tensor", "memref", "negated"])
def test_products_that_are_subtracted(form: str, types: str) -> None:
    """C - AB, as in the updates of factorizations, also as the sum of C and negated products."""
    given, sums = types.split(", ")
    negated = form == "negated"
    form = "tensor" if negated else form
    kind, extended = ("f", "extf") if sums == "f32" else ("i", "extsi")
    a, b, c = (f"{form}<{extents}>" for extents in (f"16x24x{given}", f"24x32x{given}", f"16x32x{sums}"))
    is_tensor = form == "tensor"
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {f"-> {c}" if is_tensor else ""} {{
  {"%r =" if is_tensor else ""} linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
      affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}} ins(%a, %b : {a}, {b}) outs(%c : {c}) {{
  ^bb0(%x: {given}, %y: {given}, %so_far: {sums}):
    %0 = arith.{extended} %x : {given} to {sums}
    %1 = arith.{extended} %y : {given} to {sums}
    %2 = arith.mul{kind} %0, %1 : {sums}
    %3 = arith.sub{kind} %so_far, %2 : {sums}
    linalg.yield %3 : {sums}
  }} {f"-> {c}" if is_tensor else ""}
  return {f"%r : {c}" if is_tensor else ""}
}}"""
    dtypes = (np.float16, np.float32) if sums == "f32" else (np.int8, np.int32)
    x, y, z = X.astype(dtypes[0]), Y.astype(dtypes[0]), Z.astype(dtypes[1])
    if negated and sums == "f32":
        text = text.replace("arith.subf %so_far, %2", "arith.addf %n, %so_far")
        text = text.replace("    %3 =", "    %n = arith.negf %2 : f32\n    %3 =")
    made = compiled(text)
    assert isinstance(made, stepladder.Kernel)
    got = made(x, y, z.copy())
    np.testing.assert_array_equal(got, z - XY.astype(dtypes[1]))


@pytest.mark.parametrize("start", ["%c", "%part"])
def test_ops_of_a_function_that_read_their_output(start: str) -> None:
    """C less a product, which a second matmul reads: C is an argument, or a part of one."""
    a, b, c, whole, w = (f"tensor<{each}>" for each in ("16x24xf16", "24x32xf16", "16x32xf32", "20x32xf32", "32x8xf32"))
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}, %whole: {whole}, %w: {w}) -> ({c}, tensor<16x8xf32>) {{
  %zeros = arith.constant dense<0.0> : {c}
  %p = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zeros : {c}) -> {c}
  %part = tensor.extract_slice %whole[3, 0] [16, 32] [1, 1] : {whole} to {c}
  %q = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%p : {c}) outs({start} : {c}) {{
  ^bb0(%x: f32, %so_far: f32):
    %y = arith.subf %so_far, %x : f32
    linalg.yield %y : f32
  }} -> {c}
  %none = arith.constant dense<0.0> : tensor<16x8xf32>
  %r = linalg.matmul ins(%q, %w : {c}, {w}) outs(%none : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %q, %r : {c}, tensor<16x8xf32>
}}"""
    larger, weight = small(20, 32, dtype=np.float32), small(32, 8, dtype=np.float32)
    first, second = compiled(text)(X, Y, Z, larger, weight)
    wanted = (Z if start == "%c" else larger[3:19]) - XY
    np.testing.assert_array_equal(first, wanted)
    np.testing.assert_array_equal(second, wanted @ weight)


def test_products_of_truth_values() -> None:
    """A matmul of i1 has `arith.andi` and `arith.ori` in its body."""
    a, b, c = (f"tensor<{extents}xi1>" for extents in ("16x24", "24x32", "16x32"))
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  return %r : {c}
}}"""
    x, y, z = small(16, 24) > 1, small(24, 32) > 1, small(16, 32) > 2
    np.testing.assert_array_equal(compiled(text)(x, y, z), x @ y | z)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_counts_of_bits(width: int) -> None:
    kind = f"tensor<64xi{width}>"
    text = f"""func.func @f(%x: {kind}) -> ({kind}, {kind}, {kind}) {{
  %0 = math.ctpop %x : {kind}
  %1 = math.ctlz %x : {kind}
  %2 = math.cttz %x : {kind}
  return %0, %1, %2 : {kind}, {kind}, {kind}
}}"""
    least, most = -(2 ** (width - 1)), 2 ** (width - 1) - 1
    drawn = np.random.default_rng(0).integers(least, most, 57, np.int64)
    x = np.array([0, -1, 1, least, most, 6, -8, *drawn], f"i{width // 8}")
    bits = [format(int(number) % 2**width, f"0{width}b") for number in x]
    wanted = (
        [text.count("1") for text in bits],
        [len(text) - len(text.lstrip("0")) for text in bits],
        [len(text) - len(text.rstrip("0")) for text in bits],
    )
    for got, right in zip(compiled(text)(x), wanted):
        assert got.tolist() == right


READ_AFTER_IT_IS_WRITTEN = f"""func.func @f(%a: {A}, %b: {B}, %c: {C}, %d: {C}) {{
  %zero = arith.constant 0.0 : f32
  %x = bufferization.to_tensor %a restrict : {A} to tensor<16x24xf16>
  %y = bufferization.to_tensor %b restrict : {B} to tensor<24x32xf16>
  %e = tensor.empty() : tensor<16x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %p = linalg.matmul ins(%x, %y : tensor<16x24xf16>, tensor<24x32xf16>) outs(%z : tensor<16x32xf32>)
      -> tensor<16x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %c : (tensor<16x32xf32>, {C}) -> ()
  %q = bufferization.to_tensor %c restrict writable : {C} to tensor<16x32xf32>
  %s = linalg.add ins(%p, %q : tensor<16x32xf32>, tensor<16x32xf32>) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  bufferization.materialize_in_destination %s in restrict writable %d : (tensor<16x32xf32>, {C}) -> ()
  return
}}
"""


def test_a_buffer_that_is_read_after_it_is_written() -> None:
    """The front follows what it holds then: the product, which the kernel has."""
    product, twice = compiled(READ_AFTER_IT_IS_WRITTEN)(X, Y)
    np.testing.assert_array_equal(product, XY)
    np.testing.assert_array_equal(twice, 2 * XY)


def test_two_buffers_of_which_one_is_read_after_it_is_written() -> None:
    """The front refuses two results that are also read, and a kernel would read what the buffer held before."""
    kind = "tensor<16x32xf32>"
    sums = f"  %{{}} = linalg.add ins(%{{}}, %{{}} : {kind}, {kind}) outs(%e : {kind}) -> {kind}\n"
    reads = f"  %{{}} = bufferization.to_tensor %{{}} restrict writable : {C} to {kind}\n"
    writes = f"  bufferization.materialize_in_destination %{{}} in restrict writable %{{}} : ({kind}, {C}) -> ()\n"
    text = READ_AFTER_IT_IS_WRITTEN.partition("  bufferization.materialize")[0]
    text += reads.format("oc", "c") + reads.format("od", "d") + sums.format("s", "p", "oc") + writes.format("s", "c")
    text += reads.format("nc", "c") + sums.format("t", "nc", "od") + writes.format("t", "d") + "  return\n}\n"
    with mlir_context(), pytest.raises(StepladderError, match="reads argument 2 after it is written") as refused:
        find_matmul(parse_payload(text, "payload.mlir"))
    assert str(refused.value.location).startswith("payload.mlir:13:")
    c, d = Z.copy(), 2 * Z
    compiled(text)(X, Y, c, d)
    np.testing.assert_array_equal(c, XY + Z)
    np.testing.assert_array_equal(d, XY + 3 * Z)


def test_a_buffer_that_an_epilogue_reads_transposed() -> None:
    """The kernel has C beside it; a call changes the array."""
    tensors = "tensor<16x24xf16>, tensor<24x16xf16>", "tensor<16x16xf32>"
    same = "affine_map<(i, j) -> (i, j)>"
    text = f"""func.func @f(%a: {A}, %b: memref<24x16xf16>, %c: memref<16x16xf32>) {{
  %0 = bufferization.to_tensor %a restrict : {A} to tensor<16x24xf16>
  %1 = bufferization.to_tensor %b restrict : memref<24x16xf16> to tensor<24x16xf16>
  %2 = bufferization.to_tensor %c restrict writable : memref<16x16xf32> to {tensors[1]}
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {tensors[1]}
  %z = linalg.fill ins(%zero : f32) outs(%e : {tensors[1]}) -> {tensors[1]}
  %p = linalg.matmul ins(%0, %1 : {tensors[0]}) outs(%z : {tensors[1]}) -> {tensors[1]}
  %s = linalg.generic {{indexing_maps = [{same}, {same}, affine_map<(i, j) -> (j, i)>, {same}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%p, %2, %2 : {", ".join(tensors[1:] * 3)}) outs(%e : {tensors[1]}) {{
  ^bb0(%x: f32, %y: f32, %w: f32, %o: f32):
    %t = arith.addf %x, %y : f32
    %u = arith.addf %t, %w : f32
    linalg.yield %u : f32
  }} -> {tensors[1]}
  bufferization.materialize_in_destination %s in restrict writable %c : ({tensors[1]}, memref<16x16xf32>) -> ()
  return
}}"""
    c = small(16, 16, dtype=np.float32)
    wanted = X.astype(np.float32) @ Y[:, :16].astype(np.float32) + c + c.T
    given = c.copy()
    compiled(text)(X, np.ascontiguousarray(Y[:, :16]), given)
    np.testing.assert_array_equal(given, wanted)
