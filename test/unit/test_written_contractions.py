"""Ops that look like contractions, and tilings of them, as users and upstream's passes write them: numbers by NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import stepladder
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<8x16xf16>", "tensor<16x24xf16>", "tensor<8x24xf32>"


def small(*shape: int, dtype: type = np.float16) -> np.ndarray:
    return np.random.default_rng(list(shape)).integers(-3, 4, shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32)


def maps(loops: str, *operands: str) -> str:
    return f"indexing_maps = [{', '.join(f'affine_map<({loops}) -> ({operand})>' for operand in operands)}]"


def compiled(text: str, matmuls: int) -> Callable[..., np.ndarray]:
    function = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    assert function.manifest.describe().startswith(f"@f: {matmuls} matmul")
    return function


def repeated(op: str, first: str, loops: tuple[str, str, str, str], result: str) -> str:
    """Returns a product that the result repeats along a loop that neither A nor B has."""
    return f"""func.func @f(%a: {first}, %b: {B}, %c: {result}) -> {result} {{
  %r = linalg.{op} {maps(*loops)} ins(%a, %b : {first}, {B}) outs(%c : {result}) -> {result}
  return %r : {result}
}}"""


@pytest.mark.parametrize(
    ("text", "shapes", "sums"),
    [
        (repeated("matmul", "tensor<16xf16>", ("m, n, k", "k", "k, n", "m, n"), C), ((16,), (8, 24)), "k,kn->n"),
        (
            repeated("contract", A, ("m, n, k, l", "m, k", "k, n", "m, l, n"), "tensor<8x3x24xf32>"),
            ((8, 16), (8, 3, 24)),
            "mk,kn->mn",
        ),
    ],
    ids=["a row of A", "a loop of C"],
)
def test_a_product_that_the_result_repeats(text: str, shapes: tuple[tuple[int, ...], ...], sums: str) -> None:
    a, b, c = small(*shapes[0]), small(16, 24), small(*shapes[1], dtype=np.float32)
    product = np.einsum(sums, wide(a), wide(b))
    wanted = c + (product[:, None] if c.ndim > 2 else product)
    np.testing.assert_array_equal(compiled(text, 0)(a, b, c), wanted)


WIDE = "\n    %x = arith.extf %in : f16 to f32\n    %y = arith.extf %in_0 : f16 to f32"
BODIES = {
    "masked": (
        f"""{WIDE}
    %i = linalg.index 0 : index
    %t = linalg.index 2 : index
    %before = arith.cmpi ule, %t, %i : index
    %q = arith.mulf %x, %y : f32
    %none = arith.constant 0.0 : f32
    %p = arith.select %before, %q, %none : f32""",
        lambda a, b: np.tril(wide(a)) @ wide(b),
    ),
    "squares of differences": (
        f"{WIDE}\n    %d = arith.subf %x, %y : f32\n    %p = arith.mulf %d, %d : f32",
        lambda a, b: ((wide(a)[:, :, None] - wide(b)[None]) ** 2).sum(1),
    ),
    "rounded products": (
        "\n    %h = arith.constant 0.333 : f16\n    %s = arith.mulf %in, %h : f16\n    %q = arith.mulf %s, %in_0 : f16"
        "\n    %p = arith.extf %q : f16 to f32",
        lambda a, b: wide((a * np.float16(0.333))[:, :, None] * b[None]).sum(1),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_are_no_products_of_the_operands(name: str) -> None:
    body, of = BODIES[name]
    text = f"""func.func @f(%a: {A}, %b: {B}, %c: {C}) -> {C} {{
  %r = linalg.generic {{{maps("m, n, k", "m, k", "k, n", "m, n")},
      iterator_types = ["parallel", "parallel", "reduction"]}} ins(%a, %b : {A}, {B}) outs(%c : {C}) {{
  ^bb0(%in: f16, %in_0: f16, %out: f32):{body}
    %sum = arith.addf %out, %p : f32
    linalg.yield %sum : f32
  }} -> {C}
  return %r : {C}
}}"""
    a, b, c = small(8, 16), small(16, 24), small(8, 24, dtype=np.float32)
    np.testing.assert_allclose(compiled(text, 0)(a, b, c), c + of(a, b), rtol=0, atol=1e-5)


def test_products_of_integers_that_wrap_before_they_are_added() -> None:
    text = f"""func.func @f(%a: tensor<8x16xi8>, %b: tensor<16x24xi8>, %c: tensor<8x24xi32>) -> tensor<8x24xi32> {{
  %r = linalg.generic {{{maps("m, n, k", "m, k", "k, n", "m, n")},
      iterator_types = ["parallel", "parallel", "reduction"]}} ins(%a, %b : tensor<8x16xi8>, tensor<16x24xi8>)
      outs(%c : tensor<8x24xi32>) {{
  ^bb0(%in: i8, %in_0: i8, %out: i32):
    %p = arith.muli %in, %in_0 : i8
    %q = arith.extsi %p : i8 to i32
    %sum = arith.addi %out, %q : i32
    linalg.yield %sum : i32
  }} -> tensor<8x24xi32>
  return %r : tensor<8x24xi32>
}}"""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((8, 16), (16, 24)))
    c = rng.integers(-9, 9, (8, 24)).astype(np.int32)
    np.testing.assert_array_equal(compiled(text, 0)(a, b, c), c + (a[:, :, None] * b[None]).sum(1, dtype=np.int32))


def test_an_outer_product_whose_columns_are_between_its_rows() -> None:
    a, b, c = "tensor<8x1x3xf32>", "tensor<1x16xf32>", "tensor<8x16x3xf32>"
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %r = linalg.contract {maps("i, j, l, k", "i, k, l", "k, j", "i, j, l")} ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  return %r : {c}
}}"""
    x, y, z = (small(*shape, dtype=np.float32) for shape in ((8, 1, 3), (1, 16), (8, 16, 3)))
    np.testing.assert_array_equal(compiled(text, 0)(x, y, z), z + np.einsum("ikl,kj->ijl", x, y))


