"""Means and variances of channels, and what is normalized by them: few kernels, and the numbers of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder

pytestmark = pytest.mark.usefixtures("needs_ptxas")

X, M = "tensor<4x8x6x6xf32>", "tensor<8xf32>"
ALL = "affine_map<(n, c, h, w) -> (n, c, h, w)>"
CHANNEL = "affine_map<(n, c, h, w) -> (c)>"
SUMS = f'indexing_maps = [{ALL}, {CHANNEL}], iterator_types = ["reduction", "parallel", "reduction", "reduction"]'
ONE = 'indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]'
PARALLEL = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'


def batch_norm(returned: tuple[str, ...], types: tuple[str, ...]) -> str:
    """Returns the text of a batch norm that returns some of its values beside the normalized ones."""

    def mean(name: str, source: str) -> str:
        return f"""  %{name}s = linalg.generic {{{SUMS}}} ins(%{source} : {X}) outs(%z : {M}) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  }} -> {M}
  %{name} = linalg.generic {{{ONE}}} ins(%{name}s : {M}) outs(%em : {M}) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %a, %count : f32
    linalg.yield %s : f32
  }} -> {M}
"""

    results, result_types = (", ".join((first, *rest)) for first, rest in (("%y", returned), (X, types)))
    return f"""func.func @f(%x: {X}) -> ({result_types}) {{
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 144.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %em = tensor.empty() : {M}
  %e = tensor.empty() : {X}
  %z = linalg.fill ins(%zero : f32) outs(%em : {M}) -> {M}
{mean("m", "x")}  %d = linalg.generic {{indexing_maps = [{ALL}, {CHANNEL}, {ALL}], {PARALLEL}}}
      ins(%x, %m : {X}, {M}) outs(%e : {X}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  }} -> {X}
  %q = linalg.generic {{indexing_maps = [{ALL}, {ALL}], {PARALLEL}}} ins(%d : {X}) outs(%e : {X}) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  }} -> {X}
{mean("v", "q")}  %y = linalg.generic {{indexing_maps = [{ALL}, {CHANNEL}, {ALL}], {PARALLEL}}}
      ins(%d, %v : {X}, {M}) outs(%e : {X}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %b, %eps : f32
    %r = math.rsqrt %s : f32
    %t = arith.mulf %a, %r : f32
    linalg.yield %t : f32
  }} -> {X}
  return {results} : {result_types}
}}"""


@pytest.mark.parametrize(
    ("returned", "types"),
    [((), ()), (("%m", "%v"), (M, M)), (("%d",), (X,))],
    ids=["alone", "statistics", "differences"],
)
def test_a_batch_norm_is_two_reductions_and_one_launch_of_what_they_make(
    returned: tuple[str, ...], types: tuple[str, ...]
) -> None:
    compiled = stepladder.compile(batch_norm(returned, types), device="emulator", target="sm_90a")
    assert isinstance(compiled, stepladder.Function)
    assert len(compiled.manifest.launches) == 3
    x = np.random.default_rng(0).standard_normal((4, 8, 6, 6)).astype(np.float32)
    mean = x.astype(float).mean((0, 2, 3))
    d = x - mean[:, None, None]
    variance = (d**2).mean((0, 2, 3))
    wanted = {"%m": mean, "%v": variance, "%d": d, "%y": d / np.sqrt(variance + 1e-5)[:, None, None]}
    results = compiled(x)
    for name, got in zip(("%y", *returned), results if returned else [results], strict=True):
        assert np.abs(got - wanted[name]).max() < 2e-5
