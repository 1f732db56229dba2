"""Keys that several heads of queries share, each head of keys several times one after the other, or all of them: no
kernel repeats them."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from combinations import combinations
from small_integers import small

pytestmark = pytest.mark.usefixtures("needs_ptxas")

# 2 sequences of 6 heads of queries and 2 heads of keys.
KEYS, PART, ALL = "tensor<2x2x32x24xf16>", "tensor<2x1x32x24xf16>", "tensor<2x6x32x24xf16>"
QUERIES, SCORES = "tensor<2x6x16x24xf16>", "tensor<2x6x16x32xf32>"
HEAD = f"""func.func @f(%q: {QUERIES}, %k: {KEYS}) -> {SCORES} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {SCORES}
  %z = linalg.fill ins(%zero : f32) outs(%e : {SCORES}) -> {SCORES}
"""
END = f"""  return %r : {SCORES}
}}
"""


def scores(keys: str, given: str, head: str) -> str:
    """Returns the product of queries and keys, of which a head reads one of the given heads."""
    return f"""  %r = linalg.generic {{indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>,
      affine_map<(b, h, m, n, k) -> (b, {head}, n, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}}
      ins(%q, {keys} : {QUERIES}, {given}) outs(%z : {SCORES}) {{
  ^bb0(%x: f16, %y: f16, %o: f32):
    %0 = arith.extf %x : f16 to f32
    %1 = arith.extf %y : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  }} -> {SCORES}
"""


def slices(*heads: int) -> str:
    """Returns a concatenation of heads of keys."""
    text = "".join(
        f"  %k{head} = tensor.extract_slice %k[0, {head}, 0, 0] [2, 1, 32, 24] [1, 1, 1, 1] : {KEYS} to {PART}\n"
        for head in sorted({*heads})
    )
    names = ", ".join(f"%k{head}" for head in heads)
    return f"{text}  %s = tensor.concat dim(1) {names} : ({', '.join([PART] * len(heads))}) -> {ALL}\n"


REMAINDER = f"""  %w = tensor.empty() : {ALL}
  %s = linalg.generic {{indexing_maps = [affine_map<(b, h, n, k) -> (b, h mod 2, n, k)>,
      affine_map<(b, h, n, k) -> (b, h, n, k)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%k : {KEYS}) outs(%w : {ALL}) {{
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }} -> {ALL}
"""
WHOLE = scores("%s", ALL, "h")
# Texts, the head of keys that each head of queries reads, and the kernels.
IN_PLACE = ["f_matmul_0"]
COPIED = ["f_elementwise_0", "f_matmul_0"]
FORMS = {
    "remainder": (REMAINDER + WHOLE, [0, 1, 0, 1, 0, 1], IN_PLACE),
    "remainder in the product": (scores("%k", KEYS, "h mod 2"), [0, 1, 0, 1, 0, 1], IN_PLACE),
    "concatenated": (
        f"  %s = tensor.concat dim(1) %k, %k, %k : ({KEYS}, {KEYS}, {KEYS}) -> {ALL}\n" + WHOLE,
        [0, 1, 0, 1, 0, 1],
        IN_PLACE,
    ),
    "concatenated heads": (slices(0, 0, 0, 1, 1, 1) + WHOLE, [0, 0, 0, 1, 1, 1], []),
    "another order": (slices(1, 1, 1, 0, 0, 0) + WHOLE, [1, 1, 1, 0, 0, 0], COPIED),
    "in turns": (slices(0, 1, 1, 0, 1, 0) + WHOLE, [0, 1, 1, 0, 1, 0], COPIED),
    "one head": (slices(1, 1, 1, 1, 1, 1) + WHOLE, [1] * 6, []),
}


@pytest.mark.parametrize("form, target", combinations(FORMS, ("sm_75", "sm_80", "sm_90a")))
def test_repeated_keys(form: str, target: str) -> None:
    text, heads, stages = FORMS[form]
    compiled = stepladder.compile(HEAD + text + END, target=target, device="emulator")
    launches = [launch.stage for launch in compiled.manifest.launches] if stages else []
    assert launches == stages  # none: a single kernel
    assert isinstance(compiled, stepladder.Function if stages else stepladder.Kernel)
    q, k = small(2, 6, 16, 24).astype(np.float16), small(2, 2, 32, 24).astype(np.float16)
    wanted = np.einsum("bhmk,bhnk->bhmn", q.astype(np.float64), k[:, heads].astype(np.float64))
    np.testing.assert_array_equal(np.asarray(compiled(q, k)).reshape(wanted.shape), wanted)


@pytest.mark.parametrize(
    "sizes, order",
    [([1, 2, 1], [0, 1, 2]), ([2, 2], [0, 1]), ([2, 2], [1, 0])],
    ids=["parts of two sizes", "halves", "exchanged"],
)
def test_concatenated_rows(sizes: list[int], order: list[int]) -> None:
    """Of a tensor that no matmul reads: each part twice, along the outermost dimension."""
    begins = [sum(sizes[:place]) for place in range(len(sizes))]
    text = "".join(
        f"  %{place} = tensor.extract_slice %x[{begins[place]}, 0] [{sizes[place]}, 16] [1, 1]\n"
        f"    : tensor<4x16xf32> to tensor<{sizes[place]}x16xf32>\n"
        for place in range(len(sizes))
    )
    parts = [place for place in order for _ in range(2)]
    types = ", ".join(f"tensor<{sizes[place]}x16xf32>" for place in parts)
    function = stepladder.compile(
        f"func.func @f(%x: tensor<4x16xf32>) -> tensor<8x16xf32> {{\n{text}"
        f"  %r = tensor.concat dim(0) {', '.join(f'%{place}' for place in parts)} : ({types}) -> tensor<8x16xf32>\n"
        "  return %r : tensor<8x16xf32>\n}\n",
        target="sm_80",
        device="emulator",
    )
    x = small(4, 16).astype(np.float32)
    wanted = np.concatenate([x[begins[place] : begins[place] + sizes[place]] for place in parts])
    np.testing.assert_array_equal(np.asarray(function(x)), wanted)
