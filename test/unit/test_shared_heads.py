"""Heads of queries that share keys and values (GQA), as front ends write them: no kernel repeats the keys."""

from __future__ import annotations

import importlib.util

import ml_dtypes
import numpy as np
import pytest

import stepladder
from combinations import combinations
from contraction_text import contraction
from small_integers import small
from stepladder.mlir.bindings import PREFIX

pytestmark = pytest.mark.usefixtures("needs_ptxas")

# 2 sequences, 2 heads of keys, of which each has 3 heads of queries.
PRODUCT = """  %e = tensor.empty() : tensor<2x6x16x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6x16x32xf32>) -> tensor<2x6x16x32xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>,
      affine_map<(b, h, m, n, k) -> (b, h, n, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
      ins(%q, %s : tensor<2x6x16x24xf16>, tensor<2x6x32x24xf16>) outs(%z : tensor<2x6x16x32xf32>)
      -> tensor<2x6x16x32xf32>
  return %r : tensor<2x6x16x32xf32>
}
"""
HEAD = """func.func @f(%q: tensor<2x6x16x24xf16>, %k: tensor<2x2x32x24xf16>) -> tensor<2x6x16x32xf32> {
  %zero = arith.constant 0.0 : f32
"""
LOOPS = 'iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]'
REPEATED = "tensor<2x2x3x32x24xf16>"


def expanded(source: str, places: str, given: str) -> str:
    """Returns keys that are repeated along a new dimension, which a reshape joins to that of the heads."""
    return f"""  %x = tensor.empty() : {REPEATED}
  %g = linalg.generic {{indexing_maps = [affine_map<(b, h, g, n, k) -> ({places})>,
      affine_map<(b, h, g, n, k) -> (b, h, g, n, k)>], {LOOPS}}} ins({source} : {given}) outs(%x : {REPEATED}) {{
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }} -> {REPEATED}
  %s = tensor.collapse_shape %g [[0], [1, 2], [3], [4]] : {REPEATED} into tensor<2x6x32x24xf16>
"""


HAS_STABLEHLO = importlib.util.find_spec(f"{PREFIX}.dialects.torch") is not None
FORMS = {
    "broadcast": HEAD + expanded("%k", "b, h, n, k", "tensor<2x2x32x24xf16>") + PRODUCT,
    "expanded from one": HEAD
    + """  %u = tensor.expand_shape %k [[0], [1, 2], [3], [4]] output_shape [2, 2, 1, 32, 24]
    : tensor<2x2x32x24xf16> into tensor<2x2x1x32x24xf16>
"""
    + expanded("%u", "b, h, 0, n, k", "tensor<2x2x1x32x24xf16>")
    + PRODUCT,
    "quotient": HEAD
    + """  %x = tensor.empty() : tensor<2x6x32x24xf16>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, n, k) -> (b, h floordiv 3, n, k)>,
      affine_map<(b, h, n, k) -> (b, h, n, k)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x2x32x24xf16>) outs(%x : tensor<2x6x32x24xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x6x32x24xf16>
"""
    + PRODUCT,
    "in the contraction": HEAD
    + """  %e = tensor.empty() : tensor<2x6x16x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6x16x32xf32>) -> tensor<2x6x16x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>,
      affine_map<(b, h, m, n, k) -> (b, h floordiv 3, n, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x6x16x24xf16>, tensor<2x2x32x24xf16>) outs(%z : tensor<2x6x16x32xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %0 = arith.extf %x : f16 to f32
    %1 = arith.extf %y : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<2x6x16x32xf32>
  return %r : tensor<2x6x16x32xf32>
}
""",
    "StableHLO": """func.func @f(%q: tensor<2x6x16x24xf16>, %k: tensor<2x2x32x24xf16>) -> tensor<2x6x16x32xf32> {
  %g = stablehlo.broadcast_in_dim %k, dims = [0, 1, 3, 4] : (tensor<2x2x32x24xf16>) -> tensor<2x2x3x32x24xf16>
  %s = stablehlo.reshape %g : (tensor<2x2x3x32x24xf16>) -> tensor<2x6x32x24xf16>
  %r = stablehlo.dot_general %q, %s, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
    : (tensor<2x6x16x24xf16>, tensor<2x6x32x24xf16>) -> tensor<2x6x16x32xf32>
  return %r : tensor<2x6x16x32xf32>
}
""",
}


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "StableHLO" or HAS_STABLEHLO])
def test_keys_are_read_where_they_are(form: str, target: str) -> None:
    kernel = stepladder.compile(FORMS[form], target=target, device="emulator")
    assert isinstance(kernel, stepladder.Kernel)
    problem = kernel.manifest.problem
    assert (problem.batch, problem.m, problem.n, problem.k) == (4, 48, 32, 24)  # one matmul for each head of keys
    rng = np.random.default_rng(0)
    q, k = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((2, 6, 16, 24), (2, 2, 32, 24)))
    exact = np.einsum("bhmk,bhnk->bhmn", q.astype(np.float64), np.repeat(k, 3, axis=1).astype(np.float64))
    np.testing.assert_array_equal(np.asarray(kernel(q, k)).reshape(exact.shape), exact)


