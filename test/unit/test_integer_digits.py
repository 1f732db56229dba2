"""Products of integers that no matrix unit multiplies, on the emulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from combinations import sample
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

M, N, K = 6, 10, 9
TYPES = [
    *(("i8", "i8", sums) for sums in ("i8", "i16", "i64")),
    *(("i16", "i16", sums) for sums in ("i16", "i32", "i64")),
    *(("i32", "i32", sums) for sums in ("i32", "i64")),
    *(("i8", "i16", "i32"), ("i16", "i32", "i32"), ("i1", "i1", "i32")),
]


def payload(a: str, b: str, sums: str, *, cast: str = "", depth: int = K) -> str:
    types = f"tensor<{M}x{depth}x{a}>", f"tensor<{depth}x{N}x{b}>", f"tensor<{M}x{N}x{sums}>"
    return f"""func.func @f(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) -> {types[2]} {{
  %p = linalg.matmul {cast} ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]}) -> {types[2]}
  return %p : {types[2]}
}}"""


def numbers(type_: str, *shape: int) -> np.ndarray:
    """Returns integers of a type, of which every fifth one is the least, and every seventh the largest."""
    dtype = np.dtype(bool if type_ == "i1" else f"int{type_[1:]}")
    limits = (0, 1) if type_ == "i1" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    drawn = np.random.default_rng([*shape, *type_.encode()]).integers(*limits, shape, dtype=np.int64, endpoint=True)
    drawn.flat[::5], drawn.flat[::7] = limits
    return drawn.astype(dtype)


@pytest.mark.parametrize(
    ("a", "b", "sums", "target"), [*((*types, "sm_80") for types in sample(TYPES, 4)), ("i16", "i16", "i32", "sm_90a")]
)
def test_integers_are_multiplied_exactly(a: str, b: str, sums: str, target: str) -> None:
    x, y, start = numbers(a, M, K), numbers(b, K, N), numbers(sums, M, N)
    function = stepladder.compile(payload(a, b, sums), target=target, device="emulator")
    sign = -1 if a == "i1" else 1  # its one bit is the sign
    wide = [sign * each.astype(start.dtype) for each in (x, y)]
    np.testing.assert_array_equal(function(x, y, start), wide[0] @ wide[1] + start)


def test_one_product_each_is_elementwise() -> None:
    x, y, start = numbers("i16", M, 1), numbers("i16", 1, N), numbers("i64", M, N)
    text = payload("i16", "i16", "i64", depth=1)
    function = stepladder.compile(text, target="sm_80", device="emulator")
    np.testing.assert_array_equal(function(x, y, start), x.astype(np.int64) * y + start)


def test_products_of_64_bits_need_no_matrix_units() -> None:
    x, y, start = numbers("i64", M, K), numbers("i64", K, N), numbers("i64", M, N)
    function = stepladder.compile(payload("i64", "i64", "i64"), target="sm_80", device="emulator")
    np.testing.assert_array_equal(function(x, y, start), x @ y + start)


def test_unsigned_integers() -> None:
    x, y, start = numbers("i16", M, K), numbers("i16", K, N), numbers("i32", M, N)
    text = payload("i16", "i16", "i32", cast="{cast = #linalg.type_fn<cast_unsigned>}")
    function = stepladder.compile(text, target="sm_80", device="emulator")
    wide = [each.view(np.uint16).astype(np.int32) for each in (x, y)]
    np.testing.assert_array_equal(function(x, y, start), wide[0] @ wide[1] + start)


@pytest.mark.parametrize(("a", "b", "sums"), [("i16", "i8", "i32"), ("i8", "i8", "i8")])
def test_a_body_may_multiply_b_by_a(a: str, b: str, sums: str) -> None:
    types = [f"tensor<{rows}x{columns}x{type_}>" for rows, columns, type_ in ((M, K, a), (K, N, b), (M, N, sums))]
    extended = a != sums
    casts = [f"%{name}w = arith.extsi %{name} : {type_} to {sums}" for name, type_ in (("x", a), ("y", b)) if extended]
    lines = "\n    ".join(casts)
    x_name, y_name = ("%xw", "%yw") if extended else ("%x", "%y")
    text = f"""func.func @f(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) -> {types[2]} {{
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]}) {{
  ^bb0(%x: {a}, %y: {b}, %z: {sums}):
    {lines}
    %product = arith.muli {y_name}, {x_name} : {sums}
    %sum = arith.addi %product, %z : {sums}
    linalg.yield %sum : {sums}
  }} -> {types[2]}
  return %p : {types[2]}
}}"""
    x, y, start = numbers(a, M, K), numbers(b, K, N), numbers(sums, M, N)
    function = stepladder.compile(text, target="sm_80", device="emulator")
    wide = [each.astype(start.dtype) for each in (x, y)]
    np.testing.assert_array_equal(function(x, y, start), wide[0] @ wide[1] + start)


def test_sums_of_64_bits_that_digits_may_exceed_are_refused() -> None:
    with pytest.raises(StepladderError) as caught:
        stepladder.compile(payload("i16", "i16", "i64", depth=33026), target="sm_80", device="emulator")
    assert "sums in i64 of 33026 products; accepted: up to 33025" in caught.value.notes[-1]


@pytest.mark.parametrize(
    ("source", "before", "extends", "sums", "products"),
    [
        ("i8", "i32", "arith.extsi", "i64", 1),  # of torch-mlir, whose sums of integers are i64
        ("i8", "i32", "arith.extui", "i64", 1),
        ("i8", "i16", "arith.extsi", "i16", 1),
        ("i16", "i32", "arith.extsi", "i32", 4),
    ],
)
def test_what_an_op_in_front_extends_has_the_digits_of_the_narrow_numbers(
    source: str, before: str, extends: str, sums: str, products: int
) -> None:
    """A is extended, transposed and reshaped in front of the product, and B is extended."""
    narrow, wide = (f"tensor<3x3x{M}x{type_}>" for type_ in (source, before))
    types = f"tensor<{M}x{K}x{before}>", f"tensor<{K}x{N}x{before}>", f"tensor<{M}x{N}x{sums}>"
    same = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j, k) -> (i, j, k)>"

    def extended(name: str, value: str, type_: str, wider: str, map_: str) -> str:
        loops = ", ".join(['"parallel"'] * (type_.count("x") - type_.count("ext")))
        return f"""%e{name} = tensor.empty() : {wider}
  %{name} = linalg.generic {{indexing_maps = [{map_}, {map_}], iterator_types = [{loops}]}}
      ins({value} : {type_}) outs(%e{name} : {wider}) {{
  ^bb0(%in: {source}, %out: {before}):
    %0 = {extends} %in : {source} to {before}
    linalg.yield %0 : {before}
  }} -> {wider}"""

    text = f"""func.func @f(%a: {narrow}, %b: tensor<{K}x{N}x{source}>) -> {types[2]} {{
  {extended("x", "%a", narrow, wide, same[1])}
  {extended("y", "%b", f"tensor<{K}x{N}x{source}>", types[1], same[0])}
  %et = tensor.empty() : tensor<{M}x3x3x{before}>
  %t = linalg.transpose ins(%x : {wide}) outs(%et : tensor<{M}x3x3x{before}>) permutation = [2, 0, 1]
  %v = tensor.collapse_shape %t [[0], [1, 2]] : tensor<{M}x3x3x{before}> into {types[0]}
  %zero = arith.constant 0 : {sums}
  %ez = tensor.empty() : {types[2]}
  %z = linalg.fill ins(%zero : {sums}) outs(%ez : {types[2]}) -> {types[2]}
  %p = linalg.matmul ins(%v, %y : {types[0]}, {types[1]}) outs(%z : {types[2]}) -> {types[2]}
  return %p : {types[2]}
}}"""
    x, y = numbers(source, 3, 3, M), numbers(source, K, N)
    function = stepladder.compile(text, target="sm_80", device="emulator", groups=False)
    kernels = [launch.stage for launch in function.manifest.launches if "matmul" in launch.stage]
    assert len(kernels) <= products  # two of them may be one kernel
    left, right = (each.view(f"u{each.dtype}" if extends == "arith.extui" else each.dtype) for each in (x, y))
    left = left.astype(sums.replace("i", "int")).transpose(2, 0, 1).reshape(M, K)
    np.testing.assert_array_equal(function(x, y), left @ right.astype(left.dtype))
