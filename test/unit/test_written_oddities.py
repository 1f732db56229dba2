"""Payloads with what few people write: right numbers, or the reason why they are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepladder
from small_integers import small
from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<16x24xf16>", "tensor<24x32xf16>", "tensor<16x32xf32>"
ZEROS = f"%z = arith.constant dense<0.0> : {C}"
PRODUCT = f"%p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}"


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
    assert error.message == "arith.truncf with a rounding mode other than to nearest"
    assert error.location and error.location.endswith(":10")
    assert any("has no reference computation" in note for note in error.notes)


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
    assert refusal(text).message == "A of f6E2M3FN, which no pipeline supports"


def test_a_part_that_no_pipeline_compiles_is_why_a_function_is_refused() -> None:
    """Two results that are made separately are two kernels: that one kernel makes one of them is not the reason."""
    given, sums = ("tensor<16x24xf64>", "tensor<24x32xf64>"), "tensor<16x32xf64>"
    both = f"{sums}, {sums}"
    text = f"""func.func @f(%a: {given[0]}, %b: {given[1]}) -> ({both}) {{
  %z = arith.constant dense<0.0> : {sums}
  %p = linalg.matmul ins(%a, %b : {given[0]}, {given[1]}) outs(%z : {sums}) -> {sums}
  %e = tensor.empty() : {sums}
  %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%p : {sums}) outs(%e, %e : {both}) {{
  ^bb0(%x: f64, %o: f64, %q: f64):
    %n = arith.addf %x, %x : f64
    %y = arith.mulf %x, %x : f64
    linalg.yield %n, %y : f64, f64
  }} -> ({both})
  return %r#0, %r#1 : {both}
}}"""
    error = refusal(text, "sm_75")
    assert error.message.startswith("step 'convert_to_wmma': A and B must have the same element type: f16, bf16 or i8")
    assert error.notes[-1].startswith("as one kernel: ")
    assert error.location and error.location.endswith(":3:8")


def test_sums_from_a_constant_are_not_what_is_wrong_with_a_payload() -> None:
    text = f"""func.func @f(%a: {A}, %b: {B}, %d: tensor<99x32xf32>) -> tensor<99x32xf32> {{
  {ZEROS}
  {PRODUCT}
  %q = tensor.expand_shape %p [[0, 1], [2]] output_shape [16, 1, 32] : {C} into tensor<16x1x32xf32>
  %i = tensor.empty() : tensor<16x1xindex>
  %r = tensor.scatter %q into %d[%i] scatter_dims([0]) unique
    : (tensor<16x1x32xf32>, tensor<99x32xf32>, tensor<16x1xindex>) -> tensor<99x32xf32>
  return %r : tensor<99x32xf32>
}}"""
    error = refusal(text)
    assert error.message == "'tensor.scatter' beside the contraction is not supported: a pipeline would drop it"
    assert error.location and error.location.endswith(":6:8")


@pytest.mark.parametrize(
    ("places", "shape", "read"),
    [
        ("i, i", (16, 16), lambda d: np.diag(d)[:, None]),
        ("3, j", (5, 32), lambda d: d[3]),
        ("0, j", (5, 32), lambda d: d[0]),
        ("i floordiv 4, j mod 8", (4, 8), lambda d: np.tile(np.repeat(d, 4, axis=0), 4)),
        ("15 - i, j ceildiv 2", (16, 17), lambda d: d[::-1, (np.arange(32) + 1) // 2]),
    ],
)
def test_operands_at_computed_places(places: str, shape: tuple[int, ...], read: Callable) -> None:
    matrix = f"tensor<{shape[0]}x{shape[1]}xf32>"
    text = f"""func.func @f(%a: {A}, %b: {B}, %d: {matrix}) -> {C} {{
  {ZEROS}
  {PRODUCT}
  %e = tensor.empty() : {C}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ({places})>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %d : {C}, {matrix}) outs(%e : {C}) {{
  ^bb0(%x: f32, %y: f32, %out: f32):
    %v = arith.addf %x, %y : f32
    linalg.yield %v : f32
  }} -> {C}
  return %r : {C}
}}"""
    x, y, d = small(16, 24), small(24, 32), small(*shape, dtype=np.float32)
    function = stepladder.compile(text, target="sm_80", device="emulator")
    wanted = x.astype(np.float32) @ y.astype(np.float32) + read(d)
    np.testing.assert_array_equal(function(x, y, d), wanted)


@pytest.mark.parametrize(
    ("table", "indices", "dims", "gathered", "groups"),
    [
        ((50, 24), (16, 1), (0,), (16, 1, 24), "[[0, 1], [2]]"),
        ((9, 24, 7), (16, 2), (0, 2), (16, 1, 24, 1), "[[0, 1], [2, 3]]"),
        ((9, 7, 24), (4, 4, 2), (0, 1), (4, 4, 24), "[[0, 1], [2]]"),
    ],
)
def test_gathered_rows(
    table: tuple[int, ...], indices: tuple[int, ...], dims: tuple[int, ...], gathered: tuple[int, ...], groups: str
) -> None:
    t, i, g = (
        f"tensor<{'x'.join(map(str, shape))}x{kind}>"
        for shape, kind in ((table, "f16"), (indices, "i32"), (gathered, "f16"))
    )
    text = f"""func.func @f(%t: {t}, %i: {i}, %b: {B}) -> {C} {{
  {ZEROS}
  %g = tensor.gather %t[%i] gather_dims([{", ".join(map(str, dims))}]) : ({t}, {i}) -> {g}
  %a = tensor.collapse_shape %g {groups} : {g} into {A}
  {PRODUCT}
  return %p : {C}
}}"""
    x, y = small(*table), small(24, 32)
    chosen = np.random.default_rng(0).integers(0, 7, indices).astype(np.int32)
    rows = np.moveaxis(x, dims, range(len(dims)))[tuple(np.moveaxis(chosen, -1, 0))].reshape(16, 24)
    function = stepladder.compile(text, target="sm_80", device="emulator")
    np.testing.assert_array_equal(function(x, chosen, y), rows.astype(np.float32) @ y.astype(np.float32))


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


DIVIDED = """func.func @f(%a: tensor<16x24xi8>, %b: tensor<24x32xi8>, %d: tensor<16x32xi32>) -> tensor<16x32xi32> {
  %z = arith.constant dense<0> : tensor<16x32xi32>
  %e = tensor.empty() : tensor<16x32xi32>
  %p = linalg.matmul ins(%a, %b : tensor<16x24xi8>, tensor<24x32xi8>) outs(%z : tensor<16x32xi32>) -> tensor<16x32xi32>
  %r = linalg.div_unsigned ins(%p, %d : tensor<16x32xi32>, tensor<16x32xi32>) outs(%e : tensor<16x32xi32>)
    -> tensor<16x32xi32>
  return %r : tensor<16x32xi32>
}
"""


def test_a_named_op_divides_unsigned_integers() -> None:
    x, y, d = small(16, 24, dtype=np.int8), small(24, 32, dtype=np.int8), np.full((16, 32), 7, np.int32)
    wanted = (x.astype(np.int32) @ y.astype(np.int32)).view(np.uint32) // 7
    function = stepladder.compile(DIVIDED, target="sm_80", device="emulator")
    np.testing.assert_array_equal(function(x, y, d), wanted.view(np.int32))


def test_a_refusal_about_the_body_of_a_named_op_has_its_place() -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        find_matmul(parse_payload(DIVIDED, "divided.mlir"))
    assert "'arith.divui' by an element of an operand" in caught.value.message
    assert caught.value.location == "divided.mlir:5:8"


def counted(condition: str, *, forwarded: str = "%i, %x", first: str = "%c0") -> str:
    """Returns a function that multiplies by parts of b while a condition holds for a counter."""
    names = forwarded.split(", ")
    types = {"%i": "index", "%x": "tensor<16x16xf16>"}
    given = ", ".join(types[name] for name in names)
    return f"""func.func @f(%a: tensor<16x16xf16>, %b: tensor<3x16x16xf16>) -> tensor<16x16xf16> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant dense<0.0> : tensor<16x16xf16>
  %r:2 = scf.while (%i = {first}, %x = %a) : (index, tensor<16x16xf16>) -> ({given}) {{
    %t = arith.cmpi {condition} : index
    scf.condition(%t) {forwarded} : {given}
  }} do {{
  ^bb0({", ".join(f"{name}: {types[name]}" for name in names)}):
    %part = tensor.extract_slice %b[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<3x16x16xf16> to tensor<16x16xf16>
    %p = linalg.matmul ins(%x, %part : tensor<16x16xf16>, tensor<16x16xf16>) outs(%z : tensor<16x16xf16>)
      -> tensor<16x16xf16>
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %p : index, tensor<16x16xf16>
  }}
  return %r#{names.index("%x")} : tensor<16x16xf16>
}}"""


def counted_by_integers() -> str:
    """Returns such a function whose counter is of i32, as front ends write them."""
    text = re.sub(r"(%c[013]) = arith.constant (.) : index", r"\1 = arith.constant \2 : i32", counted("slt, %i, %c3"))
    text = text.replace("(index, tensor", "(i32, tensor").replace("%c3 : index", "%c3 : i32")
    text = text.replace("%i: index", "%i: i32").replace("%c1 : index", "%c1 : i32").replace("%p : index", "%p : i32")
    text = text.replace("(index, ", "(i32, ").replace("%i, %x : index", "%i, %x : i32")
    return text.replace("%part =", "%k = arith.index_cast %i : i32 to index\n    %part =").replace("%b[%i,", "%b[%k,")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (counted("slt, %i, %c3"), (0, 1, 2)),
        (counted("ugt, %c3, %i", forwarded="%x, %i", first="%c1"), (1, 2)),
        (counted("ne, %i, %c1"), (0,)),
        (counted_by_integers(), (0, 1, 2)),
    ],
)
def test_loops_that_a_counter_ends(text: str, parts: tuple[int, ...]) -> None:
    orders = [np.random.default_rng(number).permutation(16) for number in range(3)]
    x, b = small(16, 16), np.stack([np.eye(16, dtype=np.float16)[order] for order in orders])
    wanted = x
    for part in parts:
        wanted = wanted @ b[part]
    np.testing.assert_array_equal(stepladder.compile(text, target="sm_80", device="emulator")(x, b), wanted)


def test_a_loop_that_no_counter_ends_is_refused() -> None:
    error = refusal(counted("uge, %i, %c0"))
    assert error.message == "'scf.while' beside the contraction is not supported: a pipeline would drop it"


def test_a_buffer_of_the_caller_that_is_written_and_returned_is_one_result() -> None:
    a, b, c = "memref<16x24xf16>", "memref<24x32xf16>", "memref<16x32xf32>"
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c})
  return %c : {c}
}}"""
    kernel = stepladder.compile(text, target="sm_80", device="emulator")
    x, y, start = small(16, 24), small(24, 32), small(16, 32, dtype=np.float32)
    wanted = x.astype(np.float32) @ y.astype(np.float32) + start
    assert isinstance(kernel, stepladder.Kernel) and kernel(x, y, start) is start
    np.testing.assert_array_equal(start, wanted)