# Relative errors: weights and results are rounded to bf16 by half a unit in the last place, and sums of up to 256 terms
# are of f32.
ROUNDINGS = 2 * 2**-9 + 256 * 2**-24


def transposed_and_repeated(name: str, keys: int, size: int) -> str:
    """Returns keys or values, %name, of sequences x keys x heads, as %name_r of all heads of queries, as torch-mlir
    writes them."""
    own, whole = f"2x2x{keys}x{size}xbf16", f"2x2x4x{keys}x{size}xbf16"
    return f"""  %{name}_e = tensor.empty() : tensor<{own}>
  %{name}_t = linalg.transpose ins(%{name} : tensor<2x{keys}x2x{size}xbf16>) outs(%{name}_e : tensor<{own}>)
    permutation = [0, 2, 1, 3]
  %{name}_u = tensor.expand_shape %{name}_t [[0], [1, 2], [3], [4]] output_shape [2, 2, 1, {keys}, {size}]
    : tensor<{own}> into tensor<2x2x1x{keys}x{size}xbf16>
  %{name}_x = tensor.empty() : tensor<{whole}>
  %{name}_g = linalg.generic {{indexing_maps = [affine_map<(b, h, g, n, k) -> (b, h, 0, n, k)>,
      affine_map<(b, h, g, n, k) -> (b, h, g, n, k)>], {LOOPS}}}
      ins(%{name}_u : tensor<2x2x1x{keys}x{size}xbf16>) outs(%{name}_x : tensor<{whole}>) {{
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  }} -> tensor<{whole}>
  %{name}_r = tensor.collapse_shape %{name}_g [[0, 1, 2], [3], [4]] : tensor<{whole}> into tensor<16x{keys}x{size}xbf16>
"""


