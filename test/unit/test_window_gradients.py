"""StableHLO: gradients of max poolings, as JAX writes them."""

import importlib.util
import itertools

import numpy as np
import pytest

import stepladder
from stepladder.mlir.bindings import PREFIX

pytestmark = [
    pytest.mark.usefixtures("needs_ptxas"),
    pytest.mark.skipif(importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir"),
]


def _text(extents: tuple[int, int], counts: tuple[int, int], size: int, steps: tuple[int, int], fold: str) -> str:
    x, d = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (extents, counts))
    return f"""
func.func public @main(%x: {x}, %d: {d}) -> {x} {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %d, %zero) <{{window_dimensions = array<i64: {size}, {size}>,
      window_strides = array<i64: {steps[0]}, {steps[1]}>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}, {{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.{fold} %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) : ({x}, {d}, tensor<f32>) -> {x}
  return %0 : {x}
}}
"""


# Windows that follow each other, with elements behind them, that overlap, and that leave elements between them out.
@pytest.mark.parametrize(("size", "steps"), [(2, (2, 2)), (3, (2, 1)), (2, (3, 1))])
def test_gradients_of_max_poolings(size: int, steps: tuple[int, int]) -> None:
    """Of equal elements, the first one of a window gets its value."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (7, 6)).astype(np.float32)
    counts = tuple((extent - size) // step + 1 for extent, step in zip(x.shape, steps))
    d = rng.integers(-8, 8, counts).astype(np.float32)
    wanted = np.zeros_like(x)
    for row, column in itertools.product(*map(range, counts)):
        first = row * steps[0], column * steps[1]
        window = x[first[0] : first[0] + size, first[1] : first[1] + size]
        place = np.unravel_index(window.argmax(), window.shape)
        wanted[first[0] + place[0], first[1] + place[1]] += d[row, column]
    got = stepladder.compile(_text(x.shape, counts, size, steps, "add"), device="emulator", target="sm_80")(x, d)
    assert np.array_equal(got, wanted)


def test_other_scatters_to_windows_are_refused() -> None:
    with pytest.raises(stepladder.StepladderError, match="does not add to zeros where windows have an extremum"):
        stepladder.compile(_text((4, 4), (2, 2), 2, (2, 2), "maximum"), device="emulator", target="sm_80")