def part(name: str, source: str, places: str, type_: str, result: str) -> str:
    return f"    {name} = tensor.extract_slice {source}[{places}] [1, 1] : {type_} to {result}\n"


def test_tiles_of_parallel_iterations_at_computed_places() -> None:
    a, b, c = "tensor<32x48xf16>", "tensor<48x16xf16>", "tensor<32x16xf32>"
    x, y, tile = "tensor<16x48xf16>", "tensor<48x16xf16>", "tensor<16x16xf32>"
    text = f"""#place = affine_map<(i) -> (i * 16)>
func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %r = scf.forall (%i, %j) in (2, 1) shared_outs(%o = %c) -> ({c}) {{
    %m = affine.apply #place(%i)
    %n = affine.apply #place(%j)
{part("%x", "%a", "%m, 0] [16, 48", a, x)}{part("%y", "%b", "0, %n] [48, 16", b, y)}
{part("%s", "%o", "%m, %n] [16, 16", c, tile)}
    %p = linalg.matmul ins(%x, %y : {x}, {y}) outs(%s : {tile}) -> {tile}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %p into %o[%m, %n] [16, 16] [1, 1] : {tile} into {c}
    }}
  }}
  return %r : {c}
}}"""
    p, q, s = small(32, 48), small(48, 16), small(32, 16, dtype=np.float32)
    function = stepladder.compile(text, target="sm_80", device="emulator")
    np.testing.assert_array_equal(function(p, q, s), wide(p) @ wide(q) + s)