def attention(queries: int, keys: int, size: int) -> str:
    """Returns an attention of 2 sequences and 8 heads, of which 4 share keys and values."""
    same, heads = "affine_map<(b, i, j) -> (b, i, j)>", f"16x{queries}x{size}"
    loops = 'iterator_types = ["parallel", "parallel", "parallel"]'
    scores = f"16x{queries}x{keys}"

    def rounded(value: str, shape: str, name: str) -> str:
        return f"""  %{name}_e = tensor.empty() : tensor<{shape}xbf16>
  %{name} = linalg.generic {{indexing_maps = [{same}, {same}], {loops}}} ins({value} : tensor<{shape}xf32>)
      outs(%{name}_e : tensor<{shape}xbf16>) {{
  ^bb0(%in: f32, %out: bf16):
    %y = arith.truncf %in : f32 to bf16
    linalg.yield %y : bf16
  }} -> tensor<{shape}xbf16>
"""

    return f"""func.func @attention(%q: tensor<2x{queries}x8x{size}xbf16>, %k: tensor<2x{keys}x2x{size}xbf16>,
    %v: tensor<2x{keys}x2x{size}xbf16>) -> tensor<{heads}xbf16> {{
  %zero = arith.constant 0.0 : f32
  %q_e = tensor.empty() : tensor<2x8x{queries}x{size}xbf16>
  %q_t = linalg.transpose ins(%q : tensor<2x{queries}x8x{size}xbf16>) outs(%q_e : tensor<2x8x{queries}x{size}xbf16>)
    permutation = [0, 2, 1, 3]
  %q_r = tensor.collapse_shape %q_t [[0, 1], [2], [3]] : tensor<2x8x{queries}x{size}xbf16> into tensor<{heads}xbf16>
{transposed_and_repeated("k", keys, size)}{transposed_and_repeated("v", keys, size)}
  %s_e = tensor.empty() : tensor<{scores}xf32>
  %s_z = linalg.fill ins(%zero : f32) outs(%s_e : tensor<{scores}xf32>) -> tensor<{scores}xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
      affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q_r, %k_r : tensor<{heads}xbf16>, tensor<16x{keys}x{size}xbf16>) outs(%s_z : tensor<{scores}xf32>)
      -> tensor<{scores}xf32>
  %w = linalg.softmax dimension(2) ins(%s : tensor<{scores}xf32>) outs(%s_e : tensor<{scores}xf32>)
    -> tensor<{scores}xf32>
{rounded("%w", scores, "p")}
  %c_e = tensor.empty() : tensor<{heads}xf32>
  %c_z = linalg.fill ins(%zero : f32) outs(%c_e : tensor<{heads}xf32>) -> tensor<{heads}xf32>
  %c = linalg.batch_matmul ins(%p, %v_r : tensor<{scores}xbf16>, tensor<16x{keys}x{size}xbf16>)
      outs(%c_z : tensor<{heads}xf32>) -> tensor<{heads}xf32>
{rounded("%c", heads, "r")}
  return %r : tensor<{heads}xbf16>
}}
"""