def _sliced(offset: int) -> str:
    return f"""%o = arith.constant {offset} : index
  %r = tensor.extract_slice %x[%o, 0] [8, 16] [1, 1] : tensor<16x16xi32> to tensor<8x16xi32>"""


@pytest.mark.parametrize(
    ("body", "message", "accepted"),
    [
        (_sliced(-3), "tensor.extract_slice begins at -3 along an axis of 16 elements", "offsets from 0 to 8"),
        (_sliced(9), "tensor.extract_slice begins at 9 along an axis of 16 elements", "offsets from 0 to 8"),
        (
            """%zeros = arith.constant dense<0> : tensor<16x16xi32>
  %r = arith.remsi %x, %zeros : tensor<16x16xi32>""",
            "'arith.remsi' by 0",
            "another constant",
        ),
    ],
)
def test_what_is_undefined_for_all_inputs_is_refused(body: str, message: str, accepted: str) -> None:
    type_ = "tensor<8x16xi32>" if "slice" in body else "tensor<16x16xi32>"
    error = refusal(f"func.func @f(%x: tensor<16x16xi32>) -> {type_} {{\n  {body}\n  return %r : {type_}\n}}\n")
    assert error.message == message
    assert error.location and error.location.endswith(":3:8") and accepted in error.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "(%x: tensor<4xf32>, %c: f32) -> f32 {\n  return %c : f32",
            "the function returns a value of type f32: it must return tensors",
        ),
        (
            "(%x: tensor<4xf32>) {\n  return",
            "no linalg.matmul in the payload: function @f returns nothing, and has no buffers to write",
        ),
        (
            "(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {\n  cf.cond_br %c, ^a, ^a\n^a:\n  return %x : tensor<4xf32>",
            "no linalg.matmul in the payload: function @f has branches between blocks",
        ),
        (
            '(%x: tensor<4xf32> {tf.aliasing_output = "x"}) -> tensor<4xf32> {\n'
            "  %y = math.exp %x : tensor<4xf32>\n  return %y : tensor<4xf32>",
            'tf.aliasing_output = "x"',
        ),
    ],
)
def test_functions_of_which_no_kernels_are_made(text: str, message: str) -> None:
    error = refusal(f"func.func @f{text}\n}}\n")
    assert error.message == message
    place = ":2:3" if "a value of type" in message else ":1:1"
    assert error.location and error.location.endswith(place) and error.notes[0].startswith("accepted: ")
