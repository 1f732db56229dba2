"""Columns of a tensor as operands of matmuls, such as those of a fused weight: kernels read them in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stepladder
from combinations import combinations
from placed_products import product
from stepladder.emulator.functions import EmulatedFunction
from stepladder.verify.function_check import check_function

pytestmark = pytest.mark.usefixtures("needs_ptxas")


def slices(name: str, source: str, rows: int, columns: tuple[int, ...], element: str = "f16") -> str:
    """Returns slices of columns, side by side, of a tensor: `%name0`, `%name1` and so on."""
    whole, found, begin = f"tensor<{rows}x{sum(columns)}x{element}>", "", 0
    for number, count in enumerate(columns):
        found += f"""  %{name}{number} = tensor.extract_slice {source}[0, {begin}] [{rows}, {count}] [1, 1]
    : {whole} to tensor<{rows}x{count}x{element}>
"""
        begin += count
    return found


def of_weight(columns: tuple[int, int]) -> str:
    """Returns products of one A and parts of a weight."""
    one, other = (f"tensor<8x{count}xf32>" for count in columns)
    return f"""func.func @f(%x: tensor<8x48xf16>, %w: tensor<48x{sum(columns)}xf16>) -> ({one}, {other}) {{
  %zero = arith.constant 0.0 : f32
{slices("w", "%w", 48, columns)}{product("a", 8, "%x", "%w0", columns[0])}{product("b", 8, "%x", "%w1", columns[1])}
  return %a, %b : {one}, {other}
}}
"""


# Columns of activations, which the function is called with or computes, and that are also added to a result.
OF_ACTIVATIONS = f"""func.func @f(%x: tensor<8x96xf16>, %w: tensor<48x96xf16>) -> tensor<8x96xf32> {{
  %zero = arith.constant 0.0 : f32
{slices("x", "%x", 8, (48, 48))}{product("a", 8, "%x1", columns=96)}
  %e = tensor.empty() : tensor<8x96xf16>
  %h = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%a, %x : tensor<8x96xf32>, tensor<8x96xf16>) outs(%e : tensor<8x96xf16>) {{
  ^bb0(%p: f32, %q: f16, %o: f16):
    %r = arith.extf %q : f16 to f32
    %s = arith.addf %p, %r : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  }} -> tensor<8x96xf16>
{slices("h", "%h", 8, (48, 48))}{product("b", 8, "%h0", columns=96)}
  return %b : tensor<8x96xf32>
}}
"""
# Columns of columns, such as a block of the k loop of a buffer whose rows have a pitch.
OF_COLUMNS = f"""func.func @f(%x: tensor<8x96xf16>, %w: tensor<48x96xf16>) -> (tensor<8x96xf32>, tensor<8x96xf32>) {{
  %zero = arith.constant 0.0 : f32
  %y = tensor.extract_slice %x[0, 16] [8, 64] [1, 1] : tensor<8x96xf16> to tensor<8x64xf16>
  %y0 = tensor.extract_slice %y[0, 8] [8, 48] [1, 1] : tensor<8x64xf16> to tensor<8x48xf16>
  %y1 = tensor.extract_slice %y[0, 16] [8, 48] [1, 1] : tensor<8x64xf16> to tensor<8x48xf16>
{product("a", 8, "%y0", columns=96)}{product("b", 8, "%y1", columns=96)}
  return %a, %b : tensor<8x96xf32>, tensor<8x96xf32>
}}
"""
# Keys and values that one matmul computes, one after the other, as `einsum` of JAX stacks them: the second is read.
OF_STACKED = f"""func.func @f(%x: tensor<8x96xf16>, %w: tensor<96x48xf16>) -> tensor<8x96xf32> {{
  %zero = arith.constant 0.0 : f32
  %n = tensor.empty() : tensor<48x96xf16>
  %w_t = linalg.transpose ins(%w : tensor<96x48xf16>) outs(%n : tensor<48x96xf16>) permutation = [1, 0]
  %y = tensor.extract_slice %x[0, 0] [8, 48] [1, 1] : tensor<8x96xf16> to tensor<8x48xf16>
{product("a", 96, "%w", "%w_t", 96)}  %e = tensor.empty() : tensor<96x96xf16>
  %h = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%a : tensor<96x96xf32>) outs(%e : tensor<96x96xf16>) {{
  ^bb0(%p: f32, %o: f16):
    %t = arith.truncf %p : f32 to f16
    linalg.yield %t : f16
  }} -> tensor<96x96xf16>
  %h1 = tensor.extract_slice %h[48, 0] [48, 96] [1, 1] : tensor<96x96xf16> to tensor<48x96xf16>
{product("b", 8, "%y", "%h1", 96)}
  return %b : tensor<8x96xf32>
}}
"""
IN_PLACE = ["f_matmul_0", "f_matmul_1"]


# Functions, and what they compute.
READ: dict[str, tuple[str, Callable[..., tuple[np.ndarray, ...]]]] = {
    "weight": (of_weight((40, 24)), lambda x, w: (x @ w[:, :40], x @ w[:, 40:])),
    "activations": (OF_ACTIVATIONS, lambda x, w: ((x[:, 48:] @ w + x)[:, :48] @ w,)),
    "columns": (OF_COLUMNS, lambda x, w: (x[:, 24:72] @ w, x[:, 32:80] @ w)),
    "stacked": (OF_STACKED, lambda x, w: (x[:, :48] @ (w @ w.T)[48:],)),
}


@pytest.mark.parametrize("name, chip", combinations(READ, ("sm_75", "sm_80", "sm_90a")))
def test_columns_are_read_in_place(name: str, chip: str) -> None:
    text, expected = READ[name]
    function = stepladder.compile(text, target=chip, device="emulator", groups=False)
    assert isinstance(function, stepladder.Function)
    assert sorted(launch.stage for launch in function.manifest.launches) == IN_PLACE
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-1, 2, item.shape).astype(np.float16) for item in function.inputs]
    results = function(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    for result, exact in zip(results, expected(*(item.astype(np.float64) for item in arrays)), strict=True):
        np.testing.assert_array_equal(result, exact)
    assert all(report.passed for report in check_function(function.bundle, EmulatedFunction(function.bundle), 0))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (of_weight((36, 28)), {}),  # of rows that begin at multiples of 8 bytes
        (of_weight((40, 24)).replace("f16", "f32"), {}),  # that `wgmma` splits
        (of_weight((40, 24)), {"columns": False}),
    ],
    ids=["not aligned", "f32", "columns=false"],
)
def test_other_columns_are_copied(text: str, options: dict[str, bool]) -> None:
    function = stepladder.compile(text, target="sm_90a", device="emulator", groups=False, **options)
    assert isinstance(function, stepladder.Function)
    stages = [launch.stage for launch in function.manifest.launches]
    assert any("elementwise" in stage for stage in stages)
    generator = np.random.default_rng(0)
    element = np.float32 if "xf16" not in text else np.float16
    arrays = [generator.integers(-1, 2, item.shape).astype(element) for item in function.inputs]
    x, w = (item.astype(np.float64) for item in arrays)
    np.testing.assert_array_equal(np.concatenate(function(*arrays), axis=1), x @ w)