@pytest.mark.parametrize(
    "queries, keys, size, target, stages",
    [
        (128, 256, 128, "sm_90a", ["attention"]),
        (128, 64, 128, "sm_90a", ["matmul", "rows", "matmul"]),
        (64, 64, 64, "sm_90a", ["matmul", "rows", "matmul"]),
        (64, 64, 64, "sm_80", ["matmul", "rows", "matmul"]),
    ],
    ids=["one kernel", "keys of one tile", "other sizes", "sm_80"],
)
def test_values_of_shared_heads_are_read_where_they_are(
    queries: int, keys: int, size: int, target: str, stages: list[str]
) -> None:
    function = stepladder.compile(attention(queries, keys, size), target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage.split("_")[1] for launch in function.manifest.launches] == stages
    rng = np.random.default_rng(0)
    shapes = [(2, queries, 8, size), (2, keys, 2, size), (2, keys, 2, size)]
    q, k, v = ((rng.standard_normal(shape) * 0.3).astype(ml_dtypes.bfloat16) for shape in shapes)
    wide = [np.repeat(item.astype(np.float64), 8 // item.shape[2], axis=2) for item in (q, k, v)]
    scores = np.einsum("bshd,bthd->bhst", *wide[:2])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    exact, magnitude = (
        np.einsum("bhst,bthd->bhsd", weights, values).reshape(16, queries, size) for values in (wide[2], abs(wide[2]))
    )
    error = np.abs(np.asarray(function(q, k, v)).astype(np.float64) - exact)
    assert (error <= ROUNDINGS * magnitude).all()


@pytest.mark.skipif(not HAS_STABLEHLO, reason="needs torch-mlir")
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_one_query_of_heads_that_share_keys(target: str) -> None:
    """A step of decoding: the division of the weights becomes part of the kernel of the last product."""
    text = """func.func @f(%q: tensor<2x8x32xbf16>, %k: tensor<2x64x32xbf16>, %v: tensor<2x64x32xbf16>)
    -> tensor<2x8x32xbf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %k, dims = [0, 2, 3] : (tensor<2x64x32xbf16>) -> tensor<2x8x64x32xbf16>
  %1 = stablehlo.broadcast_in_dim %v, dims = [0, 2, 3] : (tensor<2x64x32xbf16>) -> tensor<2x8x64x32xbf16>
  %2 = stablehlo.dot_general %q, %0, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3]
    : (tensor<2x8x32xbf16>, tensor<2x8x64x32xbf16>) -> tensor<2x8x64xf32>
  %3 = stablehlo.exponential %2 : tensor<2x8x64xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [2]
    : (tensor<2x8x64xf32>, tensor<f32>) -> tensor<2x8xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x64xf32>
  %6 = stablehlo.divide %3, %5 : tensor<2x8x64xf32>
  %7 = stablehlo.convert %6 : (tensor<2x8x64xf32>) -> tensor<2x8x64xbf16>
  %8 = stablehlo.dot_general %7, %1, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2]
    : (tensor<2x8x64xbf16>, tensor<2x8x64x32xbf16>) -> tensor<2x8x32xbf16>
  return %8 : tensor<2x8x32xbf16>
}
"""
    function = stepladder.compile(text, target=target, device="emulator")
    rng = np.random.default_rng(0)
    shapes = [(2, 8, 32), (2, 64, 32), (2, 64, 32)]
    q, k, v = ((rng.standard_normal(shape) * 0.3).astype(ml_dtypes.bfloat16) for shape in shapes)
    weights = np.exp(np.einsum("bhd,bkd->bhk", q.astype(np.float64), k.astype(np.float64)))
    weights /= weights.sum(axis=-1, keepdims=True)
    wide = v.astype(np.float64)
    exact, magnitude = (np.einsum("bhk,bkd->bhd", weights, values) for values in (wide, abs(wide)))
    error = np.abs(np.asarray(function(q, k, v)).astype(np.float64) - exact)
    assert (error <= ROUNDINGS * magnitude).all()


# The products of JAX's attention, of B sequences and H heads of keys that G heads of queries share each: what
# `einsum` computes, and the axes of the result in the order that it transposes them to.
SIZES = {"b": 2, "t": 24, "s": 40, "k": 3, "g": 2, "n": 4, "h": 16}
EINSUMS = {
    "bskh,btkgh->bkstg": "bkgts",
    "bskh,bkgts->bkhgt": "btkgh",
    "bsh,btnh->bstn": "bnts",
    "bsh,bnts->bhnt": "btnh",
}


def transposed(spec: str, order: str) -> str:
    """Returns a contraction whose result a transpose gives another order of its axes."""
    result = spec.partition("->")[2]
    types = [f"tensor<{'x'.join(str(SIZES[axis]) for axis in axes)}xf32>" for axes in (result, order)]
    text = contraction(spec, SIZES).replace(f"-> {types[0]} {{\n", f"-> {types[1]} {{\n", 1)
    permutation = ", ".join(str(result.index(axis)) for axis in order)
    return text.replace(
        f"  return %r : {types[0]}",
        f"""  %o = tensor.empty() : {types[1]}
  %t = linalg.transpose ins(%r : {types[0]}) outs(%o : {types[1]}) permutation = [{permutation}]
  return %t : {types[1]}""",
    )


@pytest.mark.parametrize("spec, target", combinations(EINSUMS, ("sm_75", "sm_80", "sm_90a")))
def test_heads_of_an_einsum_are_read_and_written_where_they_are(spec: str, target: str) -> None:
    """Each head of queries is a matmul of its own, which shares its keys or values with others."""
    order = EINSUMS[spec]
    function = stepladder.compile(transposed(spec, order), target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["f_matmul_0"]
    factors, _ = spec.split("->")
    a, b = (small(*(SIZES[axis] for axis in axes)).astype(np.float16) for axes in factors.split(","))
    wanted = np.einsum(f"{factors}->{order}", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_array_equal(np.asarray(function(a, b)), wanted)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_few_rows_of_a_head_are_one_matmul_with_those_of_others(target: str) -> None:
    """A kernel transposes what is written, of matrices of five rows."""
    text = contraction("bskh,bkgts->btkgh", SIZES | {"t": 5, "g": 4})
    function = stepladder.compile(text, target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["f_matmul_0", "f_elementwise_0"]