def test_tiles_of_which_the_last_one_is_smaller() -> None:
    a, b, c = "tensor<20x32xf16>", "tensor<32x24xf16>", "tensor<20x24xf32>"
    x, tile = "tensor<?x32xf16>", "tensor<?x24xf32>"
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c20 = arith.constant 20 : index
  %r = scf.for %i = %c0 to %c20 step %c16 iter_args(%o = %c) -> ({c}) {{
    %rows = affine.min affine_map<(i) -> (16, 20 - i)>(%i)
{part("%x", "%a", "%i, 0] [%rows, 32", a, x)}{part("%s", "%o", "%i, 0] [%rows, 24", c, tile)}
    %p = linalg.matmul ins(%x, %b : {x}, {b}) outs(%s : {tile}) -> {tile}
    %w = tensor.insert_slice %p into %o[%i, 0] [%rows, 24] [1, 1] : {tile} into {c}
    scf.yield %w : {c}
  }}
  return %r : {c}
}}"""
    p, q, s = small(20, 32), small(32, 24), small(20, 24, dtype=np.float32)
    np.testing.assert_array_equal(compiled(text, 0)(p, q, s), wide(p) @ wide(q) + s)  # a group of two


@pytest.mark.parametrize("views", [False, True], ids=["as it is", "viewed"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_an_epilogue_reads_a(views: bool, target: str) -> None:
    """A residual connection around one layer: A is an operand of the kernel twice."""
    x, y, w = ("tensor<2x8x32xf16>", "tensor<16x32xf16>", "tensor<32x32xf16>") if views else ["tensor<32x32xf16>"] * 3
    collapsed = f"%a = tensor.collapse_shape %x [[0, 1], [2]] : {x} into {y}"
    expanded = f"%q = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 8, 32] : {y.replace('f16', 'f32')} into "
    sums, result = y.replace("f16", "f32"), x.replace("f16", "f32")
    a, q = ("%a", "%q") if views else ("%x", "%p")
    text = f"""func.func @f(%x: {x}, %w: {w}) -> {result} {{
  %zero = arith.constant dense<0.0> : {sums}
  {collapsed if views else ""}
  %p = linalg.matmul ins({a}, %w : {y}, {w}) outs(%zero : {sums}) -> {sums}
  {expanded + result if views else ""}
  %e = tensor.empty() : {result}
  %r = linalg.map ins({q}, %x : {result}, {x}) outs(%e : {result}) (%s: f32, %t: f16, %o: f32) {{
    %u = arith.extf %t : f16 to f32
    %v = arith.addf %s, %u : f32
    linalg.yield %v : f32
  }}
  return %r : {result}
}}"""
    function = stepladder.compile(text, target=target, device="emulator")
    assert isinstance(function, stepladder.Function) and len(function.manifest.launches) == 1
    given, weight = small(*((2, 8, 32) if views else (32, 32))), small(32, 32)
    np.testing.assert_array_equal(function(given, weight), wide(given) @ wide(weight) + wide(given))


def test_slices_whose_size_is_the_counter_of_a_loop() -> None:
    a, b, c = "tensor<8x4xf16>", "tensor<4x8xf16>", "tensor<8x8xf32>"
    x, y = "tensor<8x?xf16>", "tensor<?x8xf16>"
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c1 to %c5 step %c1 iter_args(%o = %c) -> ({c}) {{
{part("%x", "%a", "0, 0] [8, %i", a, x)}{part("%y", "%b", "0, 0] [%i, 8", b, y)}
    %p = linalg.matmul ins(%x, %y : {x}, {y}) outs(%o : {c}) -> {c}
    scf.yield %p : {c}
  }}
  return %r : {c}
}}"""
    p, q, s = small(8, 4), small(4, 8), small(8, 8, dtype=np.float32)
    wanted = s + sum(wide(p)[:, :size] @ wide(q)[:size] for size in range(1, 5))
    np.testing.assert_array_equal(stepladder.compile(text, target="sm_80", device="emulator")(p, q, s), wanted)


def test_two_sums_that_start_from_one_fill() -> None:
    """A mean and a variance in one pass; canonicalization makes one fill of the two."""
    x, y = "tensor<8x24xf32>", "tensor<8xf32>"
    text = f"""func.func @f(%a: {x}) -> ({y}, {y}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %z = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %r:2 = linalg.generic {{{maps("i, j", "i, j", "i", "i")}, iterator_types = ["parallel", "reduction"]}}
    ins(%a : {x}) outs(%z, %z : {y}, {y}) {{
  ^bb0(%in: f32, %sum: f32, %squares: f32):
    %square = arith.mulf %in, %in : f32
    %s = arith.addf %sum, %in : f32
    %q = arith.addf %squares, %square : f32
    linalg.yield %s, %q : f32, f32
  }} -> ({y}, {y})
  return %r#0, %r#1 : {y}, {y}
}}"""
    a = small(8, 24, dtype=np.float32)
    sums, squares = compiled(text, 0)(a)
    np.testing.assert_array_equal(sums, a.sum(1))
    np.testing.assert_array_equal(squares, (a * a).sum(1))


def test_an_op_that_does_not_verify_has_no_empty_notes() -> None:
    a, b = "tensor<8xf16>", "tensor<24xf16>"
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {C}) -> {C} {{
  %r = linalg.contract {maps("i, j", "i", "j", "i, j")} ins(%a, %b : {a}, {b}) outs(%c : {C}) -> {C}
  return %r : {C}
}}"""
    with pytest.raises(StepladderError, match="do not specify a contracting dimension") as refused:
        stepladder.compile(text, target="sm_80", device="emulator")
    assert re.search(r":2:\d+$", refused.value.location or "") and not refused.value.notes
